//! The function `cheapest_spec`.

use crate::framework::{
    Function, FunctionError, Parameter, Signature, Type, Value,
    schema::validator,
    value::{Dynamic, Number},
};

/// The fields that each specification must have; `gpu_mem_mb` is read only with a minimum.
const FIELDS: [&str; 3] = ["spec_id", "max_gpu_count", "hourly_price"];

/// `cheapest_spec(specs, gpu_num, min_gpu_mem_mb...)`.
#[derive(Debug)]
pub(in crate::provider) struct CheapestSpec;

impl Function for CheapestSpec {
    type Arguments = Value;
    type Output = Value;

    fn name(&self) -> &'static str {
        "cheapest_spec"
    }

    fn signature(&self) -> Signature {
        Signature {
            summary: "The cheapest specification that can be created now".to_owned(),
            description: "Finds, among specifications, the one with the lowest `hourly_price` that has `gpu_num` GPUs \
                          available in one instance now; of several at the same price the one with the lowest \
                          `spec_id`. With `min_gpu_mem_mb`, only specifications whose GPUs have at least that much \
                          memory. The result is that object, with all its fields. Stock and prices change: \
                          `ignore_changes = [spec_id]` keeps the specification of an instance that was created with \
                          the result."
                .to_owned(),
            parameters: vec![
                Parameter::new(
                    "specs",
                    Type::Dynamic,
                    "The specifications to choose from: `specs` of `damodel_specs`, some of them, or other objects \
                     with `spec_id`, `max_gpu_count`, `hourly_price` and, if a minimum is given, `gpu_mem_mb`.",
                ),
                Parameter::new("gpu_num", Type::Number, "How many GPUs the instance needs.")
                    .validate(validator::between(1..=i64::MAX)),
            ],
            variadic: Some(
                Parameter::new("min_gpu_mem_mb", Type::Number, "The minimum memory of one GPU in MB.")
                    .validate(validator::between(0..=i64::MAX)),
            ),
            returns: Type::Dynamic,
        }
    }

    /// The chosen specification as it came.
    fn call(&self, arguments: Value) -> Result<Value, FunctionError> {
        let gpu_num = arguments.attribute("gpu_num");
        let least = numbers(elements(arguments.attribute("min_gpu_mem_mb")).iter()).max();
        let has =
            |spec: &Value, field: &str, least: &Number| number(spec.attribute(field)).is_some_and(|own| own >= least);
        let choices = typed(arguments.attribute("specs"))
            .ok_or_else(|| FunctionError::on("specs", "must be a list of specifications"))?;
        let mut specs: Vec<&Value> = choices.iter().map(|(_, spec)| *spec).filter(|spec| !spec.is_null()).collect();
        for field in FIELDS {
            if !specs.iter().all(|spec| matches!(spec, Value::Object(fields) if fields.contains_key(field))) {
                return Err(FunctionError::on("specs", format!("each element must be an object with {field}")));
            }
        }
        specs.retain(|spec| least.is_none_or(|least| has(spec, "gpu_mem_mb", least)));
        let most = numbers(specs.iter().map(|spec| spec.attribute("max_gpu_count"))).max();
        let Some(most) = most.filter(|most| **most > Number::from(0_i64)) else {
            let text = match least {
                Some(least) => format!("no specification with {least} MB of memory for each GPU is available now"),
                None => "none of these specifications is available now".to_owned(),
            };
            return Err(FunctionError::on("specs", text));
        };
        let Some(gpu_num) = number(gpu_num).filter(|gpu_num| *gpu_num <= most) else {
            let text = format!("no instance with that many GPUs is available now: at most {most} fit in one");
            return Err(FunctionError::on("gpu_num", text));
        };
        specs.retain(|spec| has(spec, "max_gpu_count", gpu_num) && number(spec.attribute("hourly_price")).is_some());
        let cheapest = specs.into_iter().min_by_key(|spec| (spec.attribute("hourly_price"), spec.attribute("spec_id")));
        let cheapest = cheapest.and_then(|cheapest| choices.iter().find(|(_, spec)| std::ptr::eq(*spec, cheapest)));
        cheapest
            .map(|(ty, spec)| Value::Dynamic(Box::new(Dynamic { ty: (*ty).clone(), value: (*spec).clone() })))
            .ok_or_else(|| FunctionError::on("specs", "no specification that is available now has an hourly price"))
    }
}

