//! What a plan reports about models of known sizes.

use super::*;

const GIB: u64 = 1 << 30;

/// 16 GiB of weights in 32 layers, and 64 KiB of cache for a token at 16 bits.
fn model() -> Model {
    Model {
        architecture: "llama".to_owned(),
        layers: Some(32),
        context_length: Some(131_072),
        embedding_length: Some(4096),
        head_count: Some(32),
        head_count_kv: vec![4; 32],
        key_length: Some(128),
        value_length: Some(128),
        feed_forward_length: Some(14_336),
        layer_bytes: vec![GIB / 2; 32],
        ..Model::default()
    }
}

fn judged(model: &Model, context_size: u64, cards: &[u64]) -> Option<Diagnostic> {
    let path = Attr::Known("~/models/big.gguf".to_owned());
    let options = Options { context_size, ..Options::default() };
    judge(&path, model, &options, cards).iter().next().cloned()
}

#[test]
fn weights_that_do_not_fit_are_an_error_that_names_both_sizes() {
    let found = judged(&model(), 256, &[15 * GIB]).unwrap();
    assert!(found.is_error());
    assert_eq!(found.summary, "Model big.gguf does not fit in GPU memory");
    for part in ["need 16.0 GiB", "the GPU has 15.0 GiB", "no context fits", "preflight = false", "-refresh=false"] {
        assert!(found.detail.contains(part), "{part}: {}", found.detail);
    }
    let unknown = Model { architecture: "zzzzz".to_owned(), ..model() };
    assert!(judged(&unknown, 256, &[15 * GIB]).unwrap().is_error(), "the weights are known all the same");
    assert!(judged(&model(), 256, &[10 * GIB, 10 * GIB]).is_none_or(|found| !found.is_error()));
}

#[test]
fn what_hardly_fits_is_a_warning_that_says_how_much_context_does() {
    let found = judged(&model(), 131_072, &[20 * GIB]).unwrap();
    assert!(!found.is_error());
    assert!(found.summary.starts_with("Model big.gguf needs 10") && found.summary.ends_with("% of the GPU memory"));
    let (_, rest) = found.detail.split_once("A context_size of ").unwrap();
    let context: u64 = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(judged(&model(), context, &[20 * GIB]).is_none(), "{context}");
    assert!(judged(&model(), context + 256, &[20 * GIB]).is_some(), "{context}");
    let full = judged(&model(), 256, &[16 * GIB]).unwrap();
    assert!(full.detail.ends_with("No context_size stays below 95 %."), "{}", full.detail);
}

#[test]
fn what_fits_or_is_not_known_is_not_told() {
    assert_eq!(judged(&model(), 32_768, &[24 * GIB]), None);
    let unknown = Model { architecture: "mamba".to_owned(), ..model() };
    assert_eq!(judged(&unknown, 32_768, &[17 * GIB]), None);
}

#[test]
fn a_server_with_options_that_move_memory_is_not_checked() {
    let server = |words: &[&str]| LlamaServer {
        context_size: 4096.into(),
        parallel: 1.into(),
        gpu_layers: 999.into(),
        flash_attention: "on".into(),
        cache_type_k: "q8_0".into(),
        cache_type_v: "q8_0".into(),
        extra_args: Attr::Known(words.iter().map(|word| (*word).into()).collect()),
        ..LlamaServer::default()
    };
    assert_eq!(started_with(&server(&[])).unwrap(), Options { context_size: 4096, ..Options::default() });
    let batches = started_with(&server(&["-b", "4096", "--ubatch_size", "1024", "-kvu"])).unwrap();
    assert_eq!((batches.batch, batches.ubatch, batches.unified), (4096, 1024, true));
    for words in [&["--n-cpu-moe", "4"][..], &["-ts", "1,1"], &["-c", "0"], &["-ub", "x"], &["--swa_full"]] {
        assert_eq!(started_with(&server(words)), None, "{words:?}");
    }
    assert!(started_with(&server(&["--threads", "8", "--embedding"])).is_some());
    let unknown = LlamaServer { context_size: Attr::Unknown, ..server(&[]) };
    assert_eq!(started_with(&unknown), None);
    let environment = [("CUDA_VISIBLE_DEVICES".to_owned(), Attr::Known(crate::framework::Secret::new("0")))];
    let hidden = LlamaServer { environment: Attr::Known(environment.into()), ..server(&[]) };
    assert_eq!(started_with(&hidden), None);
}
