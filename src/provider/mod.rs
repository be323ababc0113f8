//! The provider damodel: its configuration, the list of everything that it offers, and a folder for each resource.
//!
//! A resource never uses the folder of another resource; shared code is in this folder.

mod account_budget;
mod chat_completion;
mod client;
mod cloud_disk;
mod cloud_disk_specs;
mod columns;
mod configuration;
mod disk_sizes;
mod environment;
mod errors;
mod images;
mod instance;
mod lifecycle;
mod llama_server;
pub(crate) mod login;
mod meanings;
mod model;
mod model_files;
mod pending;
pub(crate) mod pricing;
mod private_image;
mod protection;
mod public_images;
mod registry;
pub(crate) mod rules;
mod source;
mod specs;
pub(crate) mod words;

pub use client::{DestroyFallback, OnLeftover, ProviderClient};
use client::{PlanContext, StepContext};
pub use configuration::Configuration;
pub(crate) use configuration::token_of_environment;
pub use environment::{Environment, NoHome, home_of_user};
pub(crate) use errors::database_id_hint;
pub use registry::{ADDRESS, Damodel};
pub(crate) use registry::{arguments, loggable_fields};
