//! The words that are ssh's own: options, TARGET, and what follows it.

use std::ffi::OsString;

use crate::commands::Failure;

/// The options of ssh that take a value (OpenSSH, ssh.c).
const WITH_VALUE: &[u8] = b"BDEFIJLOPQRSWbceilmopw";

/// What ssh is given.
#[derive(Debug)]
pub(super) struct Words<'a> {
    pub(super) options: &'a [OsString],
    pub(super) target: Option<&'a OsString>,
    pub(super) rest: &'a [OsString],
}

/// Finds TARGET; `None` if ssh answers by itself, as with `-V`.
///
/// # Errors
///
/// An option before TARGET is not ssh's, or would lead to another login than the service's.
pub(super) fn divided(words: &[OsString]) -> Result<Option<Words<'_>>, Failure> {
    let (mut at, mut rest) = (0, words);
    while let Some((word, after)) = rest.split_first() {
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" {
            rest = after;
            break;
        }
        let Some(letters) = bytes.strip_prefix(b"-").filter(|letters| !letters.is_empty()) else { break };
        if letters.starts_with(b"-") {
            let word = word.to_string_lossy();
            return Err(Failure::new(format!("{word}: no option of this command, whose options come before ssh's")));
        }
        rest = after;
        for (index, letter) in letters.iter().enumerate() {
            if b"QV".contains(letter) {
                return Ok(None);
            }
            if !WITH_VALUE.contains(letter) {
                continue;
            }
            let mut value = letters.get(index + 1..).unwrap_or_default();
            if value.is_empty() {
                let Some((next, after)) = rest.split_first() else { break };
                (value, rest) = (next.as_encoded_bytes(), after);
            }
            if b"lp".contains(letter) || *letter == b'o' && is_host_name(value) {
                let given = if *letter == b'o' { "-o HostName" } else { ["-p", "-l"][usize::from(*letter == b'l')] };
                return Err(Failure::new(format!(
                    "{given} before TARGET: address, port and user come from the service"
                )));
            }
            break;
        }
        at = words.len() - rest.len();
    }
    let options = words.get(..at).unwrap_or_default();
    let (target, rest) = rest.split_first().map_or((None, rest), |(target, rest)| (Some(target), rest));
    let rest = if rest.first().is_some_and(|word| word == "--") { rest.get(1..).unwrap_or_default() } else { rest };
    Ok(Some(Words { options, target, rest }))
}

/// Whether this is the keyword HostName, in any form of a line of ssh's configuration.
fn is_host_name(line: &[u8]) -> bool {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || b"=\"".contains(byte);
    let keyword = line.iter().skip_while(|byte| is_between(byte)).take_while(|byte| !is_between(byte));
    keyword.map(u8::to_ascii_lowercase).eq(*b"hostname")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided_text(line: &str) -> Result<Option<String>, String> {
        let words: Vec<OsString> = line.split(' ').map(|word| word.replace('_', " ").into()).collect();
        let text = |words: &[OsString]| words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let divided = divided(&words).map_err(|error| error.to_string())?;
        Ok(divided.map(|words| {
            let target = words.target.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
            format!("{}|{target}|{}", text(words.options), text(words.rest))
        }))
    }

    #[test]
    fn the_target_follows_the_options_of_ssh() {
        for (line, expected) in [
            ("h", "|h|"),
            ("h -p 1 -l x", "|h|-p 1 -l x"),
            ("-T -D 0 -o ConnectTimeout=15 h bash", "-T -D 0 -o ConnectTimeout=15|h|bash"),
            ("-NL 1:h:2 h", "-NL 1:h:2|h|"),
            ("-L1:p:2 -tt h", "-L1:p:2 -tt|h|"),
            ("-x -oForwardAgent=no -s -- h sftp", "-x -oForwardAgent=no -s|h|sftp"),
            ("h -- id", "|h|id"),
            ("-o", "-o||"),
            ("-N", "-N||"),
        ] {
            assert_eq!(divided_text(line), Ok(Some(expected.to_owned())), "{line}");
        }
        for line in ["-V", "-Q cipher", "-4V", "-o A=b -V h"] {
            assert_eq!(divided_text(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn another_login_is_refused() {
        for option in [
            "-p 22",
            "-p22",
            "-Np 22",
            "-l me",
            "-lme",
            "-o HostName=x",
            "-oHOSTNAME=x",
            "-o hostname_x",
            "-o _HostName_=_x",
            "-vo \"HostName\"=x",
            "-o =hostname_x",
        ] {
            let refused = divided_text(&format!("{option} h")).unwrap_err();
            assert!(refused.contains("before TARGET"), "{option}: {refused}");
        }
        assert!(divided_text("-o HostKeyAlias=x -o Port=1 h").is_ok());
        assert!(divided_text("-N --print h").unwrap_err().contains("--print"));
    }
}
