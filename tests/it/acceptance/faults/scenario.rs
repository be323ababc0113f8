//! What breaks, and when.

use damodel::sandbox::Action;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// The answer is lost in this way; 0 … 5.
    AnswerLost(u32),
    /// The core is killed.
    CoreKilled,
    /// Ctrl-C, once.
    Interrupt,
    /// The machine shows up late, and the answer is lost or the provider killed.
    LateVisibility { killed: bool },
    /// The provider or the core is killed, and `.terraform` is lost.
    Lost { core: bool },
    /// The provider is killed.
    ProviderKilled,
    /// Ctrl-C, twice.
    TwoInterrupts,
}

/// When it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before the create is sent.
    BeforeSend,
    /// The create arrived, and nothing came of it.
    Received,
    /// The create was carried out and not answered.
    CarriedOut,
    /// The create was answered, and the machine is waited for.
    Waiting,
}

/// A run's plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) breaks: Break,
    pub(super) phase: Phase,
    /// Whether the next apply waits until the processes of the broken one have ended.
    pub(super) patient: bool,
}

impl Scenario {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let flip = random.random_bool(0.5);
        let breaks = match seed % 7 {
            0 => Break::AnswerLost(random.random_range(0..6)),
            1 => Break::CoreKilled,
            2 => Break::Interrupt,
            3 => Break::LateVisibility { killed: flip },
            4 => Break::Lost { core: flip },
            5 => Break::ProviderKilled,
            _ => Break::TwoInterrupts,
        };
        let phase = match (breaks, random.random_range(0..4)) {
            (Break::AnswerLost(_) | Break::LateVisibility { .. }, _) | (_, 0) => Phase::CarriedOut,
            (_, 1) => Phase::BeforeSend,
            (_, 2) => Phase::Received,
            _ => Phase::Waiting,
        };
        Self { seed, breaks, phase, patient: random.random_bool(0.5) }
    }

    /// Whether a second machine may be made: nothing can be known of the first, or it was handed over to a core that was told twice
    /// to stop and did not keep it.
    pub(super) fn may_make_two(self) -> bool {
        matches!(self.breaks, Break::Lost { .. } | Break::TwoInterrupts)
    }

    /// How the answer of the create is lost.
    pub(super) fn loss(way: u32) -> Action {
        match way {
            0 => Action::DropAfter,
            1 => Action::Status { status: 500, processed: true },
            2 => Action::Html { status: 504, processed: true },
            3 => Action::Truncated,
            4 => Action::DropBefore,
            _ => Action::Status { status: 502, processed: false },
        }
    }
}
