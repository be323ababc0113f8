//! The program in the instance, in POSIX shell on the standard input of `sh -s`, and its report.
//!
//! [`program()`] makes the text to send, and [`JobReport::parse`] reads the answer. Every verb is short. Long work (a
//! compile, the server itself) continues detached in the instance, and [`Verb::Look`] reports its progress. The table
//! at the top of script/records.sh lists all files in the workspace with their writers and readers.
//!
//! This module does not depend on SSH: `sh -s` may run in any way.

mod facts;
mod job;
mod kinds;
mod messages;
mod phase;
mod program;
pub(super) mod recipe;
mod report;
mod shell;
mod start;
mod wire;

pub(crate) use self::start::wants_gpu;
pub use self::{
    facts::{Facts, PortHolder, Question, Toolkit, absolute},
    job::{Build, CompileSource, FileOrigin, Fingerprint, Job, REFERENCE, REPOSITORY, ServerPlace, SourceOrigin},
    kinds::{FailureKind, JobFailure, Malformed},
    messages::{ITS_LOG, no_room, room_question},
    phase::Phase,
    program::{DRIVER, Verb, is_passable, program},
    report::{AdditionalFiles, Compile, Download, JobReport, Previous, Process},
    start::{Binary, LoginLifetime, Prebuilt, Provided, Recipe, Start, Supply, Tree, is_processor},
};
