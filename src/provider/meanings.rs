//! The meaning of each error: a table from endpoint and code to the blamed attribute and the advice.

use std::{borrow::Cow, io};

use crate::api::{Cause, Code, ConnectFailure, Endpoint, Error, Missing, ServiceError};

/// The meaning of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// The problem, as text after "Cannot …: ".
    pub(super) title: Cow<'static, str>,
    /// The attributes that may be the cause, the most likely first.
    pub(super) attributes: &'static [&'static str],
    /// The advice.
    pub(super) advice: &'static str,
}

/// The meaning of an error of the service or of the client.
pub(super) fn meaning(error: &Error) -> Meaning {
    if let Error::NeverSent { address, cause, .. } = error {
        return unreachable_service(address, cause);
    }
    let (title, attributes, advice) = match (error.service(), error) {
        (Some(service), _) if service.endpoint == Endpoint::ChatCompletions => chat(chat_code(service)),
        _ if error.refuses_token() => of_service(Endpoint::InstanceList, Code::InvalidToken),
        (Some(service), _) => of_service(service.endpoint, service.code),
        (None, Error::UndocumentedStatus(answer)) if answer.endpoint == Endpoint::ChatCompletions => {
            chat(code_of_status(answer.status))
        }
        (None, _) => of_this_side(error),
    };
    Meaning { title: title.into(), attributes, advice }
}

/// The advice for a server whose certificate is that of an authority: TLS here refuses it, whoever is trusted.
pub(super) const AUTHORITY: &str = "The server uses the certificate of a certificate authority (CA:TRUE), as openssl \
                                    req -x509 creates it by default. It is not accepted as a server certificate, even \
                                    if ca_certificate_file has it. Create one with -addext basicConstraints=CA:FALSE \
                                    for the server, and set the provider's ca_certificate_file to it. Nothing was \
                                    sent.";

/// The advice for a server's certificate that no root certificate makes right; `None` for any other failure.
pub(super) fn certificate_advice(failure: ConnectFailure) -> Option<&'static str> {
    Some(match failure {
        ConnectFailure::Authority => AUTHORITY,
        ConnectFailure::Expired => {
            "The server's certificate has expired, or is not valid yet. Renew it on the server, or set the clock of \
             this computer. ca_certificate_file does not help here. Nothing was sent."
        }
        ConnectFailure::OtherName => {
            "The server's certificate does not name this host. Use a host that it names, or create one for the server \
             with -addext subjectAltName=DNS:<host>, or IP:<address>. ca_certificate_file does not help here. Nothing \
             was sent."
        }
        ConnectFailure::OtherUse => {
            "The server's certificate is not one for servers. Create one with -addext extendedKeyUsage=serverAuth. \
             ca_certificate_file does not help here. Nothing was sent."
        }
        ConnectFailure::Connection | ConnectFailure::Name | ConnectFailure::Tls => return None,
    })
}

/// The advice for an environment variable with the address of a proxy that cannot be used. The error names it.
pub(super) const UNUSABLE_PROXY: &str = "\
    The address in that environment variable must be host:port, or begin with http://, https://, socks4://, \
    socks4a://, socks5:// or socks5h://. Nothing was sent.";

/// The advice for a proxy that is not reached, or that does not reach the server. The error names its variable.
pub(super) const PROXY: &str = "\
    Check the address in that environment variable, and that the proxy runs and permits this host. For a host that \
    needs no proxy, add it to NO_PROXY. Nothing was sent.";

/// The meaning of a connection that failed. Nothing was sent.
fn unreachable_service(address: &str, cause: &Cause) -> Meaning {
    let host = address.split("://").last().unwrap_or(address);
    let proxy = cause.proxy().map(|variable| format!(" through the proxy in {variable}")).unwrap_or_default();
    let failure = cause.connect_failure();
    if let Some(advice) = certificate_advice(failure) {
        return Meaning { title: format!("no TLS connection to {host}{proxy}").into(), attributes: &[], advice };
    }
    let (title, advice) = match failure {
        ConnectFailure::Name | ConnectFailure::Connection if !proxy.is_empty() => {
            (format!("{host} cannot be reached{proxy}"), PROXY)
        }
        ConnectFailure::Name | ConnectFailure::Connection if cause.unusable_proxy().is_some() => {
            let variable = cause.unusable_proxy().unwrap_or_default();
            (format!("{host} cannot be reached without the proxy in {variable}"), UNUSABLE_PROXY)
        }
        ConnectFailure::Name => (
            format!("cannot resolve {}", host.rsplit_once(':').map_or(host, |(name, _)| name)),
            "Check base_url (DAMODEL_BASE_URL) and this computer's name servers. Behind a proxy, set HTTPS_PROXY. \
             Nothing was sent.",
        ),
        ConnectFailure::Tls => (
            format!("no TLS connection to {host}{proxy}"),
            "For a private gateway, set the provider's ca_certificate_file to the root certificate that signed the \
             gateway's. Intermediate certificates must come from the gateway, or be in that file too. Otherwise check \
             that the port of base_url (DAMODEL_BASE_URL) serves https, with TLS 1.2 or newer. Nothing was sent.",
        ),
        _ => (
            format!("{host} cannot be reached"),
            "Check base_url (DAMODEL_BASE_URL) and the network. Behind a proxy, set HTTPS_PROXY; for a host that the \
             proxy does not reach, add it to NO_PROXY. Nothing was sent.",
        ),
    };
    Meaning { title: title.into(), attributes: &[], advice }
}

