//! The commands of the guide on mirrors, run in its order on packed zips and a web server.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use axum::{
    Router,
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    serve::Listener,
};
use terraform_plugin::testing::ClientIdentity;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{markdown::Page, root};
use crate::support::terraform::{Cli, Run, each_cli};

/// The web server's address in the guide.
const URL: &str = "https://mirror.example.com/providers/";
const REQUIRES: &str =
    "terraform {\n  required_providers {\n    damodel = {\n      source = \"damodel/damodel\"\n    }\n  }\n}\n";

/// A folder with the zips of a release, in which the commands run.
struct Scene<'a> {
    cli: &'a Cli,
    folder: PathBuf,
}

impl Scene<'_> {
    /// A text of the guide, adapted to this command line.
    fn fitted(&self, text: &str, url: &str) -> String {
        let host = if self.cli.is_tofu { "registry.opentofu.org" } else { "registry.terraform.io" };
        let mirror = self.folder.join("mirror").display().to_string();
        text.replace("registry.terraform.io", host).replace("/srv/mirror", &mirror).replace(URL, url)
    }

    fn run(&self, script: &str, config: &str, certificate: &Path) -> Run {
        fs::write(self.folder.join("cli.tfrc"), config).unwrap();
        let name = if self.cli.is_tofu { "terraform() { tofu \"$@\"; }\n" } else { "" };
        let path = format!("{}:/usr/bin:/bin", self.cli.program.parent().unwrap().display());
        let mut command = Command::new("bash");
        command.args(["-euc", &format!("{name}{script}")]).current_dir(&self.folder).env("PATH", path);
        command.env("TF_CLI_CONFIG_FILE", self.folder.join("cli.tfrc")).env("CHECKPOINT_DISABLE", "1");
        let run = Run::of(command.env("SSL_CERT_FILE", certificate).output().unwrap());
        assert_eq!(run.code, Some(0), "{script}\n{}{}", run.stdout, run.stderr);
        run
    }
}

/// Serves a folder below `/providers/`, with a certificate for `localhost`.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Serves a folder; returns its URL. The certificate is written to a file.
fn serve(runtime: &Runtime, folder: PathBuf, certificate: &Path) -> String {
    let identity = ClientIdentity::generate();
    fs::write(certificate, identity.pem()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(identity.web_server()));
    let file = move |uri: Uri| async move {
        let name = uri.path().strip_prefix("/providers/").unwrap_or_default();
        answer(&folder.join(name))
    };
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tls = Tls { listener, acceptor };
        tokio::spawn(async { axum::serve(tls, Router::new().fallback(file)).await.unwrap() });
        format!("https://localhost:{port}/providers/")
    })
}

fn answer(file: &Path) -> Response {
    let Ok(bytes) = fs::read(file) else { return StatusCode::NOT_FOUND.into_response() };
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    let kind = if is_json { "application/json" } else { "application/zip" };
    ([(CONTENT_TYPE, kind)], bytes).into_response()
}

/// Only on Linux does Terraform read further root certificates from a file.
#[cfg(target_os = "linux")]
#[test]
fn the_commands_of_the_guide_work() {
    let guide = Page::read(&root().join("docs/guides/mirrors.md"));
    let blocks = |language: &str| -> Vec<String> {
        guide.blocks.iter().filter(|block| block.language == language).map(|block| block.text.clone()).collect()
    };
    let (shell, hcl) = (blocks("shell"), blocks("hcl"));
    let ([fill, mirror, lock, _oci], [folder, web, _oci_mirror]) = (shell.as_slice(), hcl.as_slice()) else {
        panic!("{shell:#?}{hcl:#?}")
    };
    let runtime = Runtime::new().unwrap();
    each_cli(|cli| {
        let root = tempfile::tempdir().unwrap();
        let scene = Scene { cli, folder: root.path().to_owned() };
        // No step starts the program: a small one is packed faster.
        let program = root.path().join("program");
        let said = concat!("terraform-provider-damodel ", env!("CARGO_PKG_VERSION"), " (commit none)");
        fs::write(&program, format!("#!/bin/sh\necho '{said}'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let program = program.to_str().unwrap();
        let release = Command::new(super::root().join("scripts/release"))
            .args(["--binary", program, "--sandbox", program, "--out"])
            .arg(root.path())
            .env("PATH", "/usr/bin:/bin")
            .output();
        assert!(release.unwrap().status.success());
        fs::write(root.path().join("main.tf"), REQUIRES).unwrap();

        let certificate = root.path().join("certificate.pem");
        let url = serve(&runtime, root.path().join("public"), &certificate);
        let (folder, web) = (scene.fitted(folder, &url), scene.fitted(web, &url));
        scene.run(&scene.fitted(fill, &url), &folder, &certificate);
        scene.run("terraform init -no-color", &folder, &certificate);
        scene.run(&scene.fitted(mirror, &url), &folder, &certificate);

        fs::remove_dir_all(root.path().join(".terraform")).unwrap();
        fs::remove_file(root.path().join(".terraform.lock.hcl")).unwrap();
        let lock = lock.replace("linux_amd64", &platform(root.path()));
        scene.run(&scene.fitted(&lock, &url), &web, &certificate);
        let locked = fs::read_to_string(root.path().join(".terraform.lock.hcl")).unwrap();
        assert!(locked.contains("damodel/damodel") && locked.contains("h1:"), "{locked}");
        let said = scene.run("terraform init -no-color", &web, &certificate);
        assert!(said.stdout.contains("Installed damodel/damodel"), "{}", said.stdout);
    });
}

/// The platform of the zip in the release.
fn platform(folder: &Path) -> String {
    let mut names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let zip = names.find(|name| name.ends_with(".zip") && name.starts_with("terraform-provider")).unwrap();
    zip.trim_end_matches(".zip").splitn(3, '_').nth(2).unwrap().to_owned()
}
