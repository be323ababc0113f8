//! The whole service in one configuration.

use std::collections::BTreeMap;

use damodel::sandbox::{Form, Ledger, LedgerObject, Options};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::terraform::{Severity, Site, Workspace, config, each_program, each_workspace_on, says};

/// A disk, an instance, an image saved from it, an instance from that image with both disks, every data source, and a
/// chat.
const WHOLE: &str = r#"
resource "damodel_cloud_disk" "data" {
  name       = "corpus"
  size_gb    = 40
  spec_id    = 32
  mount_path = "/data/corpus"
}
resource "damodel_instance" "builder" {
  name       = "builder"
  spec_id    = 103
  gpu_num    = 1
  image_id   = 902
  image_type = "public"
}
resource "damodel_private_image" "saved" {
  instance_id = damodel_instance.builder.id
  name        = "saved-model"
}
resource "damodel_instance" "user" {
  name      = "user"
  spec_type = "gpu.a100-80g.1"
  gpu_num   = 2
  image     = damodel_private_image.saved.image_tag
  exist_disks = [{
    disk_id    = damodel_cloud_disk.data.disk_id
    mount_path = "/data/a"
  }]
  new_disks = [{
    size_gb    = 25
    spec_id    = 31
    mount_path = "/data/b"
  }]
}
data "damodel_specs" "all" {}
data "damodel_spec" "cheap" {
  capacity_type  = "ondemand"
  available_only = true
  sort_by        = "price"
  first          = true
}
data "damodel_cloud_disk_specs" "all" {}
data "damodel_public_images" "all" {}
data "damodel_public_image" "one" {
  name_regex = "^PyTorch 2\\.5"
}
data "damodel_private_images" "all" {
  depends_on = [damodel_instance.user]
}
data "damodel_private_image" "one" {
  id = damodel_private_image.saved.id
}
data "damodel_instances" "all" {
  depends_on = [damodel_instance.user]
}
data "damodel_instance" "one" {
  id = damodel_instance.user.id
}
data "damodel_cloud_disks" "all" {
  depends_on = [damodel_instance.user]
}
data "damodel_cloud_disk" "one" {
  id         = damodel_cloud_disk.data.id
  depends_on = [damodel_instance.user]
}
check "the_model_answers" {
  data "damodel_chat_completion" "hello" {
    model    = "llama-3.1-8b-instruct"
    messages = [{ role = "user", content = "hello" }]
  }
  assert {
    condition     = data.damodel_chat_completion.hello.content == "You said: hello"
    error_message = "said ${data.damodel_chat_completion.hello.content}"
  }
}
output "found" {
  value = {
    specs     = length(data.damodel_specs.all.specs)
    cheap     = data.damodel_spec.cheap.spec_id
    classes   = data.damodel_cloud_disk_specs.all.specs[*].storage_class
    images    = length(data.damodel_public_images.all.images)
    pytorch   = data.damodel_public_image.one.id
    saved     = contains(data.damodel_private_images.all.images[*].name, "saved-model")
    tag       = data.damodel_private_image.one.image_tag == damodel_private_image.saved.image_tag
    machines  = sort(data.damodel_instances.all.instances[*].name)
    kind      = data.damodel_instance.one.image_type
    corpus    = contains(data.damodel_cloud_disks.all.cloud_disks[*].name, "corpus")
    held      = data.damodel_cloud_disk.one.status
    by        = length(data.damodel_cloud_disk.one.binding_instances)
  }
}
"#;

const DISK: &str = "damodel_cloud_disk.data";
const IMAGE: &str = "damodel_private_image.saved";
const BUILDER: &str = "damodel_instance.builder";
const USER: &str = "damodel_instance.user";

