//! Adding a public key to an instance, for `ssh-config --authorize`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{io::AsyncWriteExt as _, process::Command};

use super::{SshService, check_version, login::Login, quoted};
use crate::{commands::Failure, review::visible, ssh::HostKey};

/// Adds the line of standard input to the authorized keys, if no line has the key. The file is replaced as a whole, by
/// one run at a time if the instance has flock (util-linux, busybox).
const PROGRAM: &str = r#"umask 077
IFS= read -r line
set -f -- $line
key=" $1 $2 "
fail() { echo "$*" >&2; exit 1; }
mkdir -p ~/.ssh && chmod 700 ~/.ssh && exec 9<~/.ssh || exit 1
if command -v flock >/dev/null; then flock 9 || exit 1; fi
file=$(readlink -f ~/.ssh/authorized_keys) || exit 1
if [ -e "$file" ]; then
  [ -f "$file" ] || fail "$file is not a file"
  plain=$(tr '\t\r' '  ' <"$file" | sed 's/"[^"]*"//g; s/^ */ /; s/$/ /' | tr -s ' ' | grep -v '^ #')
  case "$plain" in *"$key"*) chmod 600 "$file"; exit ;; esac
fi
new=$(mktemp "$file.XXXXXX") || exit 1
trap 'rm -f "$new"' EXIT
trap 'exit 1' HUP INT TERM
{ [ ! -e "$file" ] || cat "$file" >"$new"; } &&
{ [ -z "$(tail -c 1 "$new")" ] || echo >>"$new"; } &&
printf '%s\n' "$line" >>"$new" && sync "$new" && mv -f "$new" "$file"
"#;

/// A public key of the user.
#[derive(Debug)]
pub(super) struct PublicKey {
    line: String,
    /// The file of the private key.
    pub(super) identity: PathBuf,
}

