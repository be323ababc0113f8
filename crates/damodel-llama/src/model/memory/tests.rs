//! The memory rules of the server, checked with numbers computed by hand.

use super::*;

/// A typical large model of 32 layers: 8 of its 32 heads have keys and values.
fn model() -> GgufModel {
    GgufModel {
        architecture: "llama".to_owned(),
        layers: Some(32),
        context_length: Some(131_072),
        embedding_length: Some(4096),
        head_count: Some(32),
        head_count_kv: vec![8; 32],
        key_length: Some(128),
        value_length: Some(128),
        feed_forward_length: Some(14_336),
        layer_bytes: vec![100; 32],
        embedding_bytes: 7,
        output_bytes: 1000,
        tensor_bytes: 4207,
        ..GgufModel::default()
    }
}

fn windowed(architecture: &str, window: u64, period: u64) -> GgufModel {
    GgufModel {
        architecture: architecture.to_owned(),
        sliding_window: Some(window),
        sliding_window_pattern: Some(period),
        ..model()
    }
}

fn options(set: &[(&str, &str)]) -> ServerOptions {
    ServerOptions::parse(set.iter().copied()).unwrap()
}

fn cache(model: &GgufModel, set: &[(&str, &str)]) -> Option<u64> {
    memory(model, &options(set)).cache
}

/// The bytes of a cell in all layers, keys and values, as 16-bit floats.
const F16_CELL: u64 = 32 * 2 * 8 * 128 * 2;
const F16: [(&str, &str); 2] = [("cache_type_k", "f16"), ("cache_type_v", "f16")];

#[test]
fn no_option_is_what_the_resource_starts_a_server_with() {
    assert_eq!(options(&[]), ServerOptions::default());
    assert_eq!(cache(&model(), &[]), Some(32_768 * 32 * 2 * 8 * (128 / 32) * 34));
}

#[test]
fn every_part_has_one_note() {
    let recurrent = GgufModel { architecture: "mamba".to_owned(), ..model() };
    let huge = GgufModel { feed_forward_length: Some(u64::MAX), ..model() };
    for (model, unknown) in
        [(model(), &[][..]), (recurrent, &["cache", "compute", "host", "total"]), (huge, &["compute", "total"])]
    {
        let notes = memory(&model, &options(&[])).notes;
        for part in ["weights", "cache", "compute", "overhead", "host", "total"] {
            let found: Vec<_> = notes.iter().filter(|note| note.starts_with(&format!("{part}: "))).collect();
            assert_eq!(found.len(), 1, "{part}: {notes:?}");
            let is_unknown = found[0].contains("unknown, because");
            assert_eq!(is_unknown, unknown.contains(&part), "{}", found[0]);
        }
    }
}

#[test]
fn more_slots_than_a_server_has_are_refused() {
    assert!(ServerOptions::parse([("parallel", "256")]).is_ok());
    let error = ServerOptions::parse([("parallel", "257")]).unwrap_err().to_string();
    assert_eq!(error, "parallel must be a whole number from 1 to 256, or -1 for the server's default");
}

#[test]
fn cells_come_in_steps_of_256_for_each_slot() {
    let cells = |set: &[(&str, &str)]| cache(&model(), &[&F16, set].concat()).map(|bytes| bytes / F16_CELL);
    assert_eq!(cells(&[("context_size", "1")]), Some(256));
    assert_eq!(cells(&[("context_size", "257")]), Some(512));
    assert_eq!(cells(&[("context_size", "512"), ("parallel", "4")]), Some(1024));
    assert_eq!(cells(&[("context_size", "512"), ("parallel", "4"), ("unified", "true")]), Some(512));
    assert_eq!(cells(&[("context_size", "512"), ("parallel", "-1")]), Some(512));
    assert_eq!(cells(&[("context_size", "0")]), Some(131_072));
    assert_eq!(cells(&[("context_size", "200000")]), Some(200_192), "more than the trained context");
}

