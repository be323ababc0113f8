//! Private images, from the save to the delete.

use std::time::{Duration, Instant};

use damodel::sandbox::{Code, FaultAction, LedgerObject, Mutation, Options, When};
use serde_json::json;

use crate::support::terraform::{
    Instance, Severity, Site, Started, Workspace, config, config_with, each_workspace, each_workspace_on, refusal, says,
};

const X: &str = "damodel_private_image.x";

/// A builder and an image of it, with these further lines.
fn saved(name: &str, more: &str) -> String {
    format!("{}{}", Instance::new("builder"), image("x", name, more))
}

fn image(label: &str, name: &str, more: &str) -> String {
    format!(
        "resource \"damodel_private_image\" {label:?} {{\n  instance_id = damodel_instance.builder.id\n  name = \
         {name:?}\n{more}}}\n"
    )
}

/// The number of images of the main and the other accounts in the seed.
const SEED: usize = 4;

fn finish(workspace: &Workspace<'_>) {
    workspace.finish();
    let images = workspace.site.ledger().balance(LedgerObject::PrivateImage);
    assert_eq!(images.live, SEED);
    assert_eq!(workspace.site.ledger().duplicates(LedgerObject::PrivateImage), Vec::<Vec<String>>::new());
}

#[test]
fn it_is_saved_waited_for_and_used_in_the_same_apply() {
    let options = Options { image_push: Duration::from_millis(1500), ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        let by_address = Instance::new("by-address")
            .without("image_id")
            .without("image_type")
            .set("image", "damodel_private_image.x.image_tag");
        let by_number = Instance::new("by-number")
            .set("image_id", "damodel_private_image.x.image_id")
            .text("image_type", "private");
        let begun = Instant::now();
        let plan = workspace.plan_and_apply_ok(&config(format!("{}{by_address}{by_number}", saved("model", ""))));
        assert!(begun.elapsed() >= options.image_push, "the apply waits for the push");
        assert!(plan.change(X).is_unknown("image_tag"));
        let state = workspace.state();
        let image = state.resource(X);
        assert_eq!((image.value("status"), image.value("push_progress")), (&json!("ready"), &json!(100)));
        for label in ["by-address", "by-number"] {
            let machine = state.resource(&format!("damodel_instance.{label}"));
            assert_eq!(machine.value("image"), image.value("image_tag"), "{label}");
            assert_eq!(machine.value("image_id"), image.value("image_id"), "{label}");
            assert_eq!(machine.value("image_type"), &json!("private"), "{label}");
            assert_eq!(machine.value("reported.image_name"), &json!("model"), "{label}");
        }
        assert_eq!(site.requests("image_save"), 1);
        finish(workspace);
    });
}

#[test]
fn a_taken_name_is_told_in_the_plan() {
    each_workspace(|site, workspace| {
        workspace.write(&config(saved("trained-model", "")));
        let said = workspace.try_plan(&[]);
        let error = refusal(&said, &["trained-model", "951", "unique", "import"]);
        assert_eq!(error.attribute.as_deref(), Some("name"));
        assert_eq!(site.changes(), 0);
        // The names of another account do not matter; and the rule holds for a rename, too.
        workspace.apply_ok(&config(saved("not-yours", "")));
        workspace.write(&config(saved("trained-model", "")));
        assert_eq!(refusal(&workspace.try_plan(&[]), &["951"]).attribute.as_deref(), Some("name"));
        // Without the check, the service's error is on the same argument.
        workspace.write(&config_with("region = \"cn-east-1\"\npreflight = false", saved("trained-model", "")));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        assert_eq!(refusal(&said, &["130001 ImageNameExisted"]).attribute.as_deref(), Some("name"));
        workspace.write(&config(saved("not-yours", "")));
        finish(workspace);
    });
}

#[test]
fn a_busy_service_is_waited_for() {
    let options = Options { save_window: Duration::from_millis(1500), ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        // 130002 by the service itself: two images of one instance; 130003 by its window and by a fault.
        site.arm("image_save", When::Next(1), FaultAction::Error { code_n: Code::ImageSaveBusy, processed: false });
        let two = config(format!("{}{}", saved("one", ""), image("y", "two", "")));
        workspace.apply_ok(&two);
        let refused: Vec<_> = site.ledger().requests_to("image_save").filter_map(|request| request.code_n).collect();
        assert!(refused.contains(&130_003), "{refused:?}");
        assert_eq!(site.balance_of(LedgerObject::PrivateImage).created, SEED + 2);
        finish(workspace);
    });
}

#[test]
fn an_import_replaces_nothing() {
    each_workspace(|site, workspace| {
        let whole = config(saved("one", ""));
        workspace.apply_ok(&whole);
        let fresh = workspace.import_ok(&whole, X, &["instance_id"]);
        let builder = workspace.state().resource("damodel_instance.builder").id();
        fresh.run_ok(&["import", "-no-color", "-input=false", "damodel_instance.builder", &builder]);
        let changes = site.changes();
        let plan = fresh.plan(&[]);
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
        fresh.apply_plan();
        fresh.settled();
        assert_eq!(site.changes(), changes, "nothing was sent");
        assert_eq!(fresh.state().resource(X).value("instance_id"), &json!(builder));

        // Without instance_id the plan is empty.
        let bare = Workspace::new(workspace.cli, site);
        bare.write(&config("resource \"damodel_private_image\" \"x\" {\n  name = \"trained-model\"\n}\n"));
        bare.run_ok(&["import", "-no-color", "-input=false", X, "951"]);
        bare.settled();
        let other = Workspace::new(workspace.cli, site);
        other.write(&whole);
        for id in ["trained-model", "954"] {
            let run = other.run(&["import", "-no-color", "-input=false", X, id]);
            assert!(run.code == Some(1) && run.stderr.contains("Cannot import"), "{id:?}: {}", run.stderr);
        }
        finish(workspace);
    });
}

