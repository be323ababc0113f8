//! The position of an error in a real command line: on the attribute, at any depth.

use crate::support::terraform::{Diagnostic, each_workspace, refusal};

const PROVIDER: &str = "terraform {\n  required_providers {\n    damodel = { source = \"damodel/damodel\" }\n  }\n}\n";

/// The line of the only error of a configuration with these lines.
fn line_of_error(word: &str, lines: &[&str]) {
    each_workspace(|_, workspace| {
        let config = format!("{PROVIDER}{}\n", lines.join("\n"));
        workspace.write(&config);
        let said = Diagnostic::of_document(&workspace.run(&["validate", "-json"]).stdout);
        let error = refusal(&said, &[word]);
        let line = usize::try_from(error.line.unwrap()).unwrap();
        let shown = config.lines().nth(line - 1).unwrap();
        assert!(shown.ends_with("# here"), "{shown:?}: {error:#?}");
    });
}

#[test]
fn an_attribute_of_an_object_is_not_taken_for_one_at_the_top() {
    line_of_error(
        "ssh.port",
        &[
            "ephemeral \"damodel_llama_tunnel\" \"a\" {",
            "  port = 8080",
            "  ssh = {",
            "    host = \"h\"",
            "    port = 0 # here",
            "  }",
            "}",
        ],
    );
}

/// Newer cores show the attribute, and the others the object around it.
#[test]
fn an_attribute_deep_in_an_object_is_shown_as_well_as_the_core_can() {
    line_of_error(
        "ssh.bastion.port",
        &[
            "ephemeral \"damodel_llama_tunnel\" \"a\" {",
            "  port = 8080",
            "  ssh = {",
            "    host = \"h\"",
            "    bastion = { # here",
            "      host = \"b\"",
            "      port = 0 # here",
            "    }",
            "  }",
            "}",
        ],
    );
}

#[test]
fn an_object_that_is_written_elsewhere_is_shown_where_it_is_used() {
    line_of_error(
        "ssh.port",
        &[
            "locals {",
            "  ssh = { host = \"h\", port = 0 }",
            "}",
            "ephemeral \"damodel_llama_tunnel\" \"a\" {",
            "  port = 8080",
            "  ssh = local.ssh # here",
            "}",
        ],
    );
}

#[test]
fn an_element_of_a_list_is_shown_and_not_the_list() {
    line_of_error(
        "new_disks[1].size_gb",
        &[
            "resource \"damodel_instance\" \"a\" {",
            "  spec_id = 1",
            "  gpu_num = 1",
            "  image_id = 1",
            "  image_type = \"public\"",
            "  new_disks = [",
            "    { size_gb = 20, spec_id = 1 },",
            "    { size_gb = 0.5, spec_id = 1 }, # here",
            "  ]",
            "}",
        ],
    );
}

#[test]
fn an_attribute_of_a_block_is_shown_in_the_block() {
    line_of_error(
        "timeouts.create",
        &[
            "resource \"damodel_cloud_disk\" \"a\" {",
            "  size_gb = 20",
            "  spec_id = 1",
            "  timeouts {",
            "    delete = \"5m\"",
            "    create = \"soon\" # here",
            "  }",
            "}",
        ],
    );
}
