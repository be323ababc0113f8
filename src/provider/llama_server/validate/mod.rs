//! Rules between arguments that need no instance.

use secrecy::ExposeSecret;

use super::{
    bootstrap,
    model::LlamaServer,
    options::{self, Clash},
};
use crate::{
    framework::{Attr, Diagnostics, Path, Secret},
    provider::ssh::Login,
};

/// Rules between arguments that need nobody's answer.
pub(super) fn validate(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    let (write_only, bastion) = (config.write_only(), config.bastion_write_only());
    Login::validate(&config.ssh, !config.instance_id.is_null(), &write_only, &bastion, diagnostics);
    api_key(config, diagnostics);
    build(config, diagnostics);
    extra_args(config, diagnostics);
    environment(config, diagnostics);
    if let (Some("off"), Some(cache)) = (config.flash_attention.as_str(), config.cache_type_v.as_str())
        && options::needs_flash_attention(cache)
    {
        diagnostics.error_at(
            Path::to("cache_type_v"),
            "This cache needs flash attention",
            format!(
                "The server exits at its start with flash_attention = \"off\" and a quantized value cache ({cache}). \
                 Set cache_type_v to \"f16\", or flash_attention to \"on\"."
            ),
        );
    }
}

fn api_key(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    if !config.api_key.is_null() && !config.api_key_wo.is_null() {
        diagnostics.error_at(
            Path::to("api_key_wo"),
            "The same secret twice",
            "Set either api_key, which is stored in the state, or api_key_wo, which is not.",
        );
    }
    if !config.api_key_wo_version.is_null() && config.api_key_wo.is_null() {
        diagnostics.error_at(
            Path::to("api_key_wo_version"),
            "A version without its key",
            "api_key_wo_version says when a new api_key_wo is taken; set that, or remove the version.",
        );
    }
    if !config.api_key_wo.is_null() && config.api_key_wo_version.is_null() {
        diagnostics.error_at(
            Path::to("api_key_wo"),
            "A write-only key without its version",
            "Set api_key_wo_version too, to any number: Terraform cannot detect changes of write-only values, so a \
             new key is taken when the version does.",
        );
    }
}

fn build(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    match config.build.as_str() {
        Some("prebuilt") if !config.source.is_null() => diagnostics.warning_at(
            Path::to("source"),
            "source has no effect",
            "Nothing is compiled with build = \"prebuilt\".",
        ),
        Some("source") if !config.package.is_null() => diagnostics.warning_at(
            Path::to("package"),
            "package has no effect",
            "The prebuilt server is not used with build = \"source\".",
        ),
        _ => {}
    }
    let Attr::Known(source) = &config.source else { return };
    if source.url.as_str().is_some_and(has_credentials) {
        diagnostics.error_at(
            Path::to("source").attribute("url"),
            "Credentials in an address",
            "They would be stored in the state, and shown in plans and logs. Give an address without user and \
             password: let the instance's git know them, or set source.path.",
        );
    }
    let is_fetched = !source.url.is_null() || !source.reference.is_null();
    if !source.path.is_null() && is_fetched {
        diagnostics.error_at(
            Path::to("source").attribute("path"),
            "Two sources",
            "Set either source.path, which is in the instance, or source.url and source.ref, which are fetched with \
             git.",
        );
    }
}

/// Whether an address holds a password or token. The user of SSH is no secret.
fn has_credentials(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':') || scheme.starts_with("http"))
}

fn extra_args(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    for (index, word) in config.extra_args.known().into_iter().flatten().enumerate() {
        let path = Path::to("extra_args").index(index);
        let word = match word {
            Attr::Unknown => continue,
            Attr::Null => {
                diagnostics.error_at(
                    path,
                    "An option that is null",
                    "Each element of extra_args is one word of a command line.",
                );
                continue;
            }
            Attr::Known(word) => word,
        };
        match options::clash(word) {
            Some(Clash::ApiKey) => diagnostics.error_at(
                path,
                "A key on the command line",
                "Everyone on the machine can read a command line, and the state would keep it. Set api_key instead.",
            ),
            Some(Clash::Forbidden(argument)) => diagnostics.error_at(
                path,
                "An option that an argument sets",
                format!(
                    "{word:?} is set with {argument}. The provider checks the server by it, so it cannot be given \
                         twice."
                ),
            ),
            Some(Clash::Set(argument)) => diagnostics.warning_at(
                path,
                "An option that an argument sets",
                format!("{word:?} is set with {argument}; given twice, the last one counts, which is this one."),
            ),
            Some(Clash::Unready(reason)) => diagnostics.error_at(
                path,
                "An option with which no server gets ready",
                format!("{word:?} cannot be set here. {reason}"),
            ),
            None if word.starts_with('-') && word.contains(' ') => diagnostics.warning_at(
                path,
                "An option and its value in one word",
                format!("{word:?} is passed as one word. Write the option and its value as two elements."),
            ),
            None => {}
        }
    }
}

fn environment(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    let is_passable = |value: &Attr<Secret>| {
        value.known().is_none_or(|value| bootstrap::is_passable(value.clone().into_inner().expose_secret()))
    };
    if !config.environment.known().into_iter().flat_map(|variables| variables.values()).all(is_passable) {
        diagnostics.error_at(
            Path::to("environment"),
            "A value that no process takes",
            "A value holds a NUL character.",
        );
    }
    // The names are as sensitive as the values are: a path would show them, so only the whole is pointed at.
    for name in config.environment.known().into_iter().flat_map(|variables| variables.keys()) {
        if let Some(instead) = options::variable_clash(name) {
            diagnostics.error_at(
                Path::to("environment"),
                "A variable that an argument sets",
                format!("{name} cannot be set here. {instead}"),
            );
        } else if !options::is_variable_name(name) {
            diagnostics.error_at(
                Path::to("environment"),
                "Invalid name of a variable",
                format!("{name:?} is no name of an environment variable: letters, digits and _, with no digit first."),
            );
        }
    }
}

#[cfg(test)]
mod tests;