#[test]
fn windows_hold_no_more_than_they_need() {
    let bytes = |model: &GgufModel, set: &[(&str, &str)]| cache(model, &[&F16, set].concat());
    let layer = F16_CELL / 32;
    let size = [("context_size", "8192")];
    // 1,024 and a batch of 512 are 1,536 cells.
    assert_eq!(bytes(&windowed("gemma2", 1024, 2), &size), Some(layer * 16 * (8192 + 1536)));
    assert_eq!(bytes(&windowed("gemma3", 1024, 6), &size), Some(layer * (5 * 8192 + 27 * 1536)));
    assert_eq!(bytes(&windowed("gemma2", 1024, 2), &[("context_size", "1024")]), Some(layer * 32 * 1024));
    let shared = [size[0], ("parallel", "2"), ("unified", "true")];
    assert_eq!(bytes(&windowed("gemma2", 1024, 2), &shared), Some(layer * 16 * (8192 + 2560)));
    assert_eq!(bytes(&windowed("llama", 1024, 2), &size), Some(F16_CELL * 8192), "it has no windows");
    assert_eq!(bytes(&windowed("gemma2", 1024, 1), &size), Some(F16_CELL * 8192));
}

#[test]
fn without_flash_attention_values_are_as_wide_as_the_widest_layer() {
    let uneven = GgufModel { head_count_kv: [vec![8; 16], vec![4; 16]].concat(), ..model() };
    let size = ("context_size", "256");
    let row = 128 * 2 * 256;
    assert_eq!(cache(&uneven, &[&F16[..], &[size]].concat()), Some(row * 16 * (8 + 4) * 2));
    let off = [&F16[..], &[size, ("flash_attention", "off")]].concat();
    assert_eq!(cache(&uneven, &off), Some(row * 16 * (8 + 4 + 8 + 8)));
}

#[test]
fn latent_attention_stores_keys_alone() {
    let latent = GgufModel {
        architecture: "deepseek2".to_owned(),
        head_count_kv: vec![1; 32],
        key_length: Some(576),
        value_length: Some(512),
        ..model()
    };
    let found = memory(&latent, &options(&[F16[0], F16[1], ("context_size", "256")]));
    assert_eq!(found.cache, Some(32 * 256 * 576 * 2));
    assert_eq!((found.compute, found.total), (None, None));
    let old = GgufModel { head_count_kv: vec![32; 32], ..latent };
    assert_eq!(cache(&old, &[]), None);
}

#[test]
fn the_last_layers_are_on_the_card_first_and_the_output_before_them() {
    let parts = |model: &GgufModel, layers: &str| {
        let found = memory(model, &options(&[("gpu_layers", layers), ("context_size", "256")]));
        let host_cache = cache(model, &[("context_size", "256")]).unwrap() - found.cache.unwrap();
        (found.weights.unwrap(), found.host.unwrap() - host_cache)
    };
    assert_eq!(parts(&model(), "999"), (4200, 7));
    assert_eq!(parts(&model(), "33"), (4200, 7));
    assert_eq!(parts(&model(), "3"), (1200, 3007));
    assert_eq!(parts(&model(), "1"), (1000, 3207));
    assert_eq!(parts(&model(), "0"), (0, 4207));
    let tied = GgufModel { tied_output: true, ..model() };
    assert_eq!(parts(&tied, "1"), (1007, 3207), "the output is a copy of the embeddings");
    assert_eq!(parts(&tied, "0"), (0, 4207));
}

#[test]
fn what_is_not_known_is_no_number_and_says_why() {
    let reason = |model: &GgufModel| {
        let found = memory(model, &ServerOptions::default());
        assert_eq!((found.cache, found.compute, found.total, found.host), (None, None, None, None));
        assert!(found.weights.is_some());
        found.notes.iter().find(|note| note.starts_with("cache: unknown")).unwrap().clone()
    };
    let named = |name: &str| GgufModel { architecture: name.to_owned(), ..model() };
    assert!(reason(&named("zzzzz")).ends_with("the architecture \"zzzzz\" is unknown"));
    assert!(reason(&named("mamba")).ends_with("keeps a recurrent state"));
    assert!(reason(&GgufModel { layers: Some(31), ..model() }).ends_with("some layers only predict further tokens"));
    assert!(reason(&GgufModel { key_length: None, ..model() }).ends_with("the widths of keys and values"));
    assert!(
        reason(&GgufModel { key_length: Some(80), ..model() }).ends_with("keys of width 80 cannot have the type q8_0")
    );
    let irregular = GgufModel { sliding_window_pattern: None, ..windowed("gemma3", 1024, 6) };
    assert!(reason(&irregular).ends_with("which layers have a sliding window"));
}

