//! Whether what is started outlives the login, where systemd runs.

use super::bootstrap::{Facts, Login, Question};

/// Who logs in, and what systemd does for this user.
pub(super) fn questions(facts: &Facts) -> Vec<Question> {
    let login = "id -u; [ ! -d /run/systemd/system ] || echo systemd; [ ! -e \"/var/lib/systemd/linger/$(id -un)\" ] \
                 || echo lingers";
    let mut questions = vec![Question::line("login", login)];
    if runs_systemd(facts) {
        match scope(facts) {
            Some(scope) => questions.push(Question::line("scope", &format!("{scope} true && echo made"))),
            None => questions.push(Question::of(
                "ends_at_logout",
                &[
                    "busctl",
                    "get-property",
                    "org.freedesktop.login1",
                    "/org/freedesktop/login1",
                    "org.freedesktop.login1.Manager",
                    "KillUserProcesses",
                ],
            )),
        }
    }
    questions
}

/// A scope of its own where systemd makes one that outlives the login. For anyone but root the user's own manager makes
/// it, and ends it with the user's last login unless the user lingers; what stays in the login's own scope is ended
/// only where KillUserProcesses=yes.
pub(super) fn login(facts: &Facts) -> Login {
    if facts.text("scope") == "made" {
        return Login { scope: scope(facts).unwrap_or_default().to_owned(), note: None };
    }
    let user = facts.text("user");
    let note = (facts.text("ends_at_logout") == "b true").then(|| {
        format!(
            "systemd ends the server with the last login of {user} (KillUserProcesses=yes). Let the user linger: \
             loginctl enable-linger {user}"
        )
    });
    Login { scope: String::new(), note }
}

fn runs_systemd(facts: &Facts) -> bool {
    facts.lines("login").iter().any(|line| line == "systemd")
}

/// The command that makes one.
fn scope(facts: &Facts) -> Option<&'static str> {
    let login = facts.lines("login");
    match login.first().map(String::as_str) {
        Some("0") => Some("systemd-run --scope --quiet --collect"),
        _ if login.iter().any(|line| line == "lingers") => Some("systemd-run --user --scope --quiet --collect"),
        _ => None,
    }
}
