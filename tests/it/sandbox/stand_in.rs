//! The inference server in the sandbox's instances, compared with measurements of two real ones: its start, run and
//! ends.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
};

use damodel::sandbox::stand_in::{self, Machine};
use nix::sys::signal::Signal;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    sandbox::client::{Reply, parse},
    sandbox::home::Home,
    sandbox::yard::request,
    support::wait::wait_for,
};

/// The options of the service's guide, without the model and flash attention.
const GUIDE: &str = "--host 0.0.0.0 --port 8000 -c 32768 -np 1 -ngl 999 -ctk q8_0 -ctv q8_0 --jinja --metrics";

fn content(reply: &Reply) -> Value {
    reply.json()["choices"][0]["message"]["content"].take()
}

#[rstest]
#[case::new("new", "-fa on")]
#[case::old("old", "-fa")]
fn it_loads_and_then_serves(#[case] generation: &str, #[case] flash_attention: &str) {
    let home = Home::usual();
    let mut server = home.start(generation, "slow-1s", &format!("{GUIDE} {flash_attention}"));
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
    assert_eq!(server.ask("GET", "/v1/health", "", None).unwrap().status, if generation == "new" { 200 } else { 404 });
    assert_eq!(content(&server.chat("hello there").unwrap()), "You said: hello there");
    assert!(!server.log().contains("no usable GPU found"), "{}", server.log());
    let arguments = fs::read(format!("/proc/{}/cmdline", server.child.id())).unwrap();
    assert!(arguments.split(|&byte| byte == 0).next().unwrap().ends_with(b"/bin/llama-server"));
}

#[rstest]
#[case("missing-file", "failed to open GGUF file", 1, 134)]
#[case("directory", "gguf_init_from_reader: failed to read magic", 1, 134)]
#[case("empty", "gguf_init_from_reader: failed to read magic", 1, 134)]
#[case("not-gguf", "invalid magic characters: 'vers', expected 'GGUF'", 1, 134)]
#[case("header-cut", "failed to read key-value pairs", 1, 134)]
#[case("truncated", "data is not within the file bounds, model is corrupted or incomplete", 1, 134)]
#[case("newer", "unknown model architecture: 'zzzzz'", 1, 134)]
#[case("missing-key", "key not found in model: llama.context_length", 1, 134)]
#[case("gpu-full", "cudaMalloc failed: out of memory", 1, 134)]
#[case("crash-on-load", "GGML_ASSERT", 134, 134)]
fn a_model_that_cannot_be_loaded_ends_it(#[case] model: &str, #[case] line: &str, #[case] new: i32, #[case] old: i32) {
    let home = Home::usual();
    for (generation, code) in [("new", new), ("old", old)] {
        let mut server = home.start(generation, model, "--port 8000 -ngl 999");
        assert_eq!(server.code(), code, "{}", server.log());
        assert!(server.log().contains(line), "{}", server.log());
        let last = if generation == "new" {
            "srv  llama_server: exiting due to model loading error"
        } else {
            "terminate called"
        };
        assert!(model == "crash-on-load" || server.log().contains(last), "{}", server.log());
    }
}

#[test]
fn a_template_that_jinja_does_not_take_ends_the_new_one_only() {
    let home = Home::usual();
    let mut server = home.start("new", "bad-template", "--port 8000 --jinja");
    assert_eq!(server.code(), 1);
    assert!(server.log().contains("chat template parsing error") && server.log().contains("--no-jinja"));
    home.ready("new", "bad-template", "--no-jinja");
    home.ready("old", "bad-template", "--jinja");
    home.ready("new", "no-template", "--jinja");
}

#[test]
fn quantized_values_need_flash_attention() {
    let home = Home::usual();
    for (generation, options, line) in [
        ("new", "-fa off -ctv q8_0", "quantized V cache requires flash_attn to be enabled"),
        ("old", "-ctv q8_0", "V cache quantization requires flash_attn"),
    ] {
        let mut server = home.start(generation, "tiny", &format!("--port 8000 {options}"));
        assert_eq!(server.code(), if generation == "new" { 1 } else { 134 });
        assert!(server.log().contains(line), "{}", server.log());
    }
    home.ready("new", "tiny", "-ctv q8_0");
}

#[test]
fn memory_that_runs_out_leaves_no_word() {
    let home = Home::usual();
    let mut server = home.start("new", "oom-on-load", "--port 8000");
    assert_eq!(server.code(), 137);
    assert!(server.log().trim_end().ends_with("oom-on-load.gguf'"), "{}", server.log());
    let mut server = home.ready("old", "oom-on-chat", "");
    assert!(server.chat("x").is_none());
    assert_eq!(server.code(), 137);
}