/// The elements of a list of any type, each with its type.
fn typed(list: &Value) -> Option<Vec<(&Type, &Value)>> {
    let Value::Dynamic(list) = list else { return None };
    match (&list.ty, &list.value) {
        (Type::List(ty), Value::List(elements)) | (Type::Set(ty), Value::Set(elements)) => {
            Some(elements.iter().map(|element| (ty.as_ref(), element)).collect())
        }
        (Type::Tuple(types), Value::Tuple(elements)) => Some(types.iter().zip(elements).collect()),
        _ => None,
    }
}

fn elements(list: &Value) -> &[Value] {
    if let Value::List(elements) = list { elements } else { &[] }
}

fn number(value: &Value) -> Option<&Number> {
    if let Value::Number(number) = value { Some(number) } else { None }
}

fn numbers<'a>(values: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = &'a Number> {
    values.filter_map(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(id: i64, count: i64, price: Option<&str>) -> Value {
        let price = price.map(|price| Value::Number(price.parse().unwrap())).unwrap_or_default();
        Value::object([("spec_id", id.into()), ("max_gpu_count", count.into()), ("hourly_price", price)])
    }

    fn cheapest(specs: Vec<Value>, gpu_num: i64) -> Result<Value, FunctionError> {
        cheapest_with(specs, gpu_num, &[])
    }

    fn cheapest_with(specs: Vec<Value>, gpu_num: i64, memory: &[i64]) -> Result<Value, FunctionError> {
        let memory = memory.iter().map(|memory| Value::from(*memory)).collect();
        CheapestSpec
            .call(Value::object([
                ("specs", Value::Dynamic(Box::new(Dynamic { ty: Type::list(Type::Bool), value: Value::List(specs) }))),
                ("gpu_num", gpu_num.into()),
                ("min_gpu_mem_mb", Value::List(memory)),
            ]))
            .map(|cheapest| if let Value::Dynamic(cheapest) = cheapest { cheapest.value } else { cheapest })
    }

    #[test]
    fn the_cheapest_that_fits_is_found() {
        let specs = || {
            vec![
                spec(4, 8, Some("2")),
                spec(3, 8, Some("2.0")),
                spec(2, 1, Some("1")),
                spec(1, 0, Some("0.5")),
                Value::Null,
            ]
        };
        assert_eq!(cheapest(specs(), 1), Ok(spec(2, 1, Some("1"))), "as it came");
        assert_eq!(cheapest(specs(), 2), Ok(spec(3, 8, Some("2"))), "of equal prices the first by number");
    }

    #[test]
    fn only_cards_with_the_memory_count() {
        let with = |id: i64, price, memory: i64| {
            let mut spec = spec(id, 8, Some(price));
            spec.set_attribute("gpu_mem_mb", memory.into());
            spec
        };
        let specs = || vec![with(1, "1", 24_576), with(2, "2", 81_920), spec(3, 8, Some("0.1"))];
        let chosen = |memory: &[i64]| cheapest_with(specs(), 1, memory).map(|spec| spec.attribute("spec_id").clone());
        assert_eq!(chosen(&[24_577]), Ok(2.into()));
        assert_eq!(chosen(&[10, 24_576]), Ok(1.into()));
        assert_eq!(chosen(&[]), Ok(3.into()));
        let none = chosen(&[81_921]).unwrap_err();
        assert_eq!(none.parameter.as_deref(), Some("specs"));
        assert!(none.text.contains("81921 MB"), "{}", none.text);
    }

    #[test]
    fn what_is_not_found_is_the_right_arguments_fault() {
        let blamed = |specs, gpu_num| cheapest(specs, gpu_num).unwrap_err().parameter.unwrap();
        assert_eq!(blamed(vec![], 1), "specs");
        assert_eq!(blamed(vec![spec(1, 0, Some("1"))], 1), "specs");
        assert_eq!(blamed(vec![spec(1, 8, None)], 1), "specs");
        assert_eq!(blamed(vec![spec(1, 4, Some("1")), spec(2, 8, None)], 9), "gpu_num");
        assert!(cheapest(vec![spec(1, 4, Some("1"))], 9).unwrap_err().text.contains("at most 4"));
        let without = Value::object([("spec_id", 1.into()), ("max_gpu_count", 1.into())]);
        assert!(cheapest(vec![without], 1).unwrap_err().text.contains("hourly_price"));
    }
}
