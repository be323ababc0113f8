//! The function `model_memory`.

use serde::{Deserialize, Serialize};

use super::record::attributes;
use crate::{
    framework::{Attr, Function, FunctionError, Parameter, Signature, Type, Value},
    llama::{GgufModel, Memory, ServerOptions, memory},
};

/// `model_memory(model, options)`.
#[derive(Debug)]
pub(in crate::provider) struct ModelMemory;

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
    "tensor_bytes",
];

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
    type Arguments = Value;
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
            returns: Type::object(parts.into_iter().chain([("notes".to_owned(), Type::list(Type::String))])),
        }
    }

    fn call(&self, arguments: Value) -> Result<MemoryParts, FunctionError> {
        let options = if let Value::Map(options) = arguments.attribute("options") { Some(options) } else { None };
        let set = options.into_iter().flatten().filter_map(|(name, value)| Some((&**name, value.as_str()?)));
        let options = ServerOptions::parse(set).map_err(|error| FunctionError::on("options", error.to_string()))?;
        let model = model_of(arguments.attribute("model")).map_err(|text| FunctionError::on("model", text))?;
        Ok(MemoryParts::of(memory(&model, &options)))
    }
}

/// The model that the data source describes.
///
/// # Errors
/// An attribute value that is not from the data source.
fn model_of(described: &Value) -> Result<GgufModel, String> {
    let read = |name: &str, value: &Value| {
        let Value::Number(number) = value else { return Ok(None) };
        let number = number.to_i64().and_then(|number| u64::try_from(number).ok());
        number.map(Some).ok_or_else(|| format!("{name} must be a whole number that is not negative"))
    };
    let one = |name: &str| read(name, described.attribute(name));
    let each = |name: &str| {
        let elements = if let Value::List(elements) = described.attribute(name) { elements.as_slice() } else { &[] };
        elements.iter().map(|value| read(name, value).map(Option::unwrap_or_default)).collect::<Result<Vec<u64>, _>>()
    };
    Ok(GgufModel {
        architecture: described.attribute("architecture").as_str().unwrap_or_default().to_owned(),
        layers: one("layers")?,
        context_length: one("context_length")?,
        embedding_length: one("embedding_length")?,
        head_count: one("head_count")?,
        head_count_kv: each("head_count_kv")?,
        key_length: one("key_length")?,
        value_length: one("value_length")?,
        expert_count: one("expert_count")?.unwrap_or_default(),
        sliding_window: one("sliding_window")?,
        sliding_window_pattern: one("sliding_window_pattern")?,
        feed_forward_length: one("feed_forward_length")?,
        tied_output: *described.attribute("tied_output") == Value::Bool(true),
        layer_bytes: each("layer_bytes")?,
        embedding_bytes: one("embedding_bytes")?.unwrap_or_default(),
        output_bytes: one("output_bytes")?.unwrap_or_default(),
        tensor_bytes: one("tensor_bytes")?.unwrap_or_default(),
        ..GgufModel::default()
    })
}

impl MemoryParts {
    fn of(memory: Memory) -> Self {
        let bytes = |part: Option<u64>| part.and_then(|part| i64::try_from(part).ok()).into();
        Self {
            weights: bytes(memory.weights),
            cache: bytes(memory.cache),
            compute: bytes(memory.compute),
            overhead: bytes(memory.overhead),
            total: bytes(memory.total),
            host: bytes(memory.host),
            notes: memory.notes,
        }
    }
}
