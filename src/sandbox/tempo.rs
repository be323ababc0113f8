//! How long what takes time takes, and how often it may be asked for.

use super::{clock::milliseconds, options::Options};

/// The times and limits of the [`Options`], in milliseconds of the life clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tempo {
    pub(super) creation_ms: i64,
    pub(super) release_ms: i64,
    pub(super) disk_change_ms: i64,
    pub(super) image_push_ms: i64,
    pub(super) sshd_start_ms: i64,
    pub(super) save_window_ms: i64,
    pub(super) daily_saves: u32,
}

impl Tempo {
    pub(super) fn of(options: &Options) -> Self {
        Self {
            creation_ms: milliseconds(options.creation),
            release_ms: milliseconds(options.release),
            disk_change_ms: milliseconds(options.disk_change),
            image_push_ms: milliseconds(options.image_push),
            sshd_start_ms: milliseconds(options.sshd_start),
            save_window_ms: milliseconds(options.save_window),
            daily_saves: options.daily_saves,
        }
    }
}
