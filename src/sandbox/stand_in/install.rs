//! Puts the stand-ins into a home.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    Machine,
    build::{Build, FILE, Generation},
    models,
};

/// The source: path in it and content. What depends on the place or the generation is written beside.
const SOURCE: [(&str, &str); 8] = [
    ("CMakeLists.txt", include_str!("source/CMakeLists.txt")),
    ("cmake/CMakeTestCUDACompiler.cmake", include_str!("source/CMakeTestCUDACompiler.cmake")),
    ("cmake/step.sh", include_str!("source/step.sh")),
    ("ggml/src/ggml.c", include_str!("source/ggml.c")),
    ("ggml/src/ggml-cuda/fattn.cu", include_str!("source/fattn.cu")),
    ("ggml/src/ggml-cuda/ggml-cuda.cu", include_str!("source/ggml-cuda.cu")),
    ("src/llama.cpp", include_str!("source/llama.cpp")),
    ("tools/server/server.c", include_str!("source/server.c")),
];

/// What `.machine/bin` may hold.
const TOOLS: [&str; 3] = ["nvcc", "nvidia-smi", "ss"];

/// The folder of programs that a home gets, to be first on PATH.
#[must_use]
pub fn bin(home: &Path) -> PathBuf {
    home.join(".machine/bin")
}

/// Fills a home with everything that the [module](super) lists. `executable` is this program as a file; without one the
/// models alone are put there.
///
/// # Errors
///
/// When something cannot be written. What is there already is written over.
pub fn install(home: &Path, machine: &Machine, executable: Option<&Path>) -> io::Result<()> {
    let storage = home.join("public-storage");
    models::write(&storage.join("model"))?;
    let package = storage.join("package");
    fs::create_dir_all(&package)?;
    equip(home, machine, executable)?;
    let Some(executable) = executable else { return Ok(()) };
    for (name, generation) in [("llama.cpp-new", Generation::New), ("llama.cpp-old", Generation::Old)] {
        let folder = package.join(name).join("bin");
        fs::create_dir_all(&folder)?;
        link(executable, &folder.join("llama-server"))?;
        fs::write(folder.join(FILE), serde_json::to_vec(&Build::prebuilt(generation))?)?;
    }
    // The compiled server becomes this one.
    let server = home.join(".machine/stand-in/llama-server");
    fs::create_dir_all(server.parent().unwrap_or(home))?;
    link(executable, &server)?;
    let source = package.join("llama.cpp-src");
    write_source(&source, Generation::New, &server)?;
    archive(&package)?;
    repository(&storage.join("git"), &server)
}

/// Writes down what hardware there is, and puts the tools there that come with it.
///
/// # Errors
///
/// When something cannot be written.
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

fn write_source(folder: &Path, generation: Generation, server: &Path) -> io::Result<()> {
    for (path, content) in SOURCE {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(file, content)?;
    }
    let (word, commit) = match generation {
        Generation::New => ("new", "f1e2d3c4b"),
        Generation::Old => ("old", "a9b8c7d6e"),
    };
    let server = server.display();
    let about =
        format!("set(LLAMA_GENERATION {word})\nset(LLAMA_COMMIT {commit})\nset(LLAMA_STAND_IN [=[{server}]=])\n");
    fs::write(folder.join("cmake/about.cmake"), about)
}

/// `llama.cpp-src.tar.gz`, where the system has tar.
fn archive(package: &Path) -> io::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["-czf", "llama.cpp-src.tar.gz", "llama.cpp-src"]).current_dir(package);
    run(&mut tar)
}

/// `llama.cpp.git`, where the system has git: two commits with their tags.
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
    for (generation, tag) in [(Generation::Old, "b4748"), (Generation::New, "b6500")] {
        write_source(work.path(), generation, server)?;
        git(&["add", "--all"])?;
        git(&["commit", "--quiet", "--message", tag])?;
        git(&["tag", tag])?;
    }
    let git_folder = work.path().join(".git");
    if git_folder.exists() {
        git(&["config", "core.bare", "true"])?;
        fs::rename(git_folder, repository)?;
    }
    Ok(())
}

/// Runs a program of the system; one that there is not leaves out what it would have made.
fn run(command: &mut Command) -> io::Result<()> {
    match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