#[test]
fn a_new_one_needs_an_instance() {
    each_workspace(|_, workspace| {
        workspace.write(&config("resource \"damodel_private_image\" \"x\" {\n  name = \"x\"\n}\n"));
        refusal(&workspace.try_plan(&[]), &["instance_id", "needs"]);
    });
}

#[test]
fn a_protected_image_survives_the_replacement_of_its_builder() {
    each_workspace(|site, workspace| {
        let protected = "  deletion_protection = true\n";
        let other = Instance::new("other");
        workspace.apply_ok(&config(format!("{}{other}", saved("one", protected))));
        let changes = site.changes();
        refusal(&workspace.try_plan(&["-destroy"]), &["deletion_protection = true"]);
        let moved = image("x", "one", protected).replace("damodel_instance.builder.id", "damodel_instance.other.id");
        workspace.write(&config(format!("{moved}{other}")));
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &["deletion_protection = true"]).attribute.as_deref(), Some("instance_id"));
        // A replacement of the builder, forced or by an argument, is refused because of its image.
        workspace.write(&config(saved("one", protected)));
        let said = workspace.try_plan(&["-replace=damodel_instance.builder"]);
        assert_eq!(
            refusal(&said, &["deletion_protection = true", "instance_id"]).attribute.as_deref(),
            Some("instance_id")
        );
        workspace.write(&config(saved("one", protected).replace("gpu_num = 1", "gpu_num = 2")));
        refusal(&workspace.try_plan(&[]), &["deletion_protection = true"]);
        let (done, _) = workspace.try_apply(&["-replace=damodel_instance.builder"]);
        assert!(!done);
        assert_eq!(site.changes(), changes, "nothing was sent");
        workspace.apply_ok(&config(saved("two", protected)));
        workspace.apply_ok(&config(saved("two", "")));
        workspace.write(&config(saved("two", "").replace("gpu_num = 1", "gpu_num = 2")));
        let said = workspace.try_plan(&[]);
        assert!(
            says(&said, Severity::Warning, "The change of instance_id replaces private image \"two\""),
            "{said:#?}"
        );
        finish(workspace);
    });
}

#[test]
fn a_replaced_image_keeps_its_name() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(saved("one", "")));
        let first = workspace.state().resource(X).id();
        workspace.apply_ok(&config(saved("one", "").replace("gpu_num = 1", "gpu_num = 2")));
        let second = workspace.state().resource(X).id();
        assert!(workspace.try_apply(&[&format!("-replace={X}")]).0);
        workspace.settled();
        assert!(first != second && workspace.state().resource(X).id() != second);
        assert_eq!(site.balance_of(LedgerObject::PrivateImage).live, SEED + 1);
        // The images had the name one after the other, which the ledger would count as duplicates.
        workspace.finish();
        assert_eq!(site.balance_of(LedgerObject::PrivateImage).live, SEED);
    });
}

#[test]
fn a_tainted_image_is_replaced_under_its_name() {
    each_workspace(|site, workspace| {
        site.arm("image_save", When::Next(1), FaultAction::StickCreation);
        let brief = config(saved("one", "  timeouts { create = \"1s\" }\n"));
        workspace.write(&brief);
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        refusal(&said, &["not ready in time", "terraform untaint"]);
        assert!(workspace.state().resource(X).is_tainted());
        let plan = workspace.plan_and_apply_ok(&config(saved("one", "")));
        assert_eq!(plan.change(X).reason(), "replace_because_tainted");
        assert_eq!(site.balance_of(LedgerObject::PrivateImage).live, SEED + 1);
        // The images had the name one after the other, which the ledger would count as duplicates.
        workspace.finish();
        assert_eq!(site.balance_of(LedgerObject::PrivateImage).live, SEED);
    });
}

#[test]
fn a_save_of_a_killed_provider_is_taken_up() {
    each_workspace(|site, workspace| {
        workspace.write(&config(saved("one", "")));
        site.arm("image_save", When::Next(1), FaultAction::Hang { limit_ms: 120_000, processed: true });
        let started = Started::apply(workspace);
        site.await_ledger("the save", |ledger| ledger.balance(LedgerObject::PrivateImage).created > SEED);
        started.kill_provider();
        started.ended(true);
        site.sandbox().clear_faults();
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:?}");
        workspace.settled();
        assert_eq!((site.balance_of(LedgerObject::PrivateImage).created, site.requests("image_save")), (SEED + 1, 1));
        finish(workspace);
    });
}

#[test]
fn an_image_without_a_trace_leaves_the_state() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(saved("one", "")));
        workspace.made_long_ago();
        let id = workspace.state().resource(X).id().parse().unwrap();
        site.mutate(Mutation::RemoveImage { id });
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "removed from the state"), "{said:?}");
        assert_eq!(workspace.applied(&config(saved("two", ""))), [(X.to_owned(), "create".to_owned())]);
        finish(workspace);
    });
}
