//! Every attribute of every record, with a value that no forgotten attribute would have.

use serde_json::{Value, json};

use crate::support::terraform::{Instance, config, each_workspace};

/// Compares a record with the expected one: the same attributes, and equal values.
fn shows(record: &Value, expected: &Value) {
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(record), names(expected));
    for (name, value) in expected.as_object().unwrap() {
        match (record[name].as_f64(), value.as_f64()) {
            (Some(shown), Some(wanted)) => assert!((shown - wanted).abs() < 1e-9, "{name}: {shown}, not {wanted}"),
            _ => assert_eq!(&record[name], value, "{name}"),
        }
    }
}

fn cents(price: f64) -> f64 {
    (price * 100.0).round() / 100.0
}

#[test]
fn the_catalogue_shows_every_attribute() {
    const SOURCES: &str = r#"
data "damodel_specs" "all" { region = "cn-north-2" }
data "damodel_spec" "one" {
  region         = "cn-north-2"
  gpu_name_regex = "H100"
}
data "damodel_cloud_disk_specs" "all" {}
data "damodel_public_images" "all" {}
data "damodel_public_image" "one" { id = "902" }
data "damodel_private_images" "all" {}
data "damodel_private_image" "one" { name = "trained-model" }
data "damodel_cloud_disks" "all" {}
data "damodel_cloud_disk" "one" { uid = "disk-seedshare002" }
output "specs" { value = data.damodel_specs.all.specs }
output "spec" { value = data.damodel_spec.one }
output "disk_specs" { value = data.damodel_cloud_disk_specs.all.specs }
output "public" { value = data.damodel_public_images.all.images }
output "public_one" { value = data.damodel_public_image.one }
output "private" { value = data.damodel_private_images.all.images }
output "private_one" { value = data.damodel_private_image.one }
output "disks" { value = data.damodel_cloud_disks.all.cloud_disks }
output "disk" { value = data.damodel_cloud_disk.one }
"#;
    each_workspace(|_, workspace| {
        workspace.apply_ok(&config(SOURCES));
        let state = workspace.state();

        let spec = json!({
            "spec_id": 202, "spec_type": "gpu.h100-80g.spot", "region": "cn-north-2", "capacity_type": "spot",
            "gpu_name": "NVIDIA-H100-80G", "gpu_mem_mb": 81_559, "max_gpu_count": 2, "available": true,
                "cpu_per_gpu": 22,
            "mem_per_gpu_gb": 200, "sys_disk_size_gb": 60, "data_disk_size_gb": 100, "data_disk_expand_quota_gb": 3000,
            "highest_cuda": "12.8", "support_ib_network": true, "hourly_price": 9.99, "daily_price": cents(9.99 * 22.5),
            "monthly_price": cents(9.99 * 600.0), "hourly_data_disk_price": 0.0006, "daily_data_disk_price": 0.012,
            "monthly_data_disk_price": 0.33, "hourly_discount": 0.95, "daily_discount": 0.9, "monthly_discount": 0.85,
            "hourly_discount_status": "effective", "daily_discount_status": "effective",
                "monthly_discount_status": "effective",
            "rush_sale": true,
        });
        shows(&state.output("specs")[1], &spec);
        contains(state.output("spec"), &spec);
        let statuses = |period: &str| -> Vec<&Value> {
            let records = state.output("specs").as_array().unwrap().iter();
            records.map(|record| &record[format!("{period}_discount_status")]).collect()
        };
        assert_eq!(statuses("hourly"), ["none", "effective", "not_yet_effective", "effective_with_next"]);
        assert_eq!(statuses("daily"), ["effective_with_next", "effective", "expired", "voided"]);
        assert_eq!(statuses("monthly"), ["effective", "effective", "voided", "not_yet_effective"]);

        let disk_spec = json!({
            "id": "34", "spec_id": 34, "spec_alias": "ib-files", "multiple_mounting": true, "max_size_gib": 2000,
                "storage_class": "FS",
        });
        shows(&state.output("disk_specs")[3], &disk_spec);

        let image = json!({
            "id": "902", "image_id": 902, "name": "PyTorch 2.5.1",
                "image_url": "registry.damodel.test/model_library/pytorch:2.5.1-cuda12.4",
            "description": "PyTorch 2.5.1, ready to use", "softwares": ["PyTorch 2.5.1", "Python 3.11", "CUDA 12.4"],
            "labels": ["pytorch", "cuda12.4"], "size": "9.8GB", "document_url": "https://docs.damodel.test/images/902",
            "icon": "https://static.damodel.test/icons/902.svg", "create_time": "2026-01-05T08:15:02Z",
            "update_time": "2026-01-06T08:15:02Z",
        });
        shows(&state.output("public")[1], &image);
        contains(state.output("public_one"), &image);

        let image = json!({
            "image_id": 951, "image_uuid": "6f1d2c3b-0000-4000-8000-000000000951", "name": "trained-model",
            "image_tag": "registry.damodel.test/user_private/main/trained-model:v951", "status": "ready",
                "push_progress": 100,
            "image_size": 12.75, "original_image": "registry.damodel.test/model_library/pytorch:2.5.1-cuda12.4",
            "region": "cn-east-1", "create_time": "2026-01-05T09:15:51Z", "updated_at": "2026-01-05T10:15:51Z",
            "upperdir_files": 1951, "upperdir_bytes": 5_368_710_071_i64,
        });
        shows(&state.output("private")[0], &image);
        contains(state.output("private_one"), &image);
        let half = &state.output("private")[1];
        assert_eq!((&half["status"], &half["push_progress"]), (&json!("creating"), &json!(42)));

        let disk = json!({
            "id": "802", "disk_id": 802, "uid": "disk-seedshare002", "name": "shared", "size_gb": 500,
            "status": "mounted", "spec_id": 32,
            "spec_type": "shared-files", "storage_class": "FS", "multiple_mounting": true, "mount_path": "/data/shared",
            "binding_instances": ["{\"instance_uid\":\"ins-elsewhere0001\",\"mount_path\":\"/data/shared\"}"],
            "binding_clusters": ["{\"cluster_uid\":\"cluster-77\"}"], "release_with_instance": false,
            "release_with_cluster": true, "create_time": "2026-01-05T08:13:22Z", "stop_time": "2027-01-05T08:13:22Z",
        });
        shows(&state.output("disks")[1], &disk);
        contains(state.output("disk"), &disk);
        let words: Vec<_> = state.output("disks").as_array().unwrap().iter().map(|disk| &disk["status"]).collect();
        assert_eq!(words, ["available", "mounted", "in_arrears", "available"]);
    });
}

