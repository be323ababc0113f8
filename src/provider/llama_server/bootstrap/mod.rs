//! What works inside the instance: one POSIX shell program, fed on standard input of `sh -s`, and what it answers.
//!
//! [`program`] makes the text to send, [`Report::parse`] reads what came back. Every run is short and answers at
//! once; what takes long (a compile, the server itself) goes on detached in the instance and is asked about with
//! [`Verb::Look`]. The program keeps its records in `workspace/.damodel/<port>/` (the state directory), and its
//! sources and builds beside it, in `workspace/.damodel/{sources,packages,builds}/`, where all servers of the
//! instance share them.
//!
//! It knows nothing of SSH: whoever runs `sh -s` with the text as input, and hands over the output, may use it.

mod facts;
mod job;
mod program;
mod report;
mod settle;
mod start;
#[cfg(test)]
mod tests;
mod told;
mod wire;

#[cfg(test)]
pub(super) use self::report::Process;
pub(super) use self::{
    facts::{Facts, Listener, Question, Toolkit},
    job::{Build, Fingerprint, Job, Origin, Place, REFERENCE, REPOSITORY, Source},
    program::{Form, Verb, is_passable, program},
    report::{Failure, Former, Kind, Malformed, Phase, Report},
    start::{Binary, Login, Prebuilt, Provided, Recipe, Start, Supply, Tree},
    told::{no_room, room_question},
};
