//! The argument `max_age`: a limit that the provider reports and the command `expire` enforces.

use std::time::Duration;

use jiff::Timestamp;

use super::schema::Instance;
use crate::{
    framework::{
        Attr, Diagnostic, Path,
        timeouts::{parse_duration, print_duration},
    },
    provider::{ProviderClient, lifecycle::ManagedExt as _, words::capitalized},
};

/// One text for all instances: Terraform folds warnings with the same summary.
const SUMMARY: &str = "An instance is older than its max_age";

/// The warning about an instance whose max_age is over at a time of the service's clock in Unix seconds.
pub(super) fn overdue(instance: &Instance, now: Option<i64>) -> Option<Diagnostic> {
    let text = instance.max_age.as_str()?;
    let started: Timestamp = instance.start_time.as_str()?.parse().ok()?;
    let age = u64::try_from(now?.checked_sub(started.as_second())?).ok()?;
    if age <= parse_duration(text)?.as_secs() {
        return None;
    }
    let period = instance.payment_type.as_str().unwrap_or("Hourly");
    let price = instance.gpu_price.known();
    let price = price.map(|price| format!(" Its gpu_price is {price} ({period}).")).unwrap_or_default();
    let advice = if instance.is_protected() {
        ", and expire leaves it: set deletion_protection = false and apply, then destroy it"
    } else if instance.is_prepaid() {
        ", and expire leaves a prepaid instance: destroy it"
    } else {
        ": run terraform-provider-damodel expire with the state, or destroy the instance"
    };
    let detail = format!(
        "{} is {} old, and max_age is {text:?}.{price} The provider does not release it by itself{advice}.",
        capitalized(&instance.title()),
        print_age(age)
    );
    Some(Diagnostic::warning(SUMMARY, detail).at(Path::to("max_age")))
}

/// Plans the age of an instance whose configuration names none: the provider's if it is billed by the hour.
pub(super) fn plan_default(config: &Instance, planned: &mut Instance, client: &ProviderClient) {
    if config.max_age.is_null() {
        planned.max_age = match &client.default_max_age {
            Some(_) if planned.payment_type.is_unknown() => Attr::Unknown,
            Some(default) if !planned.is_prepaid() => Attr::Known(default.clone()),
            _ => Attr::Null,
        };
    }
}

/// An age in seconds as text, rounded to minutes from a minute on.
pub(super) fn print_age(age: u64) -> String {
    print_duration(Duration::from_secs(if age < 60 { age } else { age - age % 60 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_overdue_after_its_age() {
        let instance = |max_age: &str| Instance {
            id: "ins-a".into(),
            max_age: max_age.into(),
            start_time: "1970-01-01T01:00:00Z".into(),
            ..Instance::default()
        };
        for (max_age, now, expected) in [
            ("1h", Some(7200), None),
            ("1h", Some(7201), Some("Instance ins-a is 1h old, and max_age is \"1h\".")),
            ("10s", Some(3615), Some("Instance ins-a is 15s old, and max_age is \"10s\".")),
            ("1h", Some(0), None),
            ("1h", None, None),
        ] {
            let said = overdue(&instance(max_age), now).map(|said| said.detail);
            assert_eq!(said.is_some(), expected.is_some(), "{max_age} {now:?}: {said:?}");
            assert!(said.unwrap_or_default().starts_with(expected.unwrap_or_default()));
        }
        assert!(overdue(&Instance { max_age: "1h".into(), ..Instance::default() }, Some(i64::MAX)).is_none());
    }
}
