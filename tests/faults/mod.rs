//! Faults under load, against a real Envoy: what each does, what shows it, and what may never come of it. The end-to-end tests
//! run each with few calls, `make faults` with many.

pub(crate) mod account;
pub(crate) mod disk;
pub(crate) mod envoy;
pub(crate) mod inside;
pub(crate) mod load;
pub(crate) mod peers;
pub(crate) mod process;
pub(crate) mod upstream;

use std::path::Path;
use std::time::{Duration, Instant};

use self::account::{Account, Losses};
use self::load::{Call, Kind, Load};
use crate::support::portcullis::Setting;
use crate::support::stack::Parts;
use crate::support::{Request, Stack, free_port, substitute, wait_for};

/// How long it may take until a fault shows, or is over once it was lifted.
const PATIENCE: Duration = Duration::from_secs(40);

/// What counts a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Metric {
    /// A statistic of Envoy's.
    Envoy(&'static str),
    /// A metric of Portcullis's as Prometheus has it, and labels in the form `name="value"`.
    Portcullis(&'static str, &'static [&'static str]),
}

impl std::fmt::Display for Metric {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Envoy(name) => write!(out, "Envoy: {name}"),
            Self::Portcullis(name, []) => write!(out, "{name}"),
            Self::Portcullis(name, labels) => write!(out, "{name}{{{}}}", labels.join(",")),
        }
    }
}

type Step = Box<dyn FnMut(&mut World)>;

/// One fault.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) metric: Metric,
    world: World,
    inject: Step,
    lift: Step,
    losses: Losses,
    /// Every call is served as ever while it lasts.
    harmless: bool,
    /// It can be had once in a process.
    once: bool,
}

impl Fault {
    pub(crate) fn new(
        name: &'static str,
        metric: Metric,
        world: World,
        inject: impl FnMut(&mut World) + 'static,
        lift: impl FnMut(&mut World) + 'static,
    ) -> Self {
        let (inject, lift) = (Box::new(inject), Box::new(lift));
        Self { name, metric, world, inject, lift, losses: Losses::default(), harmless: false, once: false }
    }

    pub(crate) fn losing(self, losses: Losses) -> Self {
        Self { losses, ..self }
    }

    pub(crate) fn harmless(self) -> Self {
        Self { harmless: true, ..self }
    }

    pub(crate) fn once(self) -> Self {
        Self { once: true, ..self }
    }
}

/// What a fault happens to.
pub(crate) struct World {
    pub(crate) stack: Stack,
    /// The port of the admin listener.
    admin: u16,
    pub(crate) load: Option<Load>,
}

impl World {
    /// The default stack with an admin listener and these substitutions.
    pub(crate) fn with(config_edits: &[(&str, &str)], envoy_edits: &[(&str, &str)]) -> Self {
        let setting = Setting::default();
        Self::made(setting, |config, _| substitute(&config, config_edits), |edge, _| substitute(&edge, envoy_edits))
    }

    /// Both files as the functions make them, and Portcullis in a setting.
    pub(crate) fn made(
        setting: Setting,
        config: impl FnOnce(String, &Parts<'_>) -> String,
        edge: impl FnOnce(String, &Parts<'_>) -> String,
    ) -> Self {
        let admin = free_port();
        let listener = format!("/ext_proc.sock\n  admin: {{address: 127.0.0.1:{admin}}}\n");
        let config =
            |text: String, parts: &Parts<'_>| config(substitute(&text, &[("/ext_proc.sock\n", &listener)]), parts);
        Self { stack: Stack::built(setting, None, &[], config, edge), admin, load: None }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.stack.dir.path()
    }

    pub(crate) fn load(&self) -> &Load {
        self.load.as_ref().expect("the load runs")
    }

    fn value(&self, metric: Metric) -> u64 {
        match metric {
            Metric::Envoy(name) => self.stack.envoy.stat(&name.replace('.', "\\.")),
            Metric::Portcullis(name, labels) => {
                let text =
                    Request::get("/metrics").authority(&format!("127.0.0.1:{}", self.admin)).try_send(self.admin);
                let text = text.map(|reply| reply.text()).unwrap_or_default();
                let of_it = |line: &&str| {
                    line.split(['{', ' ']).next() == Some(name) && labels.iter().all(|label| line.contains(label))
                };
                text.lines().filter(of_it).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
            }
        }
    }
}

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Calls ahead of the fault and behind it, in each round.
    pub(crate) around: u64,
    /// Calls while it lasts.
    pub(crate) during: u64,
    /// The fault comes again until there were so many calls.
    pub(crate) total: u64,
}

/// What came of it.
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) metric: Metric,
    pub(crate) account: Account,
    /// Every call had to be served while it lasted.
    pub(crate) harmless: bool,
    /// How many of the calls were under way while the fault lasted.
    pub(crate) met: usize,
    /// How often the fault came.
    pub(crate) rounds: u32,
    /// By how much the metric grew while it lasted, all rounds together.
    pub(crate) shown: u64,
    /// The longest time from the end of the fault to a call and a listing that were served.
    pub(crate) recovery: Duration,
}

