//! Instances that are older than their max_age.

use serde_json::json;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Workspace, config, config_with, each_workspace, refusal,
};

const X: &str = "damodel_instance.x";
const OVERDUE: &str = "An instance is older than its max_age";

fn overdue(said: &[Diagnostic]) -> Vec<&Diagnostic> {
    assert!(said.iter().all(|said| said.severity == Severity::Warning), "{said:?}");
    said.iter().filter(|said| said.summary == OVERDUE).collect()
}

fn aged(max_age: &str) -> String {
    config(Instance::new("x").text("max_age", max_age))
}

#[test]
fn an_instance_that_is_too_old_is_reported_and_nothing_is_sent() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&aged("168h"));
        let changes = site.changes();
        assert!(overdue(&workspace.try_plan(&[])).is_empty());
        site.started_hours_ago(&site.live()[0], 169);
        let said = workspace.try_plan(&[]);
        let [warning] = overdue(&said)[..] else { panic!("{said:?}") };
        for word in ["169h", "\"168h\"", "gpu_price is 1.98 (Hourly)", "terraform-provider-damodel expire"] {
            assert!(warning.detail.contains(word), "{word}: {warning:?}");
        }
        assert_eq!(warning.attribute.as_deref(), Some("max_age"));

        // A longer age is an update in place that sends nothing, and so is one that is over at once.
        let update = |workspace: &Workspace<'_>, config: &str| {
            workspace.write(config);
            workspace.save_plan(&[]);
            let applied = workspace.apply_plan();
            assert!(applied.stdout.contains("1 changed"), "{}", applied.stdout);
            workspace.settled();
            applied
        };
        assert!(!update(workspace, &aged("1000h")).stdout.contains(OVERDUE));
        assert!(overdue(&workspace.try_plan(&[])).is_empty());
        assert!(update(workspace, &aged("8h")).stdout.contains(OVERDUE));
        assert!(!update(workspace, &config(Instance::new("x"))).stdout.contains(OVERDUE));
        assert_eq!(workspace.state().resource(X).value("max_age"), &json!(null));
        assert_eq!(site.changes(), changes, "nothing was sent");
        workspace.finish();
    });
}

#[test]
fn an_instance_that_expire_leaves_is_not_left_to_it() {
    each_workspace(|site, workspace| {
        let prepaid = Instance::new("x").text("payment_type", "Daily").set("purchase_duration", 1);
        let protected = Instance::new("y").set("deletion_protection", true);
        let aged = |instance: Instance| instance.text("max_age", "8h").to_string();
        workspace.apply_ok(&config(format!("{}{}", aged(prepaid), aged(protected))));
        for uid in site.live() {
            site.started_hours_ago(&uid, 9);
        }
        let mut said = workspace.try_plan(&[]);
        said.retain(|said| said.summary == OVERDUE);
        let advice = [
            "(Daily). The provider does not release it by itself, and expire leaves a prepaid instance: destroy it.",
            "and expire leaves it: set deletion_protection = false and apply, then destroy it.",
        ];
        for advice in advice {
            assert_eq!(said.iter().filter(|said| said.detail.ends_with(advice)).count(), 1, "{advice}: {said:#?}");
        }
        assert!(said.iter().all(|said| !said.detail.contains("run terraform-provider-damodel")), "{said:#?}");
    });
}

#[test]
fn the_warnings_of_many_instances_are_one() {
    each_workspace(|site, workspace| {
        let instances = Instance::new("x").set("count", 3).set("name", "\"x-${count.index}\"").text("max_age", "8h");
        workspace.apply_ok(&config(instances));
        for uid in site.live() {
            site.started_hours_ago(&uid, 9);
        }
        let plan = workspace.run_ok(&["plan", "-no-color", "-input=false"]).stdout;
        assert_eq!(plan.matches(OVERDUE).count(), 1, "{plan}");
        assert!(plan.contains("2 more similar warnings elsewhere"), "{plan}");
        workspace.finish();
    });
}

