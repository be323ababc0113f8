//! The command line of both generations.

mod table;

use std::path::{Path, PathBuf};

pub(super) use self::table::help;
use self::table::{Kind, OPTIONS, Opt, by_name};
use super::super::{Call, build::Build};

/// Types that a cache may have.
const CACHE_TYPES: [&str; 9] = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"];

/// What the program is to do.
#[derive(Debug)]
pub(super) enum Asked {
    Devices,
    Help,
    Serve(Box<Settings>),
    Version,
}

/// Whether flash attention is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlashAttention {
    Auto,
    Off,
    On,
}

/// What a server is started with.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// None: a new server starts without one and chooses models by request, an old one takes its default path.
    pub(super) model: Option<PathBuf>,
    pub(super) alias: Option<String>,
    pub(super) host: String,
    /// As written; what is beyond 65535 wraps when it is bound.
    pub(super) port: u64,
    /// 0: the model's.
    pub(super) context: u64,
    pub(super) parallel: i64,
    /// None: all that fit.
    pub(super) gpu_layers: Option<i64>,
    pub(super) flash_attention: FlashAttention,
    pub(super) cache_k: String,
    pub(super) cache_v: String,
    pub(super) jinja: bool,
    pub(super) metrics: bool,
    pub(super) slots: bool,
    pub(super) props: bool,
    /// None at all: nobody is asked for one.
    pub(super) keys: Vec<String>,
}

impl Settings {
    fn new(build: &Build) -> Self {
        let is_old = build.is_old();
        Self {
            model: None,
            alias: None,
            host: "127.0.0.1".to_owned(),
            port: 8080,
            context: if is_old { 4096 } else { 0 },
            parallel: if is_old { 1 } else { -1 },
            gpu_layers: is_old.then_some(0),
            flash_attention: if is_old { FlashAttention::Off } else { FlashAttention::Auto },
            cache_k: "f16".to_owned(),
            cache_v: "f16".to_owned(),
            jinja: !is_old,
            metrics: false,
            slots: !is_old,
            props: false,
            keys: Vec::new(),
        }
    }

    /// The name that answers bear: the alias, or else the path as it was given.
    pub(super) fn name(&self) -> String {
        let path = self.model.as_deref().unwrap_or_else(|| Path::new(""));
        self.alias.clone().unwrap_or_else(|| path.display().to_string())
    }

    /// How many requests are computed at once; -1 is the new generation's own choice.
    pub(super) fn slot_count(&self) -> usize {
        usize::try_from(self.parallel).unwrap_or(4).max(1)
    }

    fn set(&mut self, option: &Opt, value: &str, build: &Build) -> Result<(), String> {
        let number = || value.parse::<i64>().map_err(|_| "stoi".to_owned());
        match option.names.last().copied().unwrap_or_default() {
            "--alias" => self.alias = Some(value.to_owned()),
            "--api-key" => self.keys.extend(value.split(',').filter(|key| !key.is_empty()).map(str::to_owned)),
            "--api-key-file" => {
                let text =
                    std::fs::read_to_string(value).map_err(|_| format!("error: failed to open file '{value}'\n"))?;
                self.keys.extend(text.lines().map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned));
            }
            "--cache-type-k" => self.cache_k = cache_type(value)?,
            "--cache-type-v" => self.cache_v = cache_type(value)?,
            "--ctx-size" => self.context = u64::try_from(number()?).unwrap_or(0),
            "--flash-attn" => self.flash_attention = flash_attention(value, build)?,
            "--gpu-layers" | "--n-gpu-layers" => {
                self.gpu_layers = match value {
                    "all" | "auto" if !build.is_old() => None,
                    _ => Some(number()?).filter(|layers| *layers >= 0),
                };
            }
            "--host" => self.host = value.to_owned(),
            "--jinja" => self.jinja = true,
            "--metrics" => self.metrics = true,
            "--model" => self.model = Some(PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty()),
            "--no-jinja" => self.jinja = false,
            "--no-slots" => self.slots = false,
            "--parallel" => self.parallel = number()?,
            "--port" => self.port = u64::try_from(number()?).map_err(|_| "stoi".to_owned())?,
            "--props" => self.props = true,
            "--slots" => self.slots = true,
            _ => match option.kind {
                Kind::Number => drop(number()?),
                Kind::Decimal => drop(value.parse::<f64>().map_err(|_| "stof".to_owned())?),
                Kind::Flag | Kind::Text => {}
            },
        }
        Ok(())
    }
}

/// Reads the command line, and the environment for what it does not say.
///
/// # Errors
///
/// What the server writes on standard error before it ends with 1.
pub(super) fn read(call: &Call<'_>, build: &Build) -> Result<Asked, String> {
    let mut settings = Settings::new(build);
    let mut given = Vec::new();
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        let Some(option) = by_name(word, build) else {
            return Err(format!("error: invalid argument: {word}\n"));
        };
        match option.names.last().copied().unwrap_or_default() {
            "--help" => return Ok(Asked::Help),
            "--list-devices" => return Ok(Asked::Devices),
            "--version" => return Ok(Asked::Version),
            _ => {}
        }
        let fault = |error: String| {
            format!(
                "error while handling argument \"{word}\": {error}\n\nusage:\n{}\n\n\
                 to show complete usage, run with -h\n",
                option.help()
            )
        };
        let value = match option.kind {
            Kind::Flag => "",
            Kind::Decimal | Kind::Number | Kind::Text => {
                words.next().ok_or_else(|| fault("expected value for argument".to_owned()))?
            }
        };
        settings.set(option, value, build).map_err(fault)?;
        given.push(option.names);
    }
    for option in OPTIONS.iter().filter(|option| option.is_in(build) && !given.contains(&option.names)) {
        let Some(value) = option.variable.and_then(|name| call.text(name)) else { continue };
        let is_wanted = match option.kind {
            Kind::Flag if build.is_old() => ["1", "true"].contains(&value.as_str()),
            Kind::Flag => ["1", "true", "on", "enabled"].contains(&value.as_str()),
            Kind::Decimal | Kind::Number | Kind::Text => !value.is_empty(),
        };
        if is_wanted {
            let name = option.variable.unwrap_or_default();
            let fault = |error| format!("error while handling environment variable \"{name}\": {error}\n\n");
            settings.set(option, &value, build).map_err(fault)?;
        }
    }
    Ok(Asked::Serve(Box::new(settings)))
}

fn cache_type(value: &str) -> Result<String, String> {
    match CACHE_TYPES.contains(&value) {
        true => Ok(value.to_owned()),
        false => Err(format!("Unsupported cache type: {value}")),
    }
}

fn flash_attention(value: &str, build: &Build) -> Result<FlashAttention, String> {
    match value {
        // The old option has no value: being there is all it says.
        _ if build.is_old() => Ok(FlashAttention::On),
        "1" | "enabled" | "on" | "true" => Ok(FlashAttention::On),
        "0" | "disabled" | "false" | "off" => Ok(FlashAttention::Off),
        "-1" | "auto" => Ok(FlashAttention::Auto),
        _ => Err(format!("error: unknown value for --flash-attn: '{value}'\n")),
    }
}

#[cfg(test)]
mod tests;
