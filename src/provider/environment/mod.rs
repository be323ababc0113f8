//! The environment variables and the working directory of the provider's process.

mod backend;

use std::{
    collections::BTreeMap,
    env, fmt, fs,
    path::{Path, PathBuf},
};

#[cfg(unix)]
use nix::unistd::{User, getuid};

use crate::{
    api::{Proxies, trimmed},
    creation::Scope,
    llama::Silence,
};

/// The home directory: Windows has the second one.
const HOMES: [&str; 2] = ["HOME", "USERPROFILE"];
const SSH_AGENT: &str = "SSH_AUTH_SOCK";

/// A path in the home directory, which is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The path {} needs the home directory, and HOME is not set. Set HOME, or give the whole path.", path.display())]
pub struct NoHome {
    path: PathBuf,
}

/// The home directory of the entry of this process's user, for programs that are started without `HOME`, as by cron and
/// systemd. Windows always sets its variable.
#[must_use]
pub fn home_of_user() -> Option<PathBuf> {
    #[cfg(unix)]
    return User::from_uid(getuid()).ok().flatten().map(|user| user.dir).filter(|home| home.is_absolute());
    #[cfg(not(unix))]
    None
}

/// The environment variables and the working directory that Terraform passes to the provider.
///
/// Read once at the start: nothing else in the provider reads the process environment, and tests can replace it.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    directory: PathBuf,
    pub(super) silence: Silence,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        let mut variables: BTreeMap<String, String> = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| {
                name.starts_with("DAMODEL_")
                    || name.starts_with("TF_")
                    || HOMES.contains(&name.as_str())
                    || name == SSH_AGENT
                    || backend::VARIABLES.contains(&name.as_str())
                    || name.to_ascii_uppercase().ends_with("_PROXY")
            })
            .collect();
        if !HOMES.iter().any(|name| variables.get(*name).is_some_and(|home| !home.is_empty())) {
            let home = home_of_user().and_then(|home| home.into_os_string().into_string().ok());
            variables.extend(home.map(|home| (HOMES[0].to_owned(), home)));
        }
        Self { variables, directory: env::current_dir().unwrap_or_default(), silence: Silence::default() }
    }

    /// An environment with these variables and this working directory.
    pub fn made_of<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
        directory: PathBuf,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, directory, silence: Silence::default() }
    }

    /// The same environment with another silence of servers that hang.
    #[must_use]
    pub fn with_silence(self, silence: Silence) -> Self {
        Self { silence, ..self }
    }

    /// The value of a variable; an empty one counts as unset. Ours are [trimmed].
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name).map(String::as_str);
        let value = value.map(|value| if name.starts_with("DAMODEL_") { trimmed(value) } else { value });
        value.filter(|value| !value.is_empty())
    }

    /// The proxies of the usual variables.
    pub fn proxies(&self) -> Proxies {
        Proxies::read(|name| self.variable(name))
    }

    /// The data directory of Terraform for this working directory.
    pub(super) fn data_directory(&self) -> PathBuf {
        self.directory.join(self.variable("TF_DATA_DIR").unwrap_or(".terraform"))
    }

    /// Identifies a configuration and the state that it is applied to.
    pub(super) fn scope(&self, stack: Option<&str>) -> Scope {
        let data = self.data_directory();
        let selected = || fs::read_to_string(data.join("environment")).ok();
        let workspace = self.variable("TF_WORKSPACE").map(str::to_owned).or_else(selected);
        let workspace = workspace.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or("default");
        let directory = self.directory.display().to_string();
        let file = fs::read(data.join("terraform.tfstate")).unwrap_or_default();
        let backend = backend::read(&file, workspace, |name| self.variable(name));
        let stack = match stack {
            Some(stack) => format!("stack {stack}"),
            None if backend.is_named && !backend.is_local => format!("backend {}", backend.identity),
            None => directory.clone(),
        };
        let (backend, is_local) = (backend.identity, backend.is_local);
        Scope { stack, workspace: workspace.to_owned(), directory, backend, is_local }
    }

    /// A path given by the operator: relative to the working directory, or in the home directory with `~/`.
    ///
    /// # Errors
    ///
    /// The home directory is not known.
    pub fn path(&self, path: impl AsRef<Path>) -> Result<PathBuf, NoHome> {
        let path = path.as_ref();
        let Ok(rest) = path.strip_prefix("~") else { return Ok(self.directory.join(path)) };
        let home = HOMES.iter().find_map(|name| self.variable(name));
        home.map(|home| Path::new(home).join(rest)).ok_or_else(|| NoHome { path: path.to_owned() })
    }

    /// The same environment with these variables instead of those with their names.
    #[must_use]
    pub fn with<N: Into<String>, V: Into<String>>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self {
        self.variables.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// The working directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The same environment in another working directory.
    #[must_use]
    pub fn within(self, directory: impl AsRef<Path>) -> Self {
        // Without `.` components.
        Self { directory: self.directory.join(directory).components().collect(), ..self }
    }

    /// The socket of the operator's SSH agent; on Windows a named pipe, which OpenSSH's agent has without a variable.
    pub(super) fn ssh_agent(&self) -> Option<PathBuf> {
        let default = cfg!(windows).then_some(r"\\.\pipe\openssh-ssh-agent");
        self.variable(SSH_AGENT).or(default).map(PathBuf::from)
    }
}

