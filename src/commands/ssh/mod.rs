//! `terraform-provider-damodel ssh`: OpenSSH's `ssh` into an instance, with address and login from the service; and
//! `ssh-config`, the same for other programs.
//!
//! The password is on no command line and in no environment: ssh asks this program for it (`SSH_ASKPASS`), which asks
//! the service.

mod authorize;
pub mod config;
mod host_keys;
mod login;
mod target;
mod words;

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    time::Duration,
};

use clap::{Args, Parser};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use self::{
    login::{Login, password},
    target::{SshTarget, StateView},
    words::{Words, divided},
};
use super::{
    Failure, ServiceArguments, Surroundings, sentence,
    terraform::{Cli, CliError},
};
use crate::{
    api::{Client, Code, Context, Instance, InstanceStatus, InstanceUid},
    plugin::with_causes,
    provider::{database_id_hint, login::USER},
    review::visible,
};

/// The exit code of ssh's own failures, and of this command's: every other one may be the remote command's.
pub const FAILED: u8 = 255;

/// The time limit for all requests.
const PATIENCE: Duration = Duration::from_secs(120);

/// The oldest version of OpenSSH that can be made to ask a program for a password.
const OLDEST: (u32, u32) = (8, 4);

/// What ssh passes on to [`answer_prompt`], beside `DAMODEL_BASE_URL`.
const UID: &str = "ASKPASS_DAMODEL_UID";
const ALLOW_HTTP: &str = "ASKPASS_DAMODEL_ALLOW_HTTP";
const CA_CERTIFICATE_FILE: &str = "ASKPASS_DAMODEL_CA_CERTIFICATE_FILE";

const USAGE: &str = "terraform-provider-damodel ssh [OPTIONS] [SSH-OPTION]... TARGET [ARGUMENT]...";

/// Logs in to an instance with OpenSSH's `ssh`.
///
/// TARGET is the UID of an instance, or the address of a damodel_instance or damodel_llama_server in the state, such as
/// `damodel_instance.gpu` or 'module.chat.damodel_instance.gpu["a"]'. Options of this command come first. Options of
/// ssh, such as `-N -L 8000:127.0.0.1:8000`, come before or after TARGET; everything after it goes to ssh. Address and
/// login come from the service; the token is that of the environment. Host keys are kept by UID in
/// ~/.ssh/known_hosts_damodel; a host key in the state must match. Needs OpenSSH 8.4 or newer. `ssh-config` prints the
/// same for other programs.
///
/// Exit codes: those of ssh; 255 ssh could not connect, or wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "ssh", override_usage = USAGE)]
pub struct Arguments {
    /// Where targets are found.
    #[command(flatten)]
    pub place: Place,
    /// Prints the command instead of running it. Pasted into a shell, it asks for the password.
    #[arg(long)]
    pub print: bool,
    /// Prints the address of the instance's notebook with its token instead of logging in.
    #[arg(long, conflicts_with = "print")]
    pub jupyter: bool,
    /// The options of ssh, the target, and what follows it.
    #[arg(value_name = "TARGET", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Where targets are found: in a state, and at the service.
#[derive(Clone, Debug, Args)]
pub struct Place {
    /// The folder of the configuration, whose state has the address.
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub chdir: PathBuf,
    /// The program that reads the state: `terraform` or `tofu`. Default: the first of them on PATH.
    #[arg(long, value_name = "PROGRAM")]
    pub cli: Option<PathBuf>,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArguments,
}

impl Place {
    /// Reads the state of the folder.
    async fn state(&self, surroundings: &Surroundings) -> Result<StateView, Failure> {
        if !self.chdir.is_dir() {
            return Err(Failure::new(format!("no folder at {}", self.chdir.display())));
        }
        let of_cli = |error: CliError| Failure::new(with_causes(&error));
        let cli = Cli::of_user(self.cli.as_deref(), surroundings).await.map_err(of_cli)?;
        StateView::read(&cli.state(&self.chdir).await.map_err(of_cli)?)
    }
}

/// Becomes ssh, or prints.
///
/// # Errors
///
/// The target, its instance or ssh cannot be used.
pub async fn run(arguments: Arguments, surroundings: Surroundings) -> Result<ExitCode, Failure> {
    let Some(Words { options, target, rest }) = divided(&arguments.words)? else {
        let ssh = [&[OsString::from("ssh")][..], arguments.words.as_slice()].concat();
        return become_ssh(&ssh, Vec::new()).await;
    };
    let target = target.ok_or_else(|| Failure::new(format!("no TARGET. Usage: {USAGE}")))?;
    let target = target.to_str().ok_or_else(|| Failure::new("TARGET is not valid UTF-8"))?;
    let target = if target.contains('.') {
        arguments.place.state(&surroundings).await?.find(target)?
    } else {
        SshTarget { uid: target.to_owned(), pins: Vec::new() }
    };
    let service = SshService::new(&arguments.place.service, surroundings);
    let instance = service.running(&target.uid).await?;
    if arguments.jupyter {
        let no_notebook = || Failure::new(format!("instance {} has no notebook", target.uid));
        return print(&visible(&notebook(&instance).ok_or_else(no_notebook)?, usize::MAX));
    }
    let login = Login::new(&target, &instance, &service.surroundings).await?;
    let mut ssh = login.command();
    ssh.extend(options.iter().cloned());
    ssh.push(login.destination());
    ssh.extend(rest.iter().cloned());
    if arguments.print {
        return print(&ssh.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" "));
    }
    check_version().await?;
    become_ssh(&ssh, service.askpass(&login)?).await
}

