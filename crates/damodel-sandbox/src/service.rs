//! The handling of one request: faults, authentication, the endpoint, the envelope, the ledger. No socket, no waiting.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    time::Duration,
};

use serde_json::Value;

use super::{
    answer::{Content, Delivery, HttpAnswer},
    chat,
    clock::{Clock, Tempo, milliseconds, wall_seconds},
    endpoints::{CallContext, CreationWish, Endpoint, EndpointInput},
    fault::{FaultAction, Faults, Shape},
    files::{FileRequest, FileService},
    form::Form,
    ledger::{Ledger, RequestEntry},
    machines::{MachineView, Machines},
    mutation::{Mutation, MutationError, StateList},
    options::{Error, Options},
    random::RandomStream,
    refusal::{Code, ServiceRefusal},
    render::{self, Identifiers},
    world::World,
};

/// The first random stream of requests, far from the streams of the world.
const REQUEST_STREAMS: u64 = 1 << 62;

/// A request as received.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncomingRequest<'a> {
    pub(super) method: &'a str,
    pub(super) token: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) authorization: Option<&'a str>,
    pub(super) input: EndpointInput<'a>,
}

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestTarget {
    Chat,
    Endpoint(&'static Endpoint),
    /// The path exists, but not with this method.
    OtherMethod,
    /// No such path.
    UnknownPath,
}

impl RequestTarget {
    /// The endpoint's name in faults and ledgers.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Chat => Some(chat::NAME),
            Self::Endpoint(endpoint) => Some(endpoint.name),
            Self::OtherMethod | Self::UnknownPath => None,
        }
    }
}

/// The simulated service.
#[derive(Debug)]
pub(super) struct Service {
    tempo: Tempo,
    tolerance_seconds: i64,
    clock: Clock,
    pub(super) form: Form,
    pub(super) files: FileService,
    pub(super) file_requests: Vec<FileRequest>,
    pub(super) faults: Faults,
    world: World,
    requests: Vec<RequestEntry>,
    /// `None` without a runtime, and after the end: no logins.
    pub(super) machines: Option<Machines>,
    ledger_file: Option<File>,
}

/// The result of an endpoint.
#[derive(Debug)]
struct Processed {
    account: Option<String>,
    outcome: Outcome,
    created: Vec<String>,
    released: Vec<String>,
}

#[derive(Debug)]
enum Outcome {
    Chat(Result<Content, chat::ChatRefusal>),
    Enveloped(Result<Value, ServiceRefusal>),
}

impl Outcome {
    fn code(&self) -> Option<Code> {
        match self {
            Self::Chat(Err(failure)) => Some(failure.refusal.code),
            Self::Enveloped(Err(refusal)) => Some(refusal.code),
            Self::Chat(Ok(_)) | Self::Enveloped(Ok(_)) => None,
        }
    }
}

impl Service {
    /// The service with the world of the seed.
    pub(super) fn new(options: &Options) -> Result<Self, Error> {
        let clock = Clock::new(options.life_clock);
        let world = World::seeded(options, clock.life_ms(0, options.form.clock_skew));
        Ok(Self {
            tempo: Tempo::of(options),
            tolerance_seconds: milliseconds(options.timestamp_tolerance) / 1000,
            clock,
            form: options.form.clone(),
            files: FileService::default(),
            file_requests: Vec::new(),
            faults: Faults::default(),
            world,
            requests: Vec::new(),
            machines: None,
            ledger_file: options.ledger.as_ref().map(open_ledger).transpose()?,
        })
    }

    /// Answers a request.
    pub(super) fn answer(&mut self, target: RequestTarget, incoming: &IncomingRequest<'_>) -> HttpAnswer {
        let sequence = u64::try_from(self.requests.len()).unwrap_or(u64::MAX).saturating_add(1);
        let mut random = RandomStream::new(self.world.seed, REQUEST_STREAMS.wrapping_add(sequence));
        let ids = Identifiers { request: format!("req-{sequence:06}-{}", random.text(12)), trace: random.text(32) };
        let now_ms = self.bring_up_to_date();
        let endpoint = target.name();
        let actions = endpoint.map_or_else(Vec::new, |name| self.faults.strike(name, &mut random));
        let is_processed = actions.iter().all(FaultAction::is_processed);
        let processed = is_processed.then(|| self.process(target, incoming, &actions, &mut random, now_ms));
        let code = processed.as_ref().and_then(|processed| processed.outcome.code());
        let (account, created, released) = match &processed {
            Some(processed) => (processed.account.clone(), processed.created.clone(), processed.released.clone()),
            None => (None, Vec::new(), Vec::new()),
        };
        let answer = self.deliver(target, processed, &actions, &ids);
        let is_sent = matches!(answer.delivery, Delivery::Send | Delivery::Truncate);
        self.note(RequestEntry {
            sequence,
            at_ms: now_ms,
            account,
            method: incoming.method.to_owned(),
            path: incoming.input.path.to_owned(),
            query: incoming.input.query.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            request_id: ids.request,
            processed: is_processed,
            status: is_sent.then_some(answer.status),
            code_n: actions.iter().find_map(fault_code).or(code).map(Code::number),
            faults: actions.iter().map(|action| action.name().to_owned()).collect(),
            created,
            released,
        });
        answer
    }

