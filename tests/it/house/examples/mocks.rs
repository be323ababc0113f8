//! The page about mocks.

use std::fs;

use serde_json::Value;

use crate::support::terraform::{config, each_workspace};

/// What a mock invents, a zero or a random text, is refused by the arguments that usually take it.
#[test]
fn the_page_names_what_a_mock_must_give() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/testing-modules.md")).unwrap();
    let (disk, instance, server) = (
        "resource \"damodel_cloud_disk\" \"N\" {\n  name = \"x\"\n",
        "resource \"damodel_instance\" \"N\" {\n",
        "resource \"damodel_llama_server\" \"N\" {\n  instance_id = \"ins-1\"\n  model = \"/m.gguf\"\n",
    );
    let (specs, disks) = ("data \"damodel_specs\" \"N\" {\n", "data \"damodel_cloud_disk_specs\" \"N\" {\n");
    let chat =
        "data \"damodel_chat_completion\" \"N\" {\n  model = \"m\"\n  messages = []\n  target = \"llama_server\"\n";
    let wired = [
        ("damodel_spec", "spec_id", instance, "spec_id = 0"),
        ("damodel_spec", "max_gpu_count", instance, "gpu_num = 0"),
        ("damodel_spec", "hourly_price", specs, "max_gpu_hourly_price = 0"),
        ("damodel_spec", "highest_cuda", specs, "min_cuda = \"a1b2c3d4\""),
        ("damodel_public_image", "image_id", instance, "image_id = 0"),
        ("damodel_public_image", "image_url", instance, "image = \"a1b2c3d4\""),
        ("damodel_private_image", "image_id", instance, "image_id = 0"),
        ("damodel_private_image", "image_tag", instance, "image = \"a1b2c3d4\""),
        ("damodel_cloud_disk_spec", "spec_id", disk, "size_gb = 20\n  spec_id = 0"),
        ("damodel_cloud_disk_spec", "max_size_gib", disk, "spec_id = 31\n  size_gb = 0"),
        ("damodel_cloud_disk_spec", "storage_class", disks, "storage_classes = [\"a1b2c3d4\"]"),
        ("damodel_cloud_disk", "disk_id", instance, "exist_disks = [{ disk_id = 0 }]"),
        ("damodel_cloud_disk", "mount_path", disk, "size_gb = 20\n  spec_id = 31\n  mount_path = \"a1b2c3d4\""),
        ("damodel_cloud_disk", "size_gb", disk, "spec_id = 31\n  size_gb = 0"),
        ("damodel_instance", "spec_id", instance, "spec_id = 0"),
        ("damodel_instance", "gpu_num", instance, "gpu_num = 0"),
        ("damodel_instance", "image_id", instance, "image_id = 0"),
        ("damodel_instance", "image", instance, "image = \"a1b2c3d4\""),
        ("damodel_instance", "image_type", instance, "image_type = \"a1b2c3d4\""),
        ("damodel_instance", "login_method", instance, "login_method = \"a1b2c3d4\""),
        ("damodel_instance", "payment_type", instance, "payment_type = \"a1b2c3d4\""),
        ("damodel_instance", "capacity_type", specs, "capacity_type = \"a1b2c3d4\""),
        ("damodel_instance", "external_ip", instance, "external_ip = \"a1b2c3d4\""),
        ("damodel_instance", "ssh_port", server, "ssh = { port = 0 }"),
        ("damodel_instance", "data_disk_mount_path", instance, "data_disk_mount_path = \"a1b2c3d4\""),
        ("damodel_llama_server", "id", chat, "llama_server_id = \"a1b2c3d4\""),
        ("damodel_llama_server", "port", server, "port = 0"),
        ("damodel_llama_server", "parallel", server, "parallel = 0"),
        ("damodel_llama_server", "host_key", chat, "llama_server_id = \"i:1\"\n  host_key = \"a1b2c3d4\""),
        ("damodel_llama_server", "workspace", server, "workspace = \"a1b2c3d4\""),
        ("damodel_llama_server", "package", server, "package = \"a1b2c3d4\""),
    ];
    for (kind, attribute, ..) in wired {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{kind}` |"))).unwrap();
        assert!(row.contains(&format!("`{attribute}`")), "{kind}.{attribute}: {row}");
    }
    each_workspace(|_, workspace| {
        let blocks = wired.iter().enumerate().map(|(number, (_, _, begin, argument))| {
            format!("{}  {argument}\n}}\n", begin.replace("\"N\"", &format!("\"n{number}\"")))
        });
        workspace.write(&config(blocks.collect::<String>()));
        let run = workspace.run(&["validate", "-json"]);
        let validated: Value = serde_json::from_str(&run.stdout).unwrap();
        let errors = validated["diagnostics"].as_array().unwrap();
        for (number, (kind, attribute, _, argument)) in wired.iter().enumerate() {
            let line = argument.lines().last().unwrap();
            let is_of_it = |error: &&Value| {
                let snippet = &error["snippet"];
                let context = snippet["context"].as_str().unwrap_or_default();
                context.ends_with(&format!("\"n{number}\"")) && snippet["code"].as_str().unwrap().contains(line.trim())
            };
            assert!(errors.iter().any(|error| is_of_it(&error)), "{kind}.{attribute}: {argument}: {errors:#?}");
        }
    });
}