/// Compares a data source, which may have further arguments, with the record.
fn contains(source: &Value, record: &Value) {
    let mut shown = source.clone();
    shown.as_object_mut().unwrap().retain(|name, _| record.get(name).is_some());
    shows(&shown, record);
}

#[test]
fn a_machine_shows_every_attribute() {
    each_workspace(|site, workspace| {
        let machine = Instance::new("x")
            .text("name", "trainer")
            .set("gpu_num", 2)
            .text("payment_type", "Monthly")
            .set("purchase_duration", 2)
            .text("login_method", "ssh_key")
            .set("ssh_pubkey_id", 17)
            .text("ssh_pubkey_name", "laptop")
            .text("external_ip", "203.0.113.7")
            .set("store_credentials", true)
            .set("new_disks", "[{ size_gb = 25, spec_id = 31, mount_path = \"/data/b\" }]");
        let sources = "data \"damodel_instances\" \"all\" {\n  depends_on = [damodel_instance.x]\n}\n\
                       output \"machines\" {\n  value = data.damodel_instances.all.instances\n}\n\
                       data \"damodel_instance\" \"one\" {\n  name = \"trainer\"\n  store_credentials = true\n  \
                       depends_on = [damodel_instance.x]\n}\n\
                       data \"damodel_cloud_disks\" \"all\" {\n  depends_on = [damodel_instance.x]\n}\n\
                       output \"disks\" {\n  value = data.damodel_cloud_disks.all.cloud_disks\n}\n";
        workspace.apply_ok(&config(format!("{machine}{sources}")));
        let state = workspace.state();
        let uid = site.live()[0].clone();
        let record = &state.output("machines")[0];
        for moment in ["start_time", "release_time"] {
            assert!(
                record[moment].as_str().is_some_and(|text| text.starts_with("20") && text.ends_with('Z')),
                "{record}"
            );
        }
        let one = state.resource("data.damodel_instance.one");
        let expected = json!({
            "instance_uid": uid, "name": "trainer", "status": "Running", "region": "cn-east-1",
                "capacity_type": "ondemand",
            "gpu_name": "NVIDIA-GeForce-RTX-4090", "gpu_num": 2, "spec_id": 103, "spec_type": "gpu.rtx4090.1",
            "payment_type": "Monthly", "image_id": 902, "image_name": "PyTorch 2.5.1", "image_type": "public",
            "ssh_host": "127.0.0.1", "ssh_port": one.value("ssh_port"), "login_method": "ssh_key",
                "ssh_pubkey_name": "laptop",
            "external_ip": "203.0.113.7", "internal_ip": one.value("internal_ip"),
            "jupyter_url": format!("https://{uid}.jupyter.damodel.test/lab"), "start_time": record["start_time"],
            "stop_time": null, "release_time": record["release_time"],
        });
        shows(record, &expected);
        assert!(one.value("ssh_port").as_u64().is_some_and(|port| port > 1024));
        assert!(one.value("internal_ip").as_str().is_some_and(|address| address.starts_with("10.")));

        // The complete record, of the resource and of the data source.
        let resource = state.resource("damodel_instance.x");
        let details = json!({
            "id": uid, "reported.cpu_core": "32", "reported.memory_size": "124", "reported.gpu_memory": "49128",
            "reported.sys_disk_size_gb": 40, "reported.data_disk_size_gb": 50, "gpu_price": 1188,
            "data_disk_price": 0.33, "reported.support_power": true, "reported.shutdown_status": "\"idle\"",
            "reported.shutdown_push_progress": "0", "reported.image_name": "PyTorch 2.5.1",
            "reported.release_time": record["release_time"],
            "image": "registry.damodel.test/model_library/pytorch:2.5.1-cuda12.4",
        });
        for (name, value) in details.as_object().unwrap() {
            assert_eq!((name, resource.value(name)), (name, value));
            assert_eq!((name, one.value(name)), (name, value));
        }
        let more = ["rent_deadline", "services", "cloud_disks"].map(|name| format!("reported.{name}"));
        for name in ["database_id", "jupyter_token", "jupyter_url", "start_time"]
            .into_iter()
            .chain(more.each_ref().map(|n| &**n))
        {
            assert!(!resource.value(name).is_null(), "{name}");
            assert_eq!(resource.value(name), one.value(name), "{name}");
        }
        let disks = state.output("disks").as_array().unwrap();
        let disk = disks.iter().find(|disk| disk["name"] == format!("{uid}-disk-1")).unwrap();
        assert_eq!((&disk["release_with_instance"], &disk["size_gb"]), (&json!(true), &json!(25)));
        assert!(disk["binding_instances"][0].as_str().unwrap().contains(&uid));
    });
}
