//! The rules between the arguments of an instance.

use super::{candidates, checks::check_disks, schema::Instance};
use crate::framework::{Attr, Diagnostics, Path};

/// Checks the rules between arguments without the service (service API, POST /api/instance/create).
pub(super) fn validate(config: &Instance, diagnostics: &mut Diagnostics) {
    candidates::validate(config, diagnostics);
    payment(config, diagnostics);
    image_pair(config, diagnostics);
    login(config, diagnostics);
    check_disks(config, diagnostics);
    prepaid_age(config, diagnostics);
    let is_hourly = config.payment_type.is_null() || config.payment_type.as_str() == Some("Hourly");
    if config.on_unreleasable.as_str() == Some("abandon") && is_hourly {
        diagnostics.error_at(
            Path::to("on_unreleasable"),
            "An abandoned instance would be billed indefinitely",
            "on_unreleasable = \"abandon\" leaves the instance until its term ends, but an hourly instance has no \
             term. Set on_unreleasable = \"fail\", or another payment_type.",
        );
    } else if config.on_unreleasable.as_str() == Some("abandon") && config.auto_renew.known() == Some(&true) {
        diagnostics.error_at(
            Path::to("on_unreleasable"),
            "An abandoned instance would be billed indefinitely",
            "on_unreleasable = \"abandon\" leaves the instance until its term ends, but auto_renew = true renews the \
             term. Set auto_renew = false, or on_unreleasable = \"fail\".",
        );
    }
}

/// Warns that `expire` does not release a prepaid instance.
fn prepaid_age(config: &Instance, diagnostics: &mut Diagnostics) {
    if let (Some(_), Some(payment)) = (config.max_age.known(), config.payment_type.as_str())
        && config.is_prepaid()
    {
        diagnostics.warning_at(
            Path::to("max_age"),
            "The command expire leaves prepaid instances",
            format!(
                "With payment_type = {payment:?} the term is prepaid: a refresh warns when max_age is over, and expire \
                 does not release the instance."
            ),
        );
    }
}

/// Ten years in the periods of each payment type: a longer term is a slip of the keyboard.
const TEN_YEARS: [(&str, i64, &str); 3] =
    [("Daily", 3653, "days"), ("Weekly", 522, "weeks"), ("Monthly", 120, "months")];

fn payment(config: &Instance, diagnostics: &mut Diagnostics) {
    if let (Some("Hourly"), Some(true)) = (config.payment_type.as_str(), config.auto_renew.known()) {
        diagnostics.warning_at(
            Path::to("auto_renew"),
            "auto_renew has no effect",
            "An hourly instance has no term that could be renewed.",
        );
    }
    match (config.payment_type.as_str(), config.purchase_duration.known()) {
        (Some("Hourly"), Some(_)) => diagnostics.warning_at(
            Path::to("purchase_duration"),
            "purchase_duration has no effect",
            "An hourly instance has no term: purchase_duration is not sent.",
        ),
        (Some(payment), Some(duration)) => {
            let (most, periods) =
                TEN_YEARS.iter().find(|(it, _, _)| *it == payment).map_or((i64::MAX, ""), |it| (it.1, it.2));
            if *duration > most {
                diagnostics.error_at(
                    Path::to("purchase_duration"),
                    "The term is too long",
                    format!(
                        "With payment_type = {payment:?}, purchase_duration is at most {most} {periods}: ten years."
                    ),
                );
            }
        }
        _ => {}
    }
}

fn image_pair(config: &Instance, diagnostics: &mut Diagnostics) {
    let (lonely, missing) = match (&config.image_id, &config.image_type) {
        (Attr::Known(_), Attr::Null) => ("image_id", "image_type"),
        (Attr::Null, Attr::Known(_)) => ("image_type", "image_id"),
        _ => return,
    };
    diagnostics.error_at(
        Path::to(lonely),
        "Incomplete image",
        format!("{lonely} also needs {missing}. Alternatively, set image to the full address of the image."),
    );
}

