//! The inference server in the sandbox's instances and the tools there, compared with measurements of a real server.

use std::{
    fs,
    io::{Read, Write},
};

use damodel::sandbox::stand_in::Machine;
use nix::sys::signal::Signal;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    sandbox::client::{Reply, parse},
    sandbox::home::Home,
    sandbox::yard::request,
    support::wait::wait_for,
};

/// The options of the service's guide, without the model.
const GUIDE: &str = "--host 0.0.0.0 --port 8000 -c 32768 -np 1 -ngl 999 -fa on -ctk q8_0 -ctv q8_0 --jinja --metrics";

fn content(reply: &Reply) -> Value {
    reply.json()["choices"][0]["message"]["content"].take()
}

#[test]
fn it_loads_and_then_serves() {
    let home = Home::usual();
    let mut server = home.start("slow-1s", GUIDE);
    wait_for("the port", || server.try_connect());
    for path in ["/health", "/props", "/v1/models"] {
        let reply = server.get(path);
        let loading = json!({ "error": { "message": "Loading model", "type": "unavailable_error", "code": 503 } });
        assert_eq!((reply.status, reply.json()), (503, loading), "{path}");
    }
    assert_eq!(server.chat("now").unwrap().status, 503);
    assert_eq!(server.get("/").status, 404);
    server.await_ready();
    assert_eq!(server.get("/health").json(), json!({ "status": "ok" }));
    assert_eq!(server.ask("GET", "/v1/health", "", None).unwrap().status, 200);
    assert_eq!(content(&server.chat("hello there").unwrap()), "You said: hello there");
    assert!(!server.log().contains("no usable GPU found"), "{}", server.log());
    let arguments = fs::read(format!("/proc/{}/cmdline", server.child.id())).unwrap();
    assert!(arguments.split(|&byte| byte == 0).next().unwrap().ends_with(b"/bin/llama-server"));
}

#[rstest]
#[case("missing-file", "failed to open GGUF file", 1)]
#[case("directory", "gguf_init_from_reader: failed to read magic", 1)]
#[case("empty", "gguf_init_from_reader: failed to read magic", 1)]
#[case("not-gguf", "invalid magic characters: 'vers', expected 'GGUF'", 1)]
#[case("header-cut", "failed to read key-value pairs", 1)]
#[case("truncated", "data is not within the file bounds, model is corrupted or incomplete", 1)]
#[case("newer", "unknown model architecture: 'zzzzz'", 1)]
#[case("missing-key", "key not found in model: llama.context_length", 1)]
#[case("gpu-full", "cudaMalloc failed: out of memory", 1)]
#[case("crash-on-load", "GGML_ASSERT", 134)]
fn a_model_that_cannot_be_loaded_ends_it(#[case] model: &str, #[case] line: &str, #[case] code: i32) {
    let home = Home::usual();
    let mut server = home.start(model, "--port 8000 -ngl 999");
    assert_eq!(server.code(), code, "{}", server.log());
    assert!(server.log().contains(line), "{}", server.log());
    let last = "srv  llama_server: exiting due to model loading error";
    assert!(model == "crash-on-load" || server.log().contains(last), "{}", server.log());
}

#[test]
fn quantized_values_need_flash_attention() {
    let home = Home::usual();
    let mut server = home.start("tiny", "--port 8000 -fa off -ctv q8_0");
    assert_eq!(server.code(), 1);
    assert!(server.log().contains("quantized V cache requires flash_attn to be enabled"), "{}", server.log());
    home.ready("tiny", "-ctv q8_0");
}

#[rstest]
#[case("-fa on --no-such-flag", "error: invalid argument: --no-such-flag")]
#[case("--host 192.0.2.1 --port 8000", "couldn't bind HTTP server socket, hostname: 192.0.2.1, port: 8000")]
fn a_wrong_start_ends_with_1(#[case] options: &str, #[case] line: &str) {
    let home = Home::usual();
    let mut server = home.start("tiny", options);
    assert_eq!(server.code(), 1);
    assert!(server.log().contains(line), "{}", server.log());
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let home = Home::usual();
    let _first = home.ready("tiny", "-a first");
    let mut second = home.start("tiny", "--port 8000 -a second");
    assert_eq!(second.code(), 1);
    assert!(second.log().contains("couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8000"));
    assert!(second.log().contains("srv  llama_server: exiting due to HTTP server error"));
}

