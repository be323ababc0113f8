//! From an error of the service to what the operator reads: one table says, for each endpoint and code, which attribute is to
//! blame and what to do.

use crate::{
    api::{Code, Endpoint, Error, Missing},
    framework::{Diagnostic, Path},
};

/// A call that failed, and what the operator needs to know around it.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    /// What went wrong.
    pub(super) error: &'a Error,
    /// What was tried, as it reads after "Cannot": `create instance "trainer"`.
    pub(super) tried: String,
    /// What state things are in now, in a sentence.
    pub(super) now: String,
}

/// What an error means: a short title, the attributes that may be to blame, and what to do.
struct Meaning {
    title: &'static str,
    attributes: &'static [&'static str],
    advice: &'static str,
}

impl Failure<'_> {
    /// The diagnostic, at the first attribute to blame that the configuration sets.
    pub(super) fn diagnostic(&self, is_set: impl Fn(&str) -> bool) -> Diagnostic {
        let meaning = meaning(self.error);
        let mut detail = String::new();
        for part in [meaning.advice, &self.now, &self.account()] {
            if !part.is_empty() {
                if !detail.is_empty() {
                    detail.push_str("\n\n");
                }
                detail.push_str(part);
            }
        }
        let diagnostic = Diagnostic::error(format!("Cannot {}: {}", self.tried, meaning.title), detail);
        let named = self.named_attribute().into_iter();
        match named.chain(meaning.attributes.iter().copied()).find(|name| is_set(name)) {
            Some(name) => diagnostic.at(Path::to(name)),
            None => diagnostic,
        }
    }

    /// The diagnostic about the whole thing.
    pub(super) fn whole(&self) -> Diagnostic {
        self.diagnostic(|_| false)
    }

    /// The same as a warning: the step goes on.
    pub(super) fn warning(&self) -> Diagnostic {
        let error = self.whole();
        Diagnostic::warning(error.summary, error.detail)
    }

    /// The same for a check of a plan that could not be made: a warning, unless nothing is configured to make it with.
    pub(super) fn of_a_check(&self) -> Diagnostic {
        if matches!(self.error, Error::Missing(_)) { self.whole() } else { self.warning() }
    }

    /// The error in the service's own words, with its code and ids.
    fn account(&self) -> String {
        match self.error.service() {
            Some(service) => format!(
                "The service says: {} (code {} {}, endpoint {}){}.",
                if service.message.is_empty() { "nothing more" } else { service.message.trim_end_matches('.') },
                service.code.number(),
                service.code_name(),
                service.endpoint,
                service.ids,
            ),
            None => format!("The error: {}.", self.error),
        }
    }

    /// An attribute whose service field the message of an invalid parameter names.
    fn named_attribute(&self) -> Option<&'static str> {
        let service = self.error.service().filter(|service| service.code == Code::InvalidParameter)?;
        let words = || service.message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        FIELDS.iter().find(|(field, _)| words().any(|word| word == *field)).map(|(_, attribute)| *attribute)
    }
}

/// Fields of the service whose attribute has the same name or another one (service API, POST /api/instance/create).
const FIELDS: [(&str, &str); 22] = [
    ("auto_renew", "auto_renew"),
    ("capacity_type", "capacity_type"),
    ("data_disk_expand_size", "data_disk_expand_size_gb"),
    ("data_disk_mount_path", "data_disk_mount_path"),
    ("exist_disks", "exist_disks"),
    ("external_ip", "external_ip"),
    ("gpu_num", "gpu_num"),
    ("image_id", "image_id"),
    ("image_type", "image_type"),
    ("image", "image"),
    ("instance_alias", "name"),
    ("instance_hostname", "hostname"),
    ("label", "label"),
    ("login_method", "login_method"),
    ("name", "name"),
    ("new_disks", "new_disks"),
    ("object_mounts", "object_mounts"),
    ("payment_type", "payment_type"),
    ("purchase_duration", "purchase_duration"),
    ("region", "region"),
    ("ssh_pubkey_id", "ssh_pubkey_id"),
    ("ssh_pubkey_name", "ssh_pubkey_name"),
];

fn meaning(error: &Error) -> Meaning {
    match (error.service(), error.endpoint()) {
        (Some(service), _) => service_meaning(service.endpoint, service.code),
        (None, _) => local_meaning(error),
    }
}

