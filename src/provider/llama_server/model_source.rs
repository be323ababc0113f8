//! `model_source`: where a model is downloaded from, and its token.

use secrecy::SecretString;
use url::Url;

use super::{
    bootstrap::{self, FailureKind},
    model::{LlamaServer, ModelSource},
    model_file,
};
use crate::{
    api::RemoteFile,
    framework::{Attr, Diagnostic, Diagnostics, Path, Secret},
    provider::ProviderClient,
};

/// The rule for an address, for people.
pub(super) const ADDRESS: &str = "an https address (or http on a loopback address) without credentials, spaces, double \
                                  quotes and backslashes";

/// Whether a model can be downloaded from this address.
pub(super) fn is_address(address: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\\');
    !address.contains(is_odd) && RemoteFile::address(address).is_ok()
}

/// The rule for a token, for people.
pub(super) const TOKEN: &str = "one line of printable ASCII without spaces, quotes and backslashes";

/// Whether both programs that download a model take this text as a token.
pub(super) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\'))
}

/// The hub whose token the environment may have.
const HUB: &str = "https://huggingface.co";

fn is_of_the_hub(url: &Url) -> bool {
    url.origin().ascii_serialization() == HUB
}

impl ModelSource {
    /// The address.
    pub(super) fn address(&self) -> Option<Url> {
        RemoteFile::address(self.url.as_str()?).ok()
    }

    /// What to do after a failure of a download. The hub hides files from those who may not read them.
    pub(super) fn advice(&self, kind: FailureKind) -> &'static str {
        match kind {
            FailureKind::NoSuchModel if self.address().is_some_and(|url| is_of_the_hub(&url)) => {
                "Correct model_source.url. huggingface.co also answers so if the model needs permission: then accept \
                 the terms on its page, and set model_source_token_wo or DAMODEL_MODEL_TOKEN."
            }
            kind => kind.advice(),
        }
    }

    /// Whether both mean the same file: the same address, or the same sum.
    fn is_same_file(&self, other: &Self) -> bool {
        let is_same_sum = matches!((self.sha256.as_str(), other.sha256.as_str()),
            (Some(sum), Some(other)) if sum.eq_ignore_ascii_case(other));
        let is_same_address = self.address().is_some_and(|address| Some(address) == other.address());
        self.url == other.url || is_same_address || is_same_sum
    }
}

impl LlamaServer {
    /// Where its model comes from. `config` has the write-only token; `model` is the file in the instance.
    ///
    /// # Errors
    /// A token of the environment that no request can carry.
    pub(super) fn source_of(
        &self,
        config: &Self,
        model: &str,
        client: &ProviderClient,
    ) -> Result<Option<bootstrap::ModelOrigin>, Diagnostic> {
        let Some(source) = self.model_source.known() else { return Ok(None) };
        let Some(url) = source.address() else { return Ok(None) };
        let files = match (model_file::parts(model), model_file::parts(url.path())) {
            (files, addresses) if files.len() == addresses.len() && !files.is_empty() => {
                let at = |path: &String| {
                    let mut url = url.clone();
                    url.set_path(path);
                    url.to_string()
                };
                files.into_iter().zip(addresses.iter().map(at)).collect()
            }
            _ => vec![(model.to_owned(), url.to_string())],
        };
        let sha256 = source.sha256.known().map(|sum| sum.to_ascii_lowercase());
        Ok(Some(bootstrap::ModelOrigin { files, sha256, token: self.source_token(config, client)? }))
    }

    /// The token for the address: that of the configuration, or of the environment.
    ///
    /// # Errors
    /// That of the environment cannot be sent.
    pub(super) fn source_token(
        &self,
        config: &Self,
        client: &ProviderClient,
    ) -> Result<Option<SecretString>, Diagnostic> {
        let Some(url) = self.model_source.known().and_then(ModelSource::address) else { return Ok(None) };
        if let Some(token) = config.model_source_token_wo.known() {
            return Ok(Some(Secret::trimmed(token)));
        }
        let is_hub = is_of_the_hub(&url) && config.model_source_token_wo.is_null();
        match client.environment.variable("DAMODEL_MODEL_TOKEN").filter(|_| is_hub) {
            Some(token) if !is_token(token) => Err(Diagnostic::error(
                "Invalid value of DAMODEL_MODEL_TOKEN",
                format!("The token must be {TOKEN}. Nothing was changed."),
            )
            .at(Path::to("model_source"))),
            token => Ok(token.map(SecretString::from)),
        }
    }
}

