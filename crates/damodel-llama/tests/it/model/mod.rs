//! Headers of model files, read in pieces from memory.

mod server;

use std::sync::atomic::Ordering;

use damodel_llama::{FileFault, GgufModel, MAX_HEADER, ModelError, ServerOptions, memory, read_model};
use damodel_sandbox::stand_in::gguf::Q8_0;
use futures_util::FutureExt as _;

use crate::support::{
    files::Files,
    gguf::{F16, F32, Gguf, Kind, Q4_K, Size},
};

fn in_memory(file: &Gguf) -> Files {
    Files::default().with("m.gguf", file.header(), file.length())
}

fn model(file: &Gguf) -> GgufModel {
    read_model(&in_memory(file), "m.gguf").now_or_never().unwrap().unwrap()
}

/// The fault of a file.
fn fault(header: Vec<u8>, length: u64) -> FileFault {
    let files = Files::default().with("m.gguf", header, length);
    match read_model(&files, "m.gguf").now_or_never().unwrap() {
        Err(ModelError::Fault { file, fault }) => {
            assert_eq!(file, "m.gguf");
            fault
        }
        other => panic!("{other:?}"),
    }
}

fn fault_of(file: &Gguf) -> FileFault {
    fault(file.header(), file.length())
}

#[test]
fn a_header_says_what_the_model_is() {
    let size = Size { heads_kv: 2, kind: Q4_K, ..Size::dense() };
    let file = size.model().number("general.file_type", 15).text("tokenizer.chat_template", &"x".repeat(5000));
    let found = model(&file);
    assert_eq!(found.architecture, "llama");
    assert_eq!(found.name.as_deref(), Some("made by a test"));
    assert_eq!(found.quantization.as_deref(), Some("Q4_K_M"));
    assert_eq!((found.layers, found.context_length, found.embedding_length), (Some(2), Some(4096), Some(512)));
    assert_eq!((found.head_count, &found.head_count_kv[..]), (Some(8), &[2, 2][..]));
    assert_eq!((found.key_length, found.value_length, found.feed_forward_length), (Some(64), Some(64), Some(1024)));
    assert_eq!((found.vocabulary_size, found.expert_count, found.sliding_window), (Some(512), 0, None));
    assert_eq!((found.tensor_bytes, found.file_bytes), (file.tensor_bytes(), file.length()));
    assert_eq!(found.embedding_bytes, 512 * 512 / 256 * 144);
    assert_eq!(found.output_bytes, found.embedding_bytes + 512 * 4);
    assert_eq!(found.layer_bytes[0], found.layer_bytes[1]);
    let parts = found.embedding_bytes + found.output_bytes + found.layer_bytes.iter().sum::<u64>();
    assert_eq!(parts, found.tensor_bytes);
    assert!(found.has_chat_template && !found.tied_output);
    assert_eq!(found.parameters, 2 * 512 * 512 + 5 * 512 + 2 * (2 * 512 * 512 + 2 * 512 * 128 + 3 * 512 * 1024));
    assert_eq!(found.fingerprint.len(), 64);
}

/// llama.cpp keeps all tensors of its input layer in the host's memory (llama-arch.cpp, LLM_TENSOR_LAYER_INPUT).
#[test]
fn what_the_input_looks_up_is_no_output() {
    let file = Gguf::new("gemma3n")
        .number("gemma3n.block_count", 1)
        .tensor("token_embd.weight", &[32, 8], F16)
        .tensor("per_layer_token_embd.weight", &[32, 64], F16)
        .tensor("position_embd.weight", &[32, 2], F16)
        .tensor("token_types.weight", &[32, 2], F16)
        .tensor("blk.0.ffn_up.weight", &[32, 32], F16)
        .tensor("output_norm.weight", &[32], F32);
    let found = model(&file);
    assert_eq!((found.embedding_bytes, found.output_bytes, found.tensor_bytes), (512, 128, 7040));
    let memory = memory(&found, &ServerOptions::default());
    assert_eq!(memory.weights, Some(2048 + 128 + 512));
}

