//! `damodel_model` and `model_memory`, through the real command line.

use std::fs;

use damodel::llama::{ServerOptions, memory, read_model};
use futures_util::FutureExt as _;
use serde_json::json;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers::path};

use super::llama;
use crate::support::{
    files::Files,
    gguf::{Gguf, Q4_K, Size},
    terraform::{
        Diagnostic, Instance, Severity, Workspace, config, each_cli, each_workspace, each_workspace_since, refusal,
        refusal_of, says,
    },
};

/// A data source with these arguments, and its result.
fn source(name: &str, arguments: &str) -> String {
    format!(
        "data \"damodel_model\" {name:?} {{\n{arguments}\n}}\noutput {name:?} {{\n  value = data.damodel_model.{name}\n\
         }}\n"
    )
}

fn file() -> Gguf {
    Size { heads_kv: 2, kind: Q4_K, ..Size::dense() }.model().text("tokenizer.chat_template", "{{ messages }}")
}

/// A file on a server: its header, followed by zeros.
struct Ranges(Gguf);

impl Respond for Ranges {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let range = request.headers.get("range").and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
        let (first, last) = range.unwrap().split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let mut bytes = self.0.header();
        bytes.resize(bytes.len().max(last + 1), 0);
        let said = format!("bytes {first}-{last}/{}", self.0.length());
        ResponseTemplate::new(206).insert_header("Content-Range", said).set_body_bytes(&bytes[first..=last])
    }
}

#[test]
fn a_local_file_an_address_and_a_file_in_an_instance_say_the_same() {
    each_cli(|cli| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = runtime.block_on(async {
            let server = MockServer::start().await;
            Mock::given(path("/models/m.gguf")).respond_with(Ranges(file())).mount(&server).await;
            let whole = ResponseTemplate::new(200).set_body_bytes(file().header());
            Mock::given(path("/whole.gguf")).respond_with(whole).mount(&server).await;
            server
        });
        let site = llama::site();
        let workspace = Workspace::new(cli, &site);
        file().write(&workspace.directory().join("m.gguf")).unwrap();
        let machine = Instance::new("gpu");
        workspace.apply_ok(&config(&machine));
        // The first login creates the home.
        fs::create_dir_all(llama::home(&site)).unwrap();
        file().write(&llama::home(&site).join("m's model.gguf")).unwrap();

        let body = [
            machine.to_string(),
            source("local", "  path = \"m.gguf\""),
            source("remote", &format!("  url = \"{}/models/m.gguf?download=true\"", server.uri())),
            source("inside", "  path = \"~/m's model.gguf\"\n  instance_id = damodel_instance.gpu.id"),
        ];
        workspace.apply_ok(&config(body.concat()));
        let state = workspace.state();
        let local = state.output("local");
        for name in ["remote", "inside"] {
            for attribute in ["architecture", "layers", "head_count_kv", "layer_bytes", "tensor_bytes", "fingerprint"] {
                assert_eq!(state.output(name)[attribute], local[attribute], "{name}: {attribute}");
            }
        }
        let expected = json!({
            "architecture": "llama", "name": "made by a test", "quantization": "Q4_K", "layers": 2,
            "context_length": 4096, "embedding_length": 512, "head_count": 8, "head_count_kv": [2, 2],
            "key_length": 64, "value_length": 64, "expert_count": 0, "sliding_window": null,
            "sliding_window_pattern": null, "vocabulary_size": 512, "feed_forward_length": 1024,
            "tied_output": false, "has_chat_template": true, "tensor_bytes": file().tensor_bytes(),
            "file_bytes": file().length(),
        });
        for (attribute, value) in expected.as_object().unwrap() {
            assert_eq!(&local[attribute], value, "{attribute}");
        }
        let requests = runtime.block_on(server.received_requests()).unwrap();
        assert!(requests.iter().all(|request| !request.headers.contains_key("x-service-token")));

        // The only warning is about the host key without a pin.
        workspace.write(&config(body.concat()));
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "is not pinned"), "{said:#?}");
        workspace.write(&config(source("x", &format!("  url = \"{}/whole.gguf\"", server.uri()))));
        let error = refusal(
            &workspace.try_plan(&["-refresh=false"]),
            &["does not support range requests", "never downloaded whole"],
        )
        .attribute
        .clone();
        assert_eq!(error.as_deref(), Some("url"));
        workspace.write(&config(&machine));
        workspace.finish();
    });
}