fn print(line: &str) -> Result<ExitCode, Failure> {
    writeln!(io::stdout(), "{line}").map_err(Failure::terminal)?;
    Ok(ExitCode::SUCCESS)
}

/// How the service is reached.
struct SshService {
    arguments: ServiceArguments,
    surroundings: Surroundings,
}

impl SshService {
    fn new(arguments: &ServiceArguments, surroundings: Surroundings) -> Self {
        Self { arguments: arguments.clone(), surroundings }
    }

    fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(self.arguments.settings(&self.surroundings.environment(Path::new(".")))?))
    }

    /// An instance that can be logged in to.
    async fn running(&self, uid: &str) -> Result<Instance, Failure> {
        let instance = self.instance(uid).await?;
        if instance.status == Some(InstanceStatus::Running) {
            return Ok(instance);
        }
        let status = instance.status.as_ref().map_or("in an unknown status", InstanceStatus::as_str);
        let status = visible(status, usize::MAX);
        Err(Failure::new(format!("instance {uid} is {status}; only a Running instance can be logged in to")))
    }

    async fn instance(&self, uid: &str) -> Result<Instance, Failure> {
        let context = Context::within(PATIENCE, &CancellationToken::new());
        let detail = self.client()?.instances().detail(&InstanceUid::new(uid), &context).await;
        let hint = database_id_hint(uid).map(|hint| format!(" ({hint})")).unwrap_or_default();
        match detail {
            Ok(detail) => Ok(detail.instance),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => Err(Failure::new(format!(
                "no instance with the UID {uid} in this account{hint}: give an address of the state, or the UID"
            ))),
            Err(error) => Err(Failure::because(format!("cannot read instance {uid}{hint}"), error)),
        }
    }

    /// The variables with which ssh asks this program for the password of a login. None of them is secret.
    fn askpass(&self, login: &Login) -> Result<Vec<(&'static str, OsString)>, Failure> {
        if !login.has_password {
            return Ok(Vec::new());
        }
        let program = self.surroundings.executable.clone().into_os_string();
        let mut variables =
            vec![("SSH_ASKPASS", program), ("SSH_ASKPASS_REQUIRE", "force".into()), (UID, login.uid.clone().into())];
        variables.extend(self.arguments.base_url.as_ref().map(|address| ("DAMODEL_BASE_URL", address.into())));
        variables.extend(self.arguments.allow_http.then(|| (ALLOW_HTTP, "1".into())));
        if let Some(file) = &self.arguments.ca_certificate_file {
            // The same path as that of this command's own request.
            let file = self.surroundings.environment(Path::new(".")).path(file)?;
            let file = std::path::absolute(&file).map_err(|error| Failure::reading(file.display(), error))?;
            variables.push((CA_CERTIFICATE_FILE, file.into_os_string()));
        }
        Ok(variables)
    }
}