#[test]
fn what_a_file_does_not_say_follows_as_the_server_has_it() {
    let bare = Gguf::new("llama").number("llama.block_count", 3);
    let found = model(&bare);
    assert_eq!((found.context_length, found.key_length, found.quantization), (None, None, None));
    assert_eq!((&found.head_count_kv[..], found.layer_bytes), (&[][..], vec![0, 0, 0]));
    let derived = bare.number("llama.embedding_length", 640).number("llama.attention.head_count", 8);
    let found = model(&derived);
    assert_eq!((found.key_length, found.value_length), (Some(80), Some(80)));
    assert_eq!(found.head_count_kv, [8, 8, 8]);
    let tensors = Gguf::new("llama").tensor("token_embd.weight", &[32, 4], Q8_0).tensor("x", &[8], F16);
    let found = model(&tensors);
    assert_eq!(found.quantization.as_deref(), Some("Q8_0"), "the type of most bytes");
    assert!(found.tied_output);
}

#[test]
fn a_token_passes_several_experts_at_once() {
    let wide = |size: Size| model(&size.model()).feed_forward_length;
    let experts = Size { experts: 8, experts_used: 4, ..Size::dense() };
    assert_eq!(wide(Size::dense()), Some(1024));
    assert_eq!(wide(experts.clone()), Some(4096));
    let without = experts.model().without("llama.expert_feed_forward_length");
    assert_eq!(model(&without).feed_forward_length, Some(4096), "experts are as wide as the key that there is");
    let leading = Size { feed_forward: 64, ..experts }.model().without("llama.feed_forward_length");
    let leading = leading.number("llama.feed_forward_length", 9000).number("llama.leading_dense_block_count", 1);
    assert_eq!(model(&leading).feed_forward_length, Some(9000));
}

#[test]
fn windows_are_known_by_architecture_or_told_by_the_file() {
    let windows = |file: &Gguf| {
        let found = model(file);
        (found.sliding_window, found.sliding_window_pattern)
    };
    let gemma3 = Gguf::new("gemma3").number("gemma3.attention.sliding_window", 1024);
    assert_eq!(windows(&Gguf::new("gemma2")), (Some(4096), Some(2)));
    assert_eq!(windows(&gemma3), (Some(1024), Some(6)));
    assert_eq!(windows(&Gguf::new("gemma3")), (None, Some(6)));
    const PATTERN: &str = "gemma3.attention.sliding_window_pattern";
    assert_eq!(windows(&gemma3.clone().number(PATTERN, 4)).1, Some(4));
    let regular = gemma3.clone().flags(PATTERN, &[true, true, false, true, true, false, true]);
    assert_eq!(windows(&regular).1, Some(3));
    let irregular = gemma3.flags(PATTERN, &[true, false, false, true]);
    assert_eq!(windows(&irregular).1, None);
    let llama = Gguf::new("llama").number("llama.attention.sliding_window", 4096);
    assert_eq!(windows(&llama), (Some(4096), None));
}

#[test]
fn heads_can_differ_by_layer() {
    let file = Gguf::new("llama")
        .number("llama.block_count", 3)
        .numbers("llama.attention.head_count", &[16, 32, 8])
        .numbers("llama.attention.head_count_kv", &[4, 0, 2]);
    let found = model(&file);
    assert_eq!((found.head_count, &found.head_count_kv[..]), (Some(32), &[4, 0, 2][..]));
    let short = file.without("llama.attention.head_count_kv").numbers("llama.attention.head_count_kv", &[4]);
    let expected = FileFault::KeyLength { key: "llama.attention.head_count_kv".to_owned(), length: 1, layers: 3 };
    assert_eq!(fault_of(&short), expected);
}

#[test]
fn only_the_header_is_read_and_in_few_pieces() {
    let file = Size { width: 8192, feed_forward: 28_672, layers: 80, ..Size::dense() }.model();
    let files = in_memory(&file);
    read_model(&files, "m.gguf").now_or_never().unwrap().unwrap();
    let (asked, header) = (files.asked.load(Ordering::Relaxed), file.header().len() as u64);
    assert!(asked < header * 2 + (64 << 10), "{asked} bytes for a header of {header}");
    // A vocabulary of 10 MiB.
    let tokens: Vec<String> = (0..400_000).map(|token| format!("token number {token:06}")).collect();
    let large = file.texts("tokenizer.ggml.other", &tokens);
    assert!(large.header().len() > 10 << 20);
    assert_eq!(model(&large).layers, Some(80));
}