#[test]
fn what_is_no_model_is_an_error_at_its_argument() {
    each_workspace(|_, workspace| {
        let header = file().header();
        let hostile = [&header[..16], &u64::MAX.to_le_bytes(), &header[24..]].concat();
        let files = [
            ("pointer.gguf", b"version https://git-lfs.github.com/spec/v1\n".to_vec()),
            ("cut.gguf", header[..100].to_vec()),
            ("incomplete.gguf", header),
            ("hostile.gguf", hostile),
        ];
        for (name, bytes) in files {
            fs::write(workspace.directory().join(name), bytes).unwrap();
        }
        let cases = [
            ("pointer.gguf", "not a GGUF file: it is a Git LFS pointer"),
            ("cut.gguf", "the file ends within its header"),
            ("incomplete.gguf", "the file is incomplete"),
            ("hostile.gguf", "the file ends within its header"),
            ("missing.gguf", "No such file or directory"),
            ("/", "not a regular file"),
        ];
        expect(workspace, &cases.map(|(path, word)| (format!("  path = {path:?}"), word)), Some("path"));
        let cases = [
            ("", "Set path or url"),
            ("  path = \"a\"\n  url = \"https://b\"", "not both"),
            ("  url = \"https://b\"\n  instance_id = \"ins-1\"", "a file in an instance"),
            (
                "  path = \"a\"\n  host_key = \"SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDvRdbKoOnlnf3PbBA\"",
                "host_key needs instance_id or ssh",
            ),
            ("  path = \"a\"\n  ssh = { host = \"b\" }", "Missing SSH credentials"),
        ];
        expect(workspace, &cases.map(|(arguments, word)| (arguments.to_owned(), word)), None);
    });
}

/// Expects of a plan of all data sources with these arguments an error of each, with this word and at this attribute.
fn expect(workspace: &Workspace<'_>, cases: &[(String, &str)], attribute: Option<&str>) {
    let name = |number: usize| format!("x{number}");
    let sources = cases.iter().enumerate().map(|(number, (arguments, _))| source(&name(number), arguments));
    workspace.write(&config(sources.collect::<String>()));
    let said = workspace.try_plan(&[]);
    for (number, (_, word)) in cases.iter().enumerate() {
        let error = refusal_of(&said, &format!("data.damodel_model.{}", name(number)), &[word]);
        assert!(attribute.is_none() || error.attribute.as_deref() == attribute, "{said:#?}");
    }
}

#[test]
fn the_memory_of_a_model_is_a_number_in_the_plan() {
    each_workspace_since(8, 7, |_, workspace| {
        file().write(&workspace.directory().join("m.gguf")).unwrap();
        Gguf::new("mamba").number("mamba.block_count", 2).write(&workspace.directory().join("recurrent.gguf")).unwrap();
        let call = |model: &str, options: &str| {
            format!("provider::damodel::model_memory(data.damodel_model.{model}, {options})")
        };
        let outputs = [
            ("defaults", call("m", "{}")),
            (
                "set",
                call("m", "{ context_size = 1000, parallel = 4, cache_type_k = \"f16\", flash_attention = \"on\" }"),
            ),
            ("recurrent", call("r", "{}")),
        ];
        let outputs = outputs.map(|(name, value)| format!("output {name:?} {{\n  value = {value}\n}}\n")).concat();
        let sources = "data \"damodel_model\" \"m\" {\n  path = \"m.gguf\"\n}\ndata \
                       \"damodel_model\" \"r\" {\n  path = \"recurrent.gguf\"\n}\n";
        workspace.apply_ok(&config(format!("{sources}{outputs}")));
        let state = workspace.state();
        let files = Files::default().with("m", file().header(), file().length());
        let read = read_model(&files, "m").now_or_never().unwrap().unwrap();
        let set = [("context_size", "1000"), ("parallel", "4"), ("cache_type_k", "f16")];
        for (name, options) in [("defaults", ServerOptions::default()), ("set", ServerOptions::parse(set).unwrap())] {
            let found = memory(&read, &options);
            let output = state.output(name);
            let parts = [("weights", found.weights), ("cache", found.cache), ("compute", found.compute)];
            let parts =
                parts.into_iter().chain([("overhead", found.overhead), ("total", found.total), ("host", found.host)]);
            for (part, bytes) in parts {
                assert_eq!(output[part].as_u64(), bytes, "{name}: {part}");
                assert!(bytes.is_some(), "{name}: {part}");
            }
            assert_eq!(output["notes"], json!(found.notes), "{name}");
        }
        let recurrent = state.output("recurrent");
        assert_eq!((&recurrent["cache"], &recurrent["total"]), (&json!(null), &json!(null)));
        assert!(recurrent["notes"].to_string().contains("keeps a recurrent state"), "{recurrent:#}");

        let cases = [
            ("{ ctx = 1 }", "an option is unknown; the options are context_size"),
            ("{ context_size = -1 }", "context_size must be a whole number"),
            ("{ flash_attention = \"off\" }", "cache_type_v can be quantized with flash_attention only"),
        ];
        let output =
            |label: &str, options: &str| format!("output {label:?} {{\n  value = {}\n}}\n", call("m", options));
        let outputs = cases.iter().zip(["a", "b", "c"]).map(|((options, _), label)| output(label, options));
        workspace.write(&config(format!("{sources}{}", outputs.collect::<String>())));
        let said = workspace.try_plan(&[]);
        let errors: Vec<_> = said.iter().filter(|said| said.is_error()).map(Diagnostic::text).collect();
        let errors: Vec<_> = errors.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for (_, word) in cases {
            assert_eq!(errors.iter().filter(|error| error.contains(word)).count(), 1, "{word}: {errors:#?}");
        }
        assert_eq!(errors.len(), cases.len(), "{errors:#?}");
        workspace.write(&config(sources));
        workspace.finish();
    });
}
