//! What runs in an instance: model files, the program of the bootstrap, and its decisions.
//!
//! A [`Job`] says which server is wanted. [`Work`] brings it about over an [`InstanceSession`]: it asks the instance,
//! judges the answers, decides the next step, and lets [`program()`] carry it out. [`Trial`] finds out whether the
//! server serves. [`read_model`] and [`memory`] need no instance.
//!
//! Independent of Terraform. Of our other crates it uses the client's progress and chats, and the SSH client.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

mod bootstrap;
mod chat;
mod decide;
mod logout;
mod model;
mod model_file;
mod option_files;
mod options;
mod package;
mod session;
mod source;
mod status;
mod survey;
mod trial;
mod watch;
mod work;

use damodel_client::api;
use damodel_ssh as ssh;

pub use self::{
    bootstrap::{
        AdditionalFiles, Binary, Build, Compile, CompileSource, DRIVER, Download, Facts, FailureKind, FileOrigin,
        Fingerprint, ITS_LOG, Job, JobFailure, JobReport, LoginLifetime, Malformed, Phase, PortHolder, Prebuilt,
        Previous, Process, Provided, Question, REFERENCE, REPOSITORY, Recipe, ServerPlace, SourceOrigin, Start, Supply,
        Toolkit, Tree, Verb, absolute, is_passable, is_processor, no_room, program, room_question,
    },
    chat::{ChatFailure, complete_chat},
    decide::{Goal, History, TrialAnswers},
    model::{
        CacheType, FileFault, GgufModel, InvalidOption, MAX_HEADER, Memory, ModelBytes, ModelError, ServerOptions,
        described, largest_context, memory, read_model, refused_options,
    },
    model_file::{model_parts, split_part},
    option_files::{check_files, files_question, in_workspace},
    options::{
        API_KEY_FILE, API_KEY_RULE, CACHE_TYPES, Clash, DEFAULT_BRANCH, DEFAULT_PORT, DEFAULT_PROMPT,
        DEFAULT_WORKSPACE, MemoryEffect, PLAIN_ARGUMENTS, ServerOption, argument_in, clash, find_option, is_api_key,
        is_variable_name, named_files, needs_flash_attention, variable_clash,
    },
    session::{InstanceSession, Silence, Trouble},
    status::{BLOCKED, DISPLACED, FAILED, OUTDATED, READY, STARTING, STOPPED, UNRESPONSIVE, UNSUPERVISED, status_of},
    trial::{Trial, TrialLook, TrialProbe, check_health},
    watch::{WorkProgress, stage},
    work::{End, Ended, Order, Return, Work, check_job},
};
