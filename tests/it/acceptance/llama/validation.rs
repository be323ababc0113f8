//! Wrong values: each is an error on its argument, before a request is sent.

use super::{Server, each_served};
use crate::support::terraform::{Diagnostic, Severity, Workspace, config, refusal, says};

/// The diagnostics of servers with one argument each, validated together.
fn each_with(workspace: &Workspace<'_>, arguments: &[(&str, &str)]) -> Vec<Vec<Diagnostic>> {
    let server = |number: usize, (name, value): (&str, &str)| {
        let server = Server::new().text("instance_id", "ins-1").set(name, value).alone();
        server.replacen("\"x\"", &format!("\"case_{number}\""), 1)
    };
    let servers: String = arguments.iter().enumerate().map(|(number, argument)| server(number, *argument)).collect();
    workspace.write(&config(servers));
    let all = Diagnostic::of_document(&workspace.run(&["validate", "-json"]).stdout);
    let of = |number: usize| {
        let address = format!("damodel_llama_server.case_{number}");
        all.iter().filter(|said| said.address.as_ref() == Some(&address)).cloned().collect()
    };
    (0..arguments.len()).map(of).collect()
}

#[test]
fn each_wrong_value_is_told_at_its_argument() {
    each_served(|_, workspace| {
        let cases = [
            ("model", "\"model.gguf\"", "an absolute path in the instance"),
            ("build", "\"fastest\"", "one of \"auto\", \"prebuilt\", \"source\""),
            ("port", "0", "from 1 to 65535"),
            ("port", "99999", "from 1 to 65535"),
            ("port", "80.5", "a whole number"),
            ("context_size", "-1", "a whole number"),
            ("parallel", "0", "a whole number"),
            ("gpu_layers", "-1", "a whole number"),
            ("host", "\"10.0.0.5\"", "one of \"0.0.0.0\""),
            ("flash_attention", "\"yes\"", "one of \"on\", \"off\", \"auto\""),
            ("cache_type_k", "\"q9_9\"", "one of \"f32\""),
            ("cache_type_v", "\"q9_9\"", "one of \"f32\""),
            ("ready_timeout", "\"soon\"", "a duration such as"),
            ("on_failure", "\"retry\"", "one of \"rollback\", \"keep\", \"stop\""),
            ("workspace", "\"workspace\"", "an absolute path in the instance"),
            ("package", "\"llama-server\"", "an absolute path in the instance"),
            ("api_key", "\"two words\"", "printable ASCII without spaces"),
            ("api_key_wo_version", "1.5", "a whole number"),
            ("probe", "{ expect = \"(\" }", "a regular expression"),
            ("probe", "{ max_tokens = 0 }", "a whole number"),
            ("source", "{ cuda_architectures = [\"volta\"] }", "a CUDA architecture"),
            ("source", "{ cuda_architectures = [\"70-fast\"] }", "a CUDA architecture"),
            ("source", "{ url = \"--upload-pack=x\" }", "the address of a git repository"),
            ("source", "{ ref = \"-x\" }", "a git branch, tag or commit"),
            ("ssh", "{ host = \"gpu.example:2222\" }", "set port"),
            ("ssh", "{ host = \"::1:23022\" }", "set port"),
            ("ssh", "{ host = \"gpu.example\\tgpu2\" }", "a host name or an address"),
            ("ssh", "{ host = \"'gpu.example'\" }", "a host name or an address"),
            ("ssh", "{ host = \"gpu.example,gpu2\" }", "a host name or an address"),
            ("ssh", "{ host = \"g\\u00e4u.example\" }", "a host name or an address"),
            ("ssh", "{ certificate = \"ssh-rsa-cert-v01@openssh.com AAAA\" }", "private_key or agent = true"),
            ("ssh", "{ host = \"h\", agent = true, bastion = { host = \"b:1\", agent = true } }", "set port"),
            ("ssh", "{ port = 70000 }", "from 1 to 65535"),
            ("ssh", "{ host_key = \"known_hosts\" }", "an OpenSSH public-key line"),
            ("ssh", "{ private_key = \"~/.ssh/id_ed25519\" }", "not the path of its file"),
            ("ssh", "{ timeout = \"1\" }", "a duration such as"),
            ("ssh", "{ bastion = { host = \"b\" } }", "The bastion needs"),
            // Terraform drops unknown names in nested objects without an error.
            ("ssh", "{ bastion = { host = \"b\", password = \"x\" } }", "takes no password and no certificate"),
            ("ssh", "{ bastion = { host = \"\", agent = true } }", "a host name or an address"),
            ("extra_args", "[\"--api-key\", \"k\"]", "Set api_key instead"),
            ("extra_args", "[\"--port\", \"1\"]", "is set with port"),
            ("extra_args", "[\"--ssl-key-file\", \"/k\"]", "without TLS"),
            ("extra_args", "[\"-hf\", \"user/model\"]", "Set model_source to the model's address"),
            ("extra_args", "[\"-hft\", \"token\"]", "Set model_source_token_wo instead"),
            ("model_source", "{ url = \"http://example.com/m.gguf\" }", "an https address"),
            ("model_source", "{ url = \"https://user:word@example.com/m.gguf\" }", "without credentials"),
            ("model_source", "{ url = \"https://x/m.gguf\", sha256 = \"abc\" }", "64 hexadecimal digits"),
            ("extra_args", "[\"-hfd\", \"user/model\"]", "Set additional_files to the draft model's address"),
            ("extra_args", "[\"-mmu\", \"https://x/m\"]", "Set additional_files to the projector's address"),
            ("additional_files", "[{ path = \"p\", url = \"https://x/p\" }]", "an absolute path in the instance"),
            ("additional_files", "[{ path = \"/p\", url = \"http://example.com/p\" }]", "an https address"),
            ("additional_files", "[{ path = \"/p\", url = \"https://x/p\", sha256 = \"1\" }]", "64 hexadecimal digits"),
            ("additional_files", "[null]", "additional_files[0] is null"),
            (
                "additional_files",
                "[{ path = \"~/p\", url = \"https://x/p\" }, { path = \"~//./p\", url = \"https://x/q\" }]",
                "~//./p is the path of the model, or of another file",
            ),
            (
                "additional_files",
                "[{ path = \"~//public-storage/model/tiny.gguf\", url = \"https://x/p\" }]",
                "~//public-storage/model/tiny.gguf is the path of the model",
            ),
            ("model_source_token_wo", "\"token\"", "Set one of them, or remove the token"),
            ("extra_args", "[\"--version\"]", "prints information and exits"),
            ("flash_attention", "\"off\"", "a quantized value cache"),
            ("source", "{ url = \"https://user:token@example.com/llama.git\" }", "Credentials in an address"),
            ("environment", "{ LLAMA_API_KEY = \"k\" }", "api_key sets the key"),
        ];
        let unusual = [
            ("extra_args", "[\"-c\", \"1\"]", "is set with context_size"),
            ("extra_args", "[\"--threads 8\"]", "as two elements"),
        ];
        let sound = [
            ("source", "{ cuda_architectures = [\"native\"] }", ""),
            ("source", "{ cuda_architectures = [\"all\"] }", ""),
            ("source", "{ cuda_architectures = [\"all-major\"] }", ""),
            ("source", "{ cuda_architectures = [\"70\", \"89-real\", \"90-virtual\", \"90a\", \"120f-real\"] }", ""),
        ];
        let all = cases.iter().chain(&unusual).chain(&sound);
        let arguments: Vec<_> = all.map(|(name, value, _)| (*name, *value)).collect();
        let said = each_with(workspace, &arguments);
        for ((name, value, words), said) in cases.iter().zip(&said) {
            let found = said.iter().any(|said| said.is_error() && said.text().contains(words));
            assert!(found, "{name} = {value}: {said:#?}");
        }
        for ((name, value, words), said) in unusual.iter().zip(&said[cases.len()..]) {
            let [said] = said.as_slice() else { panic!("{name} = {value}: {said:#?}") };
            assert!(said.severity == Severity::Warning && said.detail.contains(words), "{said:#?}");
        }
        for ((name, value, _), said) in sound.iter().zip(&said[cases.len() + unusual.len()..]) {
            assert!(said.is_empty(), "{name} = {value}: {said:#?}");
        }
    });
}