#[rstest]
#[case("new", "-fa on --no-such-flag", "error: invalid argument: --no-such-flag")]
#[case("old", "-fa on", "error: invalid argument: on")]
#[case("new", "--host 192.0.2.1 --port 8000", "couldn't bind HTTP server socket, hostname: 192.0.2.1, port: 8000")]
#[case("old", "--host 192.0.2.1 --port 8000", "couldn't bind HTTP server socket, hostname: 192.0.2.1, port: 8000")]
fn a_wrong_start_ends_with_1(#[case] generation: &str, #[case] options: &str, #[case] line: &str) {
    let home = Home::usual();
    let mut server = home.start(generation, "tiny", options);
    assert_eq!(server.code(), 1);
    assert!(server.log().contains(line), "{}", server.log());
}

#[test]
fn a_port_that_is_taken_is_refused_by_the_new_one_and_shared_by_the_old_one() {
    let home = Home::usual();
    let _first = home.ready("new", "tiny", "-a first");
    let mut second = home.start("new", "tiny", "--port 8000 -a second");
    assert_eq!(second.code(), 1);
    assert!(second.log().contains("couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8000"));
    assert!(second.log().contains("srv  llama_server: exiting due to HTTP server error"));
    let mut old = home.start("old", "tiny", "--port 8000 -a third");
    wait_for("both to listen", || {
        let (listening, ..) = home.tool("ss", &["-ltnpH", "sport = :8000"]);
        (listening.lines().count() == 2).then_some(())
    });
    assert!(old.child.try_wait().unwrap().is_none());
}

#[test]
fn a_port_beyond_16_bits_wraps() {
    let home = Home::usual();
    let server = home.start("new", "tiny", "--port 73536");
    wait_for("port 8000", || server.try_connect());
    wait_for("the line about it", || server.log().contains("port: 73536").then_some(()));
}

#[test]
fn until_it_is_loaded_a_signal_ends_it_at_once() {
    let home = Home::usual();
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        // A process that nohup started ignores it, and so do its children.
        if signal == Signal::SIGHUP && is_hangup_ignored() {
            continue;
        }
        let mut server = home.start("new", "slow-600s", "--port 8000");
        wait_for("the port", || server.try_connect());
        server.signal(signal);
        assert_eq!(server.code(), code);
    }
}

fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[rstest]
#[case("new", Signal::SIGTERM, 0)]
#[case("new", Signal::SIGINT, 0)]
#[case("old", Signal::SIGTERM, 134)]
#[case("new", Signal::SIGUSR1, 138)]
fn an_idle_server_ends_on_a_signal(#[case] generation: &str, #[case] signal: Signal, #[case] code: i32) {
    let home = Home::usual();
    let mut server = home.ready(generation, "tiny", "");
    // A connection without a request does not delay the end.
    let _idle = server.try_connect();
    // Signals are handled once this line is logged, which is later than 200.
    wait_for("its word", || server.log().contains("all slots are idle").then_some(()));
    server.signal(signal);
    assert_eq!(server.code(), code, "{}", server.log());
    home.ready(generation, "tiny", "");
}

#[test]
fn a_request_in_flight_keeps_the_new_one_until_the_second_term() {
    let home = Home::usual();
    let mut server = home.ready("new", "slow-chat", "");
    let mut stream = server.try_connect().unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "a b c d e f g h" }] });
    stream.write_all(request("POST", "/v1/chat/completions", "", Some(&body)).as_bytes()).unwrap();
    wait_for("the request", || (server.get("/slots").json()[0]["is_processing"] == true).then_some(()));
    assert_eq!(server.health(), 200);
    server.signal(Signal::SIGTERM);
    wait_for("a closed port", || server.try_connect().is_none().then_some(()));
    // Another server can listen while the first one still runs.
    let other = home.ready("new", "tiny", "");
    assert!(server.child.try_wait().unwrap().is_none());
    server.signal(Signal::SIGTERM);
    assert_eq!(server.code(), 1);
    assert!(server.log().contains("Received second interrupt, terminating immediately."), "{}", server.log());
    assert_eq!(other.health(), 200, "it kept its port");
}

#[test]
fn a_request_in_flight_keeps_the_new_one_until_its_client_goes() {
    let home = Home::usual();
    let mut server = home.ready("new", "hang-on-chat", "");
    let mut stream = server.try_connect().unwrap();
    let body = json!({ "messages": [] });
    stream.write_all(request("POST", "/v1/chat/completions", "", Some(&body)).as_bytes()).unwrap();
    // The connection was accepted when a later one is answered.
    assert_eq!(server.health(), 200);
    server.signal(Signal::SIGTERM);
    wait_for("a closed port", || server.try_connect().is_none().then_some(()));
    assert!(server.child.try_wait().unwrap().is_none());
    stream.shutdown(Shutdown::Both).unwrap();
    assert_eq!(server.code(), 0);
}

