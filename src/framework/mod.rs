//! The framework of resources: schemas, typed models with null and unknown, paths, diagnostics, plan rules, private
//! data, life-cycle traits. It uses neither gRPC nor the service. "The core" is Terraform or OpenTofu.

mod attr;
mod diagnostics;
mod ephemeral;
#[cfg(test)]
mod faults;
mod function;
mod generate;
mod identity;
mod model;
mod plan_rules;
mod private;
mod registry;
mod resource;
pub mod schema;
pub mod server;
mod settle;
mod steps;
pub mod timeouts;
pub mod value;

pub use self::diagnostics::{Path, PathStep};
pub use self::resource::{Action, ActionProgress};
pub use self::resource::{ListEvent, ListResource, ListSender, Listed};
pub use attr::{Attr, Secret};
pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use ephemeral::{EphemeralResource, Opened};
pub use function::{CallError, Function, FunctionError, Parameter, Signature};
pub use identity::{Identity, IdentityAttribute, IdentitySchema};
pub use model::{FromValue, Model, ModelError, ToValue, from_value, is_set, to_value};
pub use private::Private;
pub use registry::{OfferKind, Offering, Provider, Registry};
pub use resource::{Create, DataSource, Outcome, Plan, PlanContext, PlanKind, Resource, State, StepContext, Update};
pub use schema::Schema;
pub use server::{Ends, Server};
pub use settle::OTHERWISE;
pub use value::{Type, Value};
