//! The answers of the inference server in the sandbox's instances, and the output of its tools, compared with
//! measurements of two real ones.

use std::{
    fs,
    io::{Read, Write},
};

use damodel::sandbox::stand_in::Machine;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{sandbox::client::parse, sandbox::home::Home, sandbox::yard::request, support::wait::wait_for};

#[test]
fn it_says_what_it_is() {
    let home = Home::usual();
    let path = home.model("tiny").display().to_string();
    for (generation, build) in [("new", "b0-0c1e57098"), ("old", "b4748-c392e5094")] {
        let is_new = generation == "new";
        let server = home.ready(generation, "tiny", "-c 4096 -np 2 --metrics");
        let models = server.get("/v1/models").json();
        assert_eq!(
            (&models["data"][0]["id"], &models["data"][0]["meta"]["n_ctx_train"]),
            (&json!(path), &json!(32_768))
        );
        assert_eq!(models["data"][0]["meta"]["n_ctx"].is_null(), !is_new);
        let props = server.get("/props").json();
        assert_eq!((&props["model_path"], &props["build_info"]), (&json!(path), &json!(build)));
        assert_eq!((&props["total_slots"], &props["default_generation_settings"]["n_ctx"]), (&json!(2), &json!(2048)));
        assert_eq!(props["model_alias"].is_null(), !is_new);
        assert_eq!(server.post("/props", &json!({})).status, 501);
        assert_eq!(server.get("/slots").status, if is_new { 200 } else { 501 });

        server.chat("one two").unwrap();
        let metrics = server.get("/metrics");
        assert_eq!(metrics.headers["content-type"], "text/plain; version=0.0.4");
        assert!(metrics.headers.contains_key("process-start-time-unix"));
        let text = String::from_utf8(metrics.body).unwrap();
        assert!(text.contains("\nllamacpp:tokens_predicted_total 4\n"), "{text}");
        assert_eq!(text.contains("llamacpp:kv_cache_usage_ratio"), !is_new);
        assert_eq!(server.get("/v1/nothing").status, 404);
        assert_eq!(server.get("/v1/chat/completions").status, 404);
    }
    let plain = home.ready("new", "tiny", "-a my-model");
    assert_eq!(plain.get("/metrics").status, 501);
    assert_eq!(plain.get("/v1/models").json()["data"][0]["id"], "my-model");
    assert_eq!(plain.chat("x").unwrap().json()["model"], "my-model");
}

#[test]
fn a_chat_is_answered_as_measured() {
    let home = Home::usual();
    let server = home.ready("new", "tiny", "-c 32");
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
        (&json!("length"), &json!("You"))
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

#[rstest]
#[case(true)]
#[case(false)]
fn a_chat_is_streamed(#[case] has_usage: bool) {
    let home = Home::usual();
    let server = home.ready("new", "tiny", "");
    let body = json!({
        "messages": [{ "role": "user", "content": "hi" }],
        "stream": true,
        "stream_options": { "include_usage": has_usage },
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
    assert_eq!((extra["choices"] == json!([]), extra["usage"].is_object()), (has_usage, has_usage));
}

#[test]
fn a_key_is_asked_for_everywhere_but_for_health() {
    let home = Home::usual();
    let file = home.path().join("keys");
    fs::write(&file, "from-a-file\n").unwrap();
    let mut by_option = home.server("new");
    by_option.args(["--port", "8000", "--api-key", "first,second", "--api-key-file"]).arg(&file);
    let mut by_variable = home.server("old");
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
    for (generation, version, flash_attention) in [
        ("new", "version: 0.5.0-dev (build 0, commit 0c1e57098)\nbuilt with GNU 12.2.0 for Linux x86_64\n", true),
        ("old", "version: 4748 (c392e5094)\nbuilt with cc ", false),
    ] {
        let ask = |option: &str| {
            let output = home.server(generation).arg(option).output().unwrap();
            assert!(output.status.success());
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
        };
        let (out, error) = ask("--version");
        assert!(out.is_empty() && error.contains(version), "{error}");
        let (help, _) = ask("--help");
        let is_hinted = |line: &str| line.starts_with("-fa") && line.contains("[on|off|auto]");
        assert_eq!(help.lines().any(is_hinted), flash_attention);
        let (devices, _) = ask("--list-devices");
        assert!(devices.starts_with("Available devices:\n  CUDA0: NVIDIA A100"), "{devices}");
    }
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
    let server = home.ready("new", "tiny", "");
    assert_eq!(users(), format!("{}, 512 MiB\n", server.child.id()));
}

#[test]
fn a_slot_is_taken_by_one_request_at_a_time() {
    let home = Home::usual();
    let server = home.ready("new", "slow-chat", "-np 1 --metrics");
    let ask = || {
        let mut stream = server.try_connect().unwrap();
        let body = json!({ "messages": [{ "role": "user", "content": "a b c d e f" }] });
        stream.write_all(request("POST", "/v1/chat/completions", "", Some(&body)).as_bytes()).unwrap();
        stream
    };
    let _both = [ask(), ask()];
    wait_for("one that waits", || {
        let text = String::from_utf8(server.get("/metrics").body).unwrap();
        let has = |line: &str| text.lines().any(|own| own == line);
        (has("llamacpp:requests_processing 1") && has("llamacpp:requests_deferred 1")).then_some(())
    });
}

/// A client that disconnects ends the generation of its answer.
#[test]
fn a_client_that_goes_frees_its_slot() {
    let home = Home::usual();
    let server = home.ready("new", "slow-chat", "-np 1");
    let mut stream = server.try_connect().unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "word ".repeat(600) }] });
    stream.write_all(request("POST", "/v1/chat/completions", "", Some(&body)).as_bytes()).unwrap();
    let is_busy = || server.get("/slots").json()[0]["is_processing"] == true;
    wait_for("the request", || is_busy().then_some(()));
    drop(stream);
    wait_for("the slot", || (!is_busy()).then_some(()));
}
