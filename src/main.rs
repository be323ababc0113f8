//! The command line.

use std::process::ExitCode;

use damodel::plugin::{self, Environment, Options};
use tonic::service::Routes;

fn main() -> ExitCode {
    plugin::install_panic_hook();
    let variable = |name: &str| std::env::var_os(name);
    plugin::log::install(&plugin::log::Settings::read("damodel", variable));
    let options = Options::default();
    if std::env::args_os().nth(1).is_some_and(|flag| flag == "-debug") {
        return plugin::block_on(async {
            let environment = Environment::read(variable)?;
            plugin::serve_debug(Routes::default(), "damodel/damodel", &environment, options).await
        });
    }
    if !plugin::started_by_core(variable) {
        return plugin::help();
    }
    plugin::block_on(async {
        let environment = Environment::read(variable)?;
        plugin::serve(Routes::default(), &environment, options).await
    })
}
