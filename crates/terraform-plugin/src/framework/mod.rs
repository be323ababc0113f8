//! The framework of resources: schemas, typed models with null and unknown, paths, diagnostics, plan rules, private
//! data, life-cycle traits. It uses neither gRPC nor the service. "The core" is Terraform or OpenTofu.

mod assumed;
mod attr;
mod diagnostics;
mod ephemeral;
mod function;
mod generate;
mod identity;
mod model;
mod plan_rules;
mod private;
mod registry;
mod resource;
mod result;
pub mod schema;
pub mod server;
#[cfg(any(test, feature = "testing"))]
mod soundness;
mod steps;
pub mod timeouts;
pub mod value;

pub use self::diagnostics::{Path, PathStep};
pub use self::resource::{Action, ActionProgress};
pub use self::resource::{ListEvent, ListResource, ListSender, Listed};
pub use attr::{Attr, Secret};
pub use diagnostics::{Diagnostic, Diagnostics, Result, Severity};
pub use ephemeral::{EphemeralResource, Opened};
pub use function::{CallError, Function, FunctionError, Parameter, Signature};
pub use identity::{Identity, IdentityAttribute, IdentitySchema};
pub use model::{FromValue, Model, ModelError, ToValue, from_value, is_set, to_value};
pub use private::Private;
pub(crate) use registry::Offered;
pub use registry::{ConfigureContext, OfferKind, Offering, Provider, Registry};
pub use resource::{
    Create, CreatePlan, DataSource, DestroyPlan, Outcome, PlanContext, Resource, State, StepContext, Update,
    UpdatePlan, Walk,
};
pub use result::OTHERWISE;
pub use schema::Schema;
pub use server::{Ends, Server};
pub use value::{Type, Value};
