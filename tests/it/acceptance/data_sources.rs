//! What the catalogue's data sources show.

use serde_json::{Value, json};

use crate::support::terraform::{Site, Workspace, config, each_cli};

#[test]
fn specifications_are_filtered_and_sorted() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let queries = [
            ("all", "", json!([101, 102, 103, 104, 105, 106])),
            ("spot", "capacity_type = \"spot\"", json!([104])),
            ("available", "available_only = true", json!([101, 102, 103, 104, 105])),
            ("name", "gpu_name = \"(A|H)100\"", json!([101, 102])),
            ("many", "min_gpu_num = 7\nsort_by = \"price\"", json!([105, 101, 102])),
            ("memory", "min_gpu_mem_mb = 32000\nsort_by = \"gpu_mem\"", json!([101, 102, 105])),
            ("cuda", "min_cuda = \"12.6\"", json!([102, 103, 104])),
            ("cheap", "max_hourly_price = 1.98\nsort_by = \"price\"", json!([104, 106, 103])),
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
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let queries = [
            ("all", "", json!([901, 902, 903, 904, 905, 906])),
            ("label", "label = \"inference\"", json!([905, 906])),
            ("software", "name = \"Python 3.11\"", json!([902, 904])),
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
