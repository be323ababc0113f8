//! Rules between an instance's arguments that need no service.

use super::{candidates, checks::check_disks, model::Instance};
use crate::framework::{Diagnostics, Path};

/// Rules between arguments that need no service (service API, POST /api/instance/create).
pub(super) fn validate(config: &Instance, diagnostics: &mut Diagnostics) {
    candidates::validate(config, diagnostics);
    payment(config, diagnostics);
    image_pair(config, diagnostics);
    login(config, diagnostics);
    check_disks(config, diagnostics);
    if config.on_unreleasable.as_str() == Some("abandon") && config.auto_renew.known() == Some(&true) {
        diagnostics.error_at(
            Path::to("on_unreleasable"),
            "An abandoned instance would be billed indefinitely",
            "on_unreleasable = \"abandon\" leaves the instance until its term ends, but auto_renew = true renews the \
             term. Set auto_renew = false, or on_unreleasable = \"fail\".",
        );
    }
}

fn payment(config: &Instance, diagnostics: &mut Diagnostics) {
    match (config.payment_type.as_str(), config.purchase_duration.is_null()) {
        (Some("Hourly"), false) => diagnostics.warning_at(
            Path::to("purchase_duration"),
            "purchase_duration has no effect",
            "An instance that is paid by the hour has no term: purchase_duration is not sent.",
        ),
        (Some(payment), true) if payment != "Hourly" => diagnostics.error_at(
            Path::to("purchase_duration"),
            "Missing required argument",
            format!(
                "purchase_duration is required with payment_type = {payment:?}: how many days, weeks or months \
                     are bought."
            ),
        ),
        _ => {}
    }
}

fn image_pair(config: &Instance, diagnostics: &mut Diagnostics) {
    let (lonely, missing) = match (config.image_id.is_null(), config.image_type.is_null()) {
        (false, true) => ("image_id", "image_type"),
        (true, false) => ("image_type", "image_id"),
        _ => return,
    };
    diagnostics.error_at(
        Path::to(lonely),
        "Incomplete image",
        format!("{lonely} needs {missing} beside it. Or name the image by its full address with image."),
    );
}

fn login(config: &Instance, diagnostics: &mut Diagnostics) {
    if config.login_method.as_str() == Some("ssh_key") || config.login_method.is_unknown() {
        return;
    }
    for (name, is_set) in
        [("ssh_pubkey_id", !config.ssh_pubkey_id.is_null()), ("ssh_pubkey_name", !config.ssh_pubkey_name.is_null())]
    {
        if is_set {
            diagnostics.error_at(
                Path::to(name),
                "A key without its login method",
                format!("{name} is for login_method = \"ssh_key\". Set that, or remove {name}."),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::Attr;

    fn base() -> Instance {
        Instance { gpu_num: Attr::Known(1), ..Instance::default() }
    }

    fn paths(config: &Instance) -> Vec<String> {
        let mut diagnostics = Diagnostics::new();
        validate(config, &mut diagnostics);
        diagnostics.iter().map(|diagnostic| diagnostic.path.clone().unwrap_or_default().to_string()).collect()
    }

    #[test]
    fn a_term_is_needed_unless_hourly() {
        let mut config = Instance { payment_type: "Monthly".into(), ..base() };
        assert_eq!(paths(&config), ["purchase_duration"]);
        config.purchase_duration = Attr::Unknown;
        assert!(paths(&config).is_empty());
    }

    #[test]
    fn half_an_image_pair_is_refused() {
        let config = Instance { image_id: Attr::Known(1), ..base() };
        assert_eq!(paths(&config), ["image_id"]);
        let config = Instance { image_type: "public".into(), ..base() };
        assert_eq!(paths(&config), ["image_type"]);
        let config = Instance { image_id: Attr::Unknown, image_type: "public".into(), ..base() };
        assert!(paths(&config).is_empty());
    }

    #[test]
    fn a_key_needs_its_login_method() {
        let config = Instance { ssh_pubkey_id: Attr::Known(1), login_method: "password".into(), ..base() };
        assert_eq!(paths(&config), ["ssh_pubkey_id"]);
    }

    #[test]
    fn nothing_renews_what_is_abandoned() {
        let config = Instance { on_unreleasable: "abandon".into(), auto_renew: Attr::Known(true), ..base() };
        assert_eq!(paths(&config), ["on_unreleasable"]);
    }
}