#[test]
fn numbers_beyond_all_measure_are_no_panic() {
    let all = u64::MAX;
    let huge = GgufModel {
        key_length: Some(all - all % 32),
        head_count_kv: vec![all; 32],
        embedding_length: Some(all),
        feed_forward_length: Some(all),
        head_count: Some(all),
        layer_bytes: vec![all; 32],
        output_bytes: all,
        embedding_bytes: all,
        context_length: Some(all),
        ..model()
    };
    for set in [&[][..], &[("context_size", "0")], &[("gpu_layers", "2")], &F16] {
        assert_eq!(memory(&huge, &options(set)).total, None);
    }
    let windowed = GgufModel { sliding_window: Some(all), ..windowed("gemma2", 1, 2) };
    assert!(memory(&windowed, &options(&[])).total.is_some());
}

#[test]
fn the_largest_context_fits_and_a_step_more_does_not() {
    let total = |memory: &Memory| memory.total;
    for set in [&[][..], &[("parallel", "4")], &[("parallel", "3"), ("unified", "true")]] {
        let options = options(set);
        let most = 4 << 30;
        let largest = largest_context(&model(), &options, total, most).unwrap();
        let at = |context_size| memory(&model(), &ServerOptions { context_size, ..options.clone() }).total.unwrap();
        assert!(at(largest) <= most && at(largest + 256 * options.slots()) > most, "{set:?}: {largest}");
    }
    assert_eq!(largest_context(&model(), &ServerOptions::default(), total, 1000), None);
    let unknown = GgufModel { architecture: "zzzzz".to_owned(), ..model() };
    assert_eq!(largest_context(&unknown, &ServerOptions::default(), total, u64::MAX), None);
}

#[test]
fn options_that_are_not_understood_are_refused() {
    let refused = |name, value| ServerOptions::parse([(name, value)]).unwrap_err().to_string();
    assert!(refused("ctx", "1").starts_with("an option is unknown; the options are context_size, parallel,"));
    assert_eq!(refused("context_size", "-1"), "context_size must be a whole number, or 0 for the trained context");
    assert_eq!(refused("context_size", "1e9"), "context_size must be a whole number, or 0 for the trained context");
    assert_eq!(
        refused("parallel", "0"),
        "parallel must be a whole number from 1 to 256, or -1 for the server's default"
    );
    assert!(refused("cache_type_k", "q9").starts_with("cache_type_k must be one of f32,"));
    assert_eq!(refused("flash_attention", "off"), "cache_type_v can be quantized with flash_attention only");
    assert_eq!(refused("flash_attention", "maybe"), "flash_attention must be on, off or auto");
    assert_eq!(refused("unified", "yes"), "unified must be true or false");
    assert!(ServerOptions::parse([("flash_attention", "off"), ("cache_type_v", "f16")]).is_ok());
}

/// The shapes of the models that were measured on a card, with heads 128 wide.
fn measured(name: &str) -> GgufModel {
    let (architecture, layers, width, heads, heads_kv, feed_forward, experts, vocabulary) = match name {
        "a" => ("llama", 32, 4096, 32, 8, 14_336, 0, 128_256),
        "b" => ("qwen3", 28, 2048, 16, 8, 6144, 0, 151_936),
        "c" => ("qwen3moe", 16, 2048, 32, 4, 768, 64, 151_936),
        other => panic!("{other}"),
    };
    // Blocks of 32 numbers: Q8_0 has 34 bytes, Q4_0 18.
    let block = if name == "b" { 34 } else { 18 };
    let head_norms = if architecture == "llama" { 0 } else { 2 * 128 };
    let norms = 4 * (2 * width + head_norms + width * experts);
    let attention = 2 * width * 128 * (heads + heads_kv);
    let layer = (attention + 3 * width * feed_forward * experts.max(1)) / 32 * block + norms;
    let tied_output = name == "b";
    GgufModel {
        architecture: architecture.to_owned(),
        layers: Some(layers),
        context_length: Some(131_072),
        embedding_length: Some(width),
        head_count: Some(heads),
        head_count_kv: vec![heads_kv; layers as usize],
        key_length: Some(128),
        value_length: Some(128),
        expert_count: experts,
        feed_forward_length: Some(if experts > 0 { feed_forward * 8 } else { feed_forward }),
        tied_output,
        layer_bytes: vec![layer; layers as usize],
        embedding_bytes: width * vocabulary / 32 * block,
        output_bytes: 4 * width + if tied_output { 0 } else { width * vocabulary / 32 * 34 },
        ..GgufModel::default()
    }
}

