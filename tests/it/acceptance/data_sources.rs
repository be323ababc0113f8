//! Data sources and each of their filters.

use std::{collections::BTreeSet, fmt::Write};

use damodel::sandbox::{Mutation, Options, StateList};
use serde_json::{Value, json};

use crate::support::terraform::{
    Diagnostic, Instance, Site, Workspace, config, each_cli, each_workspace, each_workspace_on, each_workspace_since,
    refusal, refusal_of,
};

#[test]
fn specifications_are_filtered_and_sorted() {
    each_workspace(|site, workspace| {
        let queries = [
            ("all", "", json!([101, 102, 103, 104, 105, 106])),
            ("spot", "capacity_type = \"spot\"", json!([104])),
            ("available", "available_only = true", json!([101, 102, 103, 104, 105])),
            ("name", "gpu_name_regex = \"(A|H)100\"", json!([101, 102])),
            ("exact", "gpu_name = \"NVIDIA-H100-80G\"", json!([102])),
            ("inexact", "gpu_name = \"H100\"", json!([])),
            ("both", "gpu_name = \"NVIDIA-H100-80G\"\ngpu_name_regex = \"A100\"", json!([])),
            ("many", "min_gpu_num = 7\nsort_by = \"price\"", json!([105, 101, 102])),
            ("memory", "min_gpu_mem_mb = 32000\nsort_by = \"gpu_mem\"", json!([101, 102, 105])),
            ("cuda", "min_cuda = \"12.6\"", json!([102, 103, 104])),
            ("cheap", "max_gpu_hourly_price = 1.98\nsort_by = \"price\"", json!([104, 106, 103])),
            ("rush", "rush_sale = true", json!([104])),
            ("cpus", "min_cpu_per_gpu = 16\nmin_mem_per_gpu_gb = 62", json!([102, 103, 104])),
            ("elsewhere", "region = \"cn-north-2\"", json!([201, 202, 203, 204])),
        ];
        let sources: String = queries
            .iter()
            .map(|(name, arguments, _)| {
                format!(
                    "data \"damodel_specs\" {name:?} {{\n{arguments}\n}}\noutput {name:?} {{\n  value = \
                     data.damodel_specs.{name}.specs[*].spec_id\n}}\n"
                )
            })
            .collect();
        workspace.apply_ok(&config(sources));
        let state = workspace.state();
        for (name, _, expected) in queries {
            assert_eq!(state.output(name), &expected, "{name}");
        }
        assert!(site.requests("spec_list") <= 2 * 5, "one list for each region and run");
        let first = &state.resource("data.damodel_specs.name").value("specs")[0];
        let expected = [
            ("spec_type", json!("gpu.a100-80g.1")),
            ("gpu_mem_mb", json!(81_920)),
            ("max_gpu_count", json!(8)),
            ("available", json!(true)),
            ("hourly_price", json!(12.8)),
            ("support_ib_network", json!(true)),
            ("rush_sale", json!(false)),
            ("hourly_discount_status", json!("effective")),
        ];
        for (field, value) in expected {
            assert_eq!(first[field], value, "{field}");
        }
    });
}