/// The attribute for an argument of the service; `None` for any other word.
pub(super) fn attribute_of(field: &str) -> Option<&'static str> {
    FIELDS.iter().find(|(known, _)| *known == field).map(|(_, attribute)| *attribute)
}

/// The arguments of all endpoints (service API, Endpoints), with their attributes.
const FIELDS: [(&str, &str); 40] = [
    ("auto_renew", "auto_renew"),
    ("capacity_type", "capacity_type"),
    ("cluster_id", "cluster_id"),
    ("data_disk_expand_size", "data_disk_expand_size_gb"),
    ("data_disk_mount_path", "data_disk_mount_path"),
    ("disk_name", "name"),
    ("exist_disks", "exist_disks"),
    ("external_ip", "external_ip"),
    ("gpu_num", "gpu_num"),
    ("image", "image"),
    ("image_id", "image_id"),
    ("image_name", "name"),
    ("image_type", "image_type"),
    ("instance_alias", "name"),
    ("instance_hostname", "hostname"),
    ("instance_uid", "instance_id"),
    ("label", "label"),
    ("login_method", "login_method"),
    ("max_tokens", "max_tokens"),
    ("messages", "messages"),
    ("model", "model"),
    ("mount_path", "mount_path"),
    ("name", "name"),
    ("name_or_uid", "name_or_uid"),
    ("new_disks", "new_disks"),
    ("object_mounts", "object_mounts"),
    ("payment_type", "payment_type"),
    ("purchase_duration", "purchase_duration"),
    ("query", "query"),
    ("region", "region"),
    ("size_gb", "size_gb"),
    ("spec_alias", "spec_alias"),
    ("spec_id", "spec_id"),
    ("spec_type", "spec_type"),
    ("spec_types", "storage_classes"),
    ("ssh_pubkey_id", "ssh_pubkey_id"),
    ("ssh_pubkey_name", "ssh_pubkey_name"),
    ("status", "status"),
    ("support_ib_network", "support_ib_network"),
    ("temperature", "temperature"),
];