/// The whole life cycle: apply, an empty plan, import piece by piece, destroy in the right order.
fn lives(site: &Site, workspace: &Workspace<'_>) {
    let before = [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage]
        .map(|object| site.ledger().live(object));
    workspace.set_env("DAMODEL_CHAT_API_KEY", site.chat_key());
    let config = config(WHOLE);
    workspace.write(&config);
    let plan = workspace.plan(&[]);
    workspace.apply_plan();
    workspace.settled();
    assert_eq!(plan.change(USER).after("exist_disks")[0]["release_with_instance"], json!(false));
    assert!(!workspace.transcript().contains("Check block assertion failed"), "{}", workspace.transcript());

    let state = workspace.state();
    let found = json!({
        "specs": 6, "cheap": 103, "classes": ["RBD", "FS", "S3", "FS"], "images": 6, "pytorch": "902", "saved": true,
        "tag": true,
        "machines": ["builder", "user"], "kind": "private", "corpus": true, "held": "mounted", "by": 1,
    });
    assert_eq!(state.output("found"), &found);
    assert_eq!(state.resource(IMAGE).value("status"), &json!("ready"));
    assert_eq!(state.resource(USER).value("image_id"), state.resource(IMAGE).value("image_id"));
    let machine = site.live().len();
    assert_eq!((machine, site.ledger().balance(LedgerObject::CloudDisk).created), (2, before[1].len() + 2));

    imports(workspace, &config, site);
    strangers(workspace, site);
    destroys(workspace, site, &before);
}

/// Imports everything into a fresh state, one resource at a time.
fn imports(workspace: &Workspace<'_>, config: &str, site: &Site) {
    let state = workspace.state();
    let fresh = Workspace::new(workspace.cli, site);
    fresh.set_env("DAMODEL_CHAT_API_KEY", site.chat_key());
    fresh.write(config);
    for address in [DISK, IMAGE, BUILDER, USER] {
        fresh.run_ok(&["import", "-no-color", "-input=false", address, &state.resource(address).id()]);
    }
    let changes = site.changes_but_chats();
    let plan = fresh.plan(&[]);
    let actions: Vec<_> = plan.actions().into_iter().filter(|(address, _)| !address.starts_with("data.")).collect();
    let updates = [USER, IMAGE].map(|address| (address.to_owned(), "update".to_owned()));
    assert_eq!(actions, updates, "what is never reported is set without a call");
    assert_eq!(plan.change(USER).unknown(), Vec::<String>::new());
    assert_eq!(plan.change(IMAGE).unknown(), Vec::<String>::new());
    fresh.apply_plan();
    fresh.settled();
    assert_eq!(site.changes_but_chats(), changes, "nothing was sent");
    let imported = fresh.state();
    // An update, which refreshes everything else too.
    workspace.write(&config.replace("\"builder\"\n  spec_id", "\"renamed\"\n  spec_id"));
    workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
    let known = workspace.state();
    assert_eq!(known.resource(BUILDER).value("name"), "renamed");
    for address in [DISK, IMAGE, BUILDER, USER] {
        // Only the create knew the cost at that time.
        let compared = |mut flat: BTreeMap<String, String>| {
            let is_renamed = |name: &str| name == "name" && address == BUILDER;
            flat.retain(|name, _| !name.starts_with("estimated_cost") && name != "price_ceiling" && !is_renamed(name));
            flat
        };
        assert_eq!(compared(imported.resource(address).flat()), compared(known.resource(address).flat()), "{address}");
    }
}

/// Checks that another account's token, and an unknown key, change nothing: they are errors, not an empty state.
fn strangers(workspace: &Workspace<'_>, site: &Site) {
    let changes = site.changes_but_chats();
    workspace.made_long_ago();
    workspace.set_env("DAMODEL_API_TOKEN", &site.token_of("other"));
    workspace.set_env("DAMODEL_CHAT_API_KEY", "key-of-nobody");
    let (done, said) = workspace.try_apply(&[]);
    assert!(!done);
    // Terraform does not read the resources that depend on these.
    for address in [DISK, BUILDER] {
        let of_it = said.iter().find(|said| said.is_error() && said.address.as_deref() == Some(address));
        let error = of_it.unwrap_or_else(|| panic!("no error of {address}: {said:#?}"));
        assert!(
            error.text().contains("another account") && error.text().contains("The state is unchanged"),
            "{error:?}"
        );
    }
    workspace.set_env("DAMODEL_API_TOKEN", site.token());
    let said = workspace.try_plan(&["-refresh=false"]);
    assert!(says(&said, Severity::Warning, "provider's chat_api_key"), "{said:#?}");
    workspace.set_env("DAMODEL_CHAT_API_KEY", site.chat_key());
    assert_eq!(workspace.state().addresses().len(), 4);
    assert_eq!(site.changes_but_chats(), changes, "nothing was sent");
}

