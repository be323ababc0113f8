//! `model_source` and `additional_files`: the files that the instance downloads, and their token.

use secrecy::SecretString;
use url::Url;

use super::model::{FileSource, LlamaServer};
use crate::{
    api::RemoteFile,
    framework::{Attr, Diagnostic, Diagnostics, Path, Secret},
    llama::{self, FailureKind, FileOrigin, JobReport, absolute},
    provider::ProviderClient,
};

/// The rule for an address, for people.
pub(super) const ADDRESS: &str = "an https address (or http on a loopback address) without credentials, spaces, double \
                                  quotes and backslashes";

/// Whether a file can be downloaded from this address.
pub(super) fn is_address(address: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\\');
    !address.contains(is_odd) && RemoteFile::address(address).is_ok()
}

/// The rule for a token, for people.
pub(super) const TOKEN: &str = "one line of printable ASCII without spaces, quotes and backslashes";

/// Whether both programs that download files take this text as a token.
pub(super) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\'))
}

/// The hub whose token the environment may have.
const HUB: &str = "https://huggingface.co";

/// The home in a comparison of paths that is made without the instance.
pub(super) const ANY_HOME: &str = "~";

fn is_of_the_hub(url: &Url) -> bool {
    url.origin().ascii_serialization() == HUB
}

impl FileSource {
    /// The address.
    pub(super) fn address(&self) -> Option<Url> {
        RemoteFile::address(self.url.as_str()?).ok()
    }

