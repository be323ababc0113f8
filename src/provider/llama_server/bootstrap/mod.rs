//! The program in the instance: POSIX shell, fed on standard input of `sh -s`, and its answer.
//!
//! [`program`] makes the text to send, and [`JobReport::parse`] reads the answer. Every verb is short. Long work (a
//! compile, the server itself) continues detached in the instance, and [`Verb::Look`] reports its progress. The records
//! are in `workspace/.damodel/<port>/` (the state directory). Sources and builds are beside it, in
//! `workspace/.damodel/{sources,packages,builds}/`, and all servers of the instance share them.
//!
//! Its files in the workspace; a run is a job and the work on it:
//!
//! | below `.damodel/` | |
//! |---|---|
//! | `<port>/runs/<run>/{job,owner,worker,status,server,restarts}` | records: quoted assignments, written by rename |
//! | `<port>/runs/<run>/api_key` | the API key of the server, mode 0600 |
//! | `<port>/run` | the folder of the current run |
//! | `<port>/former` | that of the former run, as long as an update can return to it |
//! | `<port>/restart` | the process that a restart ends |
//! | `<port>/attended` | its time is the last look at an update |
//! | `<port>/{server,work}.log` | the logs of the server and of the detached work |
//! | `<port>/bootstrap.sh` | the program, for the detached work, without any setting or secret |
//! | `builds/<key>/`, `<key>.log`, `<key>.done` | the build folder, the compile's log, the mark of a finished build |
//! | `sources/`, `packages/` | fetched and unpacked files |
//!
//! This module does not depend on SSH: `sh -s` may run in any way.

mod facts;
mod job;
mod program;
mod report;
mod settle;
mod start;
// A Unix shell runs the program.
#[cfg(all(test, unix))]
mod tests;
mod told;
mod wire;

#[cfg(test)]
pub(super) use self::report::Process;
pub(super) use self::{
    facts::{Facts, PortHolder, Question, Toolkit},
    job::{Build, CompileSource, Fingerprint, Job, REFERENCE, REPOSITORY, ServerPlace, SourceOrigin},
    program::{ProgramForm, Verb, is_passable, program},
    report::{FailureKind, Former, JobFailure, JobReport, Malformed, Phase},
    start::{Binary, LoginLifetime, Prebuilt, Provided, Recipe, Start, Supply, Tree},
    told::{no_room, room_question},
};
