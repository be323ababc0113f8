//! With what a source is compiled: a pure function of what was asked for and of what the instance has.

use super::{
    bootstrap::{Facts, Failure, Job, Kind, Recipe, Toolkit},
    package::{self, short_hash},
    source,
};

/// The memory that a compiler needs at most, in MiB.
const MEMORY_OF_A_COMPILER: u64 = 1536;

/// The two old cards whose drivers may not tell their compute capability (service API, In-instance inference server
/// guide).
const OLD_CARDS: &[(&str, &str)] = &[("V100", "70"), ("V100S", "70"), ("P40", "61")];

/// What every compile needs, for people, and the programs of which one will do.
const TOOLS: &[(&str, &[&str])] = &[
    ("cmake", &["cmake"]),
    ("a C++ compiler (g++)", &["c++", "g++", "clang++"]),
    ("make or ninja", &["make", "ninja"]),
];

/// Settings that are given where the source knows an option: they went by several names, and an old one may be an error
/// today. The web page, which is not used here, would be downloaded. The server was one of the examples before there
/// were tools.
const WHERE_KNOWN: &[&str] = &[
    "LLAMA_CUBLAS:LLAMA_CUBLAS=ON",
    "LLAMA_CUDA:LLAMA_CUDA=ON",
    "LLAMA_CURL:LLAMA_CURL=OFF",
    "LLAMA_BUILD_UI:LLAMA_BUILD_UI=OFF",
    "LLAMA_USE_PREBUILT_UI:LLAMA_USE_PREBUILT_UI=OFF",
    "LLAMA_BUILD_WEBUI:LLAMA_BUILD_WEBUI=OFF",
    "LLAMA_USE_PREBUILT_WEBUI:LLAMA_USE_PREBUILT_WEBUI=OFF",
    "LLAMA_BUILD_TOOLS:LLAMA_BUILD_EXAMPLES=OFF",
];

/// Chooses, or says what is missing.
pub(super) fn choose(job: &Job, facts: &Facts) -> Result<Recipe, Failure> {
    let architectures = architectures(job, facts)?;
    let has = |programs: &[&str]| programs.iter().any(|program| facts.tools.iter().any(|tool| tool == program));
    let missing: Vec<&str> = TOOLS.iter().filter(|(_, programs)| !has(programs)).map(|(what, _)| *what).collect();
    if !missing.is_empty() {
        let text = format!("the compile needs what is not installed: {}", missing.join(", "));
        return Err(Failure { kind: Kind::MissingTool, text });
    }
    let toolkit = toolkit(&architectures, &facts.toolkits)?;
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
    let decisive = [&source.name, &source.folder, &toolkit.version, facts.text("cpu"), facts.text("compiler")];
    let all = decisive.into_iter().chain(cmake.iter().map(String::as_str)).chain(WHERE_KNOWN.iter().copied());
    Ok(Recipe {
        key: short_hash(all),
        architectures,
        nvcc: toolkit.nvcc.clone(),
        jobs: job.source.jobs.unwrap_or_else(|| jobs(facts)),
        cmake_where: WHERE_KNOWN.iter().map(|setting| (*setting).to_owned()).collect(),
        cmake,
        hardware: package::hardware(job, facts),
        source,
        note,
    })
}

/// As cmake takes them: those that were asked for, else those that the driver tells, else those of the old cards by
/// their names.
fn architectures(job: &Job, facts: &Facts) -> Result<Vec<String>, Failure> {
    if !job.source.cuda_architectures.is_empty() {
        return Ok(job.source.cuda_architectures.clone());
    }
    let mut found: Vec<String> = facts.capabilities.iter().map(|capability| capability.replace('.', "")).collect();
    if found.is_empty() {
        let words = facts.cards.iter().flat_map(|card| card.split(|c: char| !c.is_ascii_alphanumeric()));
        let of_word = |word: &str| OLD_CARDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found = words.filter_map(of_word).map(|(_, architecture)| (*architecture).to_owned()).collect();
    }
    found.sort_by_key(|architecture| architecture.parse::<u32>().unwrap_or_default());
    found.dedup();
    if !found.is_empty() {
        return Ok(found);
    }
    let cards = if facts.cards.is_empty() { "nvidia-smi names no card".to_owned() } else { facts.cards.join(", ") };
    let text = format!("the CUDA architecture of the card is not known ({cards}): give source.cuda_architectures");
    Err(Failure { kind: Kind::Architecture, text })
}

/// The first toolkit that compiles for all of them. CUDA 13 does not for V100 and P40.
fn toolkit<'a>(architectures: &[String], toolkits: &'a [Toolkit]) -> Result<&'a Toolkit, Failure> {
    // "70-real", "70-virtual"; a word such as "native" is left to cmake.
    let numbers: Vec<&str> = architectures
        .iter()
        .filter_map(|architecture| architecture.split('-').next())
        .filter(|number| number.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let compiles = |toolkit: &&Toolkit| {
        // One that does not list them is believed.
        let knows = |number: &&str| toolkit.architectures.iter().any(|known| known == number);
        toolkit.architectures.is_empty() || numbers.iter().all(knows)
    };
    if let Some(toolkit) = toolkits.iter().find(compiles) {
        return Ok(toolkit);
    }
    if toolkits.is_empty() {
        let text = "no CUDA toolkit to compile with: no nvcc on the PATH, in /usr/local/cuda* or /opt/cuda. Take an \
                    image with the CUDA development tools";
        return Err(Failure { kind: Kind::MissingToolkit, text: text.to_owned() });
    }
    let version = |toolkit: &Toolkit| match toolkit.version.as_str() {
        "" => "no version".to_owned(),
        version => version.to_owned(),
    };
    let there: Vec<String> =
        toolkits.iter().map(|toolkit| format!("{} ({})", toolkit.nvcc, version(toolkit))).collect();
    let text = format!(
        "no CUDA toolkit there compiles for the architecture {} (CUDA 13 dropped V100 and P40: take an image with \
         CUDA 12 or 11). There is:\n{}",
        architectures.join(";"),
        there.join("\n")
    );
    Err(Failure { kind: Kind::Architecture, text })
}

/// As many as there are cores, and memory for each. A container may be granted less than it sees.
fn jobs(facts: &Facts) -> u32 {
    let by_memory = facts.memory_mib.map_or(1, |memory| memory / MEMORY_OF_A_COMPILER);
    u32::try_from(by_memory).unwrap_or(u32::MAX).min(facts.cores.unwrap_or(1)).max(1)
}

#[cfg(test)]
mod tests;