/// Destroys everything, the instances before the disk and the image that they use.
fn destroys(workspace: &Workspace<'_>, site: &Site, before: &[Vec<String>; 3]) {
    let state = workspace.state();
    let (user, image) = (state.resource(USER).id(), state.resource(IMAGE).id());
    let disk = state.resource(DISK).value("uid").as_str().unwrap().to_owned();
    workspace.destroy_ok();
    assert!(workspace.state().addresses().is_empty());
    let ledger = site.ledger();
    let released = |ledger: &Ledger, uid: &str| {
        let request = ledger.requests.iter().find(|request| request.released.iter().any(|other| other == uid));
        request.unwrap_or_else(|| panic!("{uid} was never released")).sequence
    };
    assert!(released(&ledger, &user) < released(&ledger, &disk), "the machine lets go of the disk first");
    assert!(released(&ledger, &user) < released(&ledger, &image), "what is made of the image goes first");
    for (object, before) in
        [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage].into_iter().zip(before)
    {
        assert_eq!(&ledger.live(object), before, "{object:?}");
        assert_eq!(ledger.duplicates(object), Vec::<Vec<String>>::new());
    }
}

#[test]
fn the_whole_service_lives_in_one_configuration() {
    each_program(lives);
}

/// Together they contain every value of every form except the defaults, and the shapes of errors, which the table of
/// src/api/envelope.rs has.
const FORMS: [&str; 4] = [
    "integers=floats,booleans=numbers,extra_fields,image_type_as_number,resize=size_first,released=forgotten,\
     error_shape=array,error_status=matched,chat_error=envelope,counted_uids,trailing_slash,empty=text,\
     clock_skew=7200,order=descending,disk_refusal=invalid_parameter,released_disks=lingering,page_cap=4,\
     page_cap_for_all,chat_stream=comments",
    "integers=strings,booleans=strings,total_as_string,order=shuffled,released_disks=forgotten,chat_stream=pieces,\
     error_shape=capitalised,foreign_images_forbidden,chat_error=text,zeros_while_creating,creating_unreleasable,\
     resize=unchanged",
    "empty=null,page_cap=1,undocumented_statuses,metadata=missing,uploading=per_account,chat_stream=whole,\
     error_shape=nested,failed_unreleasable,spaced_gpu_names,chat_error=envelope",
    "empty=missing,order=shuffled_across_pages,page_cap=3,page_size_as_asked,clock_skew=-7200,\
     released=without_detail,chat_stream=crlf,error_shape=text,metadata=without_identifiers,chat_error=openai_200",
];

#[rstest]
fn the_whole_service_is_the_same_in_every_form(#[values(0, 1, 2, 3)] number: usize) {
    each_workspace_on(&Options { form: FORMS[number].parse::<Form>().unwrap(), ..Site::options() }, lives);
}

#[test]
fn no_value_of_a_form_is_forgotten() {
    let forms: Vec<Value> = FORMS
        .iter()
        .map(|text| text.parse::<Form>().unwrap())
        .chain([Form::default()])
        .map(|form| serde_json::to_value(form).unwrap())
        .collect();
    // Names in capitals are shown by a test of leftovers: the lives compare names.
    let elsewhere = ["capital_names", "error_shape"];
    for (name, default) in forms[0].as_object().unwrap().iter().filter(|(name, _)| !elsewhere.contains(&name.as_str()))
    {
        let there = |value: &Value| forms.iter().any(|form| form[name] == *value);
        match default {
            Value::Bool(_) => assert!(there(&json!(true)) && there(&json!(false)), "{name}"),
            Value::String(_) => {
                // An unknown word is refused with the list of all words.
                let refusal = format!("{name}=no_such_word").parse::<Form>().unwrap_err();
                let refusal = std::error::Error::source(&refusal).unwrap().to_string();
                let words: Vec<_> = refusal.split('`').skip(3).step_by(2).collect();
                assert!(words.len() > 1 && words.iter().all(|word| there(&json!(word))), "{name}: {refusal}");
            }
            other => assert!(forms.iter().any(|form| form[name] != *other), "{name}"),
        }
    }
}
