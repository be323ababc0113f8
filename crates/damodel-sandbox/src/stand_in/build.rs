//! The build of a server (its commit, and the GPUs it was compiled for), and the installation of the stand-ins in a
//! home.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};

use super::{
    gguf,
    machine::{Call, Machine},
};

/// Set by the compiled launcher to its build, before it becomes this program.
const VARIABLE: &str = "LLAMA_STAND_IN_BUILD";

/// The build, beside a prebuilt server.
pub(super) const FILE: &str = "build.json";

/// A build of 0.5.0-dev of autumn 2026.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StandInBuild {
    pub(super) commit: String,
    /// CUDA architectures, such as 75; empty for a build without CUDA.
    pub(super) architectures: Vec<u32>,
}

impl StandInBuild {
    /// A prebuilt one of the public storage. Like CUDA 13, it has no architecture below 75.
    pub(super) fn prebuilt() -> Self {
        Self { commit: "0c1e57098".to_owned(), architectures: vec![75, 80, 86, 89, 90] }
    }

    /// The build that was started: from the launcher's variable, or from the file beside the program.
    pub(super) fn of(call: &Call<'_>) -> Self {
        let told = call.text(VARIABLE).and_then(|text| Self::parse(&text));
        told.or_else(|| beside(&found(call))).unwrap_or_else(Self::prebuilt)
    }

    /// `f1e2d3c4b 70,75`.
    fn parse(text: &str) -> Option<Self> {
        let (commit, architectures) = text.split_once(' ')?;
        let architectures = architectures.split(',').filter_map(|text| text.parse().ok()).collect();
        Some(Self { commit: commit.to_owned(), architectures })
    }

    /// As in `system_fingerprint` and `build_info`.
    pub(super) fn info(&self) -> String {
        format!("b0-{}", self.commit)
    }

    /// As `--version` prints it.
    pub(super) fn version(&self) -> String {
        format!("version: 0.5.0-dev (build 0, commit {})\nbuilt with GNU 12.2.0 for Linux x86_64\n", self.commit)
    }

    /// Whether its kernels run on this architecture: the driver compiles those for an older one again, not those for a
    /// newer one.
    pub(super) fn runs_on(&self, architecture: u32) -> bool {
        self.architectures.iter().any(|&own| own <= architecture)
    }
}

/// The program's file: its path, or its place on PATH.
fn found(call: &Call<'_>) -> PathBuf {
    if call.program.components().count() > 1 {
        return call.program.clone();
    }
    let path = call.text("PATH").unwrap_or_default();
    let places = path.split(':').map(|folder| Path::new(folder).join(&call.program));
    places.into_iter().find(|place| place.exists()).unwrap_or_else(|| call.program.clone())
}

/// The build beside the program, or beside the target of its link.
fn beside(program: &Path) -> Option<StandInBuild> {
    let mut program = program.to_owned();
    loop {
        let folder = program.parent()?;
        if let Ok(text) = fs::read(folder.join(FILE)) {
            return serde_json::from_slice(&text).ok();
        }
        program = folder.join(fs::read_link(&program).ok()?);
    }
}

/// Paths below `source/` with their contents.
macro_rules! source {
    ($($path:literal),+ $(,)?) => { &[$(($path, include_str!(concat!("source/", $path)))),+] };
}

/// The source, without `cmake/about.cmake`, which depends on the home.
const SOURCE: &[(&str, &str)] = source![
    "CMakeLists.txt",
    "cmake/CMakeTestCUDACompiler.cmake",
    "cmake/step.sh",
    "ggml/src/ggml-cuda/fattn.cu",
    "ggml/src/ggml-cuda/ggml-cuda.cu",
    "ggml/src/ggml.cpp",
    "src/llama.cpp",
    "tools/server/server.cpp",
];

/// The tools that `.machine/bin` may contain.
const TOOLS: [&str; 3] = ["nvcc", "nvidia-smi", "ss"];

/// The folder of a home's programs, to be first on PATH.
#[must_use]
pub fn bin(home: &Path) -> PathBuf {
    home.join(".machine/bin")
}

/// Fills a home with everything that the [module](super) lists. `executable` is the file of this program; without it
/// only the models are written.
///
/// # Errors
///
/// When a file cannot be written. Existing files are overwritten; an existing git repository is kept.
pub fn install(home: &Path, machine: &Machine, executable: Option<&Path>) -> io::Result<()> {
    let storage = home.join("public-storage");
    gguf::write(&storage.join("model"))?;
    let package = storage.join("package");
    fs::create_dir_all(&package)?;
    equip(home, machine, executable)?;
    let Some(executable) = executable else { return Ok(()) };
    let folder = package.join("llama.cpp/bin");
    fs::create_dir_all(&folder)?;
    link(executable, &folder.join("llama-server"))?;
    fs::write(folder.join(FILE), serde_json::to_vec(&StandInBuild::prebuilt())?)?;
    // The compiled server runs this one.
    let server = home.join(".machine/stand-in/llama-server");
    fs::create_dir_all(server.parent().unwrap_or(home))?;
    link(executable, &server)?;
    let source = package.join("llama.cpp-src");
    write_source(&source, &server)?;
    archive(&package)?;
    repository(&storage.join("git"), &server)
}

/// Writes the description of the hardware, and installs the tools that belong to it.
///
/// # Errors
///
/// When a file cannot be written.
pub fn equip(home: &Path, machine: &Machine, executable: Option<&Path>) -> io::Result<()> {
    let bin = bin(home);
    fs::create_dir_all(&bin)?;
    machine.write(home)?;
    let Some(executable) = executable else { return Ok(()) };
    for tool in TOOLS {
        let has_tool = match tool {
            "nvcc" => machine.toolkit.is_some(),
            "nvidia-smi" => machine.gpu.is_some(),
            _ => true,
        };
        if has_tool {
            link(executable, &bin.join(tool))?;
        } else {
            remove(&bin.join(tool))?;
        }
    }
    Ok(())
}

fn link(to: &Path, from: &Path) -> io::Result<()> {
    remove(from)?;
    symlink(to, from)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write_source(folder: &Path, server: &Path) -> io::Result<()> {
    for (path, content) in SOURCE {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(file, content)?;
    }
    let about = format!("set(LLAMA_COMMIT f1e2d3c4b)\nset(LLAMA_STAND_IN [=[{}]=])\n", server.display());
    fs::write(folder.join("cmake/about.cmake"), about)
}

/// `llama.cpp-src.tar.gz`, if the system has tar.
fn archive(package: &Path) -> io::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["-czf", "llama.cpp-src.tar.gz", "llama.cpp-src"]).current_dir(package);
    run(&mut tar)
}

/// The tag of the source's commit.
const TAG: &str = "b6500";

/// `llama.cpp.git`, if the system has git: one commit with its tag.
fn repository(folder: &Path, server: &Path) -> io::Result<()> {
    let repository = folder.join("llama.cpp.git");
    if repository.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let work = tempfile::tempdir_in(folder)?;
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=sandbox", "-c", "user.email=sandbox@localhost", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(work.path());
        run(&mut git)
    };
    git(&["init", "--quiet", "--template=", "--initial-branch=master"])?;
    write_source(work.path(), server)?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", TAG])?;
    git(&["tag", TAG])?;
    let git_folder = work.path().join(".git");
    if git_folder.exists() {
        git(&["config", "core.bare", "true"])?;
        fs::rename(git_folder, repository)?;
    }
    Ok(())
}

/// Runs a program of the system. If it is not installed, its output is left out.
fn run(command: &mut Command) -> io::Result<()> {
    match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
