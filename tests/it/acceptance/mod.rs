//! The real Terraform and OpenTofu drive the provider on the sandbox.

mod absence;
mod capacity;
mod codes;
mod configuration;
mod counts;
mod credentials;
mod data_sources;
mod disks;
mod endings;
mod faults;
mod forms;
mod images;
mod import;
mod interruptions;
mod life_cycle;
mod lists;
mod plan_options;
mod prices;
mod protection;
mod replacement;
mod secrets;
mod silence;
mod validation;
mod whole;
