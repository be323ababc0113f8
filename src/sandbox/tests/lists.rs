//! What lists hold and how they are filtered.

use rstest::rstest;
use serde_json::{Value, json};

use super::Bench;

fn numbers(records: &Value, field: &str) -> Vec<i64> {
    records.as_array().unwrap().iter().map(|record| record[field].as_i64().unwrap()).collect()
}

#[rstest]
#[case("region=cn-east-1", &[101, 102, 103, 104, 105, 106])]
#[case("region=cn-east-1&capacity_type=spot", &[104])]
#[case("region=cn-north-2&capacity_type=ondemand", &[201, 203, 204])]
#[case("region=cn-north-2&gpu_name=nothing&gpu_num=1&lowest_cuda=99", &[201, 202, 203, 204])]
#[case("region=mars-1", &[])]
fn specs_are_filtered(#[case] query: &str, #[case] ids: &[i64]) {
    assert_eq!(numbers(&Bench::new().result("spec_list", query, ""), "spec_id"), ids);
}

#[rstest]
#[case("", &[901, 902, 903, 904, 905, 906])]
#[case("label=pytorch", &[902, 903])]
#[case("label=cuda12.4", &[902, 906])]
#[case("label=cuda12", &[])]
#[case("name=pytorch", &[902, 903])]
#[case("name=3.12", &[905])]
#[case("name=tensorflow&label=inference", &[])]
fn public_images_are_filtered(#[case] query: &str, #[case] ids: &[i64]) {
    assert_eq!(numbers(&Bench::new().result("public_image_list", query, ""), "id"), ids);
}

#[rstest]
#[case("private_image_list", "", "image_id", &[951, 952, 953])]
#[case("private_image_list", "&image_status=0", "image_id", &[952])]
#[case("private_image_list", "&image_status=1&image_name=plain", "image_id", &[953])]
#[case("cloud_disk_list", "", "id", &[801, 802, 803, 804])]
#[case("cloud_disk_list", "&status=2", "id", &[801, 804])]
#[case("cloud_disk_list", "&name_or_uid=seedshare", "id", &[802])]
#[case("cloud_disk_list", "&name_or_uid=unpaid", "id", &[803])]
#[case("cloud_disk_list", "&spec_types=2,3", "id", &[802])]
#[case("cloud_disk_list", "&cluster_id=77&support_ib_network=1", "id", &[802])]
#[case("cloud_disk_spec_list", "", "id", &[31, 32, 33, 34])]
#[case("cloud_disk_spec_list", "&support_ib_network=0", "id", &[31, 32, 33])]
#[case("cloud_disk_spec_list", "&spec_types=1,3", "id", &[31, 33])]
#[case("cloud_disk_spec_list", "&spec_alias=files", "id", &[32, 34])]
fn paged_lists_are_filtered(#[case] endpoint: &str, #[case] filter: &str, #[case] field: &str, #[case] ids: &[i64]) {
    let page = Bench::new().result(endpoint, &format!("page=1&page_size=50{filter}"), "");
    assert_eq!(numbers(&page["data"], field), ids);
    assert_eq!((&page["total"], &page["page"], &page["page_size"]), (&json!(ids.len()), &json!(1), &json!(50)));
}

#[test]
fn cloud_disk_specs_come_whole_without_paging() {
    let page = Bench::new().result("cloud_disk_spec_list", "", "");
    assert_eq!(page["data"].as_array().unwrap().len(), 4);
}

#[test]
fn instances_are_searched_by_uid_and_name_and_by_status() {
    let mut bench = Bench::new();
    let first = bench.create(&json!({ "instance_alias": "alpha" }));
    bench.advance(1);
    let second = bench.create(&json!({ "instance_alias": "beta" }));
    let mut found = |filter: &str| -> Vec<String> {
        let page = bench.result("instance_list", &format!("page=1&page_size=0{filter}"), "");
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["instance_uid"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(found(""), [first.clone(), second.clone()]);
    assert_eq!(found("&query=alp"), std::slice::from_ref(&first));
    assert_eq!(found(&format!("&query={second}")), std::slice::from_ref(&second));
    assert_eq!(found("&status=Running"), [first]);
    assert_eq!(found("&status=Creating&query="), [second]);
    assert_eq!(found("&status=Stopped"), Vec::<String>::new());
}