#[test]
fn an_import_knows_no_age() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&aged("8h"));
        let changes = site.changes();
        workspace.import_ok(&aged("8h"), X, &["max_age"]);
        assert_eq!(site.changes(), changes, "nothing was sent");
    });
}

#[test]
fn hourly_instances_have_the_age_of_the_provider() {
    each_workspace(|site, workspace| {
        let prepaid = Instance::new("paid").text("payment_type", "Daily").set("purchase_duration", 1);
        let own = Instance::new("own").text("max_age", "8h");
        let body = format!("{}{own}{prepaid}", Instance::new("x"));
        let with = |age: &str| config_with(&format!("region = \"cn-east-1\"\n{age}"), &body);
        let plan = workspace.plan_and_apply_ok(&with("default_max_age = \"24h\""));
        assert_eq!(plan.change(X).after("max_age"), &json!("24h"));
        workspace.settled();
        let ages = || {
            let state = workspace.state();
            ["x", "own", "paid"]
                .map(|name| state.resource(&format!("damodel_instance.{name}")).value("max_age").clone())
        };
        assert_eq!(ages(), [json!("24h"), json!("8h"), json!(null)]);

        // Another default and none are updates of the one instance, which send nothing.
        let changes = site.changes();
        for (age, expected) in [
            ("default_max_age = \"720h\"", json!("720h")),
            ("", json!(null)),
            ("default_max_age = \"24h\"", json!("24h")),
        ] {
            let changed = workspace.applied(&with(age));
            assert_eq!(changed, [(X.to_owned(), "update".to_owned())], "{age}");
            workspace.settled();
            assert_eq!(ages(), [expected, json!("8h"), json!(null)], "{age}");
        }
        // The argument is stronger than the variable.
        workspace.set_env("DAMODEL_DEFAULT_MAX_AGE", "1h");
        workspace.settled();
        let fresh = workspace.import_ok(&with("default_max_age = \"24h\""), X, &["max_age"]);
        assert_eq!(fresh.plan(&["-target", X]).change(X).actions(), "update");
        fresh.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false", "-target", X]);
        assert_eq!(fresh.state().resource(X).value("max_age"), &json!("24h"));
        assert_eq!(fresh.plan(&["-target", X]).actions(), [] as [(String, String); 0]);
        assert_eq!(site.changes(), changes, "nothing was sent");

        // A refresh warns by it, and the variable is used without the argument.
        site.started_hours_ago(&workspace.state().resource(X).id(), 25);
        assert_eq!(overdue(&workspace.try_plan(&[])).len(), 1);
        assert_eq!(workspace.applied(&with("")), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(ages()[0], json!("1h"));
        workspace.set_env("DAMODEL_DEFAULT_MAX_AGE", "7d");
        let said = workspace.try_plan(&[]);
        refusal(&said, &["DAMODEL_DEFAULT_MAX_AGE is \"7d\"", "a duration such as"]);
        workspace.remove_env("DAMODEL_DEFAULT_MAX_AGE");
        // The service does not release the prepaid one.
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false", "-target", X]);
    });
}

/// The default of an age that only the apply knows.
#[test]
fn an_age_that_is_unknown_in_the_plan_is_known_in_the_apply() {
    each_workspace(|_, workspace| {
        let body = |input: &str, memory: &str| {
            let x = Instance::new("x").text("name", memory);
            let provider = "region = \"cn-east-1\"\ndefault_max_age = terraform_data.age.output";
            config_with(provider, format!("resource \"terraform_data\" \"age\" {{\n  input = {input:?}\n}}\n{x}"))
        };
        let plan = workspace.plan_and_apply_ok(&body("24h", "one"));
        assert!(plan.change(X).is_unknown("max_age"));
        workspace.settled();
        assert_eq!(workspace.state().resource(X).value("max_age"), &json!("24h"));
        // A change beside it is completed by the apply too.
        let plan = workspace.plan_and_apply_ok(&body("48h", "two"));
        assert!(plan.change(X).is_unknown("max_age"));
        workspace.settled();
        assert_eq!(workspace.state().resource(X).value("max_age"), &json!("48h"));
        workspace.finish();
    });
}