#[test]
fn the_parts_of_a_split_model_are_one_model() {
    let part = |number: u32, file: Gguf| file.raw("split.no", number_of(number)).raw("split.count", number_of(3));
    let number_of_layers = Gguf::new("llama").number("llama.block_count", 2).number("llama.embedding_length", 32);
    let first = part(0, number_of_layers.tensor("token_embd.weight", &[32, 8], F16));
    let second = part(1, Gguf::default().tensor("blk.0.ffn_up.weight", &[32, 32], F16));
    let third =
        part(2, Gguf::default().tensor("blk.1.ffn_up.weight", &[32, 64], F16).tensor("output.weight", &[8], F32));
    let name = |number: usize| format!("/m/a-{number:05}-of-00003.gguf");
    let files = || {
        [&first, &second, &third]
            .iter()
            .enumerate()
            .fold(Files::default(), |files, (number, file)| files.with(&name(number + 1), file.header(), file.length()))
    };
    let read = |files: &Files, from: &str| read_model(files, from).now_or_never().unwrap();
    let found = read(&files(), &name(1)).unwrap();
    assert_eq!(found.layer_bytes, [2048, 4096]);
    assert_eq!((found.embedding_bytes, found.output_bytes, found.tied_output), (512, 32, false));
    assert_eq!(found.file_bytes, first.length() + second.length() + third.length());

    let said = |files: &Files, from: &str| read(files, from).unwrap_err().to_string();
    let error = said(&files(), &name(2));
    assert!(error.contains("part 2 of 3") && error.contains("…-00001-of-00003.gguf"), "{error}");
    let renamed = Files::default().with("b.gguf", first.header(), first.length());
    assert!(said(&renamed, "b.gguf").contains("part 1 of 3"), "{}", said(&renamed, "b.gguf"));
    let missing = Files::default().with(&name(1), first.header(), first.length());
    assert_eq!(said(&missing, &name(1)), format!("{}: no file {}", name(2), name(2)));
    let swapped = files().with(&name(2), third.header(), third.length());
    assert!(said(&swapped, &name(1)).ends_with("the file is not part 2 of 3 of this model"));
    let many = Gguf::new("llama").number("split.count", 100_000);
    assert!(matches!(fault_of(&many), FileFault::TooMany { count: 100_000, .. }));
}

fn number_of(number: u32) -> Vec<u8> {
    // A 16-bit number, as the splitter writes it.
    [&2_u32.to_le_bytes()[..], &u16::try_from(number).unwrap().to_le_bytes()].concat()
}

#[test]
fn what_is_no_model_is_refused() {
    let file = Size::dense().model();
    assert_eq!(fault(vec![], 0), FileFault::Magic { magic: String::new() });
    assert_eq!(fault(b"vers".to_vec(), 100), FileFault::Magic { magic: "vers".to_owned() });
    assert_eq!(fault(b"GG".to_vec(), 2), FileFault::Magic { magic: String::new() });
    for (version, expected) in [(1, FileFault::Version { number: 1 }), (4, FileFault::Version { number: 4 })] {
        let mut header = file.header();
        header[4] = version;
        assert_eq!(fault(header, file.length()), expected);
    }
    let mut header = file.header();
    header[4..8].copy_from_slice(&3_u32.to_be_bytes());
    assert_eq!(fault(header, file.length()), FileFault::BigEndian);
    assert_eq!(fault_of(&Gguf::default()), FileFault::MissingKey { key: "general.architecture" });
    let twice = Gguf::new("llama").text("general.architecture", "qwen2");
    assert_eq!(fault_of(&twice), FileFault::RepeatedKey { key: "general.architecture".to_owned() });
    let word = Gguf::new("llama").text("llama.block_count", "many");
    assert_eq!(fault_of(&word), FileFault::InvalidKey { key: "llama.block_count".to_owned() });
}

