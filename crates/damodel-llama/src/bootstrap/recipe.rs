//! The settings of a compile: a pure function of the job and the facts about the instance.

use super::{
    super::{
        package::{self, short_hash},
        source,
    },
    Facts, FailureKind, Job, JobFailure, Recipe, Toolkit,
    start::CMAKE_WHERE_KNOWN,
};

/// The memory that a compiler needs at most, in MiB.
const MEMORY_OF_A_COMPILER: u64 = 1536;

/// Cards that the prebuilt server cannot use (service API, In-instance inference server guide), and their CUDA
/// architectures.
const OLD_CARDS: &[(&str, &str)] = &[("V100", "70"), ("V100S", "70"), ("P40", "61")];

/// The tools of every compile: the name for people, and the programs, of which one is enough.
const TOOLS: &[(&str, &[&str])] = &[
    ("cmake", &["cmake"]),
    ("a C++ compiler (g++)", &["c++", "g++", "clang++"]),
    ("make or ninja", &["make", "ninja"]),
];

/// Chooses the settings.
pub(in super::super) fn choose(job: &Job, facts: &Facts) -> Result<Recipe, JobFailure> {
    let architectures = architectures(job, facts)?;
    let has = |programs: &[&str]| programs.iter().any(|program| facts.tools.iter().any(|tool| tool == program));
    let missing: Vec<&str> = TOOLS.iter().filter(|(_, programs)| !has(programs)).map(|(what, _)| *what).collect();
    if !missing.is_empty() {
        let text = format!("programs that the build needs are not installed: {}", missing.join(", "));
        return Err(JobFailure { kind: FailureKind::MissingTool, text });
    }
    let toolkit = toolkit(&architectures, &facts.toolkits, facts.text("driver"))?;
    let architectures = architectures.join(";");
    let (source, note) = source::choose(job, facts)?;
    let mut cmake: Vec<String> =
        ["CMAKE_BUILD_TYPE=Release", "LLAMA_BUILD_TESTS=OFF", "LLAMA_BUILD_SERVER=ON", "GGML_CUDA=ON"]
            .map(|setting| format!("-D{setting}"))
            .into();
    cmake.push(format!("-DCMAKE_CUDA_ARCHITECTURES={architectures}"));
    cmake.push(format!("-DCMAKE_CUDA_COMPILER={}", toolkit.nvcc));
    cmake.push("-G".to_owned());
    cmake.push(if has(&["ninja"]) { "Ninja" } else { "Unix Makefiles" }.to_owned());
    // "native" compiles for the cards of the instance, so the build belongs to them.
    let cards = if architectures == "native" { facts.cards.join(";") } else { String::new() };
    let decisive = [&cards, &source.name, &source.folder, &toolkit.version, facts.text("cpu"), facts.text("compiler")];
    let all = decisive.into_iter().chain(cmake.iter().map(String::as_str)).chain(CMAKE_WHERE_KNOWN.iter().copied());
    Ok(Recipe {
        key: short_hash(all),
        architectures,
        nvcc: toolkit.nvcc.clone(),
        jobs: jobs(facts),
        cmake,
        hardware: package::hardware(job, facts),
        source,
        note,
    })
}

/// The CUDA architecture of a card that the prebuilt server cannot use.
pub(in super::super) fn of_an_old_card(card: &str) -> Option<&'static str> {
    let mut words = card.split(|c: char| !c.is_ascii_alphanumeric());
    let (_, architecture) =
        words.find_map(|word| OLD_CARDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)))?;
    Some(architecture)
}