#[test]
fn values_that_are_known_only_later_are_no_errors() {
    each_served(|_, workspace| {
        let unknown = "resource \"terraform_data\" \"x\" {\n  input = \"/m.gguf\"\n}\n";
        let server = Server::new()
            .text("instance_id", "ins-1")
            .set("model", "terraform_data.x.output")
            .set("extra_args", "[terraform_data.x.output, \"--threads\"]")
            .set("environment", "{ A = terraform_data.x.output }")
            .set("triggers", "{ a = terraform_data.x.output }")
            .set("additional_files", "[{ path = terraform_data.x.output, url = terraform_data.x.output }]")
            .set("source", "{ cuda_architectures = [terraform_data.x.output] }");
        workspace.write(&config(format!("{unknown}{}", server.alone())));
        workspace.run_ok(&["validate"]);
    });
}

#[test]
fn an_instance_that_nobody_knows_is_told_in_the_plan_and_refused_by_the_apply() {
    each_served(|_, workspace| {
        workspace.write(&config(Server::new().text("instance_id", "ins-nowhere").alone()));
        let said = workspace.try_plan(&[]);
        let words = "the instance does not exist in this account";
        assert!(says(&said, Severity::Warning, words) && says(&said, Severity::Warning, "will fail"), "{said:#?}");
        let (done, said) = workspace.try_apply(&[]);
        let error = refusal(&said, &[words]);
        assert_eq!((done, error.attribute.as_deref()), (false, Some("instance_id")));
    });
}