#[rstest]
#[case(Signal::SIGTERM, 0)]
#[case(Signal::SIGINT, 0)]
#[case(Signal::SIGUSR1, 138)]
fn an_idle_server_ends_on_a_signal(#[case] signal: Signal, #[case] code: i32) {
    let home = Home::usual();
    let mut server = home.ready("tiny", "");
    // A connection without a request does not delay the end.
    let _idle = server.try_connect();
    // Signals are handled once this line is logged, which is later than 200.
    wait_for("its word", || server.log().contains("all slots are idle").then_some(()));
    server.signal(signal);
    assert_eq!(server.code(), code, "{}", server.log());
    home.ready("tiny", "");
}

#[test]
fn a_request_in_flight_keeps_it_until_the_second_term() {
    let home = Home::usual();
    let mut server = home.ready("slow-chat", "--metrics");
    let mut stream = server.try_connect().unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "a b c d e f g h" }] });
    stream.write_all(request("POST", "/v1/chat/completions", "", Some(&body)).as_bytes()).unwrap();
    let metrics = || String::from_utf8(server.get("/metrics").body).unwrap();
    wait_for("the request", || metrics().contains("requests_processing 1").then_some(()));
    assert_eq!(server.health(), 200);
    server.signal(Signal::SIGTERM);
    wait_for("a closed port", || server.try_connect().is_none().then_some(()));
    // Another server can listen while the first one still runs.
    let other = home.ready("tiny", "");
    assert!(server.child.try_wait().unwrap().is_none());
    server.signal(Signal::SIGTERM);
    assert_eq!(server.code(), 1);
    assert!(server.log().contains("Received second interrupt, terminating immediately."), "{}", server.log());
    assert_eq!(other.health(), 200, "it kept its port");
}

#[test]
fn a_stream_is_cut_when_the_server_shuts_down() {
    let home = Home::usual();
    let mut server = home.ready("slow-chat", "");
    wait_for("its word", || server.log().contains("all slots are idle").then_some(()));
    let mut stream = server.try_connect().unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "a b c d e f g h" }], "stream": true });
    stream.write_all(request("POST", "/v1/chat/completions", "", Some(&body)).as_bytes()).unwrap();
    let mut begun = [0; 64];
    stream.read_exact(&mut begun).unwrap();
    server.signal(Signal::SIGTERM);
    let mut rest = Vec::new();
    let _cut = stream.read_to_end(&mut rest);
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("data: ") && !rest.contains("[DONE]"), "{rest}");
    assert_eq!(server.code(), 0, "{}", server.log());
}

#[test]
fn a_signal_ends_a_server_that_loads_at_once() {
    let home = Home::usual();
    let mut server = home.start("slow-600s", "--port 8000");
    wait_for("the port", || server.try_connect());
    server.signal(Signal::SIGTERM);
    assert_eq!(server.code(), 128 + 15);
}

/// As in the real one: 73,536 is port 8000.
#[test]
fn the_number_of_a_port_is_cut_to_16_bits() {
    Home::usual().start("tiny", "--port 73536").await_ready();
}

#[rstest]
#[case::v100("NVIDIA-V100-32G")]
#[case::p40("NVIDIA-P40")]
fn a_prebuilt_server_aborts_at_the_first_chat_on_an_old_gpu(#[case] gpu: &str) {
    let home = Home::new(&Machine::with(gpu, "12.2"));
    let mut server = home.ready("tiny", "-ngl 999");
    assert!(server.chat("x").is_none());
    assert_eq!(server.code(), 134);
    let line = "CUDA error: no kernel image is available for execution on the device";
    assert!(server.log().contains(line), "{}", server.log());
    // On the CPU it works.
    assert_eq!(home.ready("tiny", "-ngl 0").chat("x").unwrap().status, 200);
}

