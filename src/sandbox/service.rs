//! One request after another: faults, authentication, the endpoint, the envelope, the ledger. No socket, no waiting.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    time::Duration,
};

use serde_json::Value;

use super::{
    answer::{Answer, Delivery},
    clock::{Clock, milliseconds, wall_seconds},
    endpoints::{Context, CreationWish, Endpoint, Input},
    errors::{Code, Refusal},
    fault::{Action, Faults},
    form::Form,
    ledger::{Ledger, RequestEntry},
    mutation::{Mutation, MutationError},
    options::{Error, Options},
    random::Random,
    render::{self, Identifiers},
    store::Store,
    world::World,
};

/// Where the random streams of requests begin, far from those that the world draws.
const REQUEST_STREAMS: u64 = 1 << 62;

/// A request as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) token: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) input: Input<'a>,
}

/// Whom a request reaches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Endpoint(&'static Endpoint),
    /// The path exists, with another method.
    OtherMethod,
    /// No such path.
    UnknownPath,
}

/// The simulated service.
#[derive(Debug)]
pub(super) struct Service {
    creation_ms: i64,
    release_ms: i64,
    tolerance_seconds: i64,
    clock: Clock,
    pub(super) form: Form,
    pub(super) faults: Faults,
    world: World,
    requests: Vec<RequestEntry>,
    store: Option<Store>,
    ledger_file: Option<File>,
}

/// What an endpoint made of a request.
#[derive(Debug)]
struct Processed {
    account: Option<String>,
    result: Result<Value, Refusal>,
    created: Vec<String>,
    released: Vec<String>,
}

impl Service {
    /// The world of the state file, or the seed's.
    pub(super) fn new(options: &Options) -> Result<Self, Error> {
        let clock = Clock::new(options.life_clock);
        let store = options.state.clone().map(Store::new);
        let kept = store.as_ref().map(Store::load).transpose()?.flatten();
        let world = match kept {
            Some(mut world) => {
                world.set_main_secrets(options);
                world
            }
            None => World::seeded(options, clock.life_ms(0, options.form.clock_skew)),
        };
        let service = Self {
            creation_ms: milliseconds(options.creation),
            release_ms: milliseconds(options.release),
            tolerance_seconds: milliseconds(options.timestamp_tolerance) / 1000,
            clock,
            form: options.form.clone(),
            faults: Faults::default(),
            world,
            requests: Vec::new(),
            store,
            ledger_file: options.ledger.as_ref().map(open_ledger).transpose()?,
        };
        service.save()?;
        Ok(service)
    }

