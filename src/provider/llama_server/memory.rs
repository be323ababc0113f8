//! The check of a plan that the model fits in GPU memory. Without a login or a model it is skipped.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{
    log_in::pin_argument,
    model::{LlamaServer, Records as _},
    model_source::{ANY_HOME, Download},
};
use crate::{
    api::{InstanceUid, RemoteError, RemoteFile},
    framework::{Attr, Diagnostic, Diagnostics, Path, Private, to_value},
    llama::{
        self, CacheType, DRIVER, FailureKind, GgufModel, InvalidOption, Memory, MemoryEffect, ModelBytes,
        ServerOptions, absolute, is_processor, largest_context, memory, refused_options,
    },
    provider::{
        PlanContext, ProviderClient,
        client::planning_limits,
        login::{Access, InstanceFiles, Login, NoLogin},
        model_files::{FileError, RemoteFiles},
        words::{capitalized, nearest_files},
    },
    ssh::{self, Session},
};

/// The longest that a plan tries to log in.
const LOGIN: Duration = Duration::from_secs(10);
/// The longest that the whole check takes.
const CHECK: Duration = Duration::from_secs(40);
/// The command that prints the memory of each GPU in MiB, after [`DRIVER`].
const QUERY: &str = "find_driver; with_driver nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits\n";
/// Prints the home, and the models in the folder of a file and in the default one.
const MODELS: &str = r#"folder=${1%/*}
case $folder in "~" | "~/"*) folder=$HOME${folder#"~"};; esac
printf '%s\n' "$HOME"
timeout 10 find -L "$folder" "$HOME/public-storage/model" -maxdepth 3 -name '*.gguf' 2>/dev/null |
  sort -u | head -n 10000"#;
/// The part of the GPUs' memory, in percent, above which a plan warns.
const WARN: u64 = 95;
/// The end of each error.
const TURNED_OFF: &str = "preflight = false in the provider turns this check off.";

/// Compares the model of a planned server with the memory of the instance's GPUs.
pub(super) async fn check(
    config: &LlamaServer,
    planned: &LlamaServer,
    known_host: Option<String>,
    private: &Private,
    context: &PlanContext<'_>,
) -> Diagnostics {
    let mut said = Diagnostics::new();
    let Some(client) = context.client.filter(|client| client.preflight) else { return said };
    let started = match started_with(planned) {
        Ok(Some(started)) => started,
        Ok(None) => return said,
        Err(refused) => return (*refused).into(),
    };
    let login = Login { known_host, ..config.login_with(config, private) };
    let deadline = context.deadline.min(Instant::now() + CHECK);
    let home = private.home().unwrap_or_else(|| ANY_HOME.to_owned());
    let looking = look(config, planned, &login, &home, client, context, deadline, &mut said);
    let looked = timeout_at(deadline, Box::pin(looking)).await;
    match looked.unwrap_or_else(|_| Err(Unchecked::Failed("the check timed out".to_owned()))) {
        Ok((model, cards, beside)) => said.extend(judge(&planned.model, &model, &beside, &started, &cards)),
        Err(Unchecked::Failed(reason)) => said.extend(not_made(planned, &reason)),
        Err(Unchecked::Later(reason)) => tracing::info!(reason, "the model's memory is not checked"),
    }
    said
}

/// The warning about a check that was begun and could not be made. A server that uses no GPU has nothing to fit.
fn not_made(planned: &LlamaServer, reason: &str) -> Diagnostics {
    let text = format!("{}. Whether the model fits shows when the server starts.", capitalized(reason));
    let warning = Diagnostic::warning("Memory of the server is not checked", text).at(Path::to("model"));
    planned.gpu_layers.known().is_some_and(|layers| *layers > 0).then_some(warning).into_iter().collect()
}

/// Why the memory is not checked.
enum Unchecked {
    /// The check was begun.
    Failed(String),
    /// It cannot begin before the apply, or another diagnostic says why.
    Later(String),
}

fn later(reason: &str) -> Unchecked {
    Unchecked::Later(reason.to_owned())
}

/// The options that memory depends on.
#[derive(Debug, PartialEq)]
struct Started {
    options: ServerOptions,
    /// Where each is set; the last place counts.
    places: Vec<(&'static str, Path)>,
}

/// The options of the server; `None` if one is unknown, or if memory is moved in a way that is not computed.
///
/// # Errors
/// An option with which the server exits.
fn started_with(server: &LlamaServer) -> Result<Option<Started>, Box<Diagnostic>> {
    let arguments = server.plain_options().map(|(name, value)| Some((name, value?, Path::to(name))));
    let Some(mut set) = arguments.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let words: Option<Vec<&str>> = match &server.extra_args {
        Attr::Null => Some(Vec::new()),
        Attr::Known(words) => words.iter().map(Attr::as_str).collect(),
        Attr::Unknown => None,
    };
    let Some(words) = words else { return Ok(None) };
    let mut words = words.into_iter().enumerate();
    while let Some((_, word)) = words.next() {
        let Some(option) = llama::find_option(word) else { continue };
        let name = match (option.memory, option.argument()) {
            (MemoryEffect::Batch, _) => "batch",
            (MemoryEffect::MicroBatch, _) => "ubatch",
            (MemoryEffect::Unified, _) => {
                set.push(("unified", "true".to_owned(), Path::to("extra_args")));
                continue;
            }
            (MemoryEffect::Uncomputed, Some(name @ ("cache_type_k" | "cache_type_v" | "flash_attention"))) => name,
            (MemoryEffect::Uncomputed, _) => return Ok(None),
            (MemoryEffect::Files | MemoryEffect::None, _) => continue,
        };
        let Some((index, value)) = words.next() else { return Ok(None) };
        let is_uncomputed = match name {
            // The server takes 0 as the size of the batch.
            "ubatch" => value == "0",
            // Some servers have further types and words.
            "cache_type_k" | "cache_type_v" => CacheType::parse(value).is_none(),
            "flash_attention" => !matches!(value, "on" | "off" | "auto"),
            _ => false,
        };
        if is_uncomputed {
            return Ok(None);
        }
        set.push((name, value.to_owned(), Path::to("extra_args").index(index)));
    }
    let options = ServerOptions::parse(set.iter().map(|(name, value, _)| (*name, &**value)));
    let places: Vec<_> = set.into_iter().map(|(name, _, path)| (name, path)).collect();
    match options {
        Ok(options) => Ok(Some(Started { options, places })),
        Err(refused) => Err(Box::new(exits(&refused, &places))),
    }
}

/// The error about an option with which the server exits.
fn exits(refused: &InvalidOption, places: &[(&'static str, Path)]) -> Diagnostic {
    let place = places.iter().rfind(|(name, _)| refused.option() == Some(name)).map(|(_, path)| path.clone());
    let place = place.unwrap_or_default();
    let advice = match refused {
        InvalidOption::Width { .. } => format!(" Set {place} to \"f16\"."),
        _ => String::new(),
    };
    Diagnostic::error(
        "The server would exit at its start",
        format!("The server does not accept an option: {refused}.{advice} {TURNED_OFF}"),
    )
    .at(place)
}

/// The files beside the model.
#[derive(Debug, Default)]
struct Beside {
    /// The weights of those that are counted.
    bytes: u64,
    /// Their names.
    counted: Vec<String>,
    /// The names of the others.
    others: Vec<String>,
}

impl Beside {
    /// The sentence about them.
    fn note(&self) -> String {
        let names = |names: &[String], how: &str| (!names.is_empty()).then(|| format!("{how}: {}", names.join(", ")));
        let parts = [names(&self.counted, "by their weights alone"), names(&self.others, "not")];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!(" Files beside the model are counted {}.", parts.join("; "))
        }
    }
}

/// Reads the headers of the model and of files beside it, and the memory of the GPUs, which is empty if it is unknown.
/// What is to be said, whatever follows the login, is added to `said`.
#[expect(clippy::too_many_arguments, reason = "they are all that a plan knows")]
async fn look(
    config: &LlamaServer,
    planned: &LlamaServer,
    login: &Login,
    home: &str,
    client: &ProviderClient,
    context: &PlanContext<'_>,
    deadline: Instant,
    said: &mut Diagnostics,
) -> Result<(GgufModel, Vec<u64>, Beside), Unchecked> {
    let path = planned.model.as_str().ok_or_else(|| later("the path of the model is unknown until the apply"))?;
    let is_ssh_known = to_value(&planned.ssh).is_ok_and(|ssh| ssh.is_wholly_known());
    if planned.instance_id.is_unknown() || !is_ssh_known {
        return Err(later("the instance is unknown until the apply"));
    }
    let access = match planned.instance_id.as_str() {
        Some(id) => {
            let detail = client.api.instances().detail(&InstanceUid::new(id), &planning_limits(context)).await;
            let access = Access::of(&detail.map_err(|error| later(&error.to_string()))?.instance);
            Some(access).filter(Access::runs).ok_or_else(|| later("the instance is not running"))?.into()
        }
        None => None,
    };
    let target = login.target(access.as_ref(), client).map_err(|none| match none {
        NoLogin::Refused(refused) => Unchecked::Failed(refused.detail.trim_end_matches('.').to_owned()),
        NoLogin::NoCredentials | NoLogin::Ssh(_) => later("no SSH credentials yet"),
    })?;
    let limits = ssh::SessionLimits { denied: Duration::ZERO, ..ssh::SessionLimits::default() };
    let patience = Instant::now() + LOGIN.min(login.timeout());
    let session = ssh::connect(&target, &limits, patience, &context.stopping).await;
    said.extend(login.unpinned(&target, session.as_ref().ok(), pin_argument(), client));
    let session = session.map_err(|error| Unchecked::Failed(error.to_string()))?;
    let sources = planned.sources();
    let remote = |download: &Download| remote(config, planned, download, client, deadline);
    let mut beside = Beside::default();
    for file in files_beside(planned, &sources, home) {
        let at_its_source = file.download.and_then(|download| remote(download).ok());
        let weights = weights(&file, at_its_source, &session).await;
        let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
        match weights {
            Ok(Some(bytes)) => {
                beside.bytes = beside.bytes.saturating_add(bytes);
                beside.counted.push(name);
            }
            Ok(None) => beside.others.push(name),
            Err(error) => {
                tracing::info!(%error, "a file beside the model is not measured");
                said.extend(file.download.and_then(|download| refusal(download, &error)).into_iter().collect());
                beside.others.push(name);
            }
        }
    }
    let model = match (llama::read_model(&InstanceFiles(&session), path).await, sources.first()) {
        (Err(llama::ModelError::Source { error: FileError::Missing, .. }), Some(download)) if download.is_model() => {
            remote(download)?.read().await.map_err(|error| match refusal(download, &error) {
                Some(warning) => {
                    said.push(warning);
                    later(&error.to_string())
                }
                None => Unchecked::Failed(error.to_string()),
            })?
        }
        (Err(llama::ModelError::Source { error: FileError::Missing, file }), _) => {
            if planned.model_source.is_null() {
                said.push(not_there(&file, &models(&session, &file).await));
            }
            return Err(later("the model is not in the instance"));
        }
        (model, _) => model.map_err(|error| Unchecked::Failed(error.to_string()))?,
    };
    // A variable such as CUDA_VISIBLE_DEVICES may hide cards, and the values are secret.
    let may_hide = !planned.environment.is_null() && planned.environment.known().is_none_or(|all| !all.is_empty());
    if may_hide || is_processor(access.as_ref().and_then(|access| access.gpu_name.as_deref())) {
        return Ok((model, Vec::new(), beside));
    }
    let cards = cards(&session).await.unwrap_or_else(|reason| {
        said.extend(not_made(planned, &reason));
        Vec::new()
    });
    Ok((model, cards, beside))
}

/// The warning about a file that is not there: no error, because the same apply may still bring it.
fn not_there(file: &str, models: &str) -> Diagnostic {
    // The home, and the files.
    let (home, models) = models.split_once('\n').unwrap_or_default();
    let nearest = nearest_files(file, models.lines());
    let nearest = nearest.iter().map(|path| match path.strip_prefix(home) {
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => (*path).to_owned(),
    });
    let nearest: Vec<String> = nearest.collect();
    let nearest =
        if nearest.is_empty() { String::new() } else { format!(" The nearest files are: {}.", nearest.join(", ")) };
    let text = format!(
        "There is no file {file}.{nearest} Unless this apply brings it before the server starts, for example with a \
         provisioner, the apply will fail. Set model to an existing file, or set model_source."
    );
    Diagnostic::warning("The model is not in the instance", text).at(Path::to("model"))
}

/// The home, and the models in the folder of this one and where the service has models, one a line.
async fn models(session: &Session, file: &str) -> String {
    let output = session.script(MODELS, &[file]).await;
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// A file beside the model: one of `additional_files`, or one whose weights are put on the GPU.
struct FileBeside<'a> {
    path: String,
    download: Option<&'a Download>,
    is_counted: bool,
}

/// The files that options of the server put on the GPU, and the other downloads.
fn files_beside<'a>(planned: &LlamaServer, sources: &'a [Download], home: &str) -> Vec<FileBeside<'a>> {
    let words: Vec<_> = planned.extra_args.elements().map(|(_, word)| word.clone()).collect();
    let on_card = |name: &str| llama::find_option(name).is_some_and(|option| option.memory == MemoryEffect::Files);
    let named = llama::named_files(&words).into_iter().filter(|(name, _)| on_card(name));
    let workspace = planned.workspace.as_str().unwrap_or(llama::DEFAULT_WORKSPACE);
    let mut files: Vec<_> = named
        .map(|(_, file)| {
            let path = llama::in_workspace(workspace, file);
            let download = sources.iter().find(|download| download.paths(home).contains(&absolute(&path, home)));
            FileBeside { is_counted: path.ends_with(".gguf"), path, download }
        })
        .collect();
    let others = sources.iter().filter(|download| !download.is_model());
    for (path, download) in others.filter_map(|download| Some((download.path.as_str()?.to_owned(), download))) {
        if !files.iter().any(|file| file.download.is_some_and(|named| named.at == download.at)) {
            files.push(FileBeside { path, download: Some(download), is_counted: false });
        }
    }
    files
}

/// The weights of a file, in the instance or, if it is missing there, at its address; `None` if they do not count.
async fn weights(
    file: &FileBeside<'_>,
    at_its_source: Option<RemoteFiles>,
    session: &Session,
) -> Result<Option<u64>, llama::ModelError<FileError>> {
    async fn read<S: ModelBytes>(
        source: &S,
        file: &str,
        is_counted: bool,
    ) -> Result<Option<u64>, llama::ModelError<S::Error>> {
        if is_counted {
            return llama::read_model(source, file).await.map(|model| Some(model.tensor_bytes));
        }
        let size = source.size(file).await;
        size.map(|_| None).map_err(|error| llama::ModelError::Source { file: file.to_owned(), error })
    }
    match (read(&InstanceFiles(session), &file.path, file.is_counted).await, at_its_source) {
        (Err(llama::ModelError::Source { error: FileError::Missing, .. }), Some(remote)) => {
            let path = remote.0.path().to_owned();
            read(&remote, &path, file.is_counted).await
        }
        (there, _) => there,
    }
}

/// The file of a download, which is not in the instance yet.
fn remote(
    config: &LlamaServer,
    planned: &LlamaServer,
    download: &Download,
    client: &ProviderClient,
    deadline: Instant,
) -> Result<RemoteFiles, Unchecked> {
    let url = download.source.url.as_str().ok_or_else(|| later("the address is unknown until the apply"))?;
    let token = planned.source_token(download, config, client).map_err(|error| later(&error.summary))?;
    let file = RemoteFile::new(url, client.api.settings()).map_err(|error| later(&error.to_string()))?;
    let file = file.with_token(token).until(deadline);
    Ok(RemoteFiles(if download.source.sha256.is_null() { file } else { file.without_tags() }))
}

/// The warning about an answer that the download would meet too.
fn refusal(download: &Download, error: &llama::ModelError<FileError>) -> Option<Diagnostic> {
    let llama::ModelError::Source { error: FileError::Remote(RemoteError::Status(status)), file } = error else {
        return None;
    };
    let kind = match status.as_u16() {
        401 | 403 => FailureKind::NoAccess,
        404 | 410 => FailureKind::NoSuchModel,
        _ => return None,
    };
    let origin = download.source.address().map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let text = format!(
        "{origin}{file} answered {status}. The download of the apply will fail unless this changes. {}",
        download.source.advice(kind)
    );
    Some(Diagnostic::warning("A file cannot be downloaded", text).at(download.at.attribute("url")))
}

/// The memory of each GPU in bytes.
async fn cards(session: &Session) -> Result<Vec<u64>, String> {
    let output = session.script(&[DRIVER, QUERY].concat(), &[]).await.map_err(|error| error.to_string())?;
    card_rows(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "nvidia-smi reports no memory".to_owned())
}

/// The memory in the rows of nvidia-smi, which writes warnings among them, and then exits with another code than 0.
/// `None` without rows, or with one that has no number, such as `[N/A]`.
fn card_rows(printed: &str) -> Option<Vec<u64>> {
    let rows = printed.lines().map(str::trim).filter(|line| {
        let is_row = line.starts_with('[') || line.parse::<u64>().is_ok();
        if !is_row && !line.is_empty() {
            tracing::info!(line, "a line of nvidia-smi is no GPU");
        }
        is_row
    });
    let cards: Option<Vec<u64>> = rows.map(|row| row.parse::<u64>().ok()?.checked_mul(1 << 20)).collect();
    cards.filter(|cards| !cards.is_empty())
}

/// The errors or the warning about a model on these GPUs; without GPUs only the options are judged.
fn judge(path: &Attr<String>, model: &GgufModel, beside: &Beside, started: &Started, cards: &[u64]) -> Diagnostics {
    let Started { options, places } = started;
    let mut said: Diagnostics = refused_options(model, options).map(|refused| exits(&refused, places)).collect();
    if cards.is_empty() {
        return said;
    }
    let needed = |memory: &Memory| needed(memory, cards.len() as u64)?.checked_add(beside.bytes);
    let room: u64 = cards.iter().fold(0, |sum, card| sum.saturating_add(*card));
    let found = memory(model, options);
    let path = path.as_str().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or(path);
    let count =
        if cards.len() == 1 { "the GPU has".to_owned() } else { format!("the {} GPUs together have", cards.len()) };
    let weights = found.weights.unwrap_or_default();
    let least = weights.saturating_sub(found.predicting);
    if least > room {
        let text = format!(
            "Its weights alone need {}, but {count} {}, so no context fits. Use an instance with \
             more GPU memory, a smaller quantization, or fewer gpu_layers. {TURNED_OFF}",
            gib(least),
            gib(room)
        );
        said.push(Diagnostic::error(format!("Model {name} does not fit in GPU memory"), text).at(Path::to("model")));
        return said;
    }
    if weights > room {
        let (first, last) = (model.layers.unwrap_or_default(), model.layer_bytes.len().saturating_sub(1) as u64);
        let (layers, them, predict) = if first == last {
            (format!("layer {first}"), "it", "predicts")
        } else {
            (format!("layers {first} to {last}"), "them", "predict")
        };
        let text = format!(
            "With {layers}, which only {predict} further tokens (nextn_predict_layers), its weights need {}, and \
             without {them} {}; {count} {}. Some builds of the server load {them}, others do not. If the server does \
             not start, use an instance with more GPU memory, a smaller quantization, or fewer gpu_layers.",
            gib(weights),
            gib(least),
            gib(room)
        );
        said.push(Diagnostic::warning(format!("Model {name} may not fit in GPU memory"), text).at(Path::to("model")));
        return said;
    }
    let most = room / 100 * WARN;
    let Some(total) = needed(&found).filter(|total| *total > most) else { return said };
    let fits = match largest_context(model, options, needed, most) {
        Some(context) if context < options.context_size.max(1) || options.context_size == 0 => {
            format!("A context_size of {context} stays below {WARN} %.")
        }
        _ => format!("No context_size stays below {WARN} %."),
    };
    let mut parts = vec![("weights", found.weights), ("cache", found.cache), ("compute buffers", found.compute)];
    parts.extend((beside.bytes > 0).then_some(("files beside it", Some(beside.bytes))));
    let parts = parts
        .into_iter()
        .map(|(part, bytes)| format!("{part} {}", gib(bytes.unwrap_or_default())))
        .collect::<Vec<_>>()
        .join(", ");
    let text = format!(
        "The model needs about {} ({parts}, and an allowance for the driver), and {count} {}. The server may fail to \
         start. {fits}{}",
        gib(total),
        gib(room),
        beside.note()
    );
    let percent = u128::from(total) * 100 / u128::from(room.max(1));
    let summary = format!("Model {name} needs {percent} % of the GPU memory");
    said.push(Diagnostic::warning(summary, text).at(Path::to("context_size")));
    said
}

/// What so many cards need: weights and cache are spread over them, and each has buffers of its own.
fn needed(memory: &Memory, cards: u64) -> Option<u64> {
    let each = memory.compute?.checked_add(memory.overhead?)?.checked_mul(cards)?;
    memory.weights?.checked_add(memory.cache?)?.checked_add(each)
}

fn gib(bytes: u64) -> String {
    let tenths = (u128::from(bytes) * 10).div_ceil(1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::{super::model::AdditionalFile, *};

    const GIB: u64 = 1 << 30;

    /// 16 GiB of weights in 32 layers, and 64 KiB of cache for a token at 16 bits.
    fn model() -> GgufModel {
        GgufModel {
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
            ..GgufModel::default()
        }
    }

    /// A server that is started with these options, each set by its argument.
    fn started(options: ServerOptions) -> Started {
        Started { options, places: ["cache_type_k", "cache_type_v"].map(|name| (name, Path::to(name))).into() }
    }

    fn judged(model: &GgufModel, context_size: u64, cards: &[u64]) -> Option<Diagnostic> {
        let path = Attr::Known("~/models/big.gguf".to_owned());
        let options = ServerOptions { context_size, ..ServerOptions::default() };
        judge(&path, model, &Beside::default(), &started(options), cards).iter().next().cloned()
    }

    #[test]
    fn a_model_that_is_not_there_is_a_warning_with_the_nearest_files() {
        let models = "/home/u\n/home/u/models/qwen-8b.gguf\n/data/llama.gguf\n/home/u/models/qwen-4b.gguf\n\
                      /home/user2/gemma.gguf\n";
        let warning = not_there("~/qwen-8.gguf", models);
        assert!(!warning.is_error() && warning.summary == "The model is not in the instance");
        let (_, rest) = warning.detail.split_once("The nearest files are: ").unwrap();
        let files: Vec<&str> = rest.split(". Unless").next().unwrap().split(", ").collect();
        assert!(files.len() == 3 && files[0] == "~/models/qwen-8b.gguf", "{files:?}");
        assert!(files.contains(&"~/models/qwen-4b.gguf"), "{files:?}");
        assert!(!not_there("~/a.gguf", "/home/u\n").detail.contains("nearest"));
        assert!(!not_there("~/a.gguf", "").detail.contains("nearest"));
    }

    #[test]
    fn only_rows_of_nvidia_smi_are_cards() {
        let noise = "WARNING: infoROM is corrupted at gpu 0000:00:00.0\n2 of 2 have a warning";
        assert_eq!(card_rows(&format!("{noise}\n24576 \r\n\n24576\n{noise}\n")), Some(vec![24 * GIB; 2]));
        for printed in ["", noise, "No devices were found", "24576\n[N/A]\n"] {
            assert_eq!(card_rows(printed), None, "{printed}");
        }
    }

    #[test]
    fn weights_that_do_not_fit_are_an_error_that_names_both_sizes() {
        let found = judged(&model(), 256, &[15 * GIB]).unwrap();
        assert!(found.is_error());
        assert_eq!(found.summary, "Model big.gguf does not fit in GPU memory");
        for part in ["need 16.0 GiB", "the GPU has 15.0 GiB", "no context fits", "preflight = false"] {
            assert!(found.detail.contains(part), "{part}: {}", found.detail);
        }
        let unknown = GgufModel { architecture: "zzzzz".to_owned(), ..model() };
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

    /// The server exits with these, and a compile would not help.
    #[test]
    fn a_cache_that_the_heads_cannot_have_is_an_error_at_its_type() {
        let path = Attr::Known("phi-2.gguf".to_owned());
        let phi2 =
            GgufModel { architecture: "phi2".to_owned(), key_length: Some(80), value_length: Some(80), ..model() };
        let refused = |model: &GgufModel, set: &[(&str, &str)], cards: &[u64]| {
            let options = ServerOptions::parse(set.iter().copied()).unwrap();
            let found = judge(&path, model, &Beside::default(), &started(options), cards)
                .into_iter()
                .filter(Diagnostic::is_error);
            found.map(|found| (found.path.unwrap().to_string(), found.detail)).collect::<Vec<_>>()
        };
        let found = refused(&phi2, &[], &[24 * GIB]);
        let [(keys, detail), (values, _)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&**keys, &**values), ("cache_type_k", "cache_type_v"));
        for part in ["keys of width 80 cannot have the type q8_0", "\"f16\"", "preflight = false"] {
            assert!(detail.contains(part), "{part}: {detail}");
        }
        assert_eq!(refused(&phi2, &[], &[]), found, "the memory of the GPUs does not matter");
        let [(only, _)] = &refused(&phi2, &[("cache_type_k", "f16")], &[24 * GIB])[..] else { panic!("one") };
        assert_eq!(only, "cache_type_v");
        let repeated = Started {
            places: vec![("cache_type_k", Path::to("cache_type_k")), ("cache_type_k", Path::to("extra_args").index(1))],
            ..started(ServerOptions::parse([("cache_type_v", "f16")]).unwrap())
        };
        let found = judge(&path, &phi2, &Beside::default(), &repeated, &[]).iter().next().cloned().unwrap();
        assert_eq!(found.path.unwrap().to_string(), "extra_args[1]");
        assert!(found.detail.contains("Set extra_args[1] to \"f16\""), "{}", found.detail);
        let floats = [("cache_type_k", "bf16"), ("cache_type_v", "f16")];
        assert_eq!(refused(&phi2, &floats, &[24 * GIB]), []);
        assert_eq!(refused(&model(), &[], &[]), []);
    }

    /// Some builds of the server skip them.
    #[test]
    fn layers_that_only_predict_tokens_are_named_where_they_decide() {
        let predicting = GgufModel { layer_bytes: vec![GIB / 2; 34], ..model() };
        let found = judged(&predicting, 256, &[15 * GIB]).unwrap();
        assert!(found.is_error() && found.detail.contains("weights alone need 16.0 GiB"), "{}", found.detail);
        let found = judged(&predicting, 256, &[16 * GIB]).unwrap();
        assert!(!found.is_error(), "{}", found.detail);
        assert_eq!(found.summary, "Model big.gguf may not fit in GPU memory");
        for part in ["layers 32 to 33", "nextn_predict_layers", "need 17.0 GiB", "without them 16.0 GiB"] {
            assert!(found.detail.contains(part), "{part}: {}", found.detail);
        }
        let one = GgufModel { layer_bytes: vec![GIB / 2; 33], ..model() };
        assert!(judged(&one, 256, &[16 * GIB]).unwrap().detail.contains("layer 32"));
        assert_eq!(judged(&one, 256, &[24 * GIB]), None);
    }

    #[test]
    fn what_fits_or_is_not_known_is_not_told() {
        assert_eq!(judged(&model(), 32_768, &[24 * GIB]), None);
        let unknown = GgufModel { architecture: "mamba".to_owned(), ..model() };
        assert_eq!(judged(&unknown, 32_768, &[17 * GIB]), None);
    }

    /// Where they lie is the server's choice: they are no error.
    #[test]
    fn files_beside_the_model_are_added_and_named() {
        let path = Attr::Known("~/models/big.gguf".to_owned());
        let judged = |bytes| {
            let options = ServerOptions { context_size: 256, ..ServerOptions::default() };
            let beside = Beside { bytes, counted: vec!["p.gguf".to_owned()], others: vec!["a.bin".to_owned()] };
            judge(&path, &model(), &beside, &started(options), &[24 * GIB]).iter().next().cloned()
        };
        assert_eq!(judged(GIB), None);
        let found = judged(9 * GIB).unwrap();
        assert!(!found.is_error(), "{found:?}");
        for part in ["files beside it 9.0 GiB", "are counted by their weights alone: p.gguf; not: a.bin."] {
            assert!(found.detail.contains(part), "{part}: {}", found.detail);
        }
    }

    /// Each path, whether it is downloaded, and whether it counts.
    #[test]
    fn files_that_options_put_on_the_gpu_count() {
        let file = |path: &str| {
            Attr::Known(AdditionalFile { path: path.into(), url: "https://x/a".into(), sha256: Attr::Null })
        };
        let words = "--mmproj p.gguf -md /d.gguf --lora_scaled /l.gguf:0.5,/m.bin --grammar-file /g.gguf";
        let server = LlamaServer {
            workspace: "~/workspace".into(),
            extra_args: Attr::Known(words.split(' ').map(Attr::from).collect()),
            additional_files: Attr::Known(vec![file("~/workspace/p.gguf"), file("/other.gguf"), file("/h//l.gguf")]),
            ..LlamaServer::default()
        };
        let sources = server.sources();
        let found = files_beside(&server, &sources, "/h").into_iter();
        let found = found.map(|file| format!("{} {} {}", file.path, file.download.is_some(), file.is_counted));
        let expected = [
            "~/workspace/p.gguf true true",
            "/d.gguf false true",
            "/l.gguf false true",
            "/m.bin false false",
            "/other.gguf true false",
            "/h//l.gguf true false",
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
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
        assert_eq!(
            started_with(&server(&[])).unwrap().unwrap().options,
            ServerOptions { context_size: 4096, ..ServerOptions::default() }
        );
        let batches = started_with(&server(&["-b", "4096", "--ubatch_size", "1024", "-kvu"])).unwrap().unwrap().options;
        assert_eq!((batches.batch, batches.ubatch, batches.unified), (4096, 1024, true));
        for words in [
            &["-ncffn", "4"][..],
            &["--spec-type", "draft-mtp"],
            &["-ctk", "q6_0"],
            &["--n-cpu-moe", "4"],
            &["-ts", "1,1"],
            &["-c", "0"],
            &["-ub", "0"],
            &["--swa_full"],
            &["--no-mmproj-offload"],
            &["-ngld", "0"],
        ] {
            assert_eq!(started_with(&server(words)), Ok(None), "{words:?}");
        }
        assert!(started_with(&server(&["--threads", "8", "--embedding", "--cache-ram", "0"])).unwrap().is_some());
        let files = ["--mmproj", "/p.gguf", "--spec-draft-model", "/d.gguf", "--lora-scaled", "/l.gguf:0.5"];
        assert!(started_with(&server(&files)).unwrap().is_some());
        let unknown = LlamaServer { context_size: Attr::Unknown, ..server(&[]) };
        assert_eq!(started_with(&unknown), Ok(None));
        let other = server(&["--flash_attn", "auto", "-ctk", "f16", "-ctk", "iq4_nl"]);
        assert_eq!(started_with(&other).unwrap().unwrap().options.cache_type_k, CacheType::Iq4Nl);
        let slots = |parallel: i64| LlamaServer { parallel: parallel.into(), ..server(&[]) };
        assert!(started_with(&slots(256)).unwrap().is_some());
        let without = LlamaServer { flash_attention: "off".into(), ..server(&[]) };
        for (server, path) in [
            (slots(257), "parallel"),
            (without, "cache_type_v"),
            (server(&["--threads", "8", "-b", "0"]), "extra_args[3]"),
            (server(&["-ub", "x"]), "extra_args[1]"),
            (server(&["-fa", "off"]), "cache_type_v"),
        ] {
            let refused = started_with(&server).unwrap_err();
            assert_eq!(refused.path.as_ref().unwrap().to_string(), path, "{refused:?}");
        }
    }
}