impl fmt::Debug for Environment {
    /// Shows names only, because a value may be a token.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("directory", &self.directory)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_has_another_variable_on_windows() {
        for (variables, home) in [
            (vec![("HOME", "/home/me")], "/home/me"),
            (vec![("USERPROFILE", "/users/me")], "/users/me"),
            (vec![("HOME", "/home/me"), ("USERPROFILE", "/users/me")], "/home/me"),
            (vec![("HOME", ""), ("USERPROFILE", "/users/me")], "/users/me"),
        ] {
            let environment = Environment::made_of(variables, PathBuf::from("/stack"));
            assert_eq!(environment.path("~/.ssh/id"), Ok(Path::new(home).join(".ssh/id")));
            assert_eq!(environment.path("id"), Ok("/stack/id".into()));
        }
    }

    #[test]
    fn a_stack_is_the_backend_if_that_is_the_same_in_every_directory() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let stacks = |backend: serde_json::Value| {
            let stack = |folder: &tempfile::TempDir| {
                let data = folder.path().join(".terraform");
                fs::create_dir_all(&data).unwrap();
                let file = serde_json::json!({ "backend": backend });
                fs::write(data.join("terraform.tfstate"), file.to_string()).unwrap();
                Environment::made_of([("HOME", "/home/me")], folder.path().to_owned()).scope(None).stack
            };
            let [one, other] = folders.each_ref().map(stack);
            one == other
        };
        let of = |kind: &str, config: serde_json::Value| serde_json::json!({"type": kind, "config": config});
        assert!(stacks(of("s3", serde_json::json!({"bucket": "b", "key": "k"}))));
        assert!(stacks(of("local", serde_json::json!({"path": "/states/a.tfstate"}))));
        assert!(!stacks(of("local", serde_json::json!({"path": "a.tfstate"}))));
        assert!(!stacks(of("pg", serde_json::json!({"conn_str": null}))));
        assert!(!stacks(serde_json::Value::Null));
    }

    #[test]
    fn a_variable_has_no_byte_order_mark() {
        let environment = Environment::made_of([("DAMODEL_REGION", "\u{feff}cn-east-1\r\n")], PathBuf::from("/stack"));
        assert_eq!(environment.variable("DAMODEL_REGION"), Some("cn-east-1"));
    }

    #[test]
    fn without_a_home_a_path_in_it_is_an_error() {
        let environment = Environment::made_of([("HOME", "")], PathBuf::from("/stack"));
        let error = environment.path("~/.ssh/id").unwrap_err().to_string();
        assert!(error.contains("~/.ssh/id") && error.contains("HOME is not set"), "{error}");
        assert_eq!(environment.path("~other/id"), Ok("/stack/~other/id".into()));
    }
}