#[test]
fn a_stream_is_cut_when_it_ends() {
    let home = Home::usual();
    let mut server = home.ready("new", "slow-chat", "");
    let mut stream = server.try_connect().unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "a b c d e f g h" }], "stream": true });
    stream.write_all(request("POST", "/v1/chat/completions", "", Some(&body)).as_bytes()).unwrap();
    let mut begun = [0; 64];
    stream.read_exact(&mut begun).unwrap();
    server.signal(Signal::SIGTERM);
    let mut rest = Vec::new();
    let _cut = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("[DONE]"));
    assert_eq!(server.code(), 0);
}

#[rstest]
#[case::v100("NVIDIA-V100-32G")]
#[case::p40("NVIDIA-P40")]
fn a_prebuilt_server_aborts_at_the_first_chat_on_an_old_gpu(#[case] gpu: &str) {
    let home = Home::new(&Machine::with(gpu, "12.2"));
    for generation in ["new", "old"] {
        let mut server = home.ready(generation, "tiny", "-ngl 999");
        assert!(server.chat("x").is_none());
        assert_eq!(server.code(), 134);
        let line = "CUDA error: no kernel image is available for execution on the device";
        assert!(server.log().contains(line), "{}", server.log());
    }
    // On the CPU it works.
    assert_eq!(home.ready("new", "tiny", "-ngl 0").chat("x").unwrap().status, 200);
}

#[rstest]
#[case::no_gpu(Machine::with("CPU-Intel-8358P", ""))]
#[case::no_driver(Machine { has_driver: false, ..Machine::with("NVIDIA-A100-80G", "12.4") })]
fn a_gpu_that_cannot_be_used_is_a_warning_and_no_more(#[case] machine: Machine) {
    let home = Home::new(&machine);
    for (generation, none) in [("new", "Available devices:\n  (none)\n"), ("old", "Available devices:\n")] {
        let server = home.ready(generation, "tiny", "-ngl 999");
        assert_eq!(server.chat("x").unwrap().status, 200);
        let log = server.log();
        assert!(log.contains("warning: no usable GPU found, --gpu-layers option will be ignored"), "{log}");
        assert!(log.contains("ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected"), "{log}");
        let output = home.server(generation).arg("--list-devices").output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), none);
    }
    let mut full = home.start("new", "gpu-full", "--port 8000");
    assert_eq!(full.code(), 1);
    assert!(full.log().contains("ggml_aligned_malloc: insufficient memory"), "{}", full.log());
}

#[test]
fn models_misbehave_at_chats() {
    let home = Home::usual();
    let mut server = home.ready("new", "crash-on-chat", "");
    assert!(server.chat("x").is_none());
    assert_eq!(server.code(), 134);
    let mut server = home.ready("new", "crash-on-second-chat", "");
    assert_eq!(server.chat("x").unwrap().status, 200);
    assert!(server.chat("x").is_none());
    assert_eq!(server.code(), 134);
    assert_eq!(home.ready("new", "error-on-chat", "").chat("x").unwrap().status, 500);
    assert_eq!(content(&home.ready("new", "empty-chat", "").chat("x").unwrap()), "");
}

#[test]
fn without_a_model_the_new_one_starts_and_the_old_one_does_not() {
    let home = Home::usual();
    let mut command = home.server("new");
    command.args(["--port", "8000"]);
    let mut server = home.spawn(command);
    server.await_ready();
    assert_eq!(server.chat("x").unwrap().status, 400);
    drop(server);
    let mut command = home.server("old");
    command.args(["--port", "8000", "-m", ""]);
    let mut server = home.spawn(command);
    assert_eq!(server.code(), 134);
    assert!(server.log().contains("'models/7B/ggml-model-f16.gguf'"), "{}", server.log());
}

#[test]
fn where_there_is_no_port_space_it_listens_on_tcp() {
    let home = Home::usual();
    // A port that was just free.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = home.server("new");
    command.env_remove(stand_in::PORTS).args(["--port", &port.to_string(), "-m"]).arg(home.model("tiny"));
    let mut server = home.spawn(command);
    let reply = wait_for("the port", || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(request("GET", "/health", "", None).as_bytes()).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        Some(parse(&bytes))
    });
    assert!([200, 503].contains(&reply.status));
    let mut command = home.server("new");
    command.env_remove(stand_in::PORTS).args(["--port", &port.to_string(), "-m"]).arg(home.model("tiny"));
    let mut second = home.spawn(command);
    assert_eq!(second.code(), 1);
    assert!(second.log().contains("couldn't bind HTTP server socket"));
    assert!(server.child.try_wait().unwrap().is_none());
}
