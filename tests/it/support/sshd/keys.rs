//! Keys and certificates, made by ssh-keygen.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Makes keys in a directory.
#[derive(Debug)]
pub(crate) struct Keys<'a>(&'a Path);

impl<'a> Keys<'a> {
    pub(crate) fn new(directory: &'a Path) -> Self {
        Self(directory)
    }

    /// Makes a key without a passphrase, with further arguments of ssh-keygen, as in `-t ed25519`. Its public half is
    /// beside it, with `.pub`.
    pub(crate) fn make(&self, name: &str, arguments: &[&str]) -> PathBuf {
        self.make_encrypted(name, "", arguments)
    }

    /// Makes a key with a passphrase.
    pub(crate) fn make_encrypted(&self, name: &str, passphrase: &str, arguments: &[&str]) -> PathBuf {
        let file = self.0.join(name);
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-N", passphrase, "-C", name, "-f"]).arg(&file).args(arguments);
        run(&mut command);
        file
    }

    /// Gives a key a passphrase, in the form of these further arguments of ssh-keygen.
    pub(crate) fn encrypt(&self, key: &Path, arguments: &[&str]) {
        let mut command = Command::new("ssh-keygen");
        run(command.args(["-q", "-p", "-P", "", "-N", "a passphrase", "-f"]).arg(key).args(arguments));
    }

    /// Signs the public half of a key with a certificate authority's key, for these principals; returns the
    /// certificate.
    pub(crate) fn sign(&self, authority: &Path, key: &Path, principals: &str) -> String {
        let mut command = Command::new("ssh-keygen");
        command.arg("-q").arg("-s").arg(authority).args(["-I", "test-certificate", "-n", principals]);
        run(command.arg(key.with_extension("pub")));
        let name = format!("{}-cert.pub", key.file_name().unwrap().to_str().unwrap());
        fs::read_to_string(key.with_file_name(name)).unwrap()
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