/// The architectures for cmake: those of the configuration, else those that the driver reports, else those of the old
/// cards by their names.
fn architectures(job: &Job, facts: &Facts) -> Result<Vec<String>, JobFailure> {
    if !job.source.cuda_architectures.is_empty() {
        return Ok(job.source.cuda_architectures.clone());
    }
    let mut found: Vec<String> = facts.capabilities.iter().map(|capability| capability.replace('.', "")).collect();
    if found.is_empty() {
        found = facts.cards.iter().filter_map(|card| of_an_old_card(card)).map(str::to_owned).collect();
    }
    found.sort_by_key(|architecture| architecture.parse::<u32>().unwrap_or_default());
    found.dedup();
    if !found.is_empty() {
        return Ok(found);
    }
    let cards = if facts.cards.is_empty() { "no GPU".to_owned() } else { facts.cards.join(", ") };
    let text = format!(
        "the CUDA architecture of the GPU ({cards}) is unknown: nvidia-smi does not report it. The program is looked \
         for on the PATH of the login and of process 1, and in /usr/local/nvidia/bin. Set source.cuda_architectures"
    );
    Err(JobFailure { kind: FailureKind::Architecture, text })
}

/// The first toolkit that compiles for all of them; CUDA 13 does not for V100 and P40. One whose major version the
/// driver supports comes before others. `driver` is the version of CUDA that it reports.
fn toolkit<'a>(architectures: &[String], toolkits: &'a [Toolkit], driver: &str) -> Result<&'a Toolkit, JobFailure> {
    // "70-real", "70-virtual"; a word such as "native" is left to cmake.
    let numbers: Vec<&str> = architectures
        .iter()
        .filter_map(|architecture| architecture.split('-').next())
        .filter(|number| number.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let compiles = |toolkit: &&Toolkit| {
        // A toolkit that lists none may support all, and one that lists 90 has 90a too.
        toolkit.architectures.is_empty()
            || numbers.iter().all(|number| {
                let plain = number.trim_end_matches(['a', 'f']);
                toolkit.architectures.iter().any(|known| known == number || known == plain)
            })
    };
    let major = |version: &str| version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if let Some(toolkit) = toolkits
        .iter()
        .filter(compiles)
        .min_by_key(|toolkit| major(driver).zip(major(&toolkit.version)).is_some_and(|(own, its)| its > own))
    {
        return Ok(toolkit);
    }
    if toolkits.is_empty() {
        let text = "no CUDA toolkit to compile with: no nvcc on the PATH, in /usr/local/cuda* or /opt/cuda. Use an \
                    image with the CUDA development tools";
        return Err(JobFailure { kind: FailureKind::MissingToolkit, text: text.to_owned() });
    }
    let there = toolkits.iter().map(|Toolkit { nvcc, version, .. }| match version.as_str() {
        "" => format!("{nvcc} (no version)"),
        version => format!("{nvcc} ({version})"),
    });
    let there: Vec<String> = there.collect();
    let text = format!(
        "no installed CUDA toolkit compiles for the architecture {} (CUDA 13 does not support V100 and P40: use an \
         image with CUDA 12 or 11). Available:\n{}",
        architectures.join(";"),
        there.join("\n")
    );
    Err(JobFailure { kind: FailureKind::Architecture, text })
}

