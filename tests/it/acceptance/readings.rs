//! Answers that are easy to misread.

use damodel::sandbox::{FaultAction, LedgerObject, Mutation, Options, Shape, StateList, When};
use rstest::rstest;
use serde_json::json;

use crate::support::terraform::{
    Instance, Severity, Site, Started, Workspace, config, disk, each_cli, each_workspace, image, refusal, refusal_of,
    says,
};

const X: &str = "damodel_instance.x";

fn formed(form: &str) -> Site {
    Site::with(Options { form: form.parse().unwrap(), ..Site::options() })
}

/// Sets the label of an image without software, and the highest CUDA version of the specification 103.
fn cuda(site: &Site, id: i64, label: Option<&str>, highest: &str) {
    let labels: Vec<&str> = label.into_iter().collect();
    site.set(StateList::PublicImages, id, &json!({ "labels": labels, "softwares": [], "cuda": null }));
    site.set(StateList::Specs, 103, &json!({ "highest_cuda": highest }));
}

#[test]
fn a_cuda_version_that_is_guessed_from_a_name_is_a_warning() {
    each_workspace(|site, workspace| {
        // Its address ends in cuda12.4.
        cuda(site, 902, None, "11.8");
        workspace.write(&config(Instance::new("x")));
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "CUDA 12.4") && said.iter().all(|said| !said.is_error()), "{said:#?}");
        workspace.apply_ok(&config(Instance::new("x")));
        cuda(site, 902, Some("cuda12.4"), "11.8");
        workspace.write(&config(format!("{}{}", Instance::new("x"), Instance::new("y"))));
        refusal(&workspace.try_plan(&[]), &["CUDA 12.4", "11.8"]);
        workspace.write(&config(Instance::new("x")));
        workspace.finish();
    });
}

#[test]
fn an_instance_whose_uid_begins_another_is_told_apart_from_it() {
    each_cli(|cli| {
        let site = formed("counted_uids,released=forgotten");
        let workspace = Workspace::new(cli, &site);
        let ten = config(Instance::new("x").set("count", 10).set("name", "\"x-${count.index}\""));
        workspace.apply_ok(&ten);
        workspace.made_long_ago();
        let address = |uid: &str| {
            let state = workspace.state();
            state.addresses().into_iter().find(|address| state.resource(address).id() == uid).unwrap().to_owned()
        };
        let (first, tenth) = (address("ins-1"), address("ins-10"));
        site.mutate(Mutation::ReleaseInstance { uid: "ins-1".to_owned() });
        let plan = workspace.plan(&[]);
        assert_eq!(plan.actions(), [(first, "create".to_owned())]);
        workspace.apply_plan();
        workspace.settled();
        assert_eq!(workspace.state().resource(&tenth).id(), "ins-10");
        workspace.finish();
    });
}