    /// Brings the world up to date and returns the life clock in Unix milliseconds.
    pub(super) fn bring_up_to_date(&mut self) -> i64 {
        let now_ms = self.clock.life_ms(self.world.advanced_ms, self.form.clock_skew);
        self.world.apply_due(now_ms);
        if let Some(machines) = &mut self.machines {
            machines.follow(&mut self.world, self.tempo.sshd_start_ms, now_ms);
        }
        now_ms
    }

    /// Advances the life clock and returns it.
    pub(super) fn advance(&mut self, by: Duration) -> i64 {
        self.world.advanced_ms = self.world.advanced_ms.saturating_add(milliseconds(by));
        self.bring_up_to_date()
    }

    /// Applies a mutation to the world.
    pub(super) fn mutate(&mut self, mutation: Mutation) -> Result<(), MutationError> {
        self.change(|world, now_ms| world.mutate(mutation, now_ms))
    }

    /// Merges fields into a record of the world.
    pub(super) fn set(&mut self, list: StateList, key: &str, fields: &Value) -> Result<(), MutationError> {
        self.change(|world, _| world.set(list, key, fields))
    }

    fn change(
        &mut self,
        change: impl FnOnce(&mut World, i64) -> Result<(), MutationError>,
    ) -> Result<(), MutationError> {
        let now_ms = self.bring_up_to_date();
        change(&mut self.world, now_ms)?;
        self.bring_up_to_date();
        Ok(())
    }

    /// The world, up to date.
    pub(super) fn world(&mut self) -> &World {
        self.bring_up_to_date();
        &self.world
    }

    pub(super) fn ledger(&mut self) -> Ledger {
        self.bring_up_to_date();
        Ledger { requests: self.requests.clone(), life: self.world.life.clone() }
    }

    /// The machines that are on, or off with a home.
    pub(super) fn machines(&mut self) -> Vec<MachineView> {
        self.bring_up_to_date();
        self.machines.as_ref().map(Machines::view).unwrap_or_default()
    }

    fn process(
        &mut self,
        target: RequestTarget,
        incoming: &IncomingRequest<'_>,
        actions: &[FaultAction],
        random: &mut RandomStream,
        now_ms: i64,
    ) -> Processed {
        let done = |account, outcome| Processed { account, outcome, created: Vec::new(), released: Vec::new() };
        let refuse = |account, refusal| done(account, Outcome::Enveloped(Err(refusal)));
        let endpoint = match target {
            RequestTarget::Chat => {
                return match chat::authenticate(&self.world, incoming.authorization) {
                    Ok(account) => {
                        let answer =
                            chat::answer(&self.world, &self.form, account, &incoming.input, actions, random, now_ms);
                        done(Some(account.name.clone()), Outcome::Chat(answer))
                    }
                    Err(failure) => done(None, Outcome::Chat(Err(failure))),
                };
            }
            RequestTarget::Endpoint(endpoint) => endpoint,
            RequestTarget::OtherMethod => {
                return refuse(None, ServiceRefusal::invalid(format!("{}: method not allowed", incoming.method)));
            }
            RequestTarget::UnknownPath => {
                return refuse(None, ServiceRefusal::invalid(format!("{}: no such path", incoming.input.path)));
            }
        };
        let account = match self.authenticate(incoming) {
            Ok(account) => account,
            Err(refusal) => return refuse(None, refusal),
        };
        let mut context = CallContext {
            world: &mut self.world,
            form: &self.form,
            random,
            account: &account,
            now_ms,
            tempo: self.tempo,
            wish: wish(actions),
            created: Vec::new(),
            released: Vec::new(),
        };
        let result = (endpoint.handle)(&mut context, &incoming.input);
        let CallContext { created, released, .. } = context;
        Processed { account: Some(account), outcome: Outcome::Enveloped(result), created, released }
    }

