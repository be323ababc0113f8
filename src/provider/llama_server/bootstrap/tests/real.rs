//! The real server, where one is at hand: what it accepts and answers is decided by no stand-in.
//!
//! Both tests are skipped unless a variable is set when they are built:
//! - `DAMODEL_LLAMA_SERVER`: a llama-server with its libraries beside it;
//! - `DAMODEL_LLAMA_SOURCE`: a tree of llama.cpp.
//!
//! PyPI's source package of llama-cpp-python has such a tree in `vendor/llama.cpp`: `pip download --no-binary :all:
//! --no-deps llama-cpp-python`, then `tar -xf`. Its build takes 15 minutes on two cores.

use std::{fs, path::Path, time::Duration};

use super::home::{Home, copy, http, until, until_in};
use crate::provider::llama_server::bootstrap::{Build, Job, JobReport, Phase, Verb};

/// How long a build may take on a busy machine.
const BUILD: Duration = Duration::from_secs(90 * 60);

/// The width of the model, which has two heads of 32 values: a cache of q8_0 has blocks of 32.
const WIDTH: u64 = 64;

/// A text with its length before it.
fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn array(kind: u32, values: &[Vec<u8>]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(values.len() as u64).to_le_bytes(), &values.concat()].concat()
}

/// A model of one layer whose weights are all zero, after the description of the format (docs/gguf.md of ggml).
fn model() -> Vec<u8> {
    let tokens: Vec<String> = ["<unk>", "<s>", "</s>"]
        .map(str::to_owned)
        .into_iter()
        .chain((0..=255).map(|byte| format!("<0x{byte:02X}>")))
        .chain(["\u{2581}".to_owned()])
        .collect();
    // Unknown, control, byte, normal.
    let kinds = tokens.iter().enumerate().map(|(index, token)| match index {
        0 => 2_u32,
        1 | 2 => 3,
        _ if token.starts_with("<0x") => 6,
        _ => 1,
    });
    let number = |number: u32| number.to_le_bytes().to_vec();
    let (u32_type, f32_type, text_type, array_type) = (4_u32, 6_u32, 8_u32, 9_u32);
    let mut keys: Vec<(&str, u32, Vec<u8>)> = vec![
        ("general.architecture", text_type, text("llama")),
        ("llama.attention.layer_norm_rms_epsilon", f32_type, 1e-5_f32.to_le_bytes().to_vec()),
        ("tokenizer.ggml.model", text_type, text("llama")),
        (
            "tokenizer.ggml.tokens",
            array_type,
            array(text_type, &tokens.iter().map(|own| text(own)).collect::<Vec<_>>()),
        ),
        ("tokenizer.ggml.scores", array_type, array(f32_type, &vec![0_f32.to_le_bytes().to_vec(); tokens.len()])),
        ("tokenizer.ggml.token_type", array_type, array(5, &kinds.map(number).collect::<Vec<_>>())),
    ];
    for (key, value) in [
        ("llama.block_count", 1),
        ("llama.context_length", 512),
        ("llama.embedding_length", 64),
        ("llama.feed_forward_length", 64),
        ("llama.attention.head_count", 2),
        ("tokenizer.ggml.bos_token_id", 1),
        ("tokenizer.ggml.eos_token_id", 2),
    ] {
        keys.push((key, u32_type, number(value)));
    }
    let vocabulary = tokens.len() as u64;
    let mut tensors = vec![("token_embd".to_owned(), vec![WIDTH, vocabulary]), ("output_norm".to_owned(), vec![WIDTH])];
    for name in ["attn_norm", "ffn_norm"] {
        tensors.push((format!("blk.0.{name}"), vec![WIDTH]));
    }
    for name in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"] {
        tensors.push((format!("blk.0.{name}"), vec![WIDTH, WIDTH]));
    }
    let mut file = [&b"GGUF"[..], &number(3)].concat();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((keys.len() as u64).to_le_bytes());
    for (key, kind, value) in keys {
        file.extend([text(key), number(kind), value].concat());
    }
    let mut offset = 0_u64;
    for (name, shape) in &tensors {
        file.extend(text(&format!("{name}.weight")));
        file.extend(number(u32::try_from(shape.len()).unwrap()));
        shape.iter().for_each(|length| file.extend(length.to_le_bytes()));
        file.extend(number(0));
        file.extend(offset.to_le_bytes());
        offset += shape.iter().product::<u64>() * 4;
    }
    let header = file.len().next_multiple_of(32);
    file.resize(header + usize::try_from(offset).unwrap(), 0);
    file
}