/// Checks the rules between its arguments.
pub(super) fn validate(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    let Attr::Known(source) = &config.model_source else {
        if config.model_source.is_null() && !config.model_source_token_wo.is_null() {
            diagnostics.error_at(
                Path::to("model_source_token_wo"),
                "A token without an address",
                "model_source_token_wo has no effect without model_source. Set model_source, or remove the token.",
            );
        }
        return;
    };
    let path = |name: &str| Path::to("model_source").attribute(name);
    let (Some(model), Some(url)) = (config.model.as_str(), source.address()) else { return };
    let end = |path: &str| model_file::split(path).map(|(_, part, all)| (part.to_owned(), all.to_owned()));
    let (end_of_url, end_of_model) = (end(url.path()), end(model));
    let is_later = end_of_url.as_ref().is_some_and(|(part, _)| part != "00001");
    if end_of_url != end_of_model || is_later {
        diagnostics.error_at(
            path("url"),
            "Another part of a split model",
            "The address of a split model must end in -00001-of-000NN.gguf, and model must end in the same way: all \
             parts are downloaded.",
        );
    } else if end_of_url.is_some() && !source.sha256.is_null() {
        diagnostics.error_at(
            path("sha256"),
            "One sum for several files",
            "A split model has a sum for each file, so sha256 cannot be set. The sums that the server of the address \
             sends are compared.",
        );
    }
}

/// The error about another address under the same path: what is there would be taken for the new file.
pub(super) fn changed(prior: &LlamaServer, planned: &LlamaServer) -> Option<Diagnostic> {
    let (before, after) = (prior.model_source.known()?, planned.model_source.known()?);
    let is_known = after.url.known().is_some() && before.url.known().is_some();
    if !is_known || prior.model != planned.model || before.is_same_file(after) {
        return None;
    }
    let text = format!(
        "{} may contain the file of the previous address, and an existing file is never downloaded again. Nothing was \
         changed. Set model to a new path; or, if the file is the same, set sha256 before you change url. To destroy \
         while this error remains, use terraform destroy -refresh=false.",
        prior.model.as_str().unwrap_or_default()
    );
    let path = Path::to("model_source").attribute("url");
    Some(Diagnostic::error("Another address for the same file", text).at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(model: &str, url: &str, sha256: Attr<String>) -> LlamaServer {
        let source = ModelSource { url: url.into(), sha256 };
        LlamaServer { model: model.into(), model_source: Attr::Known(source), ..LlamaServer::default() }
    }

    fn errors(config: &LlamaServer) -> Vec<String> {
        let mut diagnostics = Diagnostics::new();
        validate(config, &mut diagnostics);
        diagnostics.into_iter().map(|error| error.path.unwrap_or_default().to_string()).collect()
    }

    #[test]
    fn a_split_model_has_one_address_and_no_sum() {
        let sum = || Attr::from("a");
        for (model, url, sha256, expected) in [
            ("/m.gguf", "https://x/a.gguf", sum(), ""),
            ("/m-00001-of-00002.gguf", "https://x/a-00001-of-00002.gguf?b", Attr::Null, ""),
            ("/m-00001-of-00002.gguf", "https://x/a-00001-of-00002.gguf", sum(), "model_source.sha256"),
            ("/m-00001-of-00003.gguf", "https://x/a-00001-of-00002.gguf", Attr::Null, "model_source.url"),
            ("/m.gguf", "https://x/a-00001-of-00002.gguf", Attr::Null, "model_source.url"),
            ("/m-00001-of-00002.gguf", "https://x/a.gguf", Attr::Null, "model_source.url"),
            ("/m-00002-of-00002.gguf", "https://x/a-00002-of-00002.gguf", Attr::Null, "model_source.url"),
        ] {
            let found = errors(&server(model, url, sha256)).join(" ");
            assert_eq!(found, expected, "{model} {url}");
        }
        let token = || Attr::Known(Secret::new("planted"));
        let alone = LlamaServer { model_source_token_wo: token(), ..LlamaServer::default() };
        assert_eq!(errors(&alone), ["model_source_token_wo"]);
        let unknown = LlamaServer { model_source: Attr::Unknown, ..alone };
        assert_eq!(errors(&unknown), [""; 0]);
    }

    #[test]
    fn another_address_is_another_file_unless_the_path_or_the_sum_says_otherwise() {
        let (a, sum) = ("https://x/a", Attr::from("AB"));
        let prior = server("/m", a, sum.clone());
        for (planned, is_changed) in [
            (server("/m", a, Attr::Null), false),
            (server("/m", "https://X:443/./a", Attr::Null), false),
            (server("/m", "https://x/b", "ab".into()), false),
            (server("/m", "https://x/b", "cd".into()), true),
            (server("/m", "https://x/b", Attr::Null), true),
            (server("/n", "https://x/b", Attr::Null), false),
            (LlamaServer { model_source: Attr::Null, ..prior.clone() }, false),
            (server("/m", "", sum), false),
        ] {
            assert_eq!(changed(&prior, &planned).is_some(), is_changed, "{planned:?}");
        }
        let unknown = ModelSource { url: Attr::Unknown, sha256: Attr::Null };
        assert!(changed(&prior, &LlamaServer { model_source: Attr::Known(unknown), ..prior.clone() }).is_none());
    }

    #[test]
    fn a_token_is_what_both_programs_take() {
        assert!(is_token("hf_Abc-123.~") && is_address("https://huggingface.co/a/b.gguf?download=true"));
        for token in ["", "a b", "a\nb", "a\"b", "a'b", "a\\b", "ä"] {
            assert!(!is_token(token), "{token:?}");
        }
        for address in ["http://x/a", "https://u@x/a", "https://x/a b", "https://x/a\u{a0}b", "https://x/\"", "x"] {
            assert!(!is_address(address), "{address:?}");
        }
    }
}