/// The notebook's address with its token.
fn notebook(instance: &Instance) -> Option<String> {
    let address = instance.jupyter_url.as_ref()?.expose().clone();
    let token = instance.jupyter_token.as_ref().map(secrecy::ExposeSecret::expose_secret);
    Some(match token {
        Some(token) if !token.is_empty() && !address.contains("token=") => {
            let mark = if address.contains('?') { '&' } else { '?' };
            format!("{address}{mark}token={token}")
        }
        _ => address,
    })
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// ssh's version, which it prints to standard error: `OpenSSH_9.2p1 Debian-2, …`.
async fn check_version() -> Result<(), Failure> {
    let output = Command::new("ssh").arg("-V").stdin(Stdio::null()).output().await;
    let output = output.map_err(|error| Failure::because("cannot run ssh: install OpenSSH", error))?;
    let printed = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if version(&printed).is_some_and(|version| version >= OLDEST) {
        return Ok(());
    }
    // Another program could ignore an option that guards the host key or the password.
    let ssh = if printed.is_empty() { "unknown" } else { &printed };
    Err(Failure::new(format!("ssh is {ssh}; OpenSSH {}.{} or newer is needed", OLDEST.0, OLDEST.1)))
}

/// `None` for an unknown form.
fn version(printed: &str) -> Option<(u32, u32)> {
    let (_, rest) = printed.split_once("OpenSSH_")?;
    let number = rest.split('_').next_back()?.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Replaces this process, so that terminal, signals and exit code are ssh's own.
#[cfg(unix)]
async fn become_ssh(ssh: &[OsString], variables: Vec<(&'static str, OsString)>) -> Result<ExitCode, Failure> {
    use std::os::unix::process::CommandExt as _;
    let (program, arguments) = ssh.split_first().ok_or_else(|| Failure::new("no command"))?;
    let error = std::process::Command::new(program).args(arguments).envs(variables).exec();
    Err(Failure::because("cannot run ssh", error))
}

/// Runs ssh, and passes its exit code on.
#[cfg(not(unix))]
async fn become_ssh(ssh: &[OsString], variables: Vec<(&'static str, OsString)>) -> Result<ExitCode, Failure> {
    let (program, arguments) = ssh.split_first().ok_or_else(|| Failure::new("no command"))?;
    let status = Command::new(program).args(arguments).envs(variables).status().await;
    let code = status.map_err(|error| Failure::because("cannot run ssh", error))?.code();
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)))
}

/// Whether ssh runs this program for a prompt.
pub fn is_asked(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable(UID).is_some()
}

/// Answers the prompt for the password of the instance, and no other one: questions about host keys, and the prompts of
/// jump hosts and private keys, come here too.
pub async fn answer_prompt(prompt: &OsStr, surroundings: Surroundings) -> ExitCode {
    let uid = surroundings.text(UID).unwrap_or_default();
    if !is_password_prompt(&prompt.to_string_lossy(), &uid) {
        return ExitCode::FAILURE;
    }
    let arguments = ServiceArguments {
        base_url: surroundings.text("DAMODEL_BASE_URL"),
        allow_http: surroundings.text(ALLOW_HTTP).is_some(),
        ca_certificate_file: surroundings.path(CA_CERTIFICATE_FILE),
    };
    match (SshService { arguments, surroundings }).instance(&uid).await {
        Ok(instance) => match password(&instance).map(|password| writeln!(io::stdout(), "{password}")) {
            Some(Ok(())) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        },
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// OpenSSH's prompts for a password, and for a server that asks one question (keyboard-interactive).
fn is_password_prompt(prompt: &str, uid: &str) -> bool {
    let prompt = prompt.strip_suffix(' ').unwrap_or(prompt);
    let (password, question) = (format!("{USER}@{uid}'s password:"), format!("({USER}@{uid}) Password:"));
    [password, question].iter().any(|known| known.eq_ignore_ascii_case(prompt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_prompt_is_answered_and_no_other() {
        for prompt in
            ["root@ins-1's password: ", "root@ins-1's password:", "(root@ins-1) Password: ", "(ROOT@ins-1) password:"]
        {
            assert!(is_password_prompt(prompt, "ins-1"), "{prompt}");
        }
        for prompt in [
            "",
            "root@ins-2's password: ",
            "root@ins-1's password:  ",
            "me@jump's password: ",
            "Enter passphrase for key '/root/.ssh/id': ",
            "The authenticity of host 'ins-1' can't be established.\nroot@ins-1's password: ",
            "x root@ins-1's password: ",
        ] {
            assert!(!is_password_prompt(prompt, "ins-1"), "{prompt}");
        }
    }

    /// A shell leaves the `~` of `--ca-certificate-file=~/ca.pem` as it is.
    #[test]
    fn ssh_asks_with_the_certificates_of_the_first_request() {
        let words = ["ssh", "--ca-certificate-file=~/ca.pem", "ins-1"];
        let arguments = Arguments::try_parse_from(words).unwrap();
        let surroundings =
            Surroundings { executable: "/damodel".into(), variables: vec![("HOME".into(), "/home/me".into())] };
        let service = SshService::new(&arguments.place.service, surroundings);
        let variables = service.askpass(&Login { has_password: true, ..Login::default() }).unwrap();
        let file = variables.iter().find(|(name, _)| *name == CA_CERTIFICATE_FILE);
        assert_eq!(file.unwrap().1, OsString::from("/home/me/ca.pem"));
    }

    #[tokio::test]
    async fn a_missing_folder_is_named() {
        let arguments = Arguments::try_parse_from(["ssh", "--chdir", "/nowhere", "damodel_instance.a"]).unwrap();
        let surroundings = Surroundings { executable: "/damodel".into(), variables: Vec::new() };
        let error = arguments.place.state(&surroundings).await.unwrap_err();
        assert_eq!(sentence(&error), "no folder at /nowhere");
    }

    #[test]
    fn versions_are_read_as_openssh_prints_them() {
        for (printed, expected) in [
            ("OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.15", Some((9, 2))),
            ("OpenSSH_for_Windows_8.1p1, LibreSSL 3.0.2", Some((8, 1))),
            ("OpenSSH_10.0, LibreSSL", Some((10, 0))),
            ("Sun_SSH_1.1", None),
        ] {
            assert_eq!(version(printed), expected, "{printed}");
        }
        assert!((8, 3) < OLDEST && (10, 0) > OLDEST);
    }

    #[test]
    fn a_printed_command_is_one_line_of_a_shell() {
        assert_eq!(quoted("-oHostKeyAlias=ins-1"), "-oHostKeyAlias=ins-1");
        assert_eq!(["", "a b", "it's", "$x"].map(quoted), ["''", "'a b'", r"'it'\''s'", "'$x'"]);
    }
}