#[test]
fn a_file_that_is_cut_is_refused_wherever_it_is_cut() {
    let file = Size::dense().model();
    let header = file.header();
    for length in (4..header.len()).step_by(97) {
        assert_eq!(fault(header[..length].to_vec(), length as u64), FileFault::Truncated, "{length}");
    }
    let cut = fault(header, file.length() - 64);
    assert!(matches!(cut, FileFault::TruncatedData { .. }), "{cut:?}");
}

#[test]
fn lengths_and_counts_beyond_all_measure_are_refused_before_anything_is_kept() {
    let all = u64::MAX.to_le_bytes();
    let start = |tensors: u64, keys: u64| {
        [b"GGUF".to_vec(), 3_u32.to_le_bytes().to_vec(), tensors.to_le_bytes().to_vec(), keys.to_le_bytes().to_vec()]
            .concat()
    };
    let keyed = |value: Vec<u8>| [start(0, 1), 1_u64.to_le_bytes().to_vec(), b"a".to_vec(), value].concat();
    let endless = 1 << 40;
    assert_eq!(fault(start(0, 1 << 32), endless), FileFault::TooLarge);
    assert_eq!(fault(start(0, 1 << 32), 1 << 20), FileFault::Truncated);
    assert!(matches!(fault(start(u64::MAX, 0), endless), FileFault::TooMany { what: "tensors", .. }));
    assert!(matches!(fault([start(0, 1), all.to_vec()].concat(), endless), FileFault::TooLong { what: "key", .. }));
    let array = |kind: u32, count: [u8; 8]| keyed([&9_u32.to_le_bytes()[..], &kind.to_le_bytes(), &count].concat());
    assert_eq!(fault(keyed([&8_u32.to_le_bytes()[..], &all].concat()), endless), FileFault::Truncated);
    assert_eq!(
        fault(keyed([&8_u32.to_le_bytes()[..], &(1_u64 << 39).to_le_bytes()].concat()), endless),
        FileFault::TooLarge
    );
    for kind in [0, 4, 10] {
        assert_eq!(fault(array(kind, all), endless), FileFault::Truncated, "{kind}");
    }
    assert_eq!(fault(array(0, (1_u64 << 39).to_le_bytes()), endless), FileFault::TooLarge);
    assert!(matches!(fault(array(9, all), endless), FileFault::NestedArray { .. }));
    assert!(matches!(fault(array(77, all), endless), FileFault::UnknownType { number: 77, .. }));
    assert!(matches!(fault(keyed(77_u32.to_le_bytes().to_vec()), endless), FileFault::UnknownType { number: 77, .. }));
    let deep = Gguf::new("llama").number("llama.block_count", u32::MAX);
    assert!(matches!(fault_of(&deep), FileFault::TooMany { what: "layers", .. }));
    for alignment in [0, 3, 1 << 31] {
        let file = Gguf::new("llama").number("general.alignment", alignment);
        assert_eq!(fault_of(&file), FileFault::InvalidKey { key: "general.alignment".to_owned() });
    }
}

#[test]
fn a_header_of_many_texts_ends_at_the_limit() {
    let texts = |count: u64| {
        let array = [&9_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &count.to_le_bytes()].concat();
        Gguf::new("llama").raw("a", array).header()
    };
    assert_eq!(fault(texts(u64::MAX), 1 << 40), FileFault::Truncated);
    assert_eq!(fault(texts(1 << 30), 1 << 40), FileFault::TooLarge);
    // Two files that are within the limit, but not together.
    let long = [&8_u32.to_le_bytes()[..], &(MAX_HEADER / 8 * 5).to_le_bytes()].concat();
    let part = |number| {
        Gguf::new("llama")
            .raw("split.no", number_of(number))
            .raw("split.count", number_of(2))
            .raw("a", long.clone())
            .header()
    };
    let files = Files::default().with("m-00001-of-00002.gguf", part(0), 1 << 40).with(
        "m-00002-of-00002.gguf",
        part(1),
        1 << 40,
    );
    let error = read_model(&files, "m-00001-of-00002.gguf").now_or_never().unwrap().unwrap_err();
    assert!(matches!(error, ModelError::Fault { fault: FileFault::TooLarge, .. }), "{error:?}");
    assert!(files.asked.load(Ordering::Relaxed) <= MAX_HEADER);
}

