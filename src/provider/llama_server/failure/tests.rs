//! What failures say.

use super::{
    super::{bootstrap::Failure, model::Source},
    *,
};
use crate::framework::Attr;

fn failure(kind: Kind) -> Failure {
    Failure { kind, text: format!("what was seen of {}", kind.as_str()) }
}

fn report(because: Option<Kind>, kind: Kind) -> Report {
    Report { phase: Phase::Failed, failure: Some(failure(kind)), because: because.map(failure), ..Report::absent() }
}

fn server(build: &str) -> LlamaServer {
    LlamaServer { build: build.into(), ..LlamaServer::default() }
}

fn blamed(diagnostic: &Diagnostic) -> Option<String> {
    diagnostic.path.as_ref().map(ToString::to_string)
}

#[test]
fn of_several_causes_the_first_is_blamed_and_all_are_told() {
    for second in [Kind::MissingToolkit, Kind::Architecture, Kind::Compile, Kind::NoSource] {
        let told = failed(&server("auto"), &report(Some(Kind::Unsupported), second), "now");
        assert!(told.summary.ends_with("this build cannot do what is asked"), "{}", told.summary);
        assert_eq!(blamed(&told).as_deref(), Some("api_key_wo"));
        let order = ["seen of unsupported", "Then a build from source was tried", second.as_str(), "now"];
        let found: Vec<_> = order.iter().map(|words| told.detail.find(words).expect(words)).collect();
        assert!(found.is_sorted(), "{}", told.detail);
    }
}

/// What is set already is no advice.
#[test]
fn advice_never_names_what_is_set_already() {
    let sets_build = "build = \"source\"";
    for kind in Kind::ALL {
        for build in ["source", "auto"] {
            let told = failed(&server(build), &report(None, *kind), "");
            assert!(!told.detail.contains(sets_build), "{kind:?} {build}: {}", told.detail);
        }
    }
    let told = |server: &LlamaServer, kind| failed(server, &report(None, kind), "").detail;
    assert!(told(&server("prebuilt"), Kind::Unsupported).contains(sets_build));
    assert!(told(&server("prebuilt"), Kind::NoPackage).contains("Set package"));
    let with_package = LlamaServer { package: "~/llama".into(), ..server("prebuilt") };
    assert!(told(&with_package, Kind::NoPackage).contains("Correct package"));

    let with_source = |source: Source| LlamaServer { source: Attr::Known(source), ..server("source") };
    let path = with_source(Source { path: "~/source".into(), ..Source::default() });
    assert!(told(&path, Kind::NoSource).contains("Correct source.path"));
    let url = with_source(Source { url: "https://example.com".into(), ..Source::default() });
    assert!(told(&url, Kind::NoSource).contains("Correct source.url"));
    let architectures = Attr::Known(vec!["70".into()]);
    let architectures = with_source(Source { cuda_architectures: architectures, ..Source::default() });
    assert!(told(&architectures, Kind::Architecture).contains("Correct source.cuda_architectures"));
}

#[test]
fn a_refused_option_is_blamed_on_the_argument_that_sets_it() {
    let refused = |server: &LlamaServer, text: &str| {
        let failure = Some(Failure { kind: Kind::BadOption, text: text.to_owned() });
        blamed(&failed(server, &Report { failure, ..report(None, Kind::BadOption) }, ""))
    };
    let extra = LlamaServer { extra_args: Attr::Known(vec!["--x".into()]), ..server("auto") };
    assert_eq!(refused(&extra, "error while handling argument \"-ctk\": no").as_deref(), Some("cache_type_k"));
    assert_eq!(refused(&extra, "error: invalid argument: --x").as_deref(), Some("extra_args"));
    assert_eq!(refused(&server("auto"), "error: invalid argument: --x"), None);
}
