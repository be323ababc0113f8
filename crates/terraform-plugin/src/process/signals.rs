//! Signals that end this process, that it ignores, and that it sends to its children.

pub use self::system::{Signals, interrupt, kill, told_to_end};

#[cfg(unix)]
mod system {
    use std::io;

    use nix::{
        sys::signal::{self, Signal as Number},
        unistd::Pid,
    };
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// The signals that end the server, by the way in which it was started.
    #[derive(Debug)]
    pub struct Signals {
        terminate: Signal,
        interrupt: Option<Signal>,
    }

    impl Signals {
        /// For a server that Terraform started: only SIGTERM ends it.
        ///
        /// Ctrl-C in a terminal reaches the whole process group, and Terraform then asks the provider to stop. The same
        /// applies to SIGHUP, which Terraform may ignore (`nohup`). Exiting here would abandon running creates. The end
        /// of Terraform itself is detected separately.
        pub fn under_core() -> io::Result<Self> {
            // The handler stays installed, and its events are ignored.
            drop(signal(SignalKind::interrupt())?);
            drop(signal(SignalKind::hangup())?);
            Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: None })
        }

        /// For a server that a person started: SIGTERM and SIGINT end it.
        pub fn by_hand() -> io::Result<Self> {
            Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: Some(signal(SignalKind::interrupt())?) })
        }

        /// Waits for a signal that ends the server.
        pub async fn ended(mut self) {
            let interrupted = async {
                match &mut self.interrupt {
                    Some(interrupt) => interrupt.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = interrupted => {}
            }
        }
    }

    /// Completes when the process receives a signal to end. Listening begins with the first poll.
    pub async fn told_to_end() -> io::Result<()> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        Ok(())
    }

    /// Asks a child to end. Terraform and OpenTofu shut down gracefully on the first interrupt.
    pub fn interrupt(process: Option<u32>) {
        if let Some(process) = pid(process) {
            // It may already have ended.
            let _ = signal::kill(process, Number::SIGINT);
        }
    }

    /// Ends a child and the processes that it started.
    pub fn kill(process: Option<u32>) {
        if let Some(process) = pid(process) {
            let _ = signal::killpg(process, Number::SIGKILL);
        }
    }

    fn pid(process: Option<u32>) -> Option<Pid> {
        process.and_then(|process| i32::try_from(process).ok()).map(Pid::from_raw)
    }
}

#[cfg(windows)]
mod system {
    use std::io;

    use tokio::signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
    };

    /// The events of the console that end the server, by the way in which it was started.
    #[derive(Debug)]
    pub struct Signals {
        /// Kept, because without a listener Windows ends the process.
        interrupts: (CtrlC, CtrlBreak),
        closings: (CtrlClose, CtrlShutdown),
        ends_on_interrupt: bool,
    }

    impl Signals {
        /// For a server that Terraform started: Ctrl-C and Ctrl-Break reach every process of the console, and Terraform
        /// then asks the provider to stop. Closing the console and shutting down the system end it.
        pub fn under_core() -> io::Result<Self> {
            Ok(Self {
                interrupts: (ctrl_c()?, ctrl_break()?),
                closings: (ctrl_close()?, ctrl_shutdown()?),
                ends_on_interrupt: false,
            })
        }

        /// For a server that a person started: Ctrl-C ends it too.
        pub fn by_hand() -> io::Result<Self> {
            Ok(Self { ends_on_interrupt: true, ..Self::under_core()? })
        }

        /// Waits for an event that ends the server.
        pub async fn ended(mut self) {
            let (ctrl_c, ctrl_break) = &mut self.interrupts;
            let (close, shutdown) = &mut self.closings;
            tokio::select! {
                _ = ctrl_c.recv(), if self.ends_on_interrupt => {}
                _ = ctrl_break.recv(), if self.ends_on_interrupt => {}
                _ = close.recv() => {}
                _ = shutdown.recv() => {}
            }
        }
    }

    /// Completes when the process receives a signal to end. Listening begins with the first poll.
    pub async fn told_to_end() -> io::Result<()> {
        Signals::by_hand()?.ended().await;
        Ok(())
    }

    /// The console has already sent the event to the child.
    pub fn interrupt(_: Option<u32>) {}

    /// The child is ended when its handle is dropped.
    pub fn kill(_: Option<u32>) {}
}
