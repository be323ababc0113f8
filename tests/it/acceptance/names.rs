//! The names of private images, which are unique in an account, across saves that were killed and images that are
//! replaced.

use damodel::sandbox::{LedgerObject, Mutation};

use crate::support::terraform::{Instance, Severity, Started, config, each_workspace, image, refusal, says};

const MODEL: &str = "damodel_private_image.model";

fn whole(builder: &Instance) -> String {
    config(format!("{builder}{}", image("model")))
}

#[test]
fn an_image_of_a_killed_save_whose_instance_was_replaced_is_named_by_the_plan() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("builder")));
        workspace.write(&whole(&Instance::new("builder")));
        Started::killed_when_accepted(workspace, 1);
        let id = site.created_in("main", LedgerObject::PrivateImage).pop().unwrap();
        let images = site.balance_of(LedgerObject::PrivateImage).created;

        // The instance is replaced, so the pending record of the save belongs to another create.
        let renewed = Instance::new("builder").set("gpu_num", 2);
        workspace.apply_ok(&config(renewed.clone()));
        workspace.write(&whole(&renewed));
        let said = workspace.try_plan(&[]);
        refusal(&said, &[&id, "model", "import"]);
        let (done, _) = workspace.try_apply(&[]);
        assert!(!done);
        assert_eq!(site.requests("image_save"), 1);

        // As the error advises.
        workspace.run_ok(&["import", "-no-color", "-input=false", MODEL, &id]);
        workspace.apply_ok(&whole(&renewed));
        assert_eq!(
            (workspace.state().resource(MODEL).id(), site.balance_of(LedgerObject::PrivateImage).created),
            (id, images)
        );
        workspace.finish();
    });
}

#[test]
fn an_image_of_a_killed_save_whose_instance_is_replaced_in_the_same_plan_is_named_by_it() {
    each_workspace(|site, workspace| {
        workspace.write(&whole(&Instance::new("builder")));
        site.arm("image_save", damodel::sandbox::When::Next(1), damodel::sandbox::FaultAction::StickCreation);
        let started = Started::apply(workspace);
        site.await_ledger("the save", |ledger| {
            ledger.requests.iter().any(|it| it.endpoint.as_deref() == Some("image_save"))
        });
        workspace.await_notes("accepted", 1);
        started.kill();
        started.ended(true);
        site.unstick();
        let id = site.created_in("main", LedgerObject::PrivateImage).pop().unwrap();
        workspace.write(&whole(&Instance::new("builder").set("gpu_num", 2)));
        refusal(&workspace.try_plan(&[]), &[&id, "model", "import"]);
        assert_eq!(site.requests("image_save"), 1);

        // The other solution: the image is removed. It is young, so lists may lack it for a while.
        site.mutate(Mutation::RemoveImage { id: id.parse().unwrap() });
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "apply again in a few minutes"), "{said:?}");
        assert_eq!(site.requests("image_save"), 1);
        workspace.minutes_pass();
        workspace.apply_ok(&whole(&Instance::new("builder").set("gpu_num", 2)));
        workspace.finish();
    });
}

#[test]
fn a_name_that_another_image_bears_is_refused_for_a_replacement_too() {
    each_workspace(|_, workspace| {
        workspace.apply_ok(&whole(&Instance::new("builder")));
        workspace.run_ok(&["taint", MODEL]);
        let taken = whole(&Instance::new("builder")).replace("name = \"model\"", "name = \"trained-model\"");
        workspace.write(&taken);
        refusal(&workspace.try_plan(&[]), &["trained-model", "951"]);
        workspace.apply_ok(&whole(&Instance::new("builder")));
        workspace.finish();
    });
}