    /// What to do after a failure of a download. The hub hides files from those who may not read them.
    pub(super) fn advice(&self, kind: FailureKind) -> &'static str {
        match kind {
            FailureKind::NoSuchModel if self.address().is_some_and(|url| is_of_the_hub(&url)) => {
                "Correct url. huggingface.co also answers so if the model needs permission: then accept the terms on \
                 its page, and set model_source_token_wo or DAMODEL_MODEL_TOKEN."
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

/// A file that is downloaded if it is missing; of a split model all files.
pub(super) struct Download {
    /// The attribute of its source.
    pub(super) at: Path,
    /// The attribute of its path.
    pub(super) path_at: Path,
    /// Its path.
    pub(super) path: Attr<String>,
    /// Its source.
    pub(super) source: FileSource,
}

impl Download {
    /// Whether it is the model.
    pub(super) fn is_model(&self) -> bool {
        self.path_at == Path::to("model")
    }

    /// The paths that it brings.
    pub(super) fn paths(&self, home: &str) -> Vec<String> {
        let Some(path) = self.path.as_str().map(|path| absolute(path, home)) else { return Vec::new() };
        let parts = llama::model_parts(&path);
        if parts.is_empty() { vec![path] } else { parts }
    }
}

impl LlamaServer {
    /// All that is downloaded if it is missing: the model first.
    pub(super) fn sources(&self) -> Vec<Download> {
        let model = self.model_source.known().map(|source| Download {
            at: Path::to("model_source"),
            path_at: Path::to("model"),
            path: self.model.clone(),
            source: source.clone(),
        });
        let files = self.additional_files.elements().map(|(index, file)| {
            let at = Path::to("additional_files").index(index);
            let source = FileSource { url: file.url.clone(), sha256: file.sha256.clone() };
            Download { path_at: at.attribute("path"), path: file.path.clone(), at, source }
        });
        model.into_iter().chain(files).collect()
    }

    /// The paths of `additional_files`, sorted: a change restarts the server.
    pub(super) fn additional_paths(&self) -> Vec<String> {
        let files = self.additional_files.elements();
        let mut paths: Vec<_> = files.filter_map(|(_, file)| Some(absolute(file.path.as_str()?, ANY_HOME))).collect();
        paths.sort();
        paths
    }

    /// The files that a start downloads if they are missing. `config` has the write-only token.
    ///
    /// # Errors
    /// A token of the environment that no request can carry, or two sources of one file.
    pub(super) fn downloads(
        &self,
        config: &Self,
        home: Option<&str>,
        client: &ProviderClient,
    ) -> Result<Vec<FileOrigin>, Diagnostic> {
        let home = home.unwrap_or("/root");
        if let Some(twice) = self.named_twice(home) {
            return Err(twice);
        }
        let mut files = Vec::new();
        for download in self.sources() {
            let Some(url) = download.source.address() else { continue };
            let token = self.source_token(&download, config, client)?;
            let sha256 = download.source.sha256.known().map(|sum| sum.to_ascii_lowercase());
            let (is_model, addresses) = (download.is_model(), llama::model_parts(url.path()));
            for (index, path) in download.paths(home).into_iter().enumerate() {
                let mut address = url.clone();
                if let Some(part) = addresses.get(index) {
                    address.set_path(part);
                }
                let (sha256, token, address) = (sha256.clone(), token.clone(), address.to_string());
                files.push(FileOrigin { path, address, sha256, token, is_model });
            }
        }
        Ok(files)
    }

    /// The token for the server of a download: that of the configuration, which is for the first one, or that of the
    /// environment, which is for the hub.
    ///
    /// # Errors
    /// That of the environment cannot be sent.
    pub(super) fn source_token(
        &self,
        download: &Download,
        config: &Self,
        client: &ProviderClient,
    ) -> Result<Option<SecretString>, Diagnostic> {
        let Some(url) = download.source.address() else { return Ok(None) };
        if !config.model_source_token_wo.is_null() && self.first_address().is_some_and(|it| it.origin() == url.origin())
        {
            return Ok(config.model_source_token_wo.known().map(Secret::trimmed));
        }
        match client.environment.variable("DAMODEL_MODEL_TOKEN").filter(|_| is_of_the_hub(&url)) {
            Some(token) if !is_token(token) => Err(Diagnostic::error(
                "Invalid value of DAMODEL_MODEL_TOKEN",
                format!("The token must be {TOKEN}. This resource was not changed."),
            )
            .at(download.at.clone())),
            token => Ok(token.map(SecretString::from)),
        }
    }

    /// The address whose server gets the token of the configuration.
    fn first_address(&self) -> Option<Url> {
        match &self.model_source {
            Attr::Null => RemoteFile::address(self.additional_files.known()?.first()?.known()?.url.as_str()?).ok(),
            source => source.known()?.address(),
        }
    }

    /// The download that failed.
    pub(super) fn failed_download(&self, report: &JobReport) -> Option<Download> {
        let (failed, home) = (report.failed_file.as_ref()?, report.home.as_deref().unwrap_or(ANY_HOME));
        self.sources().into_iter().find(|download| download.paths(home).contains(failed))
    }

    /// The error about a path of `additional_files` that is named twice, or is the model's.
    fn named_twice(&self, home: &str) -> Option<Diagnostic> {
        let model = self.model.as_str().map(|path| absolute(path, home));
        let mut named: Vec<String> =
            model.iter().flat_map(|path| llama::model_parts(path)).chain(model.clone()).collect();
        for download in self.sources().into_iter().filter(|download| !download.is_model()) {
            let paths = download.paths(home);
            if let Some(path) = paths.iter().find(|path| named.contains(path)) {
                let path = download.path.as_str().unwrap_or(path);
                let text = format!("{path} is the path of the model, or of another file. Give each file its own path.");
                return Some(Diagnostic::error("The same path twice", text).at(download.path_at));
            }
            named.extend(paths);
        }
        None
    }
}

/// Checks the rules between its arguments.
pub(super) fn validate(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    let has_files = !config.model_source.is_null()
        || config.additional_files.is_unknown()
        || config.additional_files.known().is_some_and(|files| !files.is_empty());
    if !has_files && config.model_source_token_wo.is_known() {
        diagnostics.error_at(
            Path::to("model_source_token_wo"),
            "A token without an address",
            "model_source_token_wo has no effect without model_source or additional_files. Set one of them, or remove \
             the token.",
        );
    }
    diagnostics.extend(config.named_twice(ANY_HOME).into_iter().collect());
    let end = |path: &str| llama::split_part(path).map(|(_, part, all)| (part.to_owned(), all.to_owned()));
    for Download { at, path_at, path, source } in config.sources() {
        let (Some(path), Some(url)) = (path.as_str(), source.address()) else { continue };
        let (end_of_url, end_of_path) = (end(url.path()), end(path));
        let is_later = end_of_url.as_ref().is_some_and(|(part, _)| part != "00001");
        if end_of_url != end_of_path || is_later {
            diagnostics.error_at(
                at.attribute("url"),
                "Another part of a split model",
                format!(
                    "The address of a split model must end in -00001-of-000NN.gguf, and {path_at} must end in the same \
                     way: all parts are downloaded."
                ),
            );
        } else if end_of_url.is_some() && source.sha256.is_known() {
            diagnostics.error_at(
                at.attribute("sha256"),
                "One sum for several files",
                "A split model has a sum for each file, so sha256 cannot be set. The sums that the server of the \
                 address sends are compared.",
            );
        }
    }
}

/// The error about another address under the same path: what is there would be taken for the new file.
pub(super) fn changed(prior: &LlamaServer, planned: &LlamaServer) -> Option<Diagnostic> {
    let before = prior.sources();
    planned.sources().into_iter().find_map(|after| {
        let path = after.path.as_str()?;
        let is_same_path = |before: &&Download| before.paths(ANY_HOME) == after.paths(ANY_HOME);
        let former = &before.iter().find(is_same_path)?.source;
        if after.source.url.known().is_none() || former.url.known().is_none() || former.is_same_file(&after.source) {
            return None;
        }
        let path_at = &after.path_at;
        let text = format!(
            "{path} may contain the file of the previous address, and an existing file is never downloaded again. \
             Set {path_at} to a new path; or, if the file is the same, set sha256 before you \
             change url."
        );
        Some(Diagnostic::error("Another address for the same file", text).at(after.at.attribute("url")))
    })
}

#[cfg(test)]
mod tests {
    use super::{super::model::AdditionalFile, *};

    fn server(model: &str, url: &str, sha256: Attr<String>) -> LlamaServer {
        let source = FileSource { url: url.into(), sha256 };
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
        let unknown = FileSource { url: Attr::Unknown, sha256: Attr::Null };
        assert!(changed(&prior, &LlamaServer { model_source: Attr::Known(unknown), ..prior.clone() }).is_none());
    }

    fn file(path: &str, url: &str) -> Attr<AdditionalFile> {
        Attr::Known(AdditionalFile { path: path.into(), url: url.into(), sha256: Attr::Null })
    }

    fn with_files(files: Vec<Attr<AdditionalFile>>) -> LlamaServer {
        LlamaServer { model: "/m.gguf".into(), additional_files: Attr::Known(files), ..LlamaServer::default() }
    }

    /// The paths beside /m.gguf, and the argument that is wrong.
    #[test]
    fn each_file_has_a_path_of_its_own() {
        let part = "https://x/a-00001-of-00002.gguf";
        for (files, expected) in [
            (vec![file("/a", "https://x/a"), file("/b", "https://x/a")], ""),
            (vec![file("/m.gguf", "https://x/a")], "additional_files[0].path"),
            (vec![file("~/a", "https://x/a"), file("~//./a", "https://x/b")], "additional_files[1].path"),
            (
                vec![file("/p-00001-of-00002.gguf", part), file("/p-00002-of-00002.gguf", part)],
                "additional_files[1].path additional_files[1].url",
            ),
            (vec![file("/a", "https://x/a"), file("/p.gguf", part)], "additional_files[1].url"),
            (vec![Attr::Unknown, file("/a", "https://x/a")], ""),
        ] {
            assert_eq!(errors(&with_files(files.clone())).join(" "), expected, "{files:?}");
        }
        let token = Attr::Known(Secret::new("planted"));
        let with_token = LlamaServer { model_source_token_wo: token, ..with_files(Vec::new()) };
        assert_eq!(errors(&with_token), ["model_source_token_wo"]);
        let files = Attr::Known(vec![file("/a", "https://x/a")]);
        assert_eq!(errors(&LlamaServer { additional_files: files, ..with_token }), [""; 0]);
    }

    /// The files before and after, and the argument whose address is another one's.
    #[test]
    fn another_address_counts_for_each_path() {
        let (a, b) = (|| file("~/a", "https://x/a"), || file("/b", "https://x/b"));
        for (after, expected) in [
            (vec![b(), a()], None),
            (vec![file("~//a", "https://X:443/a")], None),
            (vec![file("/c", "https://x/a")], None),
            (vec![b(), file("~/a", "https://x/c")], Some("additional_files[1].url")),
            (vec![file("/b", "https://x/a")], Some("additional_files[0].url")),
        ] {
            let found = changed(&with_files(vec![a(), b()]), &with_files(after.clone()));
            let found = found.and_then(|error| error.path).map(|path| path.to_string());
            assert_eq!(found.as_deref(), expected, "{after:?}");
        }
    }

    /// Where the first address is not known yet, no other one takes its place.
    #[test]
    fn the_token_is_for_the_first_address() {
        let first = |server: &LlamaServer| server.first_address().map(|url| url.to_string());
        let files = || vec![file("/a", "https://a/a"), file("/b", "https://b/b")];
        assert_eq!(first(&with_files(files())).as_deref(), Some("https://a/a"));
        let model = FileSource { url: "https://m/m".into(), sha256: Attr::Null };
        let with_model = LlamaServer { model_source: Attr::Known(model), ..with_files(files()) };
        assert_eq!(first(&with_model).as_deref(), Some("https://m/m"));
        assert_eq!(first(&LlamaServer { model_source: Attr::Unknown, ..with_model }), None);
        assert_eq!(first(&with_files([vec![Attr::Unknown], files()].concat())), None);
        assert_eq!(first(&LlamaServer { additional_files: Attr::Unknown, ..LlamaServer::default() }), None);
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