#[rstest]
#[case::no_gpu(Machine::with("CPU-Intel-8358P", ""))]
#[case::no_driver(Machine { has_driver: false, ..Machine::with("NVIDIA-A100-80G", "12.4") })]
fn a_gpu_that_cannot_be_used_is_a_warning_and_no_more(#[case] machine: Machine) {
    let home = Home::new(&machine);
    let server = home.ready("tiny", "-ngl 999");
    assert_eq!(server.chat("x").unwrap().status, 200);
    let log = server.log();
    assert!(log.contains("warning: no usable GPU found, --gpu-layers option will be ignored"), "{log}");
    assert!(log.contains("ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected"), "{log}");
    let output = home.server().arg("--list-devices").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Available devices:\n  (none)\n");
    drop(server);
    let mut full = home.start("gpu-full", "--port 8000");
    assert_eq!(full.code(), 1);
    assert!(full.log().contains("ggml_aligned_malloc: insufficient memory"), "{}", full.log());
}

#[test]
fn without_a_model_it_starts_and_serves_none() {
    let home = Home::usual();
    let mut command = home.server();
    command.args(["--port", "8000"]);
    let mut server = home.spawn(command);
    server.await_ready();
    assert_eq!(server.chat("x").unwrap().status, 400);
}

#[test]
fn it_says_what_it_is() {
    let home = Home::usual();
    let path = home.model("tiny").display().to_string();
    let server = home.ready("tiny", "-c 4096 -np 2 --metrics");
    let models = server.get("/v1/models").json();
    assert_eq!((&models["data"][0]["id"], &models["data"][0]["meta"]["n_ctx_train"]), (&json!(path), &json!(32_768)));
    assert_eq!(models["data"][0]["meta"]["n_ctx"], 2048);
    let props = server.get("/props").json();
    assert_eq!((&props["model_path"], &props["build_info"]), (&json!(path), &json!("b0-0c1e57098")));
    assert_eq!((&props["total_slots"], &props["default_generation_settings"]["n_ctx"]), (&json!(2), &json!(2048)));
    assert_eq!(props["model_alias"], json!(path));

    server.chat("one two").unwrap();
    let metrics = server.get("/metrics");
    assert_eq!(metrics.headers["content-type"], "text/plain; version=0.0.4");
    assert!(metrics.headers.contains_key("process-start-time-unix"));
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("\nllamacpp:tokens_predicted_total 4\n"), "{text}");
    assert_eq!(server.get("/v1/nothing").status, 404);
    assert_eq!(server.get("/v1/chat/completions").status, 404);
    drop(server);
    let plain = home.ready("tiny", "-a my-model");
    assert_eq!(plain.get("/metrics").status, 501);
    assert_eq!(plain.get("/v1/models").json()["data"][0]["id"], "my-model");
    assert_eq!(plain.chat("x").unwrap().json()["model"], "my-model");
}

