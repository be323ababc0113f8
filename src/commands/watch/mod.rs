//! `terraform-provider-damodel watch`: the current waits of the apply in a folder.
//!
//! Provider processes write progress events to files beside the pending directory, which this command reads several
//! times a second.

mod view;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    time::Duration,
};

use clap::Parser;
use terraform_plugin::process::told_to_end;
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::view::View;
use super::{
    Failure,
    service::{DATA_DIRECTORY, PendingFolder, path_or_nothing},
};
use crate::{creation::progress::Follower, provider::Environment};

pub use self::view::line;

/// The interval between reads of the files.
const PACE: Duration = Duration::from_millis(250);

/// The time without a provider process after which the apply counts as finished: it may end one process before it
/// starts another.
const OVER: Duration = Duration::from_secs(2);

/// Shows what the apply that runs in a folder is waiting for.
///
/// Run it in a second terminal. Each object has a line with its phase, its progress and its time so far. The command
/// ends with the apply.
///
/// Exit codes: 0 the apply has ended, or Ctrl-C; 1 the folder or the events cannot be read; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "watch")]
pub struct Arguments {
    /// The folder of the configuration.
    #[arg(default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// The directory of the pending records. Default: damodel-pending in Terraform's data directory.
    #[arg(long, env = "DAMODEL_PENDING_DIR", value_name = "DIR", value_parser = path_or_nothing())]
    pub pending_dir: Option<PathBuf>,
    /// Terraform's data directory.
    #[arg(long, env = "TF_DATA_DIR", default_value = DATA_DIRECTORY, value_name = "DIR",
        value_parser = path_or_nothing())]
    pub data_dir: PathBuf,
    /// Exits at once if no apply is waiting now.
    #[arg(long)]
    pub no_wait: bool,
}

/// Shows the waits until the apply ends or the user stops the command.
///
/// # Errors
///
/// If the folder or its files cannot be read.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut view = if io::stdout().is_terminal() { View::drawn() } else { View::plain() };
    let notes = notes(&arguments, Environment::of_process())?;
    let mut follower = Follower::beside(&notes.journal);
    let mut ticks = interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_alive: Option<Instant> = None;
    let mut is_first = true;
    let end = told_to_end();
    tokio::pin!(end);
    loop {
        tokio::select! {
            biased;
            ended = &mut end => return ended.map_err(Failure::terminal),
            _ = ticks.tick() => {}
        }
        let look = follower.look();
        let look = look.map_err(|error| Failure::reading(follower.directory().display(), error))?;
        view.show(&look.events).map_err(Failure::terminal)?;
        let doubt = doubt(&notes, &follower);
        match (look.alive, last_alive) {
            (0, None) if arguments.no_wait => {
                return match doubt {
                    Some(_) if notes.are_named => Err(no_directory(&notes)),
                    Some(doubt) => view.say(&doubt).map_err(Failure::terminal),
                    None => view.say("No apply is waiting in this folder.").map_err(Failure::terminal),
                };
            }
            (0, None) if is_first => {
                view.say("No apply is waiting in this folder yet. Press Ctrl-C to stop.").map_err(Failure::terminal)?;
                doubt.map_or(Ok(()), |doubt| view.say(&doubt)).map_err(Failure::terminal)?;
            }
            (0, Some(seen)) if seen.elapsed() >= OVER => {
                return view.say("The apply has finished.").map_err(Failure::terminal);
            }
            (0, _) => {}
            _ => last_alive = Some(Instant::now()),
        }
        is_first = false;
    }
}

/// The failure for a named directory that does not exist. Usual cause: a misspelled name.
fn no_directory(notes: &PendingFolder) -> Failure {
    let directory = notes.directory().display();
    Failure::new(format!(
        "no pending directory at {directory}. Give the DAMODEL_PENDING_DIR of the apply, relative to the folder of the \
         configuration"
    ))
}

/// The pending records of the folder. Paths in the environment are relative to the folder, as in the provider.
fn notes(arguments: &Arguments, environment: Environment) -> Result<PendingFolder, Failure> {
    if !arguments.dir.is_dir() {
        return Err(Failure::new(format!("cannot read the folder {}: it does not exist", arguments.dir.display())));
    }
    let there = environment.within(&arguments.dir);
    Ok(PendingFolder::find(arguments.pending_dir.as_deref(), &arguments.data_dir, &there)?)
}

/// A hint if no provider process has written files yet: either no apply has run, or the user meant another folder.
fn doubt(notes: &PendingFolder, follower: &Follower) -> Option<String> {
    let is_there = notes.directory().exists() || follower.directory().exists();
    (!is_there).then(|| {
        format!(
            "No pending directory at {}: no create is recorded here. Give the folder of the configuration, or the \
             DAMODEL_PENDING_DIR of its apply with --pending-dir.",
            notes.directory().display()
        )
    })
}
