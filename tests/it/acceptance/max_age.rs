//! Instances that are older than their max_age.

use serde_json::json;

use crate::support::terraform::{Diagnostic, Instance, Severity, Workspace, config, each_workspace};

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
        for word in ["169h", "\"168h\"", "gpu_price is 1.98", "terraform-provider-damodel expire"] {
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
