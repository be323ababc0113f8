//! The disturbances of a run.

use damodel::sandbox::{Code, FaultAction, Shape, When};
use rand::{RngExt, rngs::StdRng};

/// The aim of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Apply,
    Destroy,
    /// Replaces one of the existing resources.
    Replace(usize),
    /// Taints one of the existing resources, and applies.
    Taint(usize),
}

/// How a run is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    Core,
    Interrupt,
    None,
    Provider,
    Terminate,
    TwoInterrupts,
    /// Terraform is killed after the answers of its provider and before it stores them.
    Unread,
    Whole,
}

/// The moment at which a run is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// When this many creates arrived, none of which is answered.
    Arrived { creates: usize, processed: bool },
    /// When this many creates were accepted and are waited for.
    Accepted(usize),
    /// After this many requests.
    Requests(usize),
}

/// The service and the account that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The alias has the token of the main account.
    Alias,
    /// Another service, with other accounts.
    Elsewhere,
    Foreign,
    Rotated,
    Same,
}

impl Token {
    /// Whether what the run creates belongs to another account than the one that its resource names.
    pub(super) fn strays(self) -> bool {
        matches!(self, Self::Alias | Self::Elsewhere | Self::Foreign)
    }
}

/// A disturbed run.
#[derive(Clone, Debug)]
pub(super) struct Disturbance {
    pub(super) aim: Aim,
    pub(super) breaks: Break,
    pub(super) moment: Moment,
    pub(super) token: Token,
    /// The endpoint, the time and the effect of each.
    pub(super) faults: Vec<(&'static str, When, FaultAction)>,
    /// The free GPUs of each specification during the run, if stock is scarce.
    pub(super) sold_out_after: Option<i64>,
    pub(super) parallelism: u32,
    is_patient: bool,
    /// Whether `.terraform` is lost afterwards.
    pub(super) loses_data: bool,
    /// Whether the folder has another backend afterwards, with the same state.
    pub(super) changes_backend: bool,
}

const CREATES: [&str; 3] = ["instance_create", "cloud_disk_create", "image_save"];
const OTHERS: [&str; 13] = [
    "*",
    "cloud_disk_list",
    "cloud_disk_release",
    "cloud_disk_rename",
    "cloud_disk_spec_list",
    "image_delete",
    "instance_detail",
    "instance_list",
    "instance_release",
    "instance_rename",
    "private_image_list",
    "public_image_list",
    "spec_list",
];

fn pick<T: Clone>(random: &mut StdRng, of: &[T]) -> T {
    of[random.random_range(0..of.len())].clone()
}

impl Disturbance {
    /// Whether the next run waits until the processes of this one have ended.
    pub(super) fn is_patient(&self) -> bool {
        self.is_patient || self.loses_data || self.changes_backend || self.token.strays()
    }

    pub(super) fn random(random: &mut StdRng, is_first: bool) -> Self {
        let aim = match random.random_range(0..10) {
            0 if !is_first => Aim::Destroy,
            1 if !is_first => Aim::Replace(random.random_range(0..100)),
            2 if !is_first => Aim::Taint(random.random_range(0..100)),
            _ => Aim::Apply,
        };
        let breaks = pick(
            random,
            &[
                Break::Core,
                Break::Core,
                Break::Unread,
                Break::Whole,
                Break::Whole,
                Break::Provider,
                Break::Provider,
                Break::Interrupt,
                Break::TwoInterrupts,
                Break::Terminate,
                Break::None,
            ],
        );
        let moment = match random.random_range(0..4) {
            0 => Moment::Arrived { creates: random.random_range(1..=3), processed: random.random_bool(0.6) },
            1 => Moment::Accepted(random.random_range(1..=3)),
            _ => Moment::Requests(random.random_range(1..=30)),
        };
        let faults = (0..random.random_range(0..3)).map(|_| fault(random)).collect();
        let token = match random.random_range(0..16) {
            0 | 1 => Token::Foreign,
            2 | 3 => Token::Rotated,
            4 => Token::Alias,
            5 => Token::Elsewhere,
            _ => Token::Same,
        };
        Self {
            aim,
            breaks,
            moment,
            token,
            faults,
            sold_out_after: random.random_bool(0.15).then(|| random.random_range(0..3)),
            parallelism: pick(random, &[1, 10, 10, 10, 30]),
            is_patient: random.random_bool(0.6),
            loses_data: random.random_bool(0.15),
            changes_backend: random.random_bool(0.1),
        }
    }
}

fn fault(random: &mut StdRng) -> (&'static str, When, FaultAction) {
    let processed = random.random_bool(0.5);
    let endpoint = if random.random_bool(0.5) { pick(random, &CREATES) } else { pick(random, &OTHERS) };
    let when = match random.random_range(0..3) {
        0 => When::Next(random.random_range(1..=3)),
        1 => When::Nth(random.random_range(1..=4)),
        _ => When::Probability(0.3),
    };
    let code_n = pick(
        random,
        &[
            Code::InternalError,
            Code::InvalidToken,
            Code::ResourceInsufficient,
            Code::BalanceNotEnough,
            Code::InstanceNotExistOrNoPrivilege,
        ],
    );
    let action = match random.random_range(0..12) {
        0 => FaultAction::DropAfter,
        1 => FaultAction::DropBefore,
        2 => FaultAction::Error { code_n, processed },
        3 if CREATES.contains(&endpoint) => FaultAction::FailCreation,
        4 => FaultAction::Hang { limit_ms: 2000, processed },
        5 => FaultAction::Html { status: pick(random, &[200, 504]), processed },
        6 => FaultAction::LateVisibility { ms: 0, reads: random.random_range(1..=3) },
        7 => FaultAction::Slow { ms: 700 },
        8 => FaultAction::Status { status: pick(random, &[500, 502, 503]), processed },
        9 => FaultAction::TooManyRequests { retry_after_seconds: Some(1) },
        10 => FaultAction::Truncated,
        _ => {
            FaultAction::Misshapen { shape: pick(random, &[Shape::Empty, Shape::Number, Shape::Renamed, Shape::Text]) }
        }
    };
    (endpoint, when, action)
}
