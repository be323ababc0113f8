//! Creates with candidates while stock changes between plan, apply and create.
//!
//! The oracle is the sandbox: what it sold, at which price, and which specification had stock when. A seed is ten
//! instances with five candidates each in one configuration; prices move between plan and apply, stock moves for a
//! while, and answers of accepted creates are lost. To repeat one seed: `STOCK_SEED=<seed> cargo test --test it
//! availability::`; `STOCK_RUNS` is the number of creates, thirty by default.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use damodel::sandbox::{FaultAction, StateList, When};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom as _};
use serde_json::{Value, json};

use crate::support::{
    seeds::each_seed,
    terraform::{Cli, Diagnostic, Plan, Site, Workspace, config_with, each_cli},
};

const RUNS: u64 = 30;
const MACHINES: usize = 10;
/// The seeds that run at once: enough to keep two processors busy while others wait for stock.
const AT_ONCE: usize = 3;
/// How long a create may wait for stock, in seconds.
const PATIENCE: u64 = 300;
/// When the stock stops changing, and all have some: a create asks at ever longer intervals.
const CALM: Duration = Duration::from_secs(10);
/// Specification, region, price of an hour.
const SPECS: [(i64, &str, f64); 6] = [
    (101, "cn-east-1", 12.8),
    (103, "cn-east-1", 1.98),
    (104, "cn-east-1", 0.89),
    (105, "cn-east-1", 3.21),
    (201, "cn-north-2", 11.9),
    (202, "cn-north-2", 9.99),
];

/// A configuration, and the changes of its market.
struct Market {
    seed: u64,
    /// The candidates of each instance, in order.
    wanted: Vec<Vec<i64>>,
    /// Whether each waits for capacity.
    waits: Vec<bool>,
    max_hourly_price: f64,
    /// The share of the time in which a specification has stock.
    share: f64,
    /// The share of the time in which all have stock and the answers of creates are lost. The answer of a refused
    /// create is never lost: it would be waited for until nothing can become visible any more, for two minutes.
    loss: f64,
    /// Changed prices after the plan.
    moved: BTreeMap<i64, f64>,
}

/// The result of a seed.
#[derive(Debug, Default)]
struct Outcome {
    /// Creates with a candidate that had stock at any moment of the apply, and those of them that bought an instance.
    with_stock: u64,
    bought: u64,
    /// The same for creates that do not wait for capacity.
    at_once: u64,
    bought_at_once: u64,
    requests: u64,
}

#[test]
fn an_instance_is_bought_whenever_there_is_one() {
    let number = |name: &str| env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let count = number("STOCK_RUNS").unwrap_or(RUNS).div_ceil(MACHINES as u64);
    let seeds = match number("STOCK_SEED") {
        Some(seed) => seed..seed + number("STOCK_RUNS").map_or(1, |_| count),
        None => 1..1 + count,
    };
    each_cli(|cli| {
        let sum = Mutex::new(Outcome::default());
        each_seed(&seeds, AT_ONCE, |seed| {
            let outcome = Market::of(seed).run(cli);
            let mut sum = sum.lock().unwrap();
            sum.with_stock += outcome.with_stock;
            sum.bought += outcome.bought;
            sum.at_once += outcome.at_once;
            sum.bought_at_once += outcome.bought_at_once;
            sum.requests += outcome.requests;
        });
        let sum = sum.into_inner().unwrap();
        let mut stderr = std::io::stderr();
        let _ = std::io::Write::write_fmt(&mut stderr, format_args!("seeds {seeds:?}: {sum:?}\n"));
        let missed = sum.with_stock + sum.at_once - sum.bought - sum.bought_at_once;
        // One in a hundred, or one if there are fewer.
        assert!(missed <= ((sum.with_stock + sum.at_once) / 100).max(1), "{sum:?}");
    });
}