    /// The account of the token, if the timestamp is close enough (service API, Authentication).
    fn authenticate(&self, incoming: &IncomingRequest<'_>) -> Result<String, ServiceRefusal> {
        let account = incoming
            .token
            .and_then(|token| self.world.accounts.iter().find(|account| account.accepts(token)))
            .ok_or_else(|| ServiceRefusal::new(Code::InvalidToken, "X-Service-Token: invalid"))?;
        let timestamp: Option<i64> = incoming.timestamp.and_then(|timestamp| timestamp.parse().ok());
        let now = wall_seconds(self.form.clock_skew);
        match timestamp {
            Some(timestamp) if timestamp.abs_diff(now) <= self.tolerance_seconds.unsigned_abs() => {
                Ok(account.name.clone())
            }
            Some(_) | None => Err(ServiceRefusal::new(Code::InvalidToken, "X-Service-Timestamp: invalid")),
        }
    }

    fn deliver(
        &self,
        target: RequestTarget,
        processed: Option<Processed>,
        actions: &[FaultAction],
        ids: &Identifiers,
    ) -> HttpAnswer {
        let injected =
            actions.iter().find_map(fault_code).map(|code| ServiceRefusal::new(code, "injected by the sandbox"));
        let outcome = match (injected, processed, target) {
            (Some(refusal), _, RequestTarget::Chat) => Some(Outcome::Chat(Err(refusal.into()))),
            (Some(refusal), ..) => Some(Outcome::Enveloped(Err(refusal))),
            (None, processed, _) => processed.map(|processed| processed.outcome),
        };
        let json = |status, value: Value| (status, "application/json", Content::Whole(value.to_string().into_bytes()));
        let (status, content_type, body) = match outcome {
            None => json(200, Value::Null),
            Some(Outcome::Chat(Ok(body @ Content::Stream { .. }))) => (200, "text/event-stream", body),
            Some(Outcome::Chat(Ok(body @ Content::Whole(_)))) => (200, "application/json", body),
            Some(Outcome::Chat(Err(failure))) => failure.rendered(&self.form, ids),
            Some(Outcome::Enveloped(Ok(result))) => {
                let result = match actions.iter().find_map(shape) {
                    Some(shape) => shape.of(result),
                    None => result,
                };
                json(200, render::success(&self.form, ids, result))
            }
            Some(Outcome::Enveloped(Err(refusal))) => {
                let (status, envelope) = render::refusal(&self.form, ids, &refusal);
                json(status, envelope)
            }
        };
        let mut answer = HttpAnswer {
            status: match target {
                RequestTarget::Chat | RequestTarget::Endpoint(_) => status,
                RequestTarget::OtherMethod => 405,
                RequestTarget::UnknownPath => 404,
            },
            content_type,
            retry_after: None,
            body,
            date: wall_seconds(self.form.clock_skew),
            delay: Duration::ZERO,
            delivery: Delivery::Send,
        };
        for action in actions {
            answer.distort(action);
        }
        answer
    }

    fn note(&mut self, entry: RequestEntry) {
        if let Some(file) = &mut self.ledger_file {
            let line = serde_json::to_string(&entry).map_err(std::io::Error::from);
            if let Err(error) = line.and_then(|line| writeln!(file, "{line}")) {
                tracing::error!(%error, "the ledger file was not written");
            }
        }
        self.requests.push(entry);
    }
}

fn open_ledger(path: &std::path::PathBuf) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|source| Error::Ledger { path: path.clone(), source })
}

fn fault_code(action: &FaultAction) -> Option<Code> {
    match action {
        FaultAction::Error { code_n, .. } => Some(*code_n),
        _ => None,
    }
}

fn shape(action: &FaultAction) -> Option<Shape> {
    match action {
        FaultAction::Misshapen { shape } => Some(*shape),
        _ => None,
    }
}

fn wish(actions: &[FaultAction]) -> CreationWish {
    let mut wish = CreationWish::default();
    for action in actions {
        match action {
            FaultAction::FailCreation => wish.fail = true,
            FaultAction::StickCreation => wish.stick = true,
            FaultAction::LateVisibility { ms, reads } => {
                wish.hidden_ms = i64::try_from(*ms).unwrap_or(i64::MAX);
                wish.hidden_reads = *reads;
            }
            _ => {}
        }
    }
    wish
}