impl PublicKey {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// It is not one public key.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let reading = |error| Failure::reading(file.display(), error);
        let bytes = fs::read(file).map_err(reading)?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_key = |line: &&str| line.parse::<HostKey>().is_ok() && visible(line, usize::MAX) == **line;
        match lines.as_slice() {
            [line] if is_key(line) => {
                let file = std::path::absolute(file).map_err(reading)?;
                let is_public = file.extension().is_some_and(|extension| extension == "pub");
                let identity = if is_public { file.with_extension("") } else { file };
                Ok(Self { line: (*line).to_owned(), identity })
            }
            _ if text.contains("PRIVATE KEY") => {
                let file = file.display();
                Err(Failure::new(format!("{file} is a private key: --authorize takes the public one, {file}.pub")))
            }
            _ => Err(Failure::new(format!("{} is not one public key in OpenSSH's format", file.display()))),
        }
    }

    /// Logs in once, and adds the key if the instance does not have it.
    ///
    /// # Errors
    ///
    /// No login, or the file in the instance cannot be written; then it is as it was.
    pub(super) async fn add(&self, login: &Login, service: &SshService) -> Result<(), Failure> {
        check_version().await?;
        let failed = |reason: String| Failure::new(format!("cannot add the key to instance {}: {reason}", login.uid));
        let command = login.command();
        let mut ssh = Command::new("ssh");
        ssh.args(command.iter().skip(1))
            .args(["-T", "-oClearAllForwardings=yes", "-oRemoteCommand=none"])
            .arg(login.destination());
        ssh.arg(format!("exec sh -c {}", quoted(PROGRAM))).envs(service.askpass(login)?);
        ssh.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = ssh.spawn().map_err(|error| failed(error.to_string()))?;
        if let Some(mut input) = running.stdin.take() {
            // An ssh that does not get in has closed it: its exit code is the answer.
            let _ = input.write_all(format!("{}\n", self.line).as_bytes()).await;
        }
        let output = running.wait_with_output().await.map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().lines().map(|line| visible(line, usize::MAX)).collect::<Vec<_>>().join("\n");
        Err(failed(if said.is_empty() { format!("ssh ended with {}", output.status) } else { said }))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{io::Write as _, os::unix::fs::PermissionsExt as _};

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOH5xovzqhE4A8bFiusXYHyX9krazRycamoVT5W9+xLC";

    /// Runs the program as the instance does: whether it succeeded, and its words.
    fn run(home: &Path) -> (bool, String) {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", PROGRAM]).env("HOME", home).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        running.stdin.take().unwrap().write_all(format!("{KEY} me\\n  at home\n").as_bytes()).unwrap();
        let output = running.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn a_key_is_added_once_and_nothing_else_changes() {
        let added = format!("{KEY} me\\n  at home\n");
        for (before, after) in [
            ("".to_owned(), Some(added.clone())),
            ("# a\n\n ssh-rsa AAAA b\r\nx".to_owned(), Some(format!("# a\n\n ssh-rsa AAAA b\r\nx\n{added}"))),
            (format!("#{KEY}\n"), Some(format!("#{KEY}\n{added}"))),
            (format!("{KEY}A\n"), Some(format!("{KEY}A\n{added}"))),
            (
                format!("command=\"echo {KEY} x\" ssh-rsa B\n"),
                Some(format!("command=\"echo {KEY} x\" ssh-rsa B\n{added}")),
            ),
            (format!("\u{fffd}\n{KEY}"), None),
            (format!("no-pty,command=\"a  b\"\t{}\r\n", KEY.replace(' ', "  ")), None),
        ] {
            let home = tempfile::tempdir().unwrap();
            let (folder, file) = (home.path().join(".ssh"), home.path().join("real"));
            fs::create_dir(&folder).unwrap();
            fs::write(&file, &before).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            std::os::unix::fs::symlink(&file, folder.join("authorized_keys")).unwrap();
            for _ in 0..2 {
                assert_eq!(run(home.path()), (true, String::new()), "{before}");
                assert_eq!(fs::read_to_string(&file).unwrap(), after.as_ref().unwrap_or(&before).clone());
            }
            let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
            assert_eq!(fs::read_dir(home.path()).unwrap().count() + fs::read_dir(&folder).unwrap().count(), 3);
            assert!(folder.join("authorized_keys").is_symlink());
        }
        let home = tempfile::tempdir().unwrap();
        assert!(run(home.path()).0);
        assert_eq!(fs::read_to_string(home.path().join(".ssh/authorized_keys")).unwrap(), added);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".ssh/authorized_keys");
        fs::create_dir_all(&file).unwrap();
        let (is_done, said) = run(home.path());
        assert!(!is_done && said.contains("is not a file"), "{said}");
        let (is_done, said) = run(Path::new("/proc"));
        assert!(!is_done && said.contains("/proc/.ssh"), "{said}");
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        // A full disk, and one that is only read.
        for then in ["dd if=/dev/zero of=\"$HOME/fill\" 2>/dev/null", "mount -o remount,ro \"$HOME\""] {
            let home = tempfile::tempdir().unwrap();
            let script = format!(
                "mount -t tmpfs -o size=32k tmpfs \"$HOME\" && mkdir -m 700 \"$HOME/.ssh\" && \
                 printf %s old >\"$HOME/.ssh/authorized_keys\" && {{ {then}; true; }} && echo '{KEY}' | sh -c \"$0\"; \
                 code=$?; ls -A \"$HOME/.ssh\"; cat \"$HOME/.ssh/authorized_keys\"; exit $code"
            );
            let mut command = std::process::Command::new("unshare");
            let output = command.args(["-m", "sh", "-c", &script, PROGRAM]).env("HOME", home.path()).output().unwrap();
            let [out, said] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            assert_eq!((output.status.code(), out.as_str()), (Some(1), "authorized_keys\nold"), "{then}: {said}");
            assert!(said.contains("No space left") || said.contains("Read-only file system"), "{said}");
        }
    }

    #[test]
    fn only_a_public_key_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id.pub");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            PublicKey::read(&file).map_err(|error| error.to_string())
        };
        let key = read(&format!("{KEY} me\n\n")).unwrap();
        assert_eq!((key.line, key.identity), (format!("{KEY} me"), folder.path().join("id")));
        let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";
        assert!(read(private).unwrap_err().contains("is a private key"));
        for text in ["", "x", &format!("{KEY}\n{KEY}"), &format!("{KEY} \u{1b}[0m"), "ssh-ed25519"] {
            assert!(read(text).unwrap_err().contains("is not one public key"), "{text}");
        }
    }
}