impl Market {
    fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let wanted = (0..MACHINES)
            .map(|_| {
                let mut specs: Vec<i64> = SPECS.iter().map(|(spec, ..)| *spec).collect();
                specs.shuffle(&mut random);
                specs.truncate(5);
                specs
            })
            .collect();
        let moved = SPECS.iter().filter(|_| random.random_bool(0.2)).collect::<Vec<_>>();
        let moved = moved.into_iter().map(|(spec, _, price)| (*spec, price * random.random_range(0.5..1.5))).collect();
        Self {
            seed,
            wanted,
            waits: (0..MACHINES).map(|_| random.random_bool(0.8)).collect(),
            max_hourly_price: if random.random_bool(0.3) { 11.0 } else { 100.0 },
            share: random.random_range(0.4..0.9),
            loss: if random.random_bool(0.3) { 0.2 } else { 0.0 },
            moved,
        }
    }

    fn config(&self) -> String {
        let mut body = String::new();
        for (number, specs) in self.wanted.iter().enumerate() {
            let region = |spec: &i64| SPECS.iter().find(|(known, ..)| known == spec).unwrap().1;
            let candidates: Vec<String> =
                specs.iter().map(|spec| format!("{{ spec_id = {spec}, region = \"{}\" }}", region(spec))).collect();
            let wait =
                if self.waits[number] { format!("  wait_for_capacity = \"{PATIENCE}s\"\n") } else { String::new() };
            writeln!(
                body,
                "resource \"damodel_instance\" \"m{number}\" {{\n  name = \"m{number}\"\n  gpu_num = 1\n  image_id = \
                 901\n  image_type = \"public\"\n  candidates = [{}]\n{wait}}}",
                candidates.join(", ")
            )
            .unwrap();
        }
        let budgets =
            format!("max_hourly_price = {}\nmax_account_hourly_price = {}", self.max_hourly_price, self.account());
        config_with(&budgets, body)
    }

    /// The highest cost of all instances: the lowest budget that the plan accepts.
    fn account(&self) -> f64 {
        let dearest = |specs: &Vec<i64>| self.eligible(specs).iter().map(|spec| quote(*spec)).fold(0.0, f64::max);
        (self.wanted.iter().map(dearest).sum::<f64>() * 100.0).round() / 100.0
    }

    fn eligible(&self, specs: &[i64]) -> Vec<i64> {
        specs.iter().copied().filter(|spec| quote(*spec) <= self.max_hourly_price).collect()
    }

    /// Those that the apply may buy: at or below their quote.
    fn affordable(&self, specs: &[i64]) -> Vec<i64> {
        let now = |spec: i64| self.moved.get(&spec).copied().unwrap_or_else(|| quote(spec));
        self.eligible(specs).into_iter().filter(|spec| now(*spec) <= quote(*spec)).collect()
    }

    fn run(&self, cli: &Cli) -> Outcome {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        for (spec, ..) in SPECS {
            set(&site, spec, Some(1000), None);
        }
        workspace.write(&self.config());
        let plan = workspace.plan(&[]);
        for (spec, price) in &self.moved {
            set(&site, *spec, None, Some(*price));
        }
        let is_over = AtomicBool::new(false);
        let (said, had_stock) = thread::scope(|scope| {
            let flapping = scope.spawn(|| self.flap(&site, &is_over));
            let output = Diagnostic::of_lines(&workspace.run(&["apply", "-json", "-input=false", "plan"]).stdout);
            is_over.store(true, Ordering::Relaxed);
            (output, flapping.join().unwrap())
        });
        self.judge(&site, &workspace, &plan, &said, &had_stock)
    }

    /// Changes the stock until the apply is over; returns the specifications that had some meanwhile.
    fn flap(&self, site: &Site, is_over: &AtomicBool) -> BTreeSet<i64> {
        let mut random = StdRng::seed_from_u64(self.seed ^ 0x5f5f);
        let mut had_stock = BTreeSet::new();
        let begun = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            site.sandbox().clear_faults();
            let is_lost = random.random_bool(self.loss);
            for (spec, ..) in SPECS {
                let has_some = random.random_bool(self.share) || is_lost || begun.elapsed() > CALM;
                let stock = if has_some { 1000 } else { 0 };
                set(site, spec, Some(stock), None);
                if stock > 0 {
                    had_stock.insert(spec);
                }
            }
            if is_lost {
                site.arm("instance_create", When::Always, FaultAction::DropAfter);
            }
            thread::sleep(Duration::from_millis(random.random_range(5..60)));
        }
        had_stock
    }

    fn judge(
        &self,
        site: &Site,
        workspace: &Workspace<'_>,
        plan: &Plan,
        said: &[Diagnostic],
        had_stock: &BTreeSet<i64>,
    ) -> Outcome {
        let seed = self.seed;
        let state = workspace.state();
        let mut outcome = Outcome { requests: site.requests("instance_create") as u64, ..Outcome::default() };
        let mut sum = 0.0;
        let mut settled = Vec::new();
        for (number, specs) in self.wanted.iter().enumerate() {
            let address = format!("damodel_instance.m{number}");
            let affordable = self.affordable(specs);
            let had_one = affordable.iter().any(|spec| had_stock.contains(spec));
            let bought = state.find(&address);
            let (total, successes) = if self.waits[number] {
                (&mut outcome.with_stock, &mut outcome.bought)
            } else {
                (&mut outcome.at_once, &mut outcome.bought_at_once)
            };
            *total += u64::from(had_one);
            *successes += u64::from(had_one && bought.is_some());
            let Some(bought) = bought else {
                let error = said.iter().find(|said| said.is_error() && said.address.as_deref() == Some(&address));
                assert!(error.is_some(), "STOCK_SEED={seed}: {address} is missing without an error: {said:#?}");
                if had_one {
                    let _ = std::io::Write::write_fmt(
                        &mut std::io::stderr(),
                        format_args!("STOCK_SEED={seed}: {address} was not bought: {error:#?}\n"),
                    );
                }
                continue;
            };
            let spec = bought.value("spec_id").as_i64().unwrap();
            let price = self.moved.get(&spec).copied().unwrap_or_else(|| quote(spec));
            assert!(affordable.contains(&spec), "STOCK_SEED={seed}: {address} was bought as {spec} at {price}");
            let ceiling = plan.change(&address).after("price_ceiling").as_f64().unwrap();
            assert!(price <= ceiling, "STOCK_SEED={seed}: {address} at {price}, and its ceiling is {ceiling}");
            sum += price;
            settled.push(address);
        }
        assert!(sum <= self.account() + 1e-6, "STOCK_SEED={seed}: {sum} is above {}", self.account());
        assert_eq!(site.live().len(), settled.len(), "STOCK_SEED={seed}: {said:#?}");
        site.sandbox().clear_faults();
        for (spec, _, price) in SPECS {
            set(site, spec, Some(1000), Some(price));
        }
        let plan = workspace.plan(&[]);
        for address in &settled {
            assert_eq!(plan.change(address).actions(), "no-op", "STOCK_SEED={seed}: {address}");
        }
        outcome
    }
}

fn quote(spec: i64) -> f64 {
    SPECS.iter().find(|(known, ..)| *known == spec).unwrap().2
}

fn set(site: &Site, spec_id: i64, stock: Option<i64>, hourly_price: Option<f64>) {
    let mut fields = json!({});
    if let Some(price) = hourly_price {
        fields["prices"] = json!({ "hourly": price });
    }
    if let Some(stock) = stock {
        fields["stock"] = json!(stock);
        fields["node_limit"] = json!(stock);
    }
    site.set(StateList::Specs, spec_id, &fields);
}

/// The same seed gives the same market.
#[test]
fn the_market_is_what_its_seed_says() {
    let market = Market::of(7);
    assert_eq!(market.wanted, Market::of(7).wanted);
    assert!(market.wanted.iter().all(|specs| specs.len() == 5));
    assert!(Value::from(market.account()).is_number() && market.account() > 8.9);
}
