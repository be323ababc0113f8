//! Wrong values of single arguments.

use super::{Case, check, validate};

#[test]
fn of_an_instance() {
    let whole = "whole number";
    let long = format!("{:?}", "x".repeat(43));
    let mut cases = vec![
        Case::instance("name", r#""""#, "non-empty"),
        Case::instance("name", r#""  ""#, "non-empty"),
        Case::instance("region", r#""""#, "white space"),
        Case::instance("region", r#""cn-east-1\n""#, "white space"),
        Case::instance("payment_type", r#""Yearly""#, "\"Hourly\", \"Daily\", \"Weekly\", \"Monthly\""),
        Case::instance("payment_type", r#""hourly""#, "Hourly"),
        Case::instance("spec_type", r#""""#, "non-empty"),
        Case::instance("data_disk_mount_path", r#""data""#, "absolute path"),
        Case::instance("data_disk_mount_path", r#""/""#, "an absolute path below /,"),
        Case::instance("data_disk_mount_path", r#""/data/../etc""#, "absolute path"),
        Case::instance_with(
            &[("image_id", ""), ("image_type", ""), ("image", r#""pytorch""#)],
            Some("image"),
            "host/path",
        ),
        Case::instance_with(
            &[("image_id", ""), ("image_type", ""), ("image", r#""a b/c""#)],
            Some("image"),
            "host/path",
        ),
        Case::instance("image_type", r#""shared""#, "\"public\", \"private\""),
        Case::instance("hostname", r#""a_b""#, "letters, digits and hyphens"),
        Case::instance("hostname", r#""-a""#, "letter or digit at both ends"),
        Case::instance("hostname", r#""a-""#, "letter or digit at both ends"),
        Case::instance("hostname", r#""""#, "letters, digits and hyphens"),
        Case::instance("hostname", &long, "at most 42"),
        Case::instance("login_method", r#""key""#, "\"ssh_key\", \"password\""),
        Case::instance("external_ip", r#""not-an-address""#, "an IP address"),
        Case::instance("external_ip", r#""203.0.113.256""#, "an IP address"),
        Case::instance("auto_renew", r#""sometimes""#, "bool"),
        Case::instance("deletion_protection", "[]", "bool"),
        Case::instance("max_age", r#""7d""#, "it is \"7d\". Write \"168h\"."),
        Case::instance("max_age", r#""0h""#, "duration"),
        Case::instance("store_credentials", "{}", "bool"),
        Case::instance("on_unreleasable", r#""forget""#, "\"fail\", \"abandon\""),
        Case::instance("wait_for_capacity", r#""soon""#, "duration"),
        Case::instance("wait_for_capacity", r#""0s""#, "duration"),
        Case::instance("wait_for_capacity", r#""-5m""#, "duration"),
    ];
    for name in ["purchase_duration", "spec_id", "gpu_num", "image_id", "ssh_pubkey_id"] {
        let payment = if name == "purchase_duration" { "\"Daily\"" } else { "" };
        let login = if name == "ssh_pubkey_id" { "\"ssh_key\"" } else { "" };
        for value in ["0", "-1", "1.5"] {
            let arguments = [("payment_type", payment), ("login_method", login), (name, value)];
            cases.push(Case::instance_with(&arguments, Some(name), whole));
        }
        let arguments = [("payment_type", payment), ("login_method", login), (name, "\"many\"")];
        cases.push(Case::instance_with(&arguments, Some(name), "number"));
    }
    for value in ["-1", "0.5"] {
        cases.push(Case::instance("data_disk_expand_size_gb", value, whole));
    }
    for (attribute, value) in [("status", "\"Running\""), ("id", "\"ins-1\""), ("ssh_password", "\"secret\"")] {
        cases.push(Case::instance(attribute, value, attribute));
    }
    check(&cases, validate);
}

#[test]
fn of_a_disk() {
    let wrong = [("size_gb", "19", "20"), ("spec_id", "0", "whole number"), ("mount_path", "\"/etc/ssl\"", "/etc")];
    let cases = wrong.map(|(attribute, value, rule)| {
        let valid = ["size_gb = 20", "spec_id = 31"].into_iter().filter(|line| !line.starts_with(attribute));
        let line = format!("{attribute} = {value}");
        let lines: Vec<&str> = valid.chain([line.as_str()]).collect();
        Case::other("resource \"damodel_cloud_disk\" \"NAME\"", &lines, attribute, rule)
    });
    check(&cases, validate);
}

#[test]
fn of_timeouts() {
    let cases: Vec<_> = ["create", "read", "update", "delete"]
        .into_iter()
        .flat_map(|operation| {
            ["\"soon\"", "\"0s\"", "\"-1m\"", "\"2562047788015215h\""].map(|value| (operation, value))
        })
        .map(|(operation, value)| {
            let mut case = Case::instance_with(&[], Some(operation), "a duration such as");
            case.lines.push(format!("timeouts {{\n    {operation} = {value}\n  }}"));
            case
        })
        .collect();
    check(&cases, validate);
}

#[test]
fn of_the_provider() {
    let cases = [
        Case::provider("base_url", r#""http://gateway.example.com""#, "allow_http"),
        Case::provider("base_url", r#""ftp://127.0.0.1""#, "base address"),
        Case::provider("base_url", r#""no address""#, "base address"),
        Case::provider("base_url", r#""""#, "base address"),
        Case::provider("base_url", r#""https://user:secret@example.com""#, "base address"),
        Case::provider("allow_http", r#""perhaps""#, "bool"),
        Case::provider("api_token", "[]", "string"),
        Case::provider("api_token_command", "[]", "must name a program"),
        Case::provider("api_token_command", r#"[""]"#, "must name a program"),
        Case::provider("api_token_command", r#""print-token""#, "list of string"),
        Case::provider("request_timeout", r#""30""#, "duration"),
        Case::provider("request_timeout", r#""0s""#, "duration"),
        Case::provider("max_retries", "-1", "whole number"),
        Case::provider("max_retries", "101", "whole number"),
        Case::provider("max_retries", "1.5", "whole number"),
        Case::provider("max_concurrent_requests", "0", "whole number"),
        Case::provider("max_concurrent_requests", "1001", "whole number"),
    ];
    check(&cases, validate);
}

#[test]
fn of_what_names_an_instance() {
    let blocks = [
        ("resource \"damodel_private_image\" \"NAME\"", "name = \"saved\""),
        ("resource \"damodel_llama_server\" \"NAME\"", "model = \"~/model.gguf\""),
        ("ephemeral \"damodel_llama_tunnel\" \"NAME\"", ""),
    ];
    // A llama server's id is not its instance's.
    let cases = blocks.into_iter().flat_map(|(header, other)| {
        ["", " ", "ins-1:8000"].map(|uid| {
            Case::other(header, &[other, &format!("instance_id = {uid:?}")], "instance_id", "an instance's UID")
        })
    });
    check(&cases.collect::<Vec<_>>(), validate);
}

#[test]
fn of_the_data_sources() {
    let mut cases = vec![
        Case::specs("capacity_type", r#""reserved""#, "\"ondemand\", \"spot\""),
        Case::specs("gpu_name_regex", r#""(4090""#, "regular expression"),
        Case::specs("min_cuda", r#""twelve""#, "version"),
        Case::specs("max_gpu_hourly_price", "0", "above zero"),
        Case::specs("max_gpu_hourly_price", "-1", "above zero"),
        Case::specs("rush_sale", r#""maybe""#, "bool"),
        Case::specs("available_only", r#""maybe""#, "bool"),
        Case::specs("sort_by", r#""name""#, "\"price\", \"gpu_mem\", \"spec_id\""),
        Case::images("name_regex", r#""[a""#, "regular expression"),
        Case::images("label", "[]", "string"),
        Case::other("data \"damodel_public_image\" \"NAME\"", &["name_regex = \"(\""], "name_regex", "expression"),
        Case::other("data \"damodel_private_images\" \"NAME\"", &["name_regex = \"(\""], "name_regex", "expression"),
        Case::other("data \"damodel_private_images\" \"NAME\"", &["status = \"new\""], "status", "\"ready\""),
        Case::other("data \"damodel_private_image\" \"NAME\"", &["name_regex = \"(\""], "name_regex", "expression"),
        Case::other("data \"damodel_private_image\" \"NAME\"", &["status = \"new\""], "status", "\"ready\""),
        Case::other("data \"damodel_spec\" \"NAME\"", &["gpu_name_regex = \"(\""], "gpu_name_regex", "expression"),
        Case::other("data \"damodel_spec\" \"NAME\"", &["capacity_type = \"reserved\""], "capacity_type", "\"spot\""),
        Case::other("data \"damodel_spec\" \"NAME\"", &["region = \" cn-east-1\""], "region", "white space"),
        Case::other("data \"damodel_cloud_disks\" \"NAME\"", &["cluster_id = 1.5"], "cluster_id", "a whole number"),
    ];
    for (url, rule) in [
        ("http://models.test/m.gguf", "must begin with https"),
        ("https://planted:word@models.test/m.gguf", "contains credentials"),
        ("m.gguf", "not a URL"),
    ] {
        cases.push(Case::other("data \"damodel_model\" \"NAME\"", &[&format!("url = {url:?}")], "url", rule));
    }
    for name in ["min_gpu_num", "min_gpu_mem_mb", "min_cpu_per_gpu", "min_mem_per_gpu_gb"] {
        cases.extend(["-1", "0.5"].map(|value| Case::specs(name, value, "whole number")));
    }
    check(&cases, validate);
}
