//! The attributes of a model.

use crate::framework::{Attr, Type, schema::Attribute};

/// A struct with the content of a header, under the attribute names of the data source, and additional fields.
macro_rules! with_model {
    ($(#[$meta:meta])* $name:ident { $($own:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub(in crate::provider) struct $name {
            $($own: Attr<$ty>,)*
            architecture: Attr<String>,
            name: Attr<String>,
            parameters: Attr<i64>,
            quantization: Attr<String>,
            layers: Attr<i64>,
            context_length: Attr<i64>,
            embedding_length: Attr<i64>,
            head_count: Attr<i64>,
            head_count_kv: Attr<Vec<i64>>,
            key_length: Attr<i64>,
            value_length: Attr<i64>,
            expert_count: Attr<i64>,
            sliding_window: Attr<i64>,
            sliding_window_pattern: Attr<i64>,
            vocabulary_size: Attr<i64>,
            feed_forward_length: Attr<i64>,
            tied_output: Attr<bool>,
            layer_bytes: Attr<Vec<i64>>,
            embedding_bytes: Attr<i64>,
            output_bytes: Attr<i64>,
            tensor_bytes: Attr<i64>,
            file_bytes: Attr<i64>,
            has_chat_template: Attr<bool>,
            fingerprint: Attr<String>,
        }

        impl $name {
            /// Sets the attributes from a header.
            fn take(&mut self, model: GgufModel) {
                use $crate::provider::model::record::{number, numbers};

                self.architecture = Attr::Known(model.architecture);
                self.name = model.name.into();
                self.parameters = number(Some(model.parameters));
                self.quantization = model.quantization.into();
                self.layers = number(model.layers);
                self.context_length = number(model.context_length);
                self.embedding_length = number(model.embedding_length);
                self.head_count = number(model.head_count);
                self.head_count_kv = numbers(&model.head_count_kv);
                self.key_length = number(model.key_length);
                self.value_length = number(model.value_length);
                self.expert_count = number(Some(model.expert_count));
                self.sliding_window = number(model.sliding_window);
                self.sliding_window_pattern = number(model.sliding_window_pattern);
                self.vocabulary_size = number(model.vocabulary_size);
                self.feed_forward_length = number(model.feed_forward_length);
                self.tied_output = Attr::Known(model.tied_output);
                self.layer_bytes = numbers(&model.layer_bytes);
                self.embedding_bytes = number(Some(model.embedding_bytes));
                self.output_bytes = number(Some(model.output_bytes));
                self.tensor_bytes = number(Some(model.tensor_bytes));
                self.file_bytes = number(Some(model.file_bytes));
                self.has_chat_template = Attr::Known(model.has_chat_template);
                self.fingerprint = Attr::Known(model.fingerprint);
            }
        }
    };
}

pub(super) use with_model;

/// A number; null if it is missing or too large.
pub(super) fn number(number: Option<u64>) -> Attr<i64> {
    number.and_then(|number| i64::try_from(number).ok()).into()
}

pub(super) fn numbers(numbers: &[u64]) -> Attr<Vec<i64>> {
    numbers.iter().map(|number| i64::try_from(*number).ok()).collect::<Option<Vec<i64>>>().into()
}

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