fn login(config: &Instance, diagnostics: &mut Diagnostics) {
    if config.login_method.as_str() == Some("ssh_key") || config.login_method.is_unknown() {
        return;
    }
    for (name, is_set) in
        [("ssh_pubkey_id", config.ssh_pubkey_id.is_known()), ("ssh_pubkey_name", config.ssh_pubkey_name.is_known())]
    {
        if is_set {
            diagnostics.error_at(
                Path::to(name),
                format!("{name} needs login_method = \"ssh_key\""),
                format!("Set login_method = \"ssh_key\", or remove {name}."),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::candidates::Candidate, *};

    fn paths(config: &Instance) -> Vec<String> {
        let mut diagnostics = Diagnostics::new();
        validate(config, &mut diagnostics);
        diagnostics.iter().map(|diagnostic| diagnostic.path.clone().unwrap_or_default().to_string()).collect()
    }

    #[test]
    fn an_import_has_no_term_and_an_hourly_instance_needs_none() {
        let mut config = Instance { payment_type: "Monthly".into(), ..Instance::default() };
        assert!(paths(&config).is_empty());
        config.purchase_duration = Attr::Known(3);
        config.max_age = "8h".into();
        assert_eq!(paths(&config), ["max_age"], "expire leaves it");
        config.payment_type = "Hourly".into();
        assert_eq!(paths(&config), ["purchase_duration"], "it has no effect");
    }

    /// It would be sent, forces a replacement, and renews nothing.
    #[test]
    fn an_hourly_instance_is_not_renewed() {
        let renewed = Instance { auto_renew: Attr::Known(true), ..Instance::default() };
        assert_eq!(paths(&Instance { payment_type: "Hourly".into(), ..renewed.clone() }), ["auto_renew"]);
        assert!(paths(&Instance { payment_type: Attr::Unknown, ..renewed.clone() }).is_empty());
        let daily = Instance { payment_type: "Daily".into(), purchase_duration: Attr::Known(1), ..renewed };
        assert!(paths(&daily).is_empty());
    }

    #[test]
    fn a_term_is_at_most_ten_years() {
        for (payment_type, most) in [("Daily", 3653), ("Weekly", 522), ("Monthly", 120)] {
            let config = |term| Instance {
                payment_type: payment_type.into(),
                purchase_duration: Attr::Known(term),
                ..Instance::default()
            };
            assert!(paths(&config(most)).is_empty(), "{payment_type}");
            assert_eq!(paths(&config(most + 1)), ["purchase_duration"], "{payment_type}");
        }
    }

    #[test]
    fn each_candidate_has_its_number_of_gpus_or_none_has() {
        let candidate = |gpu_num| Attr::Known(Candidate { spec_id: Attr::Known(103), gpu_num, ..Candidate::default() });
        let (two, none) = (Attr::Known(2), Attr::Null);
        for (gpu_num, counts, expected) in [
            (none, [none, none], &[][..]),
            (none, [two, two], &[]),
            (none, [two, none], &["candidates[1].gpu_num"]),
            (none, [Attr::Unknown, none], &[]),
            (two, [none, none], &[]),
            (two, [two, none], &["candidates[0].gpu_num"]),
        ] {
            let candidates = Attr::Known(counts.map(candidate).into());
            let config = Instance { gpu_num, candidates, ..Instance::default() };
            assert_eq!(paths(&config), expected, "{gpu_num:?} {counts:?}");
        }
    }

    #[test]
    fn half_an_image_pair_is_refused() {
        let config = Instance { image_id: Attr::Known(1), ..Instance::default() };
        assert_eq!(paths(&config), ["image_id"]);
        let config = Instance { image_type: "public".into(), ..Instance::default() };
        assert_eq!(paths(&config), ["image_type"]);
        let config = Instance { image_id: Attr::Unknown, image_type: "public".into(), ..Instance::default() };
        assert!(paths(&config).is_empty());
    }

    #[test]
    fn a_key_needs_its_login_method() {
        let config = Instance { ssh_pubkey_id: Attr::Known(1), login_method: "password".into(), ..Instance::default() };
        assert_eq!(paths(&config), ["ssh_pubkey_id"]);
    }

    #[test]
    fn nothing_renews_what_is_abandoned() {
        let mut config = Instance { on_unreleasable: "abandon".into(), ..Instance::default() };
        assert_eq!(paths(&config), ["on_unreleasable"], "by the hour");
        config = Instance { payment_type: "Daily".into(), purchase_duration: Attr::Known(1), ..config };
        assert!(paths(&config).is_empty());
        config.auto_renew = Attr::Known(true);
        assert_eq!(paths(&config), ["on_unreleasable"]);
    }
}
