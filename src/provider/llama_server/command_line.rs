//! The command line of a server, as options and as text.

use super::model::LlamaServer;
use crate::{
    framework::Attr,
    llama::{self, ServerOption},
};

impl LlamaServer {
    /// Takes the options of a command line, whose first word is the program. An option that is not on it keeps its
    /// value, except flags.
    pub(super) fn take_command_line(&mut self, words: &[String], home: Option<&str>) {
        let Some((_, arguments)) = words.split_first() else { return };
        let mut words = arguments.iter().map(String::as_str).peekable();
        let mut extra: Vec<Attr<String>> = Vec::new();
        let (mut jinja, mut metrics) = (false, false);
        while let Some(word) = words.next() {
            let option = llama::find_option(word).filter(|_| !word.contains('='));
            match option.and_then(ServerOption::argument) {
                Some("model") => {
                    let before = self.model.clone();
                    words.next().into_iter().for_each(|path| take_path(&mut self.model, path, home));
                    if self.model != before {
                        // The address is that of the previous file.
                        self.model_source = Attr::Null;
                    }
                }
                // "localhost" is passed as this address.
                Some("host") => match words.next() {
                    Some("127.0.0.1") if self.host.as_str() == Some("localhost") => {}
                    host => take(&mut self.host, host),
                },
                Some("port") => drop(words.next()),
                Some("context_size") => take_number(&mut self.context_size, words.next()),
                Some("parallel") => take_number(&mut self.parallel, words.next()),
                Some("gpu_layers") => take_number(&mut self.gpu_layers, words.next()),
                Some("flash_attention") => {
                    // Builds before the autumn of 2025 know the bare flag only.
                    let value = words.next_if(|next| !next.starts_with("--") && flash_attention(next).is_some());
                    take(&mut self.flash_attention, value.map_or(Some("on"), flash_attention));
                }
                Some("cache_type_k") => take(&mut self.cache_type_k, words.next()),
                Some("cache_type_v") => take(&mut self.cache_type_v, words.next()),
                Some("jinja") => jinja = word != "--no-jinja",
                Some("metrics") => metrics = true,
                _ if word == llama::API_KEY_FILE => drop(words.next()),
                _ => extra.push(word.into()),
            }
        }
        self.jinja = Attr::Known(jinja);
        self.metrics = Attr::Known(metrics);
        self.extra_args = if extra.is_empty() { Attr::Null } else { Attr::Known(extra) };
    }
}

/// The value of the attribute for a value of the option.
fn flash_attention(value: &str) -> Option<&'static str> {
    match value {
        "on" | "1" | "true" | "enabled" => Some("on"),
        "off" | "0" | "false" | "disabled" => Some("off"),
        "auto" | "-1" => Some("auto"),
        _ => None,
    }
}

fn take(attribute: &mut Attr<String>, value: Option<&str>) {
    if let Some(value) = value {
        *attribute = value.into();
    }
}

fn take_number(attribute: &mut Attr<i64>, value: Option<&str>) {
    if let Some(number) = value.and_then(|value| value.parse().ok()) {
        *attribute = Attr::Known(number);
    }
}

/// A path of the instance, which keeps its spelling when it means the same.
pub(super) fn take_path(attribute: &mut Attr<String>, path: &str, home: Option<&str>) {
    let in_home = home.and_then(|home| path.strip_prefix(home)).filter(|rest| rest.starts_with('/'));
    let short = in_home.map(|rest| format!("~{rest}"));
    if attribute.as_str() != Some(path) {
        *attribute = Attr::Known(short.unwrap_or_else(|| path.to_owned()));
    }
}

/// A command line as a person could type it.
pub(super) fn as_text(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+~()".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_guides_command_line_gives_the_defaults() {
        let mut server = LlamaServer::default();
        let line = "/p/llama-server -m /root/m.gguf --host 0.0.0.0 --port 8000 -c 32768 -np 1 -ngl 999 -fa on -ctk \
                    q8_0 -ctv q8_0 --jinja --metrics";
        server.take_command_line(&words(line), Some("/root"));
        assert_eq!(server.model, "~/m.gguf".into());
        assert_eq!((server.context_size, server.parallel, server.gpu_layers), (32768.into(), 1.into(), 999.into()));
        assert_eq!((server.flash_attention, server.cache_type_k), ("on".into(), "q8_0".into()));
        assert_eq!((server.jinja, server.metrics, server.extra_args), (true.into(), true.into(), Attr::Null));
    }

    #[test]
    fn a_bare_flag_takes_no_word_of_others_and_what_is_unknown_is_extra() {
        let mut server = LlamaServer { model: "/root/m.gguf".into(), ..LlamaServer::default() };
        let line = "s -m /root/m.gguf -fa -ctk f16 --threads 8 --api-key-file /k";
        server.take_command_line(&words(line), Some("/root"));
        assert_eq!((server.flash_attention.as_str(), server.cache_type_k.as_str()), (Some("on"), Some("f16")));
        assert_eq!(server.model, "/root/m.gguf".into());
        assert_eq!(server.extra_args, Attr::Known(vec!["--threads".into(), "8".into()]));
        assert_eq!(server.jinja, false.into());
    }

    #[test]
    fn a_command_line_is_quoted_where_a_shell_would_need_it() {
        let words = ["/a b/llama-server", "--grammar", "it's", ""].map(str::to_owned);
        assert_eq!(as_text(&words), r"'/a b/llama-server' --grammar 'it'\''s' ''");
    }
}