/// The table (service API, Errors).
fn service_meaning(endpoint: Endpoint, code: Code) -> Meaning {
    let (title, attributes, advice): (_, &[&str], _) = match code {
        Code::InvalidParameter if endpoint == Endpoint::SpecList => (
            "the service does not accept the query",
            &["region", "capacity_type"],
            "Check the region and the capacity type (ondemand or spot).",
        ),
        Code::InvalidParameter => {
            ("the service does not accept a value", &[], "Correct the value that the service names, then apply again.")
        }
        Code::InvalidToken => (
            "the service does not accept the API token",
            &[],
            "Check the provider's api_token (or DAMODEL_API_TOKEN, or api_token_command), that it belongs to base_url, and this \
             machine's clock: the service refuses requests whose timestamp is off.",
        ),
        Code::InternalError => (
            "the service had an internal error",
            &[],
            "Try again later; if it stays, give the ids below to the service's support.",
        ),
        Code::BalanceNotEnough => {
            ("the balance is too low", &[], "Top up the main account's balance, then apply again.")
        }
        Code::PermissionDenied => (
            "permission denied",
            &[],
            "The sub-account of this API token lacks the permission. Grant it in the console, or use another token.",
        ),
        Code::UserCanNotCreateInstance => (
            "the account may not create instances",
            &[],
            "The account or its risk state forbids it. Settle this with the service's support.",
        ),
        Code::ResourceInsufficient | Code::NoMatchNode => (
            "not enough stock",
            &["gpu_num", "spec_id", "spec_type"],
            "Nothing fits right now. Ask for fewer GPUs or another specification or region (the data source damodel_specs lists \
             what is available), or set wait_for_capacity to keep asking.",
        ),
        Code::InstanceNotExistOrNoPrivilege => (
            "the service does not know the instance",
            &[],
            "It does not exist, or it belongs to another account than the API token's. Check base_url and the token.",
        ),
        Code::InstanceNotExistOrAlreadyReleased => {
            ("the instance does not exist or is released already", &[], "Run a plan to see what the service has now.")
        }
        Code::InstanceCanNotBeReleased => (
            "the service forbids the release",
            &[],
            "Its status or billing does not allow it now; a prepaid machine can often be released only when its term ends. Try \
             again then, or set on_unreleasable = \"abandon\" (or DAMODEL_ON_UNRELEASABLE=abandon) to drop it from the state and \
             leave it to its term.",
        ),
        Code::SpecNotExistOrDisable => (
            "the specification is missing, disabled or sold out",
            &["spec_id", "spec_type"],
            "Choose a specification that the data source damodel_specs shows with max_gpu_count above 0 in this region, or set \
             wait_for_capacity to keep asking.",
        ),
        Code::CreateInstanceFailedForNotCertified => (
            "the main account is not certified",
            &[],
            "Complete the real-name certification of the main account in the console.",
        ),
        Code::FailedForInvalidImage => (
            "the image cannot be used",
            &["image_id", "image"],
            "It does not exist, is not ready, is disabled, or the account may not use it.",
        ),
        Code::CreateInstanceFailedCudaNotMatch => (
            "the image needs a newer CUDA than the specification has",
            &["image_id", "image"],
            "Choose an image with an older CUDA, or a specification whose highest_cuda is at least the image's.",
        ),
        Code::MountCloudDiskFailed => (
            "a cloud disk could not be mounted",
            &["exist_disks", "new_disks"],
            "Check that each disk is available, in the same region, and that no two share a mount path.",
        ),
        Code::ExceededCloudDiskMaxCount => (
            "too many cloud disks",
            &["exist_disks", "new_disks"],
            "One instance takes at most 8 cloud disks, existing and new ones together.",
        ),
        Code::CreateCloudDiskError => (
            "a cloud disk could not be created",
            &["new_disks"],
            "Check the disk's specification and size; if they are right, try again later.",
        ),
        _ => ("the service refused", &[], ""),
    };
    Meaning { title, attributes, advice }
}

/// Errors that never were the service's.
fn local_meaning(error: &Error) -> Meaning {
    let (title, advice) = match error {
        Error::Cancelled { .. } => ("it was stopped", "The run was told to stop."),
        Error::DeadlinePassed { .. } => (
            "the time ran out",
            "The service did not answer within the timeout of this step. Raise it in the timeouts block.",
        ),
        Error::Journal(_) => (
            "the note of the create could not be written",
            "Before a create is sent it is written down, so that a killed run cannot lose a paid machine. Make the directory \
             writable, or choose another with the provider's pending_dir (or DAMODEL_PENDING_DIR).",
        ),
        Error::Missing(Missing::BaseUrl) => (
            "the service's address is not set",
            "Set the provider's base_url, or the environment variable DAMODEL_BASE_URL.",
        ),
        Error::Missing(Missing::ApiToken) => (
            "the API token is not set",
            "Set the environment variable DAMODEL_API_TOKEN, or the provider's api_token or api_token_command.",
        ),
        Error::Missing(Missing::ApiKey) => {
            ("the API key is not set", "Set the environment variable DAMODEL_API_KEY, or the provider's api_key.")
        }
        Error::NeverSent { .. } => (
            "the service cannot be reached",
            "Check the provider's base_url, the network, proxies and certificates. Nothing was sent.",
        ),
        Error::NoAnswer { .. } => {
            ("the service did not answer", "The request was sent, and whether it took effect is not known.")
        }
        Error::Redirected { .. } => (
            "the service answered with a redirect",
            "Redirects are refused, since they would carry the API token elsewhere. Set base_url to the final address.",
        ),
        Error::Token(_) => (
            "the API token could not be fetched",
            "The program of api_token_command must print the token and end with success within 30 seconds.",
        ),
        Error::Transport { .. } => (
            "no HTTP client could be made",
            "Check the machine's certificate store and the provider's ca_certificate_file.",
        ),
        Error::Undecodable(_) | Error::UndocumentedStatus(_) => (
            "the answer is not the service's",
            "Something between here and the service, such as a proxy, may have answered. Check base_url.",
        ),
        Error::Unsettled(_) => (
            "its outcome is not known",
            "The request was sent and its answer lost, and nothing by its name has shown up yet. It is written down: the next apply \
             of the same configuration looks for it before it creates anything.",
        ),
        Error::SeveralMatches { .. } => {
            ("several things carry its name", "None of them was touched. Import the right one and release the others.")
        }
        Error::WaitEnded(_) => ("the wait ended", ""),
        _ => ("it failed", ""),
    };
    Meaning { title, attributes: &[], advice }
}
