//! The computed memory compared with the output of a real llama-server. It needs one that is built for the CPU, named
//! by `DAMODEL_LLAMA_SERVER`.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    io::{self, BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use damodel_llama::{GgufModel, ServerOptions, memory, read_model};
use damodel_sandbox::stand_in::gguf::Q8_0;
use futures_util::FutureExt as _;

use crate::support::{
    files::Files,
    gguf::{Q4_K, Size},
};

const MIB: f64 = 1_048_576.0;
/// Half of the last printed digit, and a little for the server's own rounding.
const PRINTED: f64 = 0.005_01;

/// The memory that a server prints, in MiB.
#[derive(Clone, Copy, Debug, Default)]
struct Printed {
    weights: f64,
    cache: f64,
    compute: f64,
}

/// A running server, which is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program() -> Option<PathBuf> {
    let named = env::var_os("DAMODEL_LLAMA_SERVER").map(PathBuf::from).filter(|path| path.is_file());
    if named.is_none() {
        let _ = writeln!(io::stderr(), "SKIPPED: DAMODEL_LLAMA_SERVER names no llama-server");
    }
    named
}

fn models() -> Vec<(&'static str, Size)> {
    let dense = Size::dense();
    let grouped = Size { heads_kv: 2, ..dense };
    let experts = Size { experts: 8, ..grouped };
    vec![
        ("dense, F16", dense.clone()),
        ("dense, Q8_0", Size { kind: Q8_0, ..dense.clone() }),
        ("dense, Q4_K", Size { kind: Q4_K, ..dense }),
        ("grouped-query, F16", grouped.clone()),
        ("grouped-query, Q4_K, tied", Size { kind: Q4_K, tied: true, ..grouped.clone() }),
        ("grouped-query, qwen3, Q8_0", Size { architecture: "qwen3", kind: Q8_0, ..grouped.clone() }),
        ("mixture of experts, F16", experts.clone()),
        ("mixture of experts, Q4_K", Size { kind: Q4_K, ..experts }),
        (
            "gemma2, window 512, F16",
            Size { architecture: "gemma2", window: 512, layers: 4, tied: true, ..grouped.clone() },
        ),
        (
            "gemma3, window 512, Q8_0",
            Size { architecture: "gemma3", window: 512, layers: 7, tied: true, kind: Q8_0, ..grouped.clone() },
        ),
        ("llama with a window, F16", Size { window: 512, ..grouped.clone() }),
        (
            "many experts, qwen3moe, Q4_K",
            Size {
                architecture: "qwen3moe",
                width: 2048,
                heads: 32,
                heads_kv: 4,
                head: 128,
                feed_forward: 768,
                experts: 32,
                experts_used: 8,
                kind: Q4_K,
                ..grouped.clone()
            },
        ),
        (
            "wide, grouped-query, Q4_K",
            Size {
                width: 4096,
                heads: 32,
                heads_kv: 8,
                head: 128,
                feed_forward: 14_336,
                layers: 2,
                kind: Q4_K,
                ..grouped.clone()
            },
        ),
        (
            "wide, mixture of experts, Q4_K",
            Size {
                width: 4096,
                heads: 32,
                heads_kv: 8,
                head: 128,
                feed_forward: 14_336,
                experts: 4,
                layers: 2,
                kind: Q4_K,
                ..grouped
            },
        ),
    ]
}

/// Options as arguments of the function.
type Set = &'static [(&'static str, &'static str)];

const OPTIONS: &[Set] = &[
    &[("context_size", "4096")],
    &[("context_size", "1000"), ("cache_type_k", "f16"), ("cache_type_v", "f16")],
    &[("context_size", "512"), ("parallel", "4"), ("cache_type_k", "f16"), ("cache_type_v", "q8_0")],
    &[("context_size", "8192"), ("parallel", "4"), ("cache_type_k", "q4_0"), ("cache_type_v", "q4_0")],
    &[("context_size", "8192"), ("parallel", "2"), ("unified", "true")],
    &[("context_size", "2048"), ("parallel", "-1"), ("cache_type_k", "q5_1"), ("cache_type_v", "iq4_nl")],
    &[("context_size", "0"), ("cache_type_k", "f32"), ("cache_type_v", "bf16")],
    &[("context_size", "4096"), ("flash_attention", "off"), ("cache_type_v", "f16")],
    &[("context_size", "32768"), ("flash_attention", "off"), ("cache_type_k", "f16"), ("cache_type_v", "f16")],
    &[("context_size", "65536"), ("ubatch", "1024")],
    &[("context_size", "4096"), ("ubatch", "128"), ("batch", "256")],
];

