//! What works inside the instance: one POSIX shell program, fed on standard input of `sh -s`, and what it answers.
//!
//! [`program`] makes the text to send, [`JobReport::parse`] reads what came back. Every run is short and answers at
//! once; what takes long (a compile, the server itself) goes on detached in the instance and is asked about with
//! [`Verb::Look`]. The program keeps its records in `workspace/.damodel/<port>/` (the state directory), and its
//! sources and builds beside it, in `workspace/.damodel/{sources,packages,builds}/`, where all servers of the
//! instance share them.
//!
//! What it keeps in the workspace; a run is a job and the work on it:
//!
//! | below `.damodel/` | |
//! |---|---|
//! | `<port>/runs/<run>/{job,owner,worker,status,server,restarts}` | records: quoted assignments, written by rename |
//! | `<port>/runs/<run>/api_key` | the key that the server asks for, mode 0600 |
//! | `<port>/runs/<run>/successor` | the `<port>/` folder in which an update has begun that is to replace this run |
//! | `<port>/run` | the folder of the current run |
//! | `<port>/former` | that of the run which serves or served before, while there is a way back to it |
//! | `<port>/restart` | the process that is ended to be started again |
//! | `<port>/attended` | its time is when an update was last followed |
//! | `<port>/{server,work}.log` | the logs of the server and of the detached work |
//! | `<port>/bootstrap.sh` | the program, for the detached work, without any setting or secret |
//! | `builds/<key>/`, `<key>.log`, `<key>.done` | the build folder, the compile's log, the mark of a finished build |
//! | `sources/`, `packages/` | what was fetched or unpacked |
//!
//! It knows nothing of SSH: whoever runs `sh -s` with the text as input, and hands over the output, may use it.

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