#[test]
fn zeros_of_an_instance_that_is_being_created_replace_nothing() {
    each_cli(|cli| {
        let site = Site::with(Options {
            form: "zeros_while_creating".parse().unwrap(),
            creation: std::time::Duration::from_secs(3600),
            ..Site::options()
        });
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x")));
        Started::stopped_while_creating(&workspace);
        let known = |name: &str| workspace.state().resource(X).value(name).clone();
        assert_eq!([known("spec_id"), known("image_id"), known("gpu_num")], [103, 902, 1]);
        site.sandbox().advance(std::time::Duration::from_secs(3600));
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn zeros_are_no_news_to_a_create_that_is_adopted_or_waited_for() {
    each_cli(|cli| {
        let site = formed("zeros_while_creating");
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x")));
        Started::killed_when_accepted(&workspace, 1);
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

/// Policies ask the plan for the card. Terraform compares it with the answer of the create, and taints the instance if
/// they differ; the next refresh shows what the service reports.
#[rstest]
#[case::null_while_creating("zeros_while_creating", "NVIDIA-GeForce-RTX-4090")]
#[case::another_spelling("spaced_gpu_names", "NVIDIA GeForce RTX 4090")]
fn the_card_is_in_the_plan_and_the_answer_repeats_it(#[case] form: &str, #[case] reported: &str) {
    let planned =
        [("gpu_name", "NVIDIA-GeForce-RTX-4090"), ("capacity_type", "ondemand"), ("spec_type", "gpu.rtx4090.1")];
    each_cli(|cli| {
        let site = formed(form);
        let workspace = Workspace::new(cli, &site);
        let machine = config(Instance::new("x"));
        let is_as_planned = || {
            let state = workspace.state();
            assert!(!state.resource(X).is_tainted());
            for (name, value) in planned {
                assert_eq!(state.resource(X).value(name), value);
            }
        };
        workspace.write(&machine);
        let plan = workspace.plan(&[]);
        for (name, value) in planned {
            assert_eq!(plan.change(X).after(name), value);
        }
        workspace.apply_plan();
        is_as_planned();
        workspace.apply_ok(&machine);
        assert_eq!(workspace.state().resource(X).value("gpu_name"), reported);
        workspace.finish();

        // A create that a killed run left is adopted, and one that Ctrl-C stops is kept.
        workspace.write(&machine);
        Started::killed_when_accepted(&workspace, 1);
        assert!(workspace.try_apply(&[]).0);
        is_as_planned();
        workspace.finish();
        workspace.write(&machine);
        site.arm("instance_create", When::Next(1), FaultAction::StickCreation);
        Started::stopped_while_creating(&workspace);
        is_as_planned();
        site.unstick();
        workspace.finish();
    });
}

#[test]
fn a_slash_at_the_end_of_a_mount_path_replaces_nothing() {
    each_cli(|cli| {
        let site = formed("trailing_slash");
        let workspace = Workspace::new(cli, &site);
        let path = disk("x").replace("size_gb", "mount_path = \"/data/x\"\n  size_gb");
        workspace.apply_ok(&config(&path));
        workspace.apply_ok(&config(path.replace("size_gb = 20", "size_gb = 30")));
        assert_eq!(site.requests("cloud_disk_create"), 1);
        workspace.finish();
    });
}

/// In the configuration it was planned to replace the disk with its data, and the instance.
#[test]
fn a_path_or_document_that_is_spelled_in_another_way_replaces_nothing() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let all = |slash: &str| {
            let own = disk("x").replace("size_gb", &format!("mount_path = \"/data/x{slash}\"\n  size_gb"));
            let existing = "disk_id = damodel_cloud_disk.x.disk_id, mount_path";
            let machine = Instance::new("x")
                .text("data_disk_mount_path", &format!("/root/data{slash}"))
                .set("exist_disks", format_args!("[{{ {existing} = \"/data/y{slash}\" }}]"))
                .set("object_mounts", if slash.is_empty() { "[jsonencode({ a = 1 })]" } else { r#"["{ \"a\": 1 }"]"# })
                .set("new_disks", format_args!("[{{ size_gb = 20, spec_id = 31, mount_path = \"/data/z{slash}\" }}]"));
            config(format!("{own}{machine}"))
        };
        for (made, spelled) in [("", "/"), ("/", "")] {
            workspace.apply_ok(&all(made));
            workspace.write(&all(spelled));
            workspace.settled();
            workspace.finish();
        }
    });
}

/// Two services use the same disk numbers. Terraform gets no answer of the create in one; the disk of the other in the
/// state does not prove that it did.
#[test]
fn a_disk_of_another_service_with_the_same_number_clears_no_note() {
    each_cli(|cli| {
        let (here, there) = (Site::start(), Site::start());
        let workspace = Workspace::new(cli, &here);
        workspace.set_env("TF_VAR_there", there.token());
        let alias = format!(
            "variable \"there\" {{\n  sensitive = true\n}}\n\
             provider \"damodel\" {{\n  alias = \"there\"\n  base_url = {:?}\n  api_token = var.there\n}}\n",
            there.base_url()
        );
        let far = disk("y").replace("size_gb", "provider = damodel.there\n  size_gb");
        workspace.apply_ok(&config(disk("x")));
        let id = workspace.state().resource("damodel_cloud_disk.x").id();
        workspace.write(&config(format!("{alias}{}{far}", disk("x"))));
        there.stick();
        let mut started = Started::apply(&workspace);
        workspace.await_notes("accepted", 1);
        started.freeze_core();
        there.sandbox().clear_faults();
        there.unstick();
        let is_unheard = |note: &crate::support::terraform::Note| {
            note.content["base_url"].as_str().unwrap().starts_with(there.base_url())
        };
        there.await_ledger("the rename", |ledger| ledger.requests_to("cloud_disk_rename").next().is_some());
        let is_answered = || workspace.notes().iter().any(|note| is_unheard(note) && note.phase() == "finished");
        started.until("the answer is sent", is_answered);
        started.kill_core();
        started.ended(true);
        let note = workspace.notes().into_iter().find(is_unheard).unwrap();
        assert_eq!(note.content["ids"]["id"], id.as_str(), "the numbers are the same");

        workspace.try_plan(&["-target=damodel_cloud_disk.x"]);
        assert!(workspace.notes().iter().any(is_unheard), "{:#?}", workspace.notes());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done, "{said:#?}");
        refusal(&said, &[&id, "terraform import damodel_cloud_disk."]);
        drop(there);
    });
}

#[test]
fn a_list_of_an_unknown_shape_is_an_error() {
    each_workspace(|site, workspace| {
        // An answer of an unknown shape may be temporary: a destroy waits for a better one until its timeout.
        let impatient = |resource: String| resource.replacen("{\n", "{\n  timeouts { delete = \"3s\" }\n", 1);
        let three = format!("{}{}{}", Instance::new("builder"), disk("data"), image("model"));
        let three = config(three.split_inclusive("\n}\n").map(|one| impatient(one.to_owned())).collect::<String>());
        workspace.apply_ok(&three);
        workspace.made_long_ago();
        let before = workspace.state();
        // Without references between them, each is read even if another one fails.
        let apart = three.replace("damodel_instance.builder.id", &format!("{:?}", site.live()[0]));
        let lists = ["damodel_instances", "damodel_cloud_disks", "damodel_private_images"];
        workspace.write(&format!("{apart}{}", lists.map(|kind| format!("data {kind:?} \"all\" {{}}\n")).concat()));
        for shape in [Shape::Empty, Shape::Number, Shape::Renamed, Shape::Text] {
            for list in ["instance_list", "cloud_disk_list", "private_image_list"] {
                site.arm(list, When::Always, FaultAction::Misshapen { shape });
            }
            let code_n = damodel::sandbox::Code::InstanceNotExistOrNoPrivilege;
            site.arm("instance_detail", When::Always, FaultAction::Error { code_n, processed: false });
            let said = workspace.try_plan(&[]);
            let sources = lists.map(|kind| format!("data.{kind}.all"));
            for address in before.addresses().into_iter().chain(sources.iter().map(String::as_str)) {
                refusal_of(&said, address, &[]);
            }
            let (done, said) = workspace.try_apply(&["-destroy", "-refresh=false"]);
            assert!(!done, "{said:#?}");
            for (address, object) in [
                ("damodel_cloud_disk.data", LedgerObject::CloudDisk),
                ("damodel_private_image.model", LedgerObject::PrivateImage),
                ("damodel_instance.builder", LedgerObject::Instance),
            ] {
                let is_released = site.balance_of(object).released > 0;
                assert!(is_released || workspace.state().find(address).is_some(), "{address}: {said:#?}");
            }
            site.sandbox().clear_faults();
        }
        workspace.write(&three);
        workspace.finish();
    });
}