#[test]
fn images_are_filtered() {
    each_workspace(|site, workspace| {
        let queries = [
            ("all", "", json!([901, 902, 903, 904, 905, 906])),
            ("label", "label = \"inference\"", json!([905, 906])),
            ("software", "name_contains = \"python 3.11\"", json!([902, 904])),
            ("part", "name_contains = \"PyTorch\"\nname_regex = \"1\\\\.0$\"", json!([903])),
            ("exact", "name = \"PyTorch 2.5.1\"", json!([902])),
            ("inexact", "name = \"PyTorch\"", json!([])),
            ("pattern", "name_regex = \"^PyTorch 2\\\\.5\"", json!([902])),
            ("none", "label = \"nothing\"", json!([])),
        ];
        let sources: String = queries
            .iter()
            .map(|(name, arguments, _)| {
                format!(
                    "data \"damodel_public_images\" {name:?} {{\n{arguments}\n}}\noutput {name:?} {{\n  value = \
                     data.damodel_public_images.{name}.images[*].id\n}}\n"
                )
            })
            .collect();
        workspace.apply_ok(&config(sources));
        let state = workspace.state();
        for (name, _, expected) in queries {
            let ids: Vec<String> = state.output(name).as_array().unwrap().iter().map(plain).collect();
            let expected: Vec<String> = expected.as_array().unwrap().iter().map(plain).collect();
            assert_eq!(ids, expected, "{name}");
        }
        // The service searches for parts of names only.
        let lists = site.ledger().requests_to("public_image_list").map(|list| list.query.clone()).collect::<Vec<_>>();
        let searched: BTreeSet<_> = lists.iter().filter(|query| query.contains("name=")).collect();
        assert_eq!(searched.len(), 2, "{searched:?}");
        assert!(searched.iter().all(|query| query.contains("=PyTorch") || query.contains("=python")), "{searched:?}");
        let image = &state.resource("data.damodel_public_images.pattern").value("images")[0];
        assert_eq!(image["image_url"], json!("registry.damodel.test/model_library/pytorch:2.5.1-cuda12.4"));
        assert_eq!(image["labels"], json!(["pytorch", "cuda12.4"]));
        assert_eq!(image["create_time"], json!("2026-01-05T08:15:02Z"));
    });
}

