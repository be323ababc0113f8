//! The real command line (`terraform`, `tofu`) on the sandbox, in the way of terraform-plugin-testing.
//!
//! ```ignore
//! each_workspace(|_, workspace| {
//!     workspace.apply_ok(&config(Instance::new("x")));
//!     workspace.finish();
//! });
//! ```

mod age;
mod cli;
mod diagnostic;
mod hcl;
mod import;
mod notes;
mod plan;
mod site;
mod started;
mod state;
mod token_program;
mod workspace;

pub(crate) use self::{
    cli::{Cli, each_cli, each_cli_since, each_program, each_workspace, each_workspace_on, each_workspace_since},
    diagnostic::{Diagnostic, Severity, refusal, refusal_of, says},
    hcl::{Instance, config, config_with, disk, image, unchecked},
    notes::Note,
    plan::Plan,
    site::Site,
    started::Started,
    state::State,
    workspace::{Installation, Run, Workspace},
};