impl Report {
    /// Everything that may not be; nothing when all is well.
    pub(crate) fn violations(&self) -> Vec<String> {
        let Account { undecided, wrong, hung, .. } = &self.account;
        let mut all: Vec<String> = undecided.iter().map(|what| format!("undecided at the upstream: {what}")).collect();
        all.extend(wrong.iter().cloned());
        if *hung > 0 {
            all.push(format!("{hung} calls had no end within {:?}", load::PATIENCE));
        }
        all
    }
}

/// Lets the fault happen under load, and accounts for every call.
pub(crate) fn run(fault: Fault, scale: Scale) -> Report {
    let Fault { name, metric, mut world, mut inject, mut lift, losses, harmless, once } = fault;
    world.load = Some(Load::start(world.stack.envoy.port, world.stack.reader()));
    let (mut rounds, mut shown, mut recovery, mut healthy) = (0, 0, Duration::ZERO, Vec::new());
    let (began, mut failed, mut faulty) = (Instant::now(), Vec::new(), Vec::new());
    let mut well_since = began;
    loop {
        world.load().more(scale.around, PATIENCE);
        let before = world.value(metric);
        healthy.push((well_since, Instant::now()));
        let injected = Instant::now();
        inject(&mut world);
        world
            .load()
            .more(if once { scale.total } else { scale.during }, Duration::from_secs(if once { 240 } else { 4 }));
        let grown = wait_for(PATIENCE, || Some(world.value(metric).saturating_sub(before)).filter(|grown| *grown > 0));
        shown += grown.unwrap_or(0);
        lift(&mut world);
        let lifted = Instant::now();
        faulty.push((injected, lifted));
        let well = wait_for(PATIENCE, || {
            (world.load().probe(Kind::Allowed).is_right() && world.load().probe(Kind::Listing).is_right()).then_some(())
        });
        if grown.is_none() {
            failed.push(format!("expected {metric} to grow within {PATIENCE:?}"));
        }
        if well.is_none() {
            failed.push(format!("expected calls to be served within {PATIENCE:?} of its end"));
        }
        well_since = Instant::now();
        recovery = recovery.max(well_since - lifted);
        rounds += 1;
        world.load().more(scale.around, PATIENCE);
        if once || !failed.is_empty() || world.load().ended() >= scale.total {
            break;
        }
    }
    healthy.push((well_since, Instant::now()));
    if harmless {
        healthy = vec![(began, Instant::now())];
    }
    if world.load().ended() < scale.total {
        failed.push(format!("expected {} calls at least, there were {}", scale.total, world.load().ended()));
    }
    let calls = world.load.take().expect("the load runs").stop();
    let met = |call: &&Call| faulty.iter().any(|(from, to)| call.began < *to && *from < call.ended);
    let met = calls.iter().filter(met).count();
    let seen = world.stack.upstream.seen();
    let audit = account::audit(&world.stack.portcullis, &calls, &seen, losses.killed || losses.crowded);
    let mut account = Account::of(&calls, &healthy);
    account.wrong.extend(failed);
    account.reached(&seen, &calls, &audit, losses.killed);
    account.audited(&calls, &audit, losses);
    Report { name, metric, account, harmless, met, rounds, shown, recovery }
}