/// Runs whose buffers are larger than the formula, by 36 and 38 MiB; the allowance covers them.
const UNEXPLAINED_RUNS: [&str; 2] = ["c-moe", "a-part-16"];

#[test]
fn a_server_on_a_real_card_needed_what_is_computed() {
    let measurements = include_str!("../../../tests/fixtures/h200-memory.csv");
    let mut lines = measurements.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    let mut wrong = Vec::new();
    for line in lines {
        let column = |name: &str| line[columns.iter().position(|column| *column == name).unwrap()];
        let number = |name: &str| column(name).parse::<f64>().unwrap();
        let set = column("options").split_whitespace().map(|option| option.split_once('=').unwrap());
        let found = memory(&measured(column("model")), &ServerOptions::parse(set).unwrap());
        let mib = |bytes: Option<u64>| bytes.unwrap() as f64 / f64::from(1 << 20);
        let mut differs = |part: &str, own: f64, least: f64, most: f64| {
            if own < least || own > most {
                wrong.push(format!("{} {part}: {own:.2}, not from {least:.2} to {most:.2}", column("name")));
            }
        };
        for (part, own) in [("weights", found.weights), ("cache", found.cache)] {
            let printed = number(&format!("log_{part}"));
            differs(part, mib(own), printed - 0.01, printed + 0.01);
        }
        let (compute, process) = (number("log_compute"), number("process_total"));
        let missing = if UNEXPLAINED_RUNS.contains(&column("name")) { 38.1 } else { 8.0 };
        differs("compute", mib(found.compute), compute - missing, compute + (compute * 0.01).max(8.0));
        differs("total", mib(found.total), process, (process * 1.03).min(process + 200.0));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// On that card, with the memory that nvidia-smi reports, a warning named a context of 1,954,048 tokens, and the
/// allocation of the compute buffer failed.
#[test]
fn the_largest_context_has_room_for_the_copies_of_a_layer() {
    let most = (143_771 << 20) / 100 * 95;
    let largest = largest_context(&measured("a"), &ServerOptions::default(), |memory| memory.total, most).unwrap();
    let at = |context_size| memory(&measured("a"), &ServerOptions { context_size, ..ServerOptions::default() });
    assert!(at(largest).total.unwrap() <= most && at(largest + 256).total.unwrap() > most, "{largest}");
    assert!(at(1_954_048).total.unwrap() > most, "{largest}");
}

#[test]
fn copies_of_keys_and_values_are_those_of_the_largest_layer_on_the_card() {
    // One layer has all heads. A long context, so that the copies are the largest step.
    let uneven = GgufModel { head_count_kv: [vec![8], vec![4; 31]].concat(), ..model() };
    let compute = |set: &[(&str, &str)]| {
        memory(&uneven, &options(&[&[("context_size", "262144")], set].concat())).compute.unwrap()
    };
    let cells = 262_144;
    let rest = cells * 512 * 2 + 5 * 512 * 4096 * 4;
    assert_eq!(compute(&[]), rest + cells * 8 * 128 * 2 * 2);
    assert_eq!(compute(&[("cache_type_k", "f16")]), rest + cells * 8 * 128 * 2);
    assert_eq!(compute(&[("gpu_layers", "32")]), rest + cells * 4 * 128 * 2 * 2);
    assert_eq!(compute(&[("parallel", "2")]), rest / 2 + 5 * 256 * 4096 * 4 + cells * 8 * 128 * 2 * 2);
    let plain = cells * 512 * 2 + (3 * 14_336 + 4 * 4096) * 512 * 4;
    assert_eq!(compute(&F16), plain);
    assert_eq!(compute(&[("gpu_layers", "0")]), plain, "a CPU makes no copies");
}
