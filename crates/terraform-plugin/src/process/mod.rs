//! Operating system functions: the end of the parent process, signals, and file locks. Depends on no other layer.

mod files;
mod signals;

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

pub use self::{
    files::{FileLock, blocking, is_locked, private, private_directory, replace},
    signals::{Signals, interrupt, kill, told_to_end},
    system::Parent,
};

/// The interval between checks of the parent. The end and its last log line have the rest of the second.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

impl Parent {
    /// Waits until the parent has ended, with a delay of at most half a second.
    ///
    /// go-plugin does not do this: otherwise the plugin would keep running, with its locks, after Terraform was killed.
    pub async fn gone(self) {
        until(move || self.has_ended()).await;
    }
}

async fn until(has_ended: impl Fn() -> bool) {
    let mut ticks = interval(LOOK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if has_ended() {
            return;
        }
    }
}

#[cfg(unix)]
mod system {
    use std::{fs, os::unix::process::parent_id};

    /// The parent, by its process ID. An orphan gets another parent.
    ///
    /// `PR_SET_PDEATHSIG` is not suitable: its signal is sent when the *thread* that started this process ends.
    #[derive(Debug)]
    pub struct Parent(u32);

    impl Parent {
        /// The current parent.
        pub fn current() -> Self {
            Self(parent_id())
        }

        /// Its process ID and, on Linux, its start time, because IDs are reused. `None` if unknown.
        pub fn name(&self) -> Option<String> {
            // Field 22 of proc_pid_stat(5); the second field is a name in parentheses that may contain any character.
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
            let started = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(19));
            Some(format!("{}@{}", self.0, started.unwrap_or_default()))
        }

        /// The words of its command line after the program; empty if this is not Linux.
        pub fn arguments(&self) -> Vec<String> {
            let line = fs::read_to_string(format!("/proc/{}/cmdline", self.0)).unwrap_or_default();
            line.split_terminator('\0').skip(1).map(str::to_owned).collect()
        }

        /// Whether it has ended.
        pub(super) fn has_ended(&self) -> bool {
            parent_id() != self.0
        }
    }
}

#[cfg(windows)]
mod system {
    use winsafe::{HPROCESS, HPROCESSLIST, SysResult, co, guard::CloseHandleGuard};

    /// The parent, as a handle. On Windows, an orphan keeps the ID of its ended parent, which may belong to another
    /// process by then.
    pub struct Parent(Known);

    enum Known {
        Ended,
        Running {
            id: u32,
            started: u64,
            process: CloseHandleGuard<HPROCESS>,
        },
        /// It cannot be opened, or another system has started this process.
        Unknown,
    }

    impl std::fmt::Debug for Parent {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.debug_tuple("Parent").field(&self.name()).finish()
        }
    }

    impl Parent {
        /// The current parent.
        pub fn current() -> Self {
            let Some(id) = parent_id() else { return Self(Known::Unknown) };
            let access = co::PROCESS::QUERY_LIMITED_INFORMATION | co::PROCESS::SYNCHRONIZE;
            let process = match HPROCESS::OpenProcess(access, false, id) {
                Ok(process) => process,
                // No process has this ID.
                Err(co::ERROR::INVALID_PARAMETER) => return Self(Known::Ended),
                Err(_) => return Self(Known::Unknown),
            };
            let (Ok(started), Ok(own)) = (started(&process), started(&HPROCESS::GetCurrentProcess())) else {
                return Self(Known::Unknown);
            };
            let parent = Self(Known::Running { id, started, process });
            if started > own || parent.has_ended() { Self(Known::Ended) } else { parent }
        }

        /// Its process ID and start time, because IDs are reused. `None` if unknown or ended.
        pub fn name(&self) -> Option<String> {
            match &self.0 {
                Known::Running { id, started, .. } => Some(format!("{id}@{started}")),
                Known::Ended | Known::Unknown => None,
            }
        }

        /// The words of its command line after the program; empty if this is not Linux.
        pub fn arguments(&self) -> Vec<String> {
            Vec::new()
        }

        /// Whether it has ended.
        pub(super) fn has_ended(&self) -> bool {
            match &self.0 {
                Known::Ended => true,
                Known::Running { process, .. } => process.WaitForSingleObject(Some(0)) == Ok(co::WAIT::OBJECT_0),
                Known::Unknown => false,
            }
        }
    }

    fn parent_id() -> Option<u32> {
        let own = std::process::id();
        let mut processes = HPROCESSLIST::CreateToolhelp32Snapshot(co::TH32CS::SNAPPROCESS, None).ok()?;
        let mut entries = processes.iter_processes().filter_map(Result::ok);
        let entry = entries.find(|entry| entry.th32ProcessID == own)?;
        (entry.th32ParentProcessID != 0).then_some(entry.th32ParentProcessID)
    }

    /// The start time of a process, in the system's unit.
    fn started(process: &HPROCESS) -> SysResult<u64> {
        let (created, ..) = process.GetProcessTimes()?;
        Ok(u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_orphan_notices_within_half_a_second() {
        let start = Instant::now();
        let looks = Cell::new(0);
        until(|| {
            looks.set(looks.get() + 1);
            start.elapsed() >= Duration::from_secs(90)
        })
        .await;
        assert!(start.elapsed() <= Duration::from_millis(90_500));
        assert!(looks.get() <= 182, "{} looks", looks.get());
    }

    #[tokio::test(start_paused = true)]
    async fn a_parent_that_runs_is_not_gone() {
        let parent = Parent::current();
        assert!(timeout(Duration::from_secs(3600), parent.gone()).await.is_err());
    }

    #[cfg(any(target_os = "linux", windows))]
    #[test]
    fn a_parent_is_known_with_its_start_time() {
        let parent = Parent::current().name().unwrap();
        let (process, started) = parent.split_once('@').unwrap();
        assert!(process.parse::<u32>().is_ok() && started.parse::<u64>().is_ok(), "{parent}");
        assert_eq!(Parent::current().name().unwrap(), parent);
    }
}
