//! Systems other than Unix: no machines.

use tokio_util::task::TaskTracker;

use super::MachineView;
use crate::sandbox::{
    options::{Error, Options},
    world::World,
};

/// An empty set of machines.
#[derive(Debug)]
pub(in crate::sandbox) struct Machines;

impl Machines {
    pub(in crate::sandbox) fn new(_options: &Options) -> Result<Self, Error> {
        Ok(Self)
    }

    pub(in crate::sandbox) fn follow(&mut self, _world: &mut World, _sshd_start_ms: i64, _now_ms: i64) {}

    pub(in crate::sandbox) fn view(&self) -> Vec<MachineView> {
        Vec::new()
    }

    pub(in crate::sandbox) fn end(self) -> TaskTracker {
        let tasks = TaskTracker::new();
        tasks.close();
        tasks
    }
}
