//! A file, from here to there, whole or not at all.

use sha2::{Digest, Sha256};

use crate::ssh::{Error, Session, connect::ended, error::said};

/// Reads the hash from the first line and the content from the rest, so that neither shows in a list of processes
/// (the hash of a short secret would tell it). Its arguments are the path and the mode.
const SCRIPT: &str = include_str!("upload.sh");

impl Session {
    /// Writes a file: beside its place, with the mode given, checked against a SHA-256 made over there, then renamed.
    ///
    /// The path is absolute, relative to the user's home, or begins with `~/`; its folder has to exist. The content
    /// never shows in a command line. Whatever happens, the path holds the old file or the new one. Needs POSIX tools
    /// and one of `sha256sum`, `shasum` and `openssl` over there.
    ///
    /// # Errors
    ///
    /// [`Error::Upload`], and those of [`Session::run`].
    pub async fn upload(&self, path: &str, content: &[u8], mode: u32) -> Result<(), Error> {
        let hash = hex(&Sha256::digest(content));
        let command = format!("sh -c {} upload {} {mode:04o}", quoted(SCRIPT), quoted(path));
        let stdin = [hash.as_bytes(), b"\n", content].concat();
        let output = self.run(&command, &stdin).await?;
        let upload = |reason: String| Error::Upload { path: path.to_owned(), reason };
        if !output.is_success() {
            return Err(upload(ended(&output)));
        }
        // A server may run something else than what it is told, and say that it went well.
        let stdout = String::from_utf8_lossy(&output.stdout);
        if !stdout.lines().any(|line| line.trim_end() == hash) {
            return Err(upload(format!("the server did not confirm it; it said {:?}", said(&stdout))));
        }
        Ok(())
    }
}

/// A word for a POSIX shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_one_word() {
        assert_eq!(quoted("a b$c"), "'a b$c'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_hash_is_in_lowercase_hexadecimal() {
        assert_eq!(hex(&Sha256::digest(b""))[..8], *"e3b0c442");
    }
}
