//! What a job is given for its start.

use rstest::rstest;

use super::{
    super::bootstrap::{Build, Origin, Place, Source},
    *,
};

fn job() -> Job {
    let text = || String::new();
    Job {
        place: Place { workspace: text(), port: 8000 },
        public_storage: text(),
        model: text(),
        build: Build::Source,
        package: None,
        source: Source { origin: Origin::Default, cuda_architectures: Vec::new(), jobs: None },
        gpu_name: None,
        host: text(),
        context_size: 1,
        parallel: 1,
        gpu_layers: 1,
        flash_attention: text(),
        cache_type_k: text(),
        cache_type_v: text(),
        jinja: true,
        metrics: true,
        extra_args: Vec::new(),
        environment: [].into(),
        api_key: None,
        triggers: [].into(),
        restarts: true,
    }
}

fn texts(words: &str) -> Vec<String> {
    words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn toolkit(version: &str, architectures: &str) -> Toolkit {
    let nvcc = format!("/usr/local/cuda-{version}/bin/nvcc");
    Toolkit { nvcc, version: version.to_owned(), architectures: texts(architectures) }
}

fn facts() -> Facts {
    Facts {
        cards: vec!["NVIDIA GeForce RTX 4090".to_owned()],
        capabilities: texts("8.9"),
        toolkits: vec![toolkit("12.4", "61 70 89")],
        tools: texts("cmake g++ make"),
        memory_mib: Some(64 * 1024),
        cores: Some(16),
        ..Facts::of(
            [
                ("tree".to_owned(), "0123456789abcdef0123 -".to_owned()),
                ("trees".to_owned(), "1\0/p/llama\0".to_owned()),
            ]
            .into(),
        )
    }
}

#[rstest]
#[case::told_by_the_driver("8.9", "any", "", Ok("89"))]
#[case::several_cards("8.9 7.5 8.9", "any", "", Ok("75;89"))]
#[case::asked_for("8.9", "any", "70-real 80", Ok("70-real;80"))]
#[case::an_old_card("", "Tesla V100-SXM2-16GB", "", Ok("70"))]
#[case::another("", "NVIDIA-P40", "", Ok("61"))]
#[case::lower_case("", "tesla v100s", "", Ok("70"))]
#[case::no_old_card("", "Quadro P4000", "", Err("is not known (Quadro P4000)"))]
fn architectures_are_asked_for_or_those_of_the_cards(
    #[case] capabilities: &str,
    #[case] card: &str,
    #[case] asked: &str,
    #[case] expected: Result<&str, &str>,
) {
    let facts = Facts {
        cards: vec![card.to_owned()],
        capabilities: texts(capabilities),
        toolkits: vec![toolkit("any", "")],
        ..facts()
    };
    let mut job = job();
    job.source.cuda_architectures = texts(asked);
    match (choose(&job, &facts), expected) {
        (Ok(recipe), Ok(expected)) => assert_eq!(recipe.architectures, expected),
        (Err(failure), Err(words)) => assert!(failure.text.contains(words), "{}", failure.text),
        (found, _) => panic!("{found:?}"),
    }
}

#[rstest]
#[case::the_first_that_will_do(&[("13.0", "75 89"), ("12.4", "70 89"), ("11.8", "70")], "70", Ok("12.4"))]
#[case::of_its_kind(&[("13.0", "75"), ("12.4", "70")], "70-virtual", Ok("12.4"))]
#[case::all_of_them(&[("13.0", "75 89"), ("12.4", "70 89")], "70 89", Ok("12.4"))]
#[case::one_that_does_not_tell(&[("10.0", "")], "70", Ok("10.0"))]
#[case::a_word_of_cmake(&[("13.0", "75")], "native", Ok("13.0"))]
#[case::dropped(&[("13.0", "75 89")], "70", Err((Kind::Architecture, "/usr/local/cuda-13.0/bin/nvcc (13.0)")))]
#[case::none(&[], "70", Err((Kind::MissingToolkit, "no nvcc on the PATH, in /usr/local/cuda* or /opt/cuda")))]
fn the_first_toolkit_that_compiles_for_the_card_is_taken(
    #[case] there: &[(&str, &str)],
    #[case] architectures: &str,
    #[case] expected: Result<&str, (Kind, &str)>,
) {
    let toolkits = there.iter().map(|(version, known)| toolkit(version, known)).collect();
    let mut job = job();
    job.source.cuda_architectures = texts(architectures);
    match (choose(&job, &Facts { toolkits, ..facts() }), expected) {
        (Ok(recipe), Ok(version)) => assert_eq!(recipe.nvcc, toolkit(version, "").nvcc),
        (Err(failure), Err((kind, words))) => {
            assert!(failure.kind == kind && failure.text.contains(words), "{failure:?}");
        }
        (found, _) => panic!("{found:?}"),
    }
}

#[test]
fn missing_tools_are_told_together() {
    for (tools, missing) in [
        ("cmake c++ ninja", None),
        ("cmake clang++ make", None),
        ("make g++", Some("cmake")),
        ("", Some("cmake, a C++ compiler (g++), make or ninja")),
    ] {
        let chosen = choose(&job(), &Facts { tools: texts(tools), ..facts() });
        assert_eq!(chosen.as_ref().err().map(|failure| failure.kind), missing.map(|_| Kind::MissingTool), "{tools}");
        if let (Err(failure), Some(missing)) = (chosen, missing) {
            assert!(failure.text.ends_with(&format!("not installed: {missing}")), "{}", failure.text);
        }
    }
}

#[test]
fn as_many_files_are_compiled_at_once_as_cores_and_memory_allow() {
    for (memory_mib, cores, asked, expected) in [
        (Some(64 * 1024), Some(16), None, 16),
        (Some(4096), Some(16), None, 2),
        (Some(512), Some(16), None, 1),
        (Some(64 * 1024), None, None, 1),
        (None, Some(8), None, 1),
        (Some(512), Some(1), Some(7), 7),
    ] {
        let mut job = job();
        job.source.jobs = asked;
        let recipe = choose(&job, &Facts { memory_mib, cores, ..facts() }).unwrap();
        assert_eq!(recipe.jobs, expected, "{memory_mib:?} {cores:?} {asked:?}");
    }
}
