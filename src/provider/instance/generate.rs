//! The configuration of an instance that has none yet.

use super::model::Instance;
use crate::framework::{Attr, Diagnostics, Path};

/// Leaves out what says the same a second time, and what belongs to another way of logging in.
pub(super) fn generate(config: &mut Instance, diagnostics: &mut Diagnostics) {
    if config.spec_id.known().is_some() {
        config.spec_type = Attr::Null;
    }
    if config.image_id.known().is_some() && config.image_type.known().is_some() {
        config.image = Attr::Null;
    } else {
        (config.image_id, config.image_type) = (Attr::Null, Attr::Null);
    }
    if config.login_method.as_str() != Some("ssh_key") {
        (config.ssh_pubkey_id, config.ssh_pubkey_name) = (Attr::Null, Attr::Null);
    }
    // Null in a state is the default, too.
    let is_prepaid = config.payment_type.as_str().is_some_and(|payment| payment != "Hourly");
    if is_prepaid && config.purchase_duration.is_null() {
        config.purchase_duration = Attr::Known(1);
        diagnostics.warning_at(
            Path::to("purchase_duration"),
            "The term is not known",
            "The service does not report for how long an instance was bought. The generated configuration has 1: \
             replace it with the true number. Neither changes the instance.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_of_each_thing_is_enough() {
        let mut config = Instance {
            spec_id: Attr::Known(1),
            spec_type: "gpu".into(),
            image: "r/model_library/a:1".into(),
            image_id: Attr::Known(2),
            image_type: "public".into(),
            login_method: "password".into(),
            ssh_pubkey_name: "laptop".into(),
            ..Instance::default()
        };
        let mut diagnostics = Diagnostics::new();
        generate(&mut config, &mut diagnostics);
        assert!(config.spec_type.is_null() && config.image.is_null() && config.ssh_pubkey_name.is_null());
        assert!(config.purchase_duration.is_null() && diagnostics.is_empty());
    }

    #[test]
    fn a_term_that_nobody_knows_is_asked_for() {
        let mut config = Instance { payment_type: "Monthly".into(), ..Instance::default() };
        let mut diagnostics = Diagnostics::new();
        generate(&mut config, &mut diagnostics);
        assert_eq!(config.purchase_duration, Attr::Known(1));
        assert!(!diagnostics.is_empty() && !diagnostics.has_errors());
    }
}
