//! The attributes of a model.

use crate::framework::{Type, schema::Attribute};

/// The attributes, all computed.
pub(super) fn attributes() -> Vec<Attribute> {
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    let number = |name: &'static str, description: &str| Attribute::computed(name, Type::Number, description);
    let numbers =
        |name: &'static str, description: &str| Attribute::computed(name, Type::list(Type::Number), description);
    let flag = |name: &'static str, description: &str| Attribute::computed(name, Type::Bool, description);
    vec![
        text("architecture", "The architecture, such as `llama` or `qwen3moe`."),
        text("name", "The model's name (`general.name`)."),
        number("parameters", "The number of parameters of all tensors."),
        text("quantization", "The quantization, such as `Q4_K_M`."),
        number("layers", "The number of layers that a token passes."),
        number("context_length", "The context that the model was trained for, in tokens."),
        number("embedding_length", "The width of the embeddings."),
        number("head_count", "The attention heads of a layer; the most of any layer."),
        numbers("head_count_kv", "The key and value heads of each layer."),
        number("key_length", "The width of a key in a head."),
        number("value_length", "The width of a value in a head."),
        number("expert_count", "The experts of a layer; 0 for a model without experts."),
        number("sliding_window", "The size of the sliding window in tokens; null for a model without one."),
        number(
            "sliding_window_pattern",
            "The interval of the layers that have the whole context; the layers between them have the window.",
        ),
        number("vocabulary_size", "The tokens of the vocabulary."),
        number(
            "feed_forward_length",
            "The width of the feed-forward part of the largest layer; with experts, the sum of those that are used.",
        ),
        flag("tied_output", "Whether the token embeddings are also the output."),
        numbers("layer_bytes", "The bytes of the tensors of each layer."),
        number("embedding_bytes", "The bytes of the token embeddings."),
        number("output_bytes", "The bytes of the tensors after the last layer."),
        number("tensor_bytes", "The bytes of all tensors."),
        number("file_bytes", "The bytes of the file, or of all files of a split model."),
        flag("has_chat_template", "Whether the file has a chat template."),
        text("fingerprint", "A hash (SHA-256) of the headers and the sizes of the files."),
    ]
}