/// An id as text, whether the record has a number or a text.
fn plain(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// A source with its arguments, the checked attribute of the result, and its expected value.
type Query = (&'static str, &'static str, &'static str, Value);

/// Reads all of them at once, and compares each with its result.
fn answers(workspace: &Workspace<'_>, more: &str, queries: &[Query]) {
    let mut sources = more.to_owned();
    for (number, (source, arguments, result, _)) in queries.iter().enumerate() {
        let depends = if more.is_empty() { "" } else { "depends_on = [damodel_instance.x]" };
        write!(sources, "data {source:?} \"q{number}\" {{\n{arguments}\n{depends}\n}}\n").unwrap();
        write!(sources, "output \"q{number}\" {{\n  value = data.{source}.q{number}.{result}\n}}\n").unwrap();
    }
    workspace.apply_ok(&config(sources));
    let state = workspace.state();
    for (number, (source, arguments, _, expected)) in queries.iter().enumerate() {
        assert_eq!(state.output(&format!("q{number}")), expected, "{source}: {arguments}");
    }
}

#[test]
fn disks_and_their_specifications_are_filtered() {
    const DISKS: &str = "damodel_cloud_disks";
    const ONE: &str = "damodel_cloud_disk";
    const SPECS: &str = "damodel_cloud_disk_specs";
    const SPEC: &str = "damodel_cloud_disk_spec";
    each_workspace(|site, workspace| {
        let queries = [
            (DISKS, "", "cloud_disks[*].id", json!(["801", "802", "803", "804"])),
            (DISKS, "name_or_uid = \"a\"", "cloud_disks[*].id", json!(["801", "802", "803", "804"])),
            (DISKS, "name_or_uid = \"seedshare\"", "cloud_disks[*].id", json!(["802"])),
            (DISKS, "name_or_uid = \"scrat\"", "cloud_disks[*].id", json!(["804"])),
            (DISKS, "status = \"available\"", "cloud_disks[*].id", json!(["801", "804"])),
            (DISKS, "status = \"in_arrears\"", "cloud_disks[*].id", json!(["803"])),
            (DISKS, "status = \"releasing\"", "cloud_disks[*].id", json!([])),
            (DISKS, "storage_classes = [\"FS\", \"S3\"]", "cloud_disks[*].id", json!(["802"])),
            (DISKS, "cluster_id = 77", "cloud_disks[*].id", json!(["802"])),
            (DISKS, "support_ib_network = true\nstatus = \"mounted\"", "cloud_disks[*].id", json!(["802"])),
            (ONE, "id = \"803\"", "name", json!("unpaid")),
            (ONE, "uid = \"disk-seedscratch4\"", "id", json!("804")),
            (ONE, "name = \"datasets\"", "id", json!("801")),
            (ONE, "name = \"datasets\"\nuid = \"disk-seeddata0001\"", "id", json!("801")),
            (SPECS, "", "specs[*].id", json!(["31", "32", "33", "34"])),
            (SPECS, "spec_alias = \"files\"", "specs[*].id", json!(["32", "34"])),
            (SPECS, "storage_classes = [\"RBD\", \"S3\"]", "specs[*].id", json!(["31", "33"])),
            (SPECS, "support_ib_network = false", "specs[*].id", json!(["31", "32", "33"])),
            (SPECS, "support_ib_network = true", "specs[*].id", json!(["31", "32", "33", "34"])),
            (SPEC, "id = \"33\"", "spec_alias", json!("object-store")),
            (SPEC, "spec_alias = \"ib-files\"", "spec_id", json!(34)),
            (SPEC, "multiple_mounting = true\nstorage_class = \"S3\"", "spec_id", json!(33)),
        ];
        answers(workspace, "", &queries);
        let lists: Vec<_> = site.ledger().requests_to("cloud_disk_list").map(|request| request.query.clone()).collect();
        assert!(lists.iter().any(|query| query.contains("spec_types=2%2C3")), "{lists:?}");
        assert!(lists.iter().any(|query| query.contains("support_ib_network=1")), "{lists:?}");
    });
}

#[test]
fn images_and_specifications_are_found() {
    const LIST: &str = "damodel_private_images";
    const ONE: &str = "damodel_private_image";
    const PUBLIC: &str = "damodel_public_image";
    const SPEC: &str = "damodel_spec";
    each_workspace(|_, workspace| {
        let queries = [
            (LIST, "", "images[*].image_id", json!([951, 952, 953])),
            (LIST, "name = \"plain-tools\"", "images[*].image_id", json!([953])),
            (LIST, "name = \"plain\"", "images[*].image_id", json!([])),
            (LIST, "name_regex = \"^(half|plain)-\"", "images[*].image_id", json!([952, 953])),
            (LIST, "name_contains = \"PLAIN\"", "images[*].image_id", json!([953])),
            (LIST, "name_contains = \"l\"\nname_regex = \"^half\"", "images[*].image_id", json!([952])),
            (LIST, "status = \"ready\"", "images[*].image_id", json!([951, 953])),
            (LIST, "status = \"creating\"", "images[*].image_id", json!([952])),
            (LIST, "region = \"cn-east-1\"\nstatus = \"ready\"", "images[*].image_id", json!([951])),
            (ONE, "id = \"953\"", "name", json!("plain-tools")),
            (ONE, "name = \"half-pushed\"", "id", json!("952")),
            (ONE, "region = \"cn-north-2\"", "id", json!("953")),
            (ONE, "status = \"creating\"", "id", json!("952")),
            (ONE, "name_regex = \"e\"\nmost_recent = true", "id", json!("952")),
            (ONE, "name_contains = \"tools\"", "id", json!("953")),
            (PUBLIC, "name_contains = \"PyTorch\"\nname_regex = \"2\\\\.5\"", "id", json!("902")),
            (PUBLIC, "id = \"903\"", "name", json!("PyTorch 2.1.0")),
            (PUBLIC, "name = \"Ubuntu 22.04\"", "id", json!("901")),
            (PUBLIC, "label = \"inference\"\nmost_recent = true", "id", json!("906")),
            (PUBLIC, "label = \"inference\"\nname_regex = \"^vLLM\"", "id", json!("905")),
            (SPEC, "gpu_name = \"NVIDIA-H100-80G\"", "spec_id", json!(102)),
            (
                SPEC,
                "gpu_name = \"NVIDIA-GeForce-RTX-4090\"\ngpu_name_regex = \"4090\"\ncapacity_type = \"spot\"",
                "spec_id",
                json!(104),
            ),
            (SPEC, "gpu_name_regex = \"V100\"", "spec_id", json!(105)),
            (SPEC, "capacity_type = \"spot\"", "spec_id", json!(104)),
            (SPEC, "rush_sale = true", "spec_type", json!("gpu.rtx4090.spot")),
            (SPEC, "min_gpu_mem_mb = 81900\nregion = \"cn-north-2\"\nmin_cuda = \"12.4\"", "spec_id", json!(201)),
            (SPEC, "region = \"cn-north-2\"\nmax_gpu_hourly_price = 1", "gpu_name", json!("CPU-Intel-8358P")),
            (SPEC, "sort_by = \"gpu_mem\"\nfirst = true\nmin_cpu_per_gpu = 15", "spec_id", json!(102)),
            (SPEC, "min_mem_per_gpu_gb = 150", "spec_id", json!(102)),
            (SPEC, "available_only = true\nmin_gpu_num = 8\nsort_by = \"price\"\nfirst = true", "spec_id", json!(105)),
        ];
        answers(workspace, "", &queries);
    });
}

#[test]
fn instances_are_filtered() {
    const LIST: &str = "damodel_instances";
    const ONE: &str = "damodel_instance";
    each_workspace(|site, workspace| {
        let machines =
            format!("{}{}", Instance::new("x").text("name", "trainer"), Instance::new("y").text("name", "tester"));
        workspace.apply_ok(&config(&machines));
        let state = workspace.state();
        let [x, y] = ["x", "y"].map(|label| state.resource(&format!("damodel_instance.{label}")).id());
        site.mutate(Mutation::SetInstanceStatus { uid: y.clone(), status: "Stopped".to_owned() });
        let by_uid: &'static str = format!("query = {:?}", &x[4..12]).leak();
        let by_id: &'static str = format!("id = {y:?}").leak();
        let queries = [
            (LIST, "query = \"train\"", "instances[*].name", json!(["trainer"])),
            (LIST, by_uid, "instances[*].instance_uid", json!([x])),
            (LIST, "query = \"er\"\nstatus = \"Stopped\"", "instances[*].name", json!(["tester"])),
            (LIST, "status = \"Running\"", "instances[*].name", json!(["trainer"])),
            (LIST, "status = \"Failed\"", "instances[*].name", json!([])),
            (ONE, by_id, "name", json!("tester")),
            (ONE, "name = \"trainer\"", "id", json!(x)),
        ];
        answers(workspace, &machines, &queries);
        workspace.write(&config(format!("{machines}data {LIST:?} \"x\" {{\n  status = \"Dancing\"\n}}\n")));
        let said = workspace.try_plan(&[]);
        let error = refusal(&said, &["100002 InvalidParameter", "Dancing"]);
        assert_eq!(error.attribute.as_deref(), Some("status"));
        workspace.write(&config(&machines));
        workspace.finish();
    });
}

#[test]
fn none_and_several_are_errors_that_list_what_there_is() {
    let cases: [(&str, &str, &[&str]); 18] = [
        ("damodel_cloud_disk", "name = \"none\"", &["No cloud disk matches", "803 \"unpaid\" (disk-seedarrear03)"]),
        (
            "damodel_cloud_disk",
            "name = \"twin\"",
            &["Several cloud disks match", "801 \"twin\"", "804 \"twin\"", "by its id"],
        ),
        ("damodel_cloud_disk", "id = \"801\"\nname = \"unpaid\"", &["No cloud disk matches"]),
        ("damodel_cloud_disk", "", &["Missing required argument", "id, uid or name"]),
        ("damodel_private_image", "name = \"not-yours\"", &["No private image matches", "951 \"trained-model\""]),
        ("damodel_private_image", "region = \"cn-east-1\"", &["Several private images match", "951", "952"]),
        ("damodel_private_image", "", &["Missing required argument", "status or region"]),
        ("damodel_public_image", "id = \"907\"", &["No public image matches", "902 \"PyTorch 2.5.1\""]),
        ("damodel_public_image", "name_regex = \"^PyTorch\"", &["Several public images match", "902", "903"]),
        ("damodel_public_image", "", &["Missing required argument"]),
        ("damodel_instance", "name = \"none\"", &["No instance matches", "\"generated-"]),
        ("damodel_instance", "name = \"twin\"", &["Several instances match", "ins-"]),
        ("damodel_instance", "", &["Missing required argument", "id or name"]),
        ("damodel_instance", "id = \"a\"\nname = \"b\"", &["Conflicting arguments", "only one of id or name"]),
        ("damodel_cloud_disk_spec", "id = \"30\"", &["No cloud disk specification matches", "31 \"ssd-block\" (RBD)"]),
        (
            "damodel_cloud_disk_spec",
            "storage_class = \"FS\"",
            &["Several cloud disk specifications match", "32 \"shared-files\" (FS)", "34"],
        ),
        (
            "damodel_spec",
            "gpu_name = \"RTX\"",
            &["No specification matches", "103 (NVIDIA-GeForce-RTX-4090, ondemand, up to 6"],
        ),
        ("damodel_spec", "gpu_name_regex = \"4090\"", &["Several specifications match", "103", "104", "first = true"]),
    ];
    each_workspace_on(&Options { generate_instances: 3, ..Site::options() }, |site, workspace| {
        for id in [801, 804] {
            site.set(StateList::Disks, id, &json!({ "name": "twin" }));
        }
        for uid in site.live().into_iter().take(2) {
            site.set(StateList::Instances, uid, &json!({ "alias": "twin" }));
        }
        // Errors of the arguments alone would hide errors that need the service.
        for by_itself in [true, false] {
            let mut sources = String::new();
            let cases: Vec<_> =
                cases.iter().filter(|(_, _, words)| words[0].contains("argument") == by_itself).collect();
            for (number, (source, arguments, _)) in cases.iter().enumerate() {
                write!(sources, "data {source:?} \"q{number}\" {{\n{arguments}\n}}\n").unwrap();
            }
            workspace.write(&config(sources));
            let said = workspace.try_plan(&[]);
            for (number, (source, _, words)) in cases.iter().enumerate() {
                let address = format!("data.{source}.q{number}");
                let stops_a_destroy = refusal_of(&said, &address, words).detail.ends_with("destroy -refresh=false.");
                assert_eq!(stops_a_destroy, !by_itself, "{address}: {said:#?}");
            }
        }
    });
}

/// Each request of a page has another order, so that the pages of a list repeat objects and lack others: the plan of a
/// for_each over them would destroy what the missing ones are for. An object that is chosen by its id needs no list.
#[test]
fn a_list_that_lacks_objects_is_an_error() {
    const SOURCES: [(&str, &str); 2] = [("damodel_instances", ""), ("damodel_instance", "name = \"none\"")];
    each_cli(|cli| {
        let form = "order=shuffled_across_pages,page_cap=1,page_cap_for_all".parse().unwrap();
        let site = Site::with(Options { form, generate_instances: 40, ..Site::options() });
        let workspace = Workspace::new(cli, &site);
        let sources = SOURCES.map(|(source, arguments)| format!("data {source:?} \"x\" {{\n{arguments}\n}}\n"));
        workspace.write(&config(sources.concat()));
        let said = workspace.try_plan(&[]);
        for (source, _) in SOURCES {
            let address = format!("data.{source}.x");
            refusal_of(&said, &address, &["the list is incomplete", "its total is"]);
        }
        let uid = &site.live()[0];
        workspace.apply_ok(&config(format!("data \"damodel_instance\" \"x\" {{\n  id = {uid:?}\n}}\n")));
        assert_eq!(workspace.state().resource("data.damodel_instance.x").id(), *uid);
    });
}

/// The number of an instance is no UID, wherever one is taken.
#[test]
fn a_database_id_is_refused_before_anything_is_asked() {
    each_workspace_since(10, 11, |site, workspace| {
        let cases = [
            "data \"damodel_instance\" \"x\" {\n  id = \"5001\"\n}\n",
            "data \"damodel_model\" \"x\" {\n  path = \"/m.gguf\"\n  instance_id = \"5001\"\n}\n",
            "resource \"damodel_private_image\" \"x\" {\n  name = \"x\"\n  instance_id = 5001\n}\n",
            "resource \"damodel_llama_server\" \"x\" {\n  model = \"/m.gguf\"\n  instance_id = 5001\n}\n",
            "ephemeral \"damodel_instance_access\" \"x\" {\n  id = \"5001\"\n}\n",
            "ephemeral \"damodel_llama_tunnel\" \"x\" {\n  instance_id = \"5001\"\n}\n",
        ];
        for case in cases {
            workspace.write(&config(case));
            refusal(&Diagnostic::of_document(&workspace.run(&["validate", "-json"]).stdout), &["not its database_id"]);
        }
        assert_eq!(site.ledger().requests.len(), 0);
    });
}
