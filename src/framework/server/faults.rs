use super::Server;
use crate::framework::{ModelError, Provider, Type, schema::Schema};

impl<P: Provider> Server<P> {
    /// Everything that is wrong with the declarations: schemas that the core would refuse, and models that do not have the
    /// attributes of their schema. A test holds every provider to none.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let provider = crate::framework::shape::<P::Model>();
        compare("the provider", &self.schemas.provider, provider, &mut faults);
        for (name, resource) in &self.resources {
            compare(name, resource.schema(), resource.shape(), &mut faults);
        }
        for (name, source) in &self.data_sources {
            compare(name, source.schema(), source.shape(), &mut faults);
        }
        faults
    }
}

fn compare(name: &str, schema: &Schema, shape: Result<Type, ModelError>, faults: &mut Vec<String>) {
    faults.extend(schema.faults().iter().map(|fault| format!("{name}: {fault}")));
    match shape {
        Err(error) => faults.push(format!("{name}: the model cannot be probed: {error}")),
        Ok(shape) if shape != as_model(&schema.ty()) => {
            faults.push(format!("{name}: the model is {shape:?}, the schema {:?}", schema.ty()));
        }
        Ok(_) => {}
    }
}

/// The type as a model can express it: a set is a sequence there.
fn as_model(ty: &Type) -> Type {
    match ty {
        Type::List(element) | Type::Set(element) => Type::list(as_model(element)),
        Type::Map(element) => Type::map(as_model(element)),
        Type::Object(attributes) => Type::object(attributes.iter().map(|(name, ty)| (name.clone(), as_model(ty)))),
        Type::Tuple(elements) => Type::Tuple(elements.iter().map(as_model).collect()),
        Type::Bool | Type::Dynamic | Type::Number | Type::String => ty.clone(),
    }
}