/// One job for each core, as far as memory allows.
fn jobs(facts: &Facts) -> u32 {
    let by_memory = facts.memory_mib.map_or(1, |memory| memory / MEMORY_OF_A_COMPILER);
    u32::try_from(by_memory).unwrap_or(u32::MAX).min(facts.cores.unwrap_or(1)).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rstest::rstest;

    use super::{
        super::Build,
        FailureKind::{Architecture, MissingToolkit},
        *,
    };

    fn job() -> Job {
        Job { build: Build::Source, ..Job::sample() }
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
    #[case::no_old_card("", "Quadro P4000", "", Err("(Quadro P4000) is unknown: nvidia-smi does not report it"))]
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
    #[case::the_first_that_will_do(&[("13.0", "75 89"), ("12.4", "70 89"), ("11.8", "70")], "70", "", Ok("12.4"))]
    #[case::of_its_kind(&[("13.0", "75"), ("12.4", "70")], "70-virtual", "", Ok("12.4"))]
    #[case::with_more_features(&[("13.0", "75 90"), ("12.4", "70")], "90a-real", "", Ok("13.0"))]
    #[case::all_of_them(&[("13.0", "75 89"), ("12.4", "70 89")], "70 89", "", Ok("12.4"))]
    #[case::one_that_does_not_tell(&[("10.0", "")], "70", "", Ok("10.0"))]
    #[case::a_word_of_cmake(&[("13.0", "75")], "native", "", Ok("13.0"))]
    #[case::of_the_driver(&[("13.0", "89"), ("12.4", "89"), ("11.8", "89")], "89", "12.8", Ok("12.4"))]
    #[case::of_a_newer_driver(&[("12.4", "89"), ("13.0", "89")], "89", "13.1", Ok("12.4"))]
    #[case::the_driver_refuses_none(&[("13.0", "89")], "89", "12.8", Ok("13.0"))]
    #[case::dropped(&[("13.0", "75 89")], "70", "", Err((Architecture, "/usr/local/cuda-13.0/bin/nvcc (13.0)")))]
    #[case::none(&[], "70", "", Err((MissingToolkit, "no nvcc on the PATH, in /usr/local/cuda* or /opt/cuda")))]
    fn the_first_toolkit_that_compiles_for_the_card_is_taken(
        #[case] there: &[(&str, &str)],
        #[case] architectures: &str,
        #[case] driver: &str,
        #[case] expected: Result<&str, (FailureKind, &str)>,
    ) {
        let toolkits = there.iter().map(|(version, known)| toolkit(version, known)).collect();
        let mut job = job();
        job.source.cuda_architectures = texts(architectures);
        let mut facts = Facts { toolkits, ..facts() };
        facts.answers.insert("driver".to_owned(), driver.to_owned());
        match (choose(&job, &facts), expected) {
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
            assert_eq!(
                chosen.as_ref().err().map(|failure| failure.kind),
                missing.map(|_| FailureKind::MissingTool),
                "{tools}"
            );
            if let (Err(failure), Some(missing)) = (chosen, missing) {
                assert!(failure.text.ends_with(&format!("not installed: {missing}")), "{}", failure.text);
            }
        }
    }

    #[test]
    fn a_native_build_is_one_of_its_cards() {
        let key = |architecture: &str, card: &str| {
            let mut job = job();
            job.source.cuda_architectures = texts(architecture);
            choose(&job, &Facts { cards: vec![card.to_owned()], ..facts() }).unwrap().key
        };
        assert_ne!(key("native", "T4"), key("native", "A100"));
        assert_eq!(key("89-real", "T4"), key("89-real", "A100"));
        assert_ne!(key("89-real", "T4"), key("70-real", "T4"));
    }

    /// A private image brings a finished build to another instance.
    #[test]
    fn a_build_is_of_its_source_its_cpu_and_its_compiler() {
        let key = |name: &str, answer: &str| {
            let mut facts = facts();
            facts.answers.insert(name.to_owned(), answer.to_owned());
            choose(&job(), &facts).unwrap().key
        };
        let keys = [("", ""), ("tree", "f123456789abcdef0123 -"), ("cpu", "flags : fpu"), ("compiler", "c++ 13")];
        let keys: BTreeSet<String> = keys.into_iter().map(|(name, answer)| key(name, answer)).collect();
        assert_eq!(keys.len(), 4);
        assert_eq!(key("user", "root"), key("", ""));
    }

    #[test]
    fn as_many_files_are_compiled_at_once_as_cores_and_memory_allow() {
        for (memory_mib, cores, expected) in [
            (Some(64 * 1024), Some(16), 16),
            (Some(4096), Some(16), 2),
            (Some(512), Some(16), 1),
            (Some(64 * 1024), None, 1),
            (None, Some(8), 1),
        ] {
            let recipe = choose(&job(), &Facts { memory_mib, cores, ..facts() }).unwrap();
            assert_eq!(recipe.jobs, expected, "{memory_mib:?} {cores:?}");
        }
    }
}
