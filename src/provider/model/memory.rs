//! The function `model_memory`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::{attributes, number};
use crate::{
    framework::{Attr, Function, FunctionError, Parameter, Signature, Type},
    model::{GgufModel, Memory, ServerOptions, memory},
};

/// `model_memory(model, options)`.
#[derive(Debug)]
pub(in crate::provider) struct ModelMemory;

#[derive(Debug, Deserialize)]
pub(in crate::provider) struct Arguments {
    model: Shape,
    options: BTreeMap<String, Attr<String>>,
}

/// The attributes of the data source that the memory depends on.
const NEEDED: &[&str] = &[
    "architecture",
    "layers",
    "context_length",
    "embedding_length",
    "head_count",
    "head_count_kv",
    "key_length",
    "value_length",
    "expert_count",
    "sliding_window",
    "sliding_window_pattern",
    "feed_forward_length",
    "tied_output",
    "layer_bytes",
    "embedding_bytes",
    "output_bytes",
];

/// The values of these attributes.
#[derive(Debug, Deserialize)]
struct Shape {
    architecture: Attr<String>,
    layers: Attr<i64>,
    context_length: Attr<i64>,
    embedding_length: Attr<i64>,
    head_count: Attr<i64>,
    head_count_kv: Attr<Vec<Attr<i64>>>,
    key_length: Attr<i64>,
    value_length: Attr<i64>,
    expert_count: Attr<i64>,
    sliding_window: Attr<i64>,
    sliding_window_pattern: Attr<i64>,
    feed_forward_length: Attr<i64>,
    tied_output: Attr<bool>,
    layer_bytes: Attr<Vec<Attr<i64>>>,
    embedding_bytes: Attr<i64>,
    output_bytes: Attr<i64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct MemoryParts {
    weights: Attr<i64>,
    cache: Attr<i64>,
    compute: Attr<i64>,
    overhead: Attr<i64>,
    total: Attr<i64>,
    host: Attr<i64>,
    notes: Vec<String>,
}

impl Function for ModelMemory {
    type Arguments = Arguments;
    type Output = MemoryParts;

    fn name(&self) -> &'static str {
        "model_memory"
    }

    fn signature(&self) -> Signature {
        let needed = attributes().into_iter().filter(|attribute| NEEDED.contains(&&*attribute.name));
        let model = Type::object(needed.map(|attribute| (attribute.name, attribute.ty.ty())));
        let parts = ["weights", "cache", "compute", "overhead", "total", "host"];
        let parts = parts.map(|part| (part.to_owned(), Type::Number));
        Signature {
            summary: "GPU memory that a server needs for a model".to_owned(),
            description: "Computes, from the header of a model, how many bytes a llama-server needs on the GPU: \
                          `weights`, `cache` (keys and values), `compute` (buffers), `overhead` (an allowance for the \
                          driver) and `total`; and in `host` the weights, keys and values that stay in the host's \
                          memory. An unknown part, for example of a new architecture or one with a recurrent state, is \
                          null, and so is `total`; `notes` explain how each part was computed or why it is unknown. \
                          Weights and cache are exact, `compute` is an estimate."
                .to_owned(),
            parameters: vec![
                Parameter::new("model", model, "The data source `damodel_model`."),
                Parameter::new(
                    "options",
                    Type::map(Type::String),
                    "How the server is started: `context_size` (0 is the trained context), `parallel` (-1 is the \
                     server's default), `cache_type_k`, `cache_type_v`, `gpu_layers`, `flash_attention`, `batch`, \
                     `ubatch`, `unified`. Options that are not set have the defaults of `damodel_llama_server`; \
                     `batch` is 2048, `ubatch` 512 and `unified` false.",
                ),
            ],
            variadic: None,
            returns: Type::object(parts.into_iter().chain([("notes".to_owned(), Type::list(Type::String))])),
        }
    }

    fn call(&self, arguments: Arguments) -> Result<MemoryParts, FunctionError> {
        let set = arguments.options.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let options = ServerOptions::parse(set).map_err(|error| FunctionError::on("options", error.to_string()))?;
        let model = arguments.model.into_model().map_err(|text| FunctionError::on("model", text))?;
        Ok(MemoryParts::of(memory(&model, &options)))
    }
}

impl Shape {
    /// The model.
    ///
    /// # Errors
    /// An attribute value that is not from the data source.
    fn into_model(self) -> Result<GgufModel, String> {
        let one = |name: &str, value: &Attr<i64>| match value.known() {
            None => Ok(None),
            Some(number) => u64::try_from(*number).map(Some).map_err(|_| format!("{name} must not be negative")),
        };
        let each = |name: &str, values: &Attr<Vec<Attr<i64>>>| {
            let numbers =
                values.known().into_iter().flatten().map(|value| one(name, value).map(Option::unwrap_or_default));
            numbers.collect::<Result<Vec<u64>, String>>()
        };
        Ok(GgufModel {
            architecture: self.architecture.into_known().unwrap_or_default(),
            layers: one("layers", &self.layers)?,
            context_length: one("context_length", &self.context_length)?,
            embedding_length: one("embedding_length", &self.embedding_length)?,
            head_count: one("head_count", &self.head_count)?,
            head_count_kv: each("head_count_kv", &self.head_count_kv)?,
            key_length: one("key_length", &self.key_length)?,
            value_length: one("value_length", &self.value_length)?,
            expert_count: one("expert_count", &self.expert_count)?.unwrap_or_default(),
            sliding_window: one("sliding_window", &self.sliding_window)?,
            sliding_window_pattern: one("sliding_window_pattern", &self.sliding_window_pattern)?,
            feed_forward_length: one("feed_forward_length", &self.feed_forward_length)?,
            tied_output: self.tied_output.into_known().unwrap_or_default(),
            layer_bytes: each("layer_bytes", &self.layer_bytes)?,
            embedding_bytes: one("embedding_bytes", &self.embedding_bytes)?.unwrap_or_default(),
            output_bytes: one("output_bytes", &self.output_bytes)?.unwrap_or_default(),
            ..GgufModel::default()
        })
    }
}

impl MemoryParts {
    fn of(memory: Memory) -> Self {
        Self {
            weights: number(memory.weights),
            cache: number(memory.cache),
            compute: number(memory.compute),
            overhead: number(memory.overhead),
            total: number(memory.total),
            host: number(memory.host),
            notes: memory.notes,
        }
    }
}
