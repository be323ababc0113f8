//! What a resource is written in: schemas, typed models with null and unknown, paths, diagnostics, plan rules, private
//! data and the life-cycle traits. It knows nothing of gRPC and nothing of the service.

mod action;
mod assumed;
mod attr;
mod config_rules;
mod diagnostics;
mod ephemeral;
#[cfg(test)]
mod faults;
mod fill;
mod function;
mod generate;
mod identity;
mod list_resource;
mod model;
mod path;
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

pub use action::{Action, Progress};
pub use attr::{Attr, Secret};
pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use ephemeral::{EphemeralResource, Opened};
pub use function::{CallError, Function, FunctionError, Parameter, Signature};
pub use identity::{Identity, IdentityAttribute, IdentitySchema};
pub use list_resource::{Found, ListEvent, ListResource, Listed};
pub use model::{Model, ModelError, from_value, is_set, overlay, project, to_value};
pub use path::{Path, Step};
pub use private::Private;
pub use registry::{Entry, Kind, Provider, Registry};
pub use resource::{Context, Create, DataSource, Outcome, Plan, PlanContext, PlanKind, Resource, State, Update};
pub use schema::Schema;
pub use server::{Ends, Server};
pub use settle::OTHERWISE;
pub use value::{Type, Value};