/// The same as arguments of the server.
fn arguments(set: Set) -> Vec<String> {
    let mut all = BTreeMap::from([
        ("context_size", "32768"),
        ("parallel", "1"),
        ("cache_type_k", "q8_0"),
        ("cache_type_v", "q8_0"),
        ("flash_attention", "on"),
        ("batch", "2048"),
        ("ubatch", "512"),
    ]);
    all.extend(set.iter().copied());
    let mut words = Vec::new();
    for (name, value) in all {
        let option = match name {
            "context_size" => "-c",
            "parallel" => "-np",
            "cache_type_k" => "-ctk",
            "cache_type_v" => "-ctv",
            "flash_attention" => "-fa",
            "batch" => "-b",
            "ubatch" => "-ub",
            _ => {
                words.push("--kv-unified".to_owned());
                continue;
            }
        };
        words.extend([option.to_owned(), value.to_owned()]);
    }
    words
}

/// Starts a server and reads until it has printed the sizes of its buffers.
fn printed(program: &Path, file: &Path, set: Set) -> Printed {
    let mut command = Command::new(program);
    let folder = program.parent().unwrap();
    command.args([
        "-m",
        file.to_str().unwrap(),
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-repack",
        "--load-mode",
        "none",
    ]);
    command
        .args(["--no-warmup", "--fit", "off", "-lv", "5", "-t", "1"])
        .args(arguments(set))
        .env("LD_LIBRARY_PATH", folder);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Running(child);
    let mut found = Printed::default();
    let mut said = String::new();
    for line in BufReader::new(running.0.stderr.take().unwrap()).split(b'\n') {
        let line = String::from_utf8_lossy(&line.unwrap()).into_owned();
        let size = || -> f64 {
            let (_, number) = line.rsplit_once('=').unwrap();
            number.trim().strip_suffix("MiB").unwrap().trim().parse().unwrap()
        };
        if line.contains("model buffer size") {
            found.weights += size();
        } else if line.contains("KV buffer size") {
            found.cache += size();
        } else if line.contains("compute buffer size =") {
            // On a CPU there is one compute buffer, and it is printed last.
            found.compute = size();
            return found;
        }
        writeln!(said, "{line}").unwrap();
    }
    panic!("{set:?}: the server ended:\n{said}");
}

fn read_back(file: &Path) -> GgufModel {
    let length = file.metadata().unwrap().len();
    let bytes = std::fs::File::open(file).map(|file| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, 1 << 20), &mut bytes).unwrap();
        bytes
    });
    read_model(&Files::default().with("m", bytes.unwrap(), length), "m").now_or_never().unwrap().unwrap()
}

#[test]
fn a_real_server_prints_what_is_computed() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut table =
        String::from("| model | runs | weights | cache | compute: largest difference |\n|---|---|---|---|---|\n");
    let mut wrong = Vec::new();
    for (name, size) in models() {
        let file = folder.path().join("m.gguf");
        size.model().write(&file).unwrap();
        let model = read_back(&file);
        let (mut worst, mut worst_text) = (0.0_f64, String::new());
        for set in OPTIONS {
            let options = ServerOptions::parse(set.iter().copied()).unwrap();
            let found = memory(&model, &options);
            // Without a GPU all weights are on the host, and a tied output is not a copy.
            let on_host = memory(&model, &ServerOptions { gpu_layers: 0, ..options.clone() });
            let mib = |bytes: u64| bytes as f64 / MIB;
            let (cache, compute) = (mib(found.cache.unwrap()), mib(on_host.compute.unwrap()));
            let weights = mib(on_host.host.unwrap() - found.cache.unwrap());
            let real = printed(&program, &file, set);
            let mut differs = |part: &str, own: f64, printed: f64, most: f64| {
                if (own - printed).abs() > most {
                    wrong.push(format!("{name} {set:?}: {part} {own:.2} computed, {printed:.2} printed"));
                }
            };
            differs("weights", weights, real.weights, PRINTED);
            // A cache with windows is printed as two numbers.
            differs("cache", cache, real.cache, 2.0 * PRINTED);
            differs("compute", compute, real.compute, (real.compute * 0.1).max(64.0));
            let difference = compute - real.compute;
            if difference.abs() >= worst {
                worst = difference.abs();
                worst_text = format!("{difference:+.1} MiB of {:.1}", real.compute);
            }
            if env::var_os("DAMODEL_LLAMA_SERVER_ROWS").is_some() {
                let row = format!("{name} {set:?}: compute {compute:.2} computed {:.2} printed", real.compute);
                let _ = writeln!(io::stderr(), "{row}");
            }
        }
        writeln!(table, "| {name} | {} | equal | equal | {worst_text} |", OPTIONS.len()).unwrap();
    }
    let _ = writeln!(io::stderr(), "{table}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
