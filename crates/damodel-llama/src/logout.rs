//! Whether the processes that a login starts outlive it, under systemd.

use super::bootstrap::{Facts, LoginLifetime, Question};

/// The questions about the user who logs in, and about systemd.
pub(super) fn questions(facts: &Facts) -> Vec<Question> {
    let mut questions = vec![Question::new("login")];
    if facts.lines("login").iter().any(|line| line == "systemd") {
        let scope = scope(facts);
        questions.extend(scope.map(|scope| Question::new("scope").with(scope)));
        // systemd does not end processes of root.
        let has_none = scope.is_none() || (facts.knows("scope") && facts.text("scope").is_empty());
        if has_none && !is_root(facts) {
            questions.push(Question::new("ends_at_logout"));
        }
    }
    questions
}

/// The lifetime of the processes that this login starts. A scope of its own outlives the login. For a user other than
/// root the user's manager creates it, and ends with the last login unless the user lingers; a process in the login's
/// scope is ended only with KillUserProcesses=yes.
pub(super) fn login(facts: &Facts) -> LoginLifetime {
    if !facts.text("scope").is_empty() {
        return LoginLifetime { scope: facts.text("scope").to_owned(), note: None };
    }
    let user = facts.text("user");
    let cure = match scope(facts) {
        None => format!("To keep it running, enable lingering: loginctl enable-linger {user}"),
        Some(scope) => {
            format!("Lingering is enabled, but systemd cannot create a scope. To see why, run: {scope} true")
        }
    };
    let note = (facts.text("ends_at_logout") == "b true")
        .then(|| format!("systemd ends the server at the last logout of {user}: KillUserProcesses=yes. {cure}"));
    LoginLifetime { scope: String::new(), note }
}

fn is_root(facts: &Facts) -> bool {
    facts.lines("login").first().is_some_and(|id| id == "0")
}

/// The command of systemd that makes a scope.
fn scope(facts: &Facts) -> Option<&'static str> {
    if is_root(facts) {
        return Some("systemd-run --scope --quiet --collect");
    }
    let lingers = facts.lines("login").iter().any(|line| line == "lingers");
    lingers.then_some("systemd-run --user --scope --quiet --collect")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The login, the scope, the further questions, and words of the note.
    #[rstest]
    #[case::no_systemd("1000", "", &[], None)]
    #[case::root("0\nsystemd", "systemd-run --scope", &["scope"], None)]
    #[case::root_without_scope("0\nsystemd", "", &["scope"], None)]
    #[case::user("1000\nsystemd", "", &["ends_at_logout"], Some("loginctl enable-linger visitor"))]
    #[case::user_who_lingers("1000\nsystemd\nlingers", "systemd-run --scope", &["scope"], None)]
    #[case::user_who_lingers_for_nothing(
        "1000\nsystemd\nlingers",
        "",
        &["scope", "ends_at_logout"],
        Some("To see why, run: systemd-run --user --scope")
    )]
    fn an_end_at_logout_is_never_silent(
        #[case] login: &str,
        #[case] scope: &str,
        #[case] asked: &[&str],
        #[case] note: Option<&str>,
    ) {
        let all = [("login", login), ("scope", scope), ("ends_at_logout", "b true")];
        let mut facts = Facts::default();
        let mut seen = Vec::new();
        while let Some(question) = questions(&facts).into_iter().find(|question| !facts.knows(question.key)) {
            seen.push(question.key);
            let answer = all.iter().find(|(key, _)| *key == question.key).map(|(_, answer)| (*answer).to_owned());
            facts.learn(Facts::of([(question.key.to_owned(), answer.unwrap())].into()));
        }
        facts.learn(Facts::of([("user".to_owned(), "visitor".to_owned())].into()));
        assert_eq!(seen[1..], *asked);
        let login = super::login(&facts);
        assert_eq!(login.scope, scope);
        match (login.note, note) {
            (Some(said), Some(words)) => assert!(said.contains(words), "{said}"),
            (said, expected) => assert_eq!(said.as_deref(), expected),
        }
    }
}
