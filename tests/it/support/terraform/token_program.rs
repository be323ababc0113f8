//! Programs that print the token.

use std::fs;

use super::Workspace;
use crate::support::program;

impl Workspace<'_> {
    /// Writes a program beside the working directory, whose `$HERE` is its folder, and removes the token from the
    /// environment. Returns the argument that names it.
    pub(crate) fn token_program(&self, script: &str) -> String {
        let program = self.beside("token-program");
        let here = program.parent().unwrap().display();
        program::put(&program, &format!("#!/bin/sh\nHERE='{here}'\n{script}\n"));
        self.remove_env("DAMODEL_API_TOKEN");
        format!("api_token_command = [{:?}]", program.display().to_string())
    }

    /// A program that prints another token of the main account each time.
    pub(crate) fn changing_tokens(&self) -> String {
        let tokens: Vec<String> = (0..40).map(|_| self.site.rotated_token()).collect();
        fs::write(self.beside("tokens"), tokens.join("\n")).unwrap();
        self.token_program(
            "n=1\nwhile ! mkdir \"$HERE/taken-$n\" 2>/dev/null; do n=$((n + 1)); done\n\
             sed -n \"${n}p\" \"$HERE/tokens\"",
        )
    }
}