#[test]
fn tensors_that_cannot_be_are_refused() {
    let one = |shape: &[u64], kind| fault_of_entry(&Gguf::new("llama").tensor("t", shape, kind));
    let invalid = FileFault::InvalidTensor { name: "t".to_owned() };
    assert_eq!(one(&[33], Q8_0), invalid, "a row that is no whole number of blocks");
    assert_eq!(one(&[2, 2, 2, 2, 2], F32), invalid, "five dimensions");
    let long = Gguf::new("llama").tensor(&"t".repeat(65), &[1], F32);
    assert!(matches!(fault_of_entry(&long), FileFault::TooLong { what: "tensor", length: 65 }));
    let layer = Gguf::new("llama").tensor("blk.1000000.x", &[1], F32);
    assert!(matches!(fault_of_entry(&layer), FileFault::InvalidTensor { .. }));
}

/// llama.cpp gets new types more often than this table does.
#[test]
fn a_tensor_of_a_new_type_is_as_large_as_the_offsets_say() {
    let new = Kind { number: 41, block: 128, bytes: 32 };
    let file = Gguf::new("llama")
        .number("llama.block_count", 2)
        .tensor("blk.1.ffn_up.weight", &[256, 4], new)
        .tensor("blk.0.ffn_up.weight", &[256, 2], F16)
        .tensor("output.weight", &[256, 8], new);
    let found = model(&file);
    assert_eq!((found.layer_bytes, found.output_bytes), (vec![1024, 256], 512));
    // By bytes, most of it is of a known type.
    assert_eq!((found.parameters, found.quantization.as_deref()), (256 * 14, Some("F16")));
    assert_eq!(
        fault(file.header(), file.length() - 512),
        FileFault::TruncatedData { name: "output.weight".to_owned() }
    );
}

#[test]
fn many_keys_are_read_and_lists_have_one_value_for_each_layer() {
    let many = (0..5000)
        .fold(Gguf::new("llama").number("llama.block_count", 2), |file, key| file.number(&format!("a.key.{key}"), key));
    assert_eq!(model(&many).layers, Some(2));
    for key in ["attention.head_count", "attention.head_count_kv", "feed_forward_length"] {
        let key = format!("llama.{key}");
        assert!(model(&many.clone().numbers(&key, &[8, 4])).layers.is_some(), "{key}");
        for numbers in [&[8][..], &[8, 8, 8]] {
            let fault = fault_of(&many.clone().numbers(&key, numbers));
            assert_eq!(fault, FileFault::KeyLength { key: key.clone(), length: numbers.len() as u64, layers: 2 });
        }
    }
}

/// The same in a file that is long enough for any tensor.
fn fault_of_entry(file: &Gguf) -> FileFault {
    fault(file.header(), 1 << 50)
}

#[test]
fn a_tensor_larger_than_any_file_is_refused() {
    // The product of the dimensions is 2^64.
    let mut header = Gguf::new("llama").tensor("t", &[32, 7], F32).header();
    let at = header.windows(8).position(|bytes| bytes == 7_u64.to_le_bytes()).unwrap();
    header[at..at + 8].copy_from_slice(&(1_u64 << 59).to_le_bytes());
    assert_eq!(fault(header.clone(), 1 << 50), FileFault::InvalidTensor { name: "t".to_owned() });
    header[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    assert_eq!(fault(header, 1 << 40), FileFault::TruncatedData { name: "t".to_owned() });
}

#[test]
fn the_fingerprint_is_of_the_header_and_the_size() {
    let file = Size::dense().model();
    let found = |header: Vec<u8>, length| {
        let files = Files::default().with("m.gguf", header, length);
        read_model(&files, "m.gguf").now_or_never().unwrap().unwrap().fingerprint
    };
    let own = found(file.header(), file.length());
    assert_eq!(own, found(file.header(), file.length()));
    assert_ne!(own, found(file.header(), file.length() + 32));
    let renamed = file.without("general.name").text("general.name", "made by a pest");
    assert_ne!(own, found(renamed.header(), renamed.length()));
}
