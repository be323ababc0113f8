//! `scripts/release` on the binary under test, tried by the real command line. A stand-in for cargo makes the builds.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{
    house::crates,
    support::{
        plugin::BINARY,
        program,
        terraform::{Run, each_cli},
    },
};

const NAME: &str = concat!("terraform-provider-damodel_", env!("CARGO_PKG_VERSION"));

/// Writes the requested file, with its arguments and the folder, like the real one.
const CYCLONEDX: &str = r#"#!/bin/sh
arguments=$*
while [ "$1" != --override-filename ]; do shift; done
reference=path+file://$PWD#terraform-provider-damodel@1
for folder in . crates/*; do
  echo "{\"arguments\": \"$arguments\", \"bom-ref\": \"$reference\"}" >"$folder/$2.json"
done
"#;

/// Builds a program that contains its folder, unless the folder is remapped; with `EMBED` set, always.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = build ] || exit 0
while [ "$1" != --target ]; do shift; done
mkdir -p "target/$2/dist"
program=target/$2/dist/terraform-provider-damodel
case $2 in *windows*) program=$program.exe ;; esac
folder=$PWD
case $CARGO_ENCODED_RUSTFLAGS in *"--remap-path-prefix=$PWD=/build"*) folder=/build ;; esac
folder=${EMBED:+$PWD}${EMBED:-$folder}
printf '#!/bin/sh\n: %s\necho "terraform-provider-damodel VERSION (commit none)"\n' "$folder" >"$program"
chmod +x "$program"
"#;

/// A folder for the assets, a keyring of its own, and a folder of programs that come first on PATH.
struct Scene {
    root: TempDir,
}

impl Scene {
    fn set() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("keys")).unwrap();
        fs::set_permissions(root.path().join("keys"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        Self { root }
    }

    fn release(&self, arguments: &[&str]) -> Run {
        self.release_of(Path::new(env!("CARGO_MANIFEST_DIR")), arguments, &[])
    }

    /// The script of these sources.
    fn release_of(&self, sources: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
        let mut command = Command::new(sources.join("scripts/release"));
        command.arg("--out").arg(self.assets()).args(arguments).env("GNUPGHOME", self.root.path().join("keys"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.root.path().join("bin").display()));
        command.env_remove("CARGO_TARGET_DIR").env("ZIPOPT", "-1").envs(environment.iter().copied());
        Run::of(command.output().unwrap())
    }

    /// A repository with everything that the script reads, and one commit.
    fn sources(&self) -> PathBuf {
        let sources = self.root.path().join("sources");
        fs::create_dir_all(sources.join("scripts")).unwrap();
        for file in ["scripts/release", "Cargo.toml", "LICENSE", "README.md", "terraform-registry-manifest.json"] {
            fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(file), sources.join(file)).unwrap();
        }
        for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "release"]] {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=Release", "-c", "user.email=release@example.com", "-C"]).arg(&sources);
            assert!(git.args(arguments).status().unwrap().success(), "{arguments:?}");
        }
        sources
    }

    fn tool(&self, name: &str, script: &str) -> String {
        let path = self.root.path().join("bin").join(name);
        program::put(&path, script);
        path.to_str().unwrap().to_owned()
    }

    fn assets(&self) -> PathBuf {
        self.root.path().join("assets")
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.assets().join(name)).unwrap()
    }

    fn gpg(&self, arguments: &[&str]) {
        let mut command = Command::new("gpg");
        command.args(["--batch", "--pinentry-mode", "loopback", "--passphrase", ""]).args(arguments);
        let run = Run::of(command.env("GNUPGHOME", self.root.path().join("keys")).output().unwrap());
        assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
    }

    /// A program that prints this version.
    fn program(&self, said: &str) -> String {
        self.tool("program", &format!("#!/bin/sh\necho '{said}'\n"))
    }
}

impl Drop for Scene {
    /// Ends the agent that gpg started for the keyring.
    fn drop(&mut self) {
        let keys = self.root.path().join("keys");
        let _ = Command::new("gpgconf").args(["--kill", "all"]).env("GNUPGHOME", keys).status();
    }
}

#[test]
fn the_assets_are_as_the_registries_take_them() {
    each_cli(|cli| {
        let scene = Scene::set();
        scene.gpg(&["--quick-generate-key", "Release <release@example.com>", "rsa2048", "sign", "never"]);
        let cli = cli.program.to_str().unwrap();
        let run =
            scene.release(&["--binary", BINARY, "--sandbox", BINARY, "--sign", "release@example.com", "--cli", cli]);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains(": init from a packed mirror, providers lock, providers schema"), "{}", run.stdout);
        let manifest = scene.read(&format!("{NAME}_manifest.json"));
        let expected = json!({"version": 1, "metadata": {"protocol_versions": ["6.0"]}});
        assert_eq!(serde_json::from_slice::<Value>(&manifest).unwrap(), expected);

        let mut assets: Vec<String> = fs::read_dir(scene.assets())
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        assets.sort();
        let zip = |name: &str| {
            let is_its = |asset: &&String| asset.starts_with(name) && asset.ends_with(".zip");
            assets.iter().find(is_its).unwrap().clone()
        };
        let (zip, sandbox) = (zip("terraform-provider-damodel_"), zip("damodel-sandbox_"));
        let sums = format!("{NAME}_SHA256SUMS");
        let manifest = format!("{NAME}_manifest.json");
        let expected = [sandbox.clone(), sums.clone(), format!("{sums}.sig"), zip.clone(), manifest.clone()];
        assert_eq!(assets, expected);
        let line = |name: &str| format!("{}  {name}\n", hex::encode(Sha256::digest(scene.read(name))));
        let expected = [&zip, &sandbox, &manifest].map(|name| line(name)).concat();
        assert_eq!(String::from_utf8(scene.read(&sums)).unwrap(), expected);
        // Detached and binary.
        assert!(!scene.read(&format!("{sums}.sig")).starts_with(b"-----BEGIN"));
        let path = |name: &str| scene.assets().join(name).to_str().unwrap().to_owned();
        scene.gpg(&["--verify", &path(&format!("{sums}.sig")), &path(&sums)]);
        let program = format!("terraform-provider-damodel_v{}", env!("CARGO_PKG_VERSION"));
        for (zip, program) in [(&zip, program.as_str()), (&sandbox, "damodel-sandbox")] {
            let listed = Run::of(Command::new("unzip").args(["-Z", &path(zip)]).output().unwrap()).stdout;
            assert!(listed.lines().any(|line| line.starts_with("-rwxr-xr-x") && line.ends_with(program)), "{listed}");
        }
    });
}

#[test]
fn the_same_content_gives_the_same_bytes() {
    let scene = Scene::set();
    let program = scene.program(&format!("terraform-provider-damodel {} (commit none)", env!("CARGO_PKG_VERSION")));
    let windows = format!("windows_amd64={program}");
    let both = ["--binary", &format!("plan9_arm={program}"), "--binary", &windows];
    let mut seen = Vec::new();
    for _ in 0..2 {
        let run = scene.release(&both);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains("not signed") && run.stdout.contains("not tried"), "{}", run.stdout);
        seen.push(scene.read(&format!("{NAME}_SHA256SUMS")));
    }
    assert_eq!(seen[0], seen[1]);
    let zip = scene.assets().join(format!("{NAME}_windows_amd64.zip"));
    let listed = Run::of(Command::new("unzip").arg("-Z1").arg(zip).output().unwrap()).stdout;
    assert!(
        listed.starts_with(&format!("terraform-provider-damodel_v{}.exe\n", env!("CARGO_PKG_VERSION"))),
        "{listed}"
    );
}

#[test]
fn what_the_programs_are_made_of_is_a_file_beside_them() {
    let scene = Scene::set();
    let program = scene.program(&format!("terraform-provider-damodel {} (commit none)", env!("CARGO_PKG_VERSION")));
    let windows = format!("windows_amd64={program}");
    let given = ["--binary", &windows, "--sandbox", &windows];
    let run = scene.release(&given);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("(cargo install cargo-auditable)"), "{}", run.stdout);
    assert!(run.stdout.contains("(cargo install cargo-cyclonedx)"), "{}", run.stdout);

    scene.tool("cargo-cyclonedx", CYCLONEDX);
    let run = scene.release(&given);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(!run.stdout.contains("cargo-cyclonedx"), "{}", run.stdout);
    let sums = String::from_utf8(scene.read(&format!("{NAME}_SHA256SUMS"))).unwrap();
    // `docs` is for who builds from source, the sandbox for who tests modules.
    let sandbox = "--no-default-features --features sandbox";
    for (name, features) in [("terraform-provider-damodel", "--no-default-features"), ("damodel-sandbox", sandbox)] {
        let file = format!("{name}_{}_windows_amd64.cdx.json", env!("CARGO_PKG_VERSION"));
        assert!(sums.contains(&format!("  {file}\n")), "{sums}");
        let contents: Value = serde_json::from_slice(&scene.read(&file)).unwrap();
        assert_eq!(contents["bom-ref"], "path+file://.#1");
        let arguments = contents["arguments"].as_str().unwrap();
        assert!(arguments.ends_with(features), "{arguments}");
        assert!(arguments.contains("--target x86_64-pc-windows-gnu"), "{arguments}");
        for folder in crates() {
            assert!(!Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(&file).exists());
        }
    }
}

#[test]
fn another_build_is_compared_byte_by_byte() {
    let scene = Scene::set();
    scene.tool("cargo", &CARGO.replace("VERSION", env!("CARGO_PKG_VERSION")));
    let host = Run::of(Command::new("rustc").arg("-vV").output().unwrap()).stdout;
    let sysroot = scene.root.path().join("rust");
    let rustc = format!("#!/bin/sh\n[ \"$1\" = -vV ] || exec echo {}\ncat <<'END'\n{host}END\n", sysroot.display());
    scene.tool("rustc", &rustc);
    // This machine and Windows have a standard library and a C compiler.
    let own = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    for target in [own, "x86_64-pc-windows-gnu"] {
        let library = sysroot.join("lib/rustlib").join(target).join("lib");
        fs::create_dir_all(&library).unwrap();
        fs::write(library.join("libstd.rlib"), "").unwrap();
    }
    scene.tool("x86_64-w64-mingw32-gcc", "#!/bin/sh\n");
    let sources = scene.sources();
    let release = |arguments: &[&str], environment: &[_]| scene.release_of(&sources, arguments, environment);

    let run = release(&["--cli", "none"], &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(scene.assets().join(format!("{NAME}_windows_amd64.zip")).exists(), "{}", run.stdout);
    let lacking = "not built: freebsd_amd64 (lacks Rust's standard library for x86_64-unknown-freebsd, a C compiler \
                   (CC_x86_64_unknown_freebsd); --binary freebsd_amd64=PATH packs one of x86_64-unknown-freebsd)";
    assert!(run.stdout.contains(lacking), "{}", run.stdout);
    let run = release(&["--verify"], &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    // Two zips of each platform, and the manifest.
    assert_eq!(run.stdout.matches(": the same bytes").count(), 5, "{}", run.stdout);

    // Each platform on a computer of its own, packed by another one.
    let built = scene.root.path().join("built");
    let run = release(&["--build", "windows_amd64", "--out", built.to_str().unwrap()], &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(built.join("windows_amd64/damodel-sandbox.exe").is_file(), "{}", run.stdout);
    let run = release(&["--build", "freebsd_amd64", "--out", built.to_str().unwrap()], &[]);
    assert!(run.code == Some(1) && run.stderr.contains("CC_x86_64_unknown_freebsd"), "{}", run.stderr);
    let sums = scene.read(&format!("{NAME}_SHA256SUMS"));
    let run = release(&["--built", built.to_str().unwrap(), "--cli", "none"], &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let packed = scene.read(&format!("{NAME}_SHA256SUMS"));
    let windows = |sums: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(sums).lines().filter(|line| line.contains("windows")).map(str::to_owned).collect()
    };
    assert!(windows(&sums).len() == 2 && windows(&sums) == windows(&packed));

    // A program that contains the folder of its build.
    let run = release(&["--cli", "none"], &[("EMBED", "yes")]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let run = release(&["--verify"], &[("EMBED", "yes")]);
    assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("damodel-sandbox in damodel-sandbox_"), "{}", run.stdout);
    assert!(run.stdout.contains(" bytes differ, of "), "{}", run.stdout);
    assert!(run.stderr.contains("error: the assets are not what commit "), "{}", run.stderr);

    // Assets of an uncommitted change, and changed assets.
    fs::write(sources.join("README.md"), "Changed.").unwrap();
    let run = release(&["--verify"], &[]);
    assert!(run.code == Some(1) && run.stderr.contains("not committed"), "{}", run.stderr);
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"), sources.join("README.md")).unwrap();
    fs::write(scene.assets().join(format!("{NAME}_manifest.json")), "{}").unwrap();
    let run = release(&["--verify"], &[]);
    assert!(run.code == Some(1) && run.stderr.contains("are not those of"), "{}", run.stderr);
    assert_eq!(release(&["--verify", "--cli", "none"], &[]).code, Some(2));
}

#[test]
fn what_the_registries_refuse_is_not_made() {
    let scene = Scene::set();
    let version = env!("CARGO_PKG_VERSION");
    let program = scene.program("terraform-provider-damodel 99.0.0 (commit none)");
    let run = scene.release(&["--binary", &program]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains(&format!("99.0.0 (commit none)\", and Cargo.toml says {version}")), "{}", run.stderr);

    scene.gpg(&["--quick-generate-key", "Curve <curve@example.com>", "ed25519", "sign", "never"]);
    let program = scene.program(&format!("terraform-provider-damodel {version} (commit none)"));
    let run = scene.release(&["--binary", &program, "--sign", "curve@example.com"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("neither RSA nor DSA"), "{}", run.stderr);

    for wrong in [&["--binary"][..], &["--bogus", "x"]] {
        assert_eq!(scene.release(wrong).code, Some(2));
    }
    assert!(!Path::new(&scene.assets().join(format!("{NAME}_SHA256SUMS.sig"))).exists());
}