type Row = (&'static str, &'static [&'static str], &'static str);

/// The documented codes (service API, Errors). A new code is an error of the compiler here.
#[deny(clippy::wildcard_enum_match_arm)]
fn of_service(endpoint: Endpoint, code: Code) -> Row {
    match code {
        Code::InvalidParameter if endpoint == Endpoint::SpecList => (
            "the service does not accept the query",
            &["region", "capacity_type"],
            "Check the region (default: the provider's) and the capacity type (ondemand or spot).",
        ),
        Code::InvalidParameter => (
            "the service does not accept a value",
            &[],
            "Correct the value that the service's message names, then apply again.",
        ),
        Code::InvalidToken => (
            "the service does not accept the API token",
            &[],
            "Check the provider's api_token (or DAMODEL_API_TOKEN, or api_token_command), that it belongs to \
             base_url, and this computer's clock: the service refuses requests whose timestamp is off.",
        ),
        Code::InternalError => (
            "the service had an internal error",
            &[],
            "Try again later. If the error persists, give the IDs below to the service's support.",
        ),
        Code::BalanceNotEnough => (
            "the balance is too low",
            &[],
            "Top up the balance of the main account that the provider's api_token belongs to, then apply again.",
        ),
        Code::PermissionDenied => (
            "permission denied",
            &[],
            "The token's sub-account lacks this permission. Grant it in the console, or use another token.",
        ),
        Code::UserCanNotCreateInstance => (
            "the account may not create instances",
            &[],
            "The account of api_token (or its risk state) does not allow creating instances. Contact the service's \
             support.",
        ),
        Code::ImageNameExisted => (
            "the image name exists",
            &["name"],
            "Names of private images are unique in an account. Choose another name. If no state has the \
             existing image, you can import it instead.",
        ),
        Code::ImageUploading => (
            "another image is being created",
            &["instance_id"],
            "The provider retried until the timeout of this step. Apply again when the other image is ready, or raise \
             timeouts.create.",
        ),
        Code::ImageSaveBusy => (
            "images are saved too often",
            &["instance_id"],
            "The provider retried until the timeout of this step. Apply again later, or raise timeouts.create.",
        ),
        Code::ImageNoPrivilege => (
            "no permission for the image",
            &[],
            "The provider's api_token may not change this image. Grant the permission in the console, or use another \
             token.",
        ),
        Code::ImageUsedByInstance => (
            "an instance is being created from this image",
            &[],
            "The provider retried until the timeout of this step. Try again when that instance is Running.",
        ),
        Code::ImageNotFound => (
            "the image does not exist in this account",
            &[],
            "The image was deleted, or belongs to another account. Check base_url and the provider's api_token.",
        ),
        Code::ImageSaveCountExceeded => (
            "the daily limit of image saves is reached",
            &["instance_id"],
            "The account of the provider's api_token cannot save more images today. Apply again tomorrow.",
        ),
        Code::ResourceInsufficient | Code::NoMatchNode => (
            "not enough stock",
            &["gpu_num", "spec_id", "spec_type"],
            "No node has this capacity now. Request fewer GPUs, or another specification or region: the data source \
             damodel_specs lists what is available.",
        ),
        Code::InstanceNotExistOrNoPrivilege => (
            "the instance does not exist in this account",
            &["instance_id"],
            "The instance does not exist, or belongs to another account. Check base_url and the provider's api_token.",
        ),
        Code::InstanceCanNotBeReleased => {
            ("the service forbids the release", &[], "Its status or billing does not allow it now.")
        }
        Code::InstanceNotExistOrAlreadyReleased => {
            ("the instance does not exist or is released already", &[], "Run a plan to read its current state.")
        }
        Code::SpecNotExistOrDisable => (
            "the specification is missing, disabled or sold out",
            &["spec_id", "spec_type"],
            "Choose a specification whose max_gpu_count is above 0 in this region; the data source damodel_specs lists \
             them.",
        ),
        Code::CreateInstanceFailedForNotCertified => (
            "the main account is not certified",
            &[],
            "Complete the real-name certification of the main account that the provider's api_token belongs to, in \
             the console.",
        ),
        Code::FailedForInvalidImage => (
            "the image cannot be used",
            &["image_id", "image"],
            "The image does not exist, is not ready, is disabled, or the account may not use it.",
        ),
        Code::CreateInstanceFailedCudaNotMatch => (
            "the image needs a newer CUDA than the specification has",
            &["image_id", "image"],
            "Choose an image with an older CUDA, or a specification whose highest_cuda is at least the image's.",
        ),
        Code::MountCloudDiskFailed => (
            "a cloud disk could not be mounted",
            &["exist_disks", "new_disks"],
            "Check that each disk is available, in the same region, and that no two disks share a mount path. In a \
             replacement with create_before_destroy the old instance still has its disks mounted.",
        ),
        Code::ExceededCloudDiskMaxCount => (
            "too many cloud disks",
            &["exist_disks", "new_disks"],
            "One instance takes at most 8 cloud disks, existing and new ones together.",
        ),
        Code::CreateCloudDiskError => (
            "a cloud disk could not be created",
            if endpoint == Endpoint::CloudDiskCreate { &["spec_id"] } else { &["new_disks"] },
            "Check the disk's specification and size; if they are right, try again later.",
        ),
        Code::Other(_) => (
            "the service refused",
            &[],
            "This code is not documented. See the service response below, and give its IDs to the service's support.",
        ),
    }
}

/// The errors of the chat endpoint, which has its own credential and arguments.
fn chat(code: Option<Code>) -> Row {
    match code {
        Some(Code::InvalidToken) => (
            "the service does not accept the API key",
            &[],
            "Check the provider's chat_api_key (or DAMODEL_CHAT_API_KEY): it is created in the console, and belongs to \
             base_url.",
        ),
        Some(Code::BalanceNotEnough) => {
            ("the balance is too low", &[], "Top up the account that the provider's chat_api_key belongs to.")
        }
        Some(Code::PermissionDenied) => (
            "permission denied",
            &["model"],
            "The account of the provider's chat_api_key may not use this model. Enable it in the console's model \
             marketplace.",
        ),
        Some(Code::InvalidParameter) => (
            "the service does not accept the request",
            &["model"],
            "Check model, which must be enabled in the console's model marketplace, messages, temperature and \
             max_tokens.",
        ),
        Some(Code::InternalError) => (
            "the service had an internal error",
            &[],
            "Try again later. If the error persists, ask the service's support.",
        ),
        Some(_) | None => (
            "the service refused",
            &[],
            "This answer is not documented. See the service response below, and check the provider's base_url and \
             api_key.",
        ),
    }
}

/// The code for an error of the chat endpoint. Its error format is not documented: an OpenAI-compatible server sends a
/// word, and any server an HTTP status (service API, Errors).
fn chat_code(error: &ServiceError) -> Option<Code> {
    match (error.code, error.name.as_deref()) {
        (Code::Other(_), Some("invalid_api_key" | "authentication_error")) => Some(Code::InvalidToken),
        (Code::Other(_), Some("insufficient_quota")) => Some(Code::BalanceNotEnough),
        (Code::Other(_), Some("permission_error")) => Some(Code::PermissionDenied),
        (Code::Other(_), Some("model_not_found" | "invalid_request_error")) => Some(Code::InvalidParameter),
        (Code::Other(_), Some("internal_error" | "server_error")) => Some(Code::InternalError),
        (Code::Other(_), _) => code_of_status(error.status),
        (code, _) => Some(code),
    }
}

/// The code for an HTTP status, if the error has no other code.
fn code_of_status(status: u16) -> Option<Code> {
    match status {
        400 | 404 | 422 => Some(Code::InvalidParameter),
        401 => Some(Code::InvalidToken),
        402 => Some(Code::BalanceNotEnough),
        403 => Some(Code::PermissionDenied),
        500..=599 => Some(Code::InternalError),
        _ => None,
    }
}

/// Whether a file system has no locks: Lustre without `flock` (ENOSYS), or NFS without its lock service (ENOLCK).
fn has_no_locks(error: &io::Error) -> bool {
    const ENOLCK: i32 = if cfg!(target_os = "linux") { 37 } else { 77 };
    error.kind() == io::ErrorKind::Unsupported || (cfg!(unix) && error.raw_os_error() == Some(ENOLCK))
}

/// Errors that are not responses of the service.
fn of_this_side(error: &Error) -> Row {
    let (title, advice) = match error {
        Error::Cancelled { .. } => ("the run was stopped", ""),
        Error::DeadlinePassed { .. } => ("timed out", "The service did not answer within the timeout of this step."),
        Error::HeldElsewhere(_) => (
            "another process is creating the same object",
            "A run in the same folder and workspace uses its pending record. Wait until that run has ended, or stop \
             it, then apply again: the object that it created is adopted.",
        ),
        Error::Journal(journal) if journal.action == "read" => (
            "a pending record cannot be read",
            "The record may belong to an object that is billed. Run terraform-provider-damodel pending, look for the \
             object in the console, which shows a new one after up to ten minutes, then remove the file and apply \
             again.",
        ),
        Error::Journal(journal) if has_no_locks(&journal.cause) => (
            "the file system has no locks",
            "Each request to create an object is recorded in a locked file before it is sent, so that no object is \
             lost or created twice. Set DAMODEL_PENDING_DIR to a directory of a file system with locks (flock).",
        ),
        Error::Journal(_) => (
            "the pending record could not be written",
            "Each request to create an object is recorded before it is sent, so that a killed run does not lose a \
             billed object. Make the directory writable, or choose another with DAMODEL_PENDING_DIR.",
        ),
        Error::Missing(Missing::BaseUrl) => (
            "the service's address is not set",
            "Set the provider's base_url, or the environment variable DAMODEL_BASE_URL.",
        ),
        Error::Missing(Missing::BaseUrlAndToken) => (
            "the service's address and the API token are not set",
            "Set the environment variables DAMODEL_BASE_URL, and DAMODEL_API_TOKEN or DAMODEL_API_TOKEN_COMMAND, or \
             the provider's base_url, and api_token or api_token_command.",
        ),
        Error::Missing(Missing::ApiToken) => (
            "the API token is not set",
            "Set the environment variable DAMODEL_API_TOKEN or DAMODEL_API_TOKEN_COMMAND, or the provider's api_token \
             or api_token_command.",
        ),
        Error::Missing(Missing::ApiKey) => (
            "the API key is not set",
            "Set the environment variable DAMODEL_CHAT_API_KEY, or the provider's chat_api_key.",
        ),
        Error::NoAnswer { .. } => {
            ("the service did not answer", "The request was sent. Whether it took effect is unknown.")
        }
        Error::Redirected { .. } => (
            "the service answered with a redirect",
            "Redirects are refused, because they would send the API token to another address. Set base_url to the \
             final address.",
        ),
        Error::Token(_) => (
            "the API token could not be fetched",
            "The program of api_token_command or DAMODEL_API_TOKEN_COMMAND must print the token and exit with code 0 \
             within 30 seconds.",
        ),
        Error::Transport { .. } => (
            "the HTTP client could not be created",
            "Check this computer's certificate store, and that the provider's ca_certificate_file has certificates in \
             PEM format.",
        ),
        Error::UndocumentedStatus(answer) if answer.status >= 500 => (
            "a gateway answered with an HTTP error",
            "The answer has no error object of the damodel API. Try again later. If it persists, check base_url \
             (DAMODEL_BASE_URL) and proxies.",
        ),
        Error::Undecodable(_) | Error::UndocumentedStatus(_) => (
            "unexpected response: this is not the damodel API",
            "A proxy, a login page or another server may have answered. Check base_url (DAMODEL_BASE_URL).",
        ),
        Error::Unsettled(_) => (
            "the outcome is unknown",
            "The answer was lost or unclear, and no object with its name was found yet. The request is recorded: the \
             next apply of the same configuration looks for the object before it creates anything.",
        ),
        Error::SeveralMatches { .. } => (
            "several objects have its name",
            "They were left unchanged. Keep the right one (terraform import) and delete the others \
             (terraform-provider-damodel release).",
        ),
        Error::WaitEnded(_) => ("the wait ended", ""),
        _ => (
            "the operation failed",
            "Apply again. If the error persists, give the operation and the error below to the service's support.",
        ),
    };
    (title, &[], advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENOSYS, EOPNOTSUPP and ENOLCK of Linux.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_system_without_locks_is_named() {
        let advice = |number| {
            let cause = std::sync::Arc::new(io::Error::from_raw_os_error(number));
            meaning(&Error::Journal(crate::api::JournalError { path: "run".into(), action: "write", cause })).advice
        };
        for number in [38, 95, 37] {
            assert!(advice(number).contains("locks") && advice(number).contains("DAMODEL_PENDING_DIR"), "{number}");
        }
        assert!(advice(13).contains("Make the directory writable"));
    }

    #[test]
    fn a_connection_that_failed_names_host_and_remedy() {
        let meant = |cause: &'static str| {
            let address = "https://gateway.example:8443".to_owned();
            meaning(&Error::NeverSent { endpoint: Endpoint::InstanceList, address, cause: Cause::new(cause) })
        };
        for (cause, title, remedy) in [
            ("dns error: no such host", "cannot resolve gateway.example", "base_url"),
            (
                "invalid peer certificate: UnknownIssuer",
                "no TLS connection to gateway.example:8443",
                "ca_certificate_file",
            ),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "no TLS connection to gateway.example:8443",
                "basicConstraints=CA:FALSE",
            ),
            ("invalid peer certificate: Expired", "no TLS connection to gateway.example:8443", "has expired"),
            (
                "invalid peer certificate: certificate not valid for name \"x\"; certificate is only valid for y",
                "no TLS connection to gateway.example:8443",
                "subjectAltName=DNS:<host>",
            ),
            (
                "invalid peer certificate: Other(OtherError(EkuError))",
                "no TLS connection to gateway.example:8443",
                "extendedKeyUsage=serverAuth",
            ),
            ("received fatal alert: ProtocolVersion", "no TLS connection to gateway.example:8443", "TLS 1.2"),
            ("tunnel error: unsuccessful", "gateway.example:8443 cannot be reached", "HTTPS_PROXY"),
        ] {
            assert_eq!(meant(cause).title, title);
            assert!(meant(cause).advice.contains(remedy), "{cause}");
        }
    }

    #[test]
    fn time_that_ran_out_is_told_without_the_advice_of_some_steps() {
        let advice = meaning(&Error::DeadlinePassed { endpoint: Endpoint::ChatCompletions }).advice;
        assert!(!advice.contains("timeouts"), "{advice}");
    }

    #[test]
    fn a_status_stands_for_a_code_where_a_chat_says_nothing_else() {
        assert_eq!(chat(code_of_status(401)), chat(Some(Code::InvalidToken)));
        assert_eq!(chat(code_of_status(404)).1, ["model"]);
        assert_eq!(chat(code_of_status(418)), chat(None));
    }
}