    /// Answers a request.
    pub(super) fn answer(&mut self, target: Target, incoming: &Incoming<'_>) -> Answer {
        let sequence = u64::try_from(self.requests.len()).unwrap_or(u64::MAX).saturating_add(1);
        let mut random = Random::new(self.world.seed, REQUEST_STREAMS.wrapping_add(sequence));
        let ids = Identifiers { request: format!("req-{sequence:06}-{}", random.text(12)), trace: random.text(32) };
        let now_ms = self.settle();
        let (endpoint, actions) = match target {
            Target::Endpoint(endpoint) => (Some(endpoint.name), self.faults.strike(endpoint.name, &mut random)),
            Target::OtherMethod | Target::UnknownPath => (None, Vec::new()),
        };
        let is_processed = actions.iter().all(Action::is_processed);
        let processed = is_processed.then(|| self.process(target, incoming, wish(&actions), &mut random, now_ms));
        let code_n = processed
            .as_ref()
            .and_then(|processed| processed.result.as_ref().err())
            .map(|refusal| refusal.code.number());
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
            path: incoming.path.to_owned(),
            query: incoming.input.query.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            request_id: ids.request,
            processed: is_processed,
            status: is_sent.then_some(answer.status),
            code_n: actions.iter().find_map(fault_code).map(Code::number).or(code_n),
            faults: actions.iter().map(|action| action.name().to_owned()).collect(),
            created,
            released,
        });
        answer
    }

    /// Brings the world up to date and tells the life clock in Unix milliseconds. Not saved: what is due is found again in the file.
    pub(super) fn settle(&mut self) -> i64 {
        let now_ms = self.clock.life_ms(self.world.advanced_ms, self.form.clock_skew);
        self.world.settle(now_ms);
        now_ms
    }

    /// Advances the life clock and tells it.
    pub(super) fn advance(&mut self, by: Duration) -> Result<i64, Error> {
        self.world.advanced_ms = self.world.advanced_ms.saturating_add(milliseconds(by));
        let now_ms = self.settle();
        self.save()?;
        Ok(now_ms)
    }

    /// Changes the world behind the client's back.
    pub(super) fn mutate(&mut self, mutation: Mutation) -> Result<(), MutationError> {
        let now_ms = self.settle();
        self.world.mutate(mutation, now_ms)?;
        if let Err(error) = self.save() {
            tracing::error!(%error, "the state was not kept");
        }
        Ok(())
    }

    /// The world, up to date.
    pub(super) fn world(&mut self) -> &World {
        self.settle();
        &self.world
    }

    pub(super) fn ledger(&mut self) -> Ledger {
        self.settle();
        Ledger { requests: self.requests.clone(), life: self.world.life.clone() }
    }

    fn process(
        &mut self,
        target: Target,
        incoming: &Incoming<'_>,
        wish: CreationWish,
        random: &mut Random,
        now_ms: i64,
    ) -> Processed {
        let refuse =
            |account, refusal| Processed { account, result: Err(refusal), created: Vec::new(), released: Vec::new() };
        let endpoint = match target {
            Target::Endpoint(endpoint) => endpoint,
            Target::OtherMethod => {
                return refuse(None, Refusal::invalid(format!("{}: method not allowed", incoming.method)));
            }
            Target::UnknownPath => {
                return refuse(None, Refusal::invalid(format!("{}: no such path", incoming.path)));
            }
        };
        let account = match self.authenticate(incoming) {
            Ok(account) => account,
            Err(refusal) => return refuse(None, refusal),
        };
        let mut context = Context {
            world: &mut self.world,
            form: &self.form,
            random,
            account: &account,
            now_ms,
            creation_ms: self.creation_ms,
            release_ms: self.release_ms,
            wish,
            created: Vec::new(),
            released: Vec::new(),
            changed: false,
        };
        let result = (endpoint.handle)(&mut context, &incoming.input);
        let Context { created, released, changed, .. } = context;
        let result = match (result, changed.then(|| self.save()).transpose()) {
            (result, Ok(_)) => result,
            (_, Err(error)) => {
                tracing::error!(%error, "the state was not kept");
                Err(Refusal::new(Code::InternalError, "the sandbox could not keep its state"))
            }
        };
        Processed { account: Some(account), result, created, released }
    }

    /// The account of the token, when the timestamp is near enough (service API, Authentication).
    fn authenticate(&self, incoming: &Incoming<'_>) -> Result<String, Refusal> {
        let account = incoming
            .token
            .and_then(|token| self.world.accounts.iter().find(|account| account.token.reveal() == token))
            .ok_or_else(|| Refusal::new(Code::InvalidToken, "X-Service-Token: invalid"))?;
        let timestamp: Option<i64> = incoming.timestamp.and_then(|timestamp| timestamp.parse().ok());
        let now = wall_seconds(self.form.clock_skew);
        match timestamp {
            Some(timestamp) if timestamp.abs_diff(now) <= self.tolerance_seconds.unsigned_abs() => {
                Ok(account.name.clone())
            }
            Some(_) | None => Err(Refusal::new(Code::InvalidToken, "X-Service-Timestamp: invalid")),
        }
    }

    fn deliver(&self, target: Target, processed: Option<Processed>, actions: &[Action], ids: &Identifiers) -> Answer {
        let rendered = match (actions.iter().find_map(fault_code), processed.map(|processed| processed.result)) {
            (Some(code), _) => render::refusal(&self.form, ids, &Refusal::new(code, "injected by the sandbox")),
            (None, Some(Ok(result))) => (200, render::success(&self.form, ids, result)),
            (None, Some(Err(refusal))) => render::refusal(&self.form, ids, &refusal),
            (None, None) => (200, Value::Null),
        };
        let mut answer = Answer {
            status: match target {
                Target::Endpoint(_) => rendered.0,
                Target::OtherMethod => 405,
                Target::UnknownPath => 404,
            },
            content_type: "application/json",
            retry_after: None,
            body: rendered.1.to_string().into_bytes(),
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

    fn save(&self) -> Result<(), Error> {
        self.store.as_ref().map_or(Ok(()), |store| store.save(&self.world))
    }
}

fn open_ledger(path: &std::path::PathBuf) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|source| Error::Ledger { path: path.clone(), source })
}

fn fault_code(action: &Action) -> Option<Code> {
    match action {
        Action::Error { code_n, .. } => Some(*code_n),
        _ => None,
    }
}

fn wish(actions: &[Action]) -> CreationWish {
    let mut wish = CreationWish::default();
    for action in actions {
        match action {
            Action::FailCreation => wish.fail = true,
            Action::StickCreation => wish.stick = true,
            Action::LateVisibility { ms, reads } => {
                wish.hidden_ms = i64::try_from(*ms).unwrap_or(i64::MAX);
                wish.hidden_reads = *reads;
            }
            _ => {}
        }
    }
    wish
}
