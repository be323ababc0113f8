//! The schema of the argument `ssh`.

use std::net::Ipv6Addr;

use super::{
    access::USER,
    arguments::{PORT, bare},
};
use crate::{
    api::trimmed,
    framework::{
        Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, Validator},
    },
    provider::rules,
    ssh,
};

/// What logs in: it decides where the credentials are stored, and what happens without a pinned host key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visitor {
    /// A resource.
    Resource,
    /// A data source, whose arguments are in the state.
    DataSource,
    /// An ephemeral resource or an action, which has no state.
    Run,
}

impl Visitor {
    fn storage(self) -> &'static str {
        match self {
            Self::Resource | Self::DataSource => "stored in the state.",
            Self::Run => "not stored in the state.",
        }
    }

    /// What differs from the arguments of the resource, whose page explains them.
    fn differences(self) -> &'static str {
        match self {
            Self::Resource => "",
            Self::DataSource => {
                "`private_key` and `password` are stored in the state; without `host_key` any key is accepted, with a \
                 warning."
            }
            Self::Run => {
                "`private_key` and `password` are not stored; without `host_key` any key is accepted, with a warning."
            }
        }
    }

    fn without_host_key(self, whose: &str) -> &'static str {
        match self {
            Self::Resource => "Without it, the first key that is seen is pinned.",
            _ if whose == "host" => "Without it and `host_key`, any key is accepted, with a warning.",
            _ => "Without it, any key is accepted, with a warning.",
        }
    }
}

/// The arguments of one host, in the order of the documentation.
fn attributes(visitor: Visitor, whose: &str, host: Attribute) -> Vec<Attribute> {
    let storage = visitor.storage();
    vec![
        host,
        Attribute::optional(
            "port",
            Type::Number,
            format!(
                "The port for SSH. Default: `{PORT}`{}.",
                if whose == "host" { ", or the service's value for `instance_id`" } else { "" }
            ),
        )
        .validate(Validator::between(1..=65535)),
        Attribute::with_default("user", Type::String, USER, "The user to log in as.")
            .validate(Validator::text("a string without spaces", |user| {
                !user.is_empty() && !user.contains(char::is_whitespace)
            })),
        Attribute::optional(
            "private_key",
            Type::String,
            format!("The private key itself, without a passphrase; {storage}"),
        )
        .sensitive()
        .validate(private_key()),
        Attribute::optional(
            "private_key_file",
            Type::String,
            "A file with the private key, on the computer that runs Terraform; `~/` is its user's home. Only the path \
             is stored. With `agent`, a key with a passphrase or a `.pub` file names the agent's key to use.",
        )
        .validate(Validator::text("a path", |path| !path.trim().is_empty() && !path.contains('\n'))),
        Attribute::with_default(
            "agent",
            Type::Bool,
            false,
            "Whether to try the keys of the SSH agent (`SSH_AUTH_SOCK`, or on Windows the pipe of OpenSSH's agent).",
        ),
        Attribute::optional(
            "host_key",
            Type::String,
            format!("The host key that the {whose} must present. {}", visitor.without_host_key(whose)),
        )
        .validate(host_key()),
        timeout(whose).validate(Validator::duration()),
    ]
}

/// The argument `timeout`. The bastion's, if set, is added to the host's.
fn timeout(whose: &str) -> Attribute {
    let text = format!("How long to wait until the {whose} accepts a login, for example while it is starting.");
    match whose {
        "host" => Attribute::with_default("timeout", Type::String, "5m", text),
        _ => Attribute::optional("timeout", Type::String, format!("{text} It is added to `ssh.timeout`.")),
    }
}

/// The rule for a private key given as text.
pub(crate) fn private_key() -> Validator {
    Validator::text("the text of a private key, beginning with -----BEGIN, and not the path of its file", |key| {
        trimmed(key).starts_with("-----BEGIN")
    })
}

/// The rule for a pinned host key.
fn host_key() -> Validator {
    Validator::text("an OpenSSH public-key line (ssh-ed25519 AAAA…) or a fingerprint (SHA256:…)", |key| {
        key.parse::<ssh::Pin>().is_ok()
    })
}

/// The login arguments of data sources, ephemeral resources and actions: `instance_id`, `ssh` and `host_key`.
pub(crate) fn visit(visitor: Visitor) -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "instance_id",
            Type::String,
            "The instance. Address, port and password come from the service.",
        )
        .validate(rules::instance_uid()),
        attribute(
            visitor,
            "How to log in, as in `damodel_llama_server`. With `instance_id`, only what the service does not provide \
             is needed.",
        ),
        visited_host_key(),
    ]
}

/// The argument `host_key` of such a login.
pub(crate) fn visited_host_key() -> Attribute {
    Attribute::optional(
        "host_key",
        Type::String,
        "The SSH host key that the instance must present: `damodel_llama_server.x.host_key`. Without it any key is \
         accepted, with a warning.",
    )
    .validate(host_key())
}

/// The schema of the argument. Changing the host of a resource replaces it.
pub(crate) fn attribute(visitor: Visitor, description: &str) -> Attribute {
    let replacement = match visitor {
        Visitor::Resource => Replacement::Always,
        Visitor::DataSource | Visitor::Run => Replacement::Never,
    };
    let address = || {
        Validator::text("a host name or an address, without a port and a user: set port and user", |host| {
            let host = bare(host);
            // The resolver knows no other letters. An IPv6 address may name its zone: fe80::1%eth0.
            let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            let is_name = !host.is_empty() && host.chars().all(is_of_a_name);
            is_name || host.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
        })
    };
    let host = Attribute::optional(
        "host",
        Type::String,
        "The address for SSH. Default: the service's value for `instance_id`.",
    )
    .replaces(replacement)
    .validate(address());
    let bastion = Attribute::required("host", Type::String, "The bastion's address.").validate(address());
    let bastion = attributes(visitor, "bastion", bastion);
    let mut all = attributes(visitor, "host", host);
    let storage = visitor.storage();
    all.extend([
        Attribute::optional(
            "certificate",
            Type::String,
            "The certificate for the private key, which may be the agent's: the text of its `-cert.pub` file.",
        )
        .validate(Validator::text("an OpenSSH certificate (ssh-…-cert-v01@openssh.com AAAA…)", |text| {
            text.split_whitespace().next().is_some_and(|kind| kind.ends_with("-cert-v01@openssh.com"))
        })),
        Attribute::optional("password", Type::String, format!("The password; {storage}")).sensitive(),
    ]);
    all.push(Attribute::optional(
        "bastion",
        AttributeType::Nested(Nesting::Single, bastion),
        "A host through which the connection is made, with its own credentials and host key.",
    ));
    let description = format!("{description} {}", visitor.differences());
    Attribute::optional("ssh", AttributeType::Nested(Nesting::Single, all), description.trim_end())
}