/// Whether a variable was set.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn given(variable: Option<&'static str>, name: &str) -> Option<&'static Path> {
    if variable.is_none() {
        eprintln!("SKIPPED: {name} is not set: see the head of this file");
    }
    variable.map(Path::new)
}

/// Asks for a token, and says that the server is ready.
fn proved(home: &Home, report: &JobReport) -> JobReport {
    until("it is not healthy", || (http(home.port, "GET /health", "Connection: close\r\n").0 == 200).then_some(()));
    let body = r#"{"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 1}"#;
    let header =
        format!("Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (status, answer) = http(home.port, "POST /v1/chat/completions", &header);
    assert!(status == 200 && answer.contains("choices"), "{status} {answer}\n{:#?}", home.look().log_tail);
    let identity = report.process.as_ref().unwrap().identity.clone();
    let ready = home.run(&Verb::Ready { process: &identity });
    assert_eq!((ready.phase, &ready.failure), (Phase::Ready, &None), "{ready:#?}");
    ready
}

#[test]
fn real_server_serves_as_prebuilt_with_its_libraries_beside_it() {
    let Some(binary) = given(option_env!("DAMODEL_LLAMA_SERVER"), "DAMODEL_LLAMA_SERVER") else { return };
    let home = Home::new();
    fs::write(home.path("public-storage/model/tiny.gguf"), model()).unwrap();
    fs::remove_dir_all(home.path("public-storage/package/llama-cuda")).unwrap();
    copy(binary.parent().unwrap(), &home.path("public-storage/package/llama-real/bin"));
    let job = Job { build: Build::Prebuilt, context_size: 512, ..home.job() };
    home.ensure(&job);
    let report = proved(&home, &home.look_until(Phase::Load));
    assert!(report.server_version.unwrap().contains("commit"), "{:?}", report.log_tail);
    assert!(report.notes.iter().any(|note| note.contains("uses no GPU")), "{:?}", report.notes);
    // What the real one says of its options is understood.
    let (report, _) = home.apply(&Job { extra_args: vec!["--no-such-option".to_owned()], ..job });
    assert_eq!(report.phase, Phase::Ready, "{report:#?}");
}

#[test]
fn real_server_is_compiled_from_its_source_and_serves() {
    let Some(source) = given(option_env!("DAMODEL_LLAMA_SOURCE"), "DAMODEL_LLAMA_SOURCE") else { return };
    let home = Home::new().with_cuda("NVIDIA GeForce RTX 4090, 8.9\n");
    fs::write(home.path("public-storage/model/tiny.gguf"), model()).unwrap();
    fs::remove_dir_all(home.path("source")).unwrap();
    copy(source, &home.path("source"));
    // No card and no toolkit are at hand: all but the code for the card is compiled.
    let lists = home.path("source/CMakeLists.txt");
    let text = fs::read_to_string(&lists).unwrap();
    fs::write(&lists, format!("set(GGML_CUDA OFF CACHE BOOL \"\" FORCE)\n{text}")).unwrap();
    let job = Job { build: Build::Source, context_size: 512, ..home.job() };
    home.ensure(&job);
    let report = until_in(BUILD, "no server", || {
        let report = home.look();
        assert_ne!(report.phase, Phase::Failed, "{report:#?}");
        (report.phase == Phase::Load).then_some(report)
    });
    let report = proved(&home, &report);
    assert_eq!(report.build_used.as_deref(), Some("source"));
    let log = fs::read_to_string(report.compile.unwrap().log_path).unwrap();
    assert!(!log.contains("is deprecated"), "{log}");
}
