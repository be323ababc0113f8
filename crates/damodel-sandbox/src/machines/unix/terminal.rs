//! A pseudo-terminal, which a client may ask for before it runs a command.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    },
    path::Path,
};

use russh::Pty;
use rustix::{
    fs::{OFlags, fcntl_setfl},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize},
};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The end of the client. When it is dropped, the system hangs up: the processes of the terminal get SIGHUP.
#[derive(Debug)]
pub(super) struct Terminal {
    own: OwnedFd,
    /// The value of `TERM`.
    pub(super) kind: String,
}

impl Terminal {
    /// A new one with so many columns and rows, and the end of the command.
    pub(super) fn open(kind: &str, columns: u32, rows: u32, modes: &[(Pty, u32)]) -> io::Result<(Self, File)> {
        let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&own)?;
        unlockpt(&own)?;
        let name = ptsname(&own, Vec::new())?;
        let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or_default();
        let device = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        if modes.contains(&(Pty::ECHO, 0)) {
            let mut settings = tcgetattr(&device)?;
            settings.local_modes.remove(LocalModes::ECHO);
            tcsetattr(&device, OptionalActions::Now, &settings)?;
        }
        fcntl_setfl(&own, OFlags::NONBLOCK)?;
        let terminal = Self { own, kind: kind.to_owned() };
        terminal.resize(columns, rows)?;
        Ok((terminal, device))
    }

    /// Changes its size; the system signals that to its processes.
    pub(super) fn resize(&self, columns: u32, rows: u32) -> io::Result<()> {
        let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let size = Winsize { ws_col: short(columns), ws_row: short(rows), ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.own, size)?)
    }

    /// What its processes print, and what they read. The library asks for pipes, and needs what terminals have too: the
    /// system shows when they are ready.
    pub(super) fn ends(&self) -> io::Result<(Receiver, Sender)> {
        let output = Receiver::from_owned_fd_unchecked(self.own.try_clone()?)?;
        Ok((output, Sender::from_owned_fd_unchecked(self.own.try_clone()?)?))
    }
}