#[test]
fn a_chat_is_answered_as_measured() {
    let home = Home::usual();
    let server = home.ready("tiny", "-c 32");
    let ask = |body: Value| server.post("/v1/chat/completions", &body);
    let messages = json!([{ "role": "user", "content": "one two three" }]);

    let whole = ask(json!({ "messages": messages })).json();
    assert_eq!((&whole["object"], &whole["choices"][0]["finish_reason"]), (&json!("chat.completion"), &json!("stop")));
    assert_eq!(whole["choices"][0]["message"], json!({ "role": "assistant", "content": "You said: one two three" }));
    assert_eq!(whole["usage"], json!({ "completion_tokens": 5, "prompt_tokens": 7, "total_tokens": 12 }));
    assert!(whole["timings"]["predicted_per_second"].as_f64().unwrap() > 1.0);

    let cut = ask(json!({ "messages": messages, "max_tokens": 1 })).json();
    assert_eq!(
        (&cut["choices"][0]["finish_reason"], &cut["choices"][0]["message"]["content"]),
        (&json!("length"), &json!("You "))
    );
    assert_eq!(cut["timings"]["predicted_per_second"], json!(0.0));

    assert_eq!(ask(json!({ "messages": [] })).status, 200);
    let missing = ask(json!({ "model": "x" }));
    assert_eq!((missing.status, missing.json()["error"]["type"].take()), (400, json!("invalid_request_error")));
    let long = ask(json!({ "messages": [{ "role": "user", "content": "word ".repeat(40) }] }));
    assert_eq!((long.status, long.json()["error"]["type"].take()), (400, json!("exceed_context_size_error")));
    assert_eq!((&long.json()["error"]["n_prompt_tokens"], &long.json()["error"]["n_ctx"]), (&json!(44), &json!(32)));
    let mut stream = server.try_connect().unwrap();
    stream
        .write_all(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\n{oops",
        )
        .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let broken = parse(&bytes);
    assert_eq!((broken.status, broken.json()["error"]["type"].take()), (500, json!("server_error")));
}

#[test]
fn a_chat_is_streamed() {
    let home = Home::usual();
    let server = home.ready("tiny", "");
    let body = json!({
        "messages": [{ "role": "user", "content": "hi" }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    let reply = server.post("/v1/chat/completions", &body);
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let text = String::from_utf8(reply.unchunked()).unwrap();
    let events: Vec<&str> = text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    assert_eq!(events.last(), Some(&"[DONE]"));
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": null }));
    let said: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(said, "You said: hi");
    let last = chunks.iter().find(|chunk| chunk["choices"][0]["finish_reason"] == "stop").unwrap();
    assert!(last["timings"].is_object() && last["usage"].is_null());
    let extra = chunks.last().unwrap();
    assert!(extra["choices"] == json!([]) && extra["usage"].is_object());
}

#[test]
fn a_key_is_asked_for_everywhere_but_for_health() {
    let home = Home::usual();
    let file = home.path().join("keys");
    fs::write(&file, "from-a-file\n").unwrap();
    let mut by_option = home.server();
    by_option.args(["--port", "8000", "--api-key", "first,second", "--api-key-file"]).arg(&file);
    let mut by_variable = home.server();
    by_variable.args(["--port", "8000"]).env("LLAMA_API_KEY", "from-the-environment");
    for (mut command, right) in [(by_option, "from-a-file"), (by_variable, "from-the-environment")] {
        command.arg("-m").arg(home.model("tiny"));
        let mut server = home.spawn(command);
        server.await_ready();
        let models = |key: &str| {
            server.ask("GET", "/v1/models", &format!("Authorization: Bearer {key}\r\n"), None).unwrap().status
        };
        for path in ["/v1/models", "/props", "/metrics"] {
            assert_eq!(server.get(path).status, 401, "{path}");
        }
        assert_eq!(server.chat("x").unwrap().status, 401);
        assert_eq!((models("wrong"), models(right)), (401, 200));
    }
}

#[test]
fn it_answers_questions_without_serving() {
    let home = Home::usual();
    let ask = |option: &str| {
        let output = home.server().arg(option).output().unwrap();
        assert!(output.status.success());
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (out, error) = ask("--version");
    let version = "version: 0.5.0-dev (build 0, commit 0c1e57098)\nbuilt with GNU 12.2.0 for Linux x86_64\n";
    assert!(out.is_empty() && error.contains(version), "{error}");
    let (help, _) = ask("--help");
    assert!(help.lines().any(|line| line.starts_with("-fa") && line.contains("[on|off|auto]")), "{help}");
    let (devices, _) = ask("--list-devices");
    assert!(devices.starts_with("Available devices:\n  CUDA0: NVIDIA A100"), "{devices}");
}

#[test]
fn the_gpu_is_told_as_its_driver_tells_it() {
    let home = Home::new(&Machine { gpu_count: 2, ..Machine::with("NVIDIA-K80", "11.4") });
    let query = |fields: &str, form: &str| {
        let (out, _, code) = home.tool("nvidia-smi", &[&format!("--query-gpu={fields}"), &format!("--format={form}")]);
        (out, code)
    };
    // An older driver without the capability.
    assert_eq!(
        query("name,compute_cap", "csv,noheader"),
        ("Field \"compute_cap\" is not a valid field to query.\n\n".to_owned(), 2)
    );
    assert_eq!(query("name", "csv,noheader"), ("Tesla K80\nTesla K80\n".to_owned(), 0));
    assert_eq!(query("index,memory.total", "csv,nounits").0, "index, memory.total\n0, 24576\n1, 24576\n");
    assert!(home.tool("nvidia-smi", &[]).0.contains("Driver Version: 470."));

    let users = || home.tool("nvidia-smi", &["--query-compute-apps=pid,used_memory", "--format=csv,noheader"]).0;
    assert_eq!(users(), "");
    let server = home.ready("tiny", "");
    assert_eq!(users(), format!("{}, 512 MiB\n", server.child.id()));
}
