//! Memory of an idle subscription, and that open ones make no call dearer.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tonic::transport::Channel;

use super::door;
use crate::arms::{Alone, Stage};
use crate::statistics::{Estimate, median, quantile, ratio};
use crate::{cpu, setting};

/// Subscriptions on one HTTP/2 connection: half of what the processor allows.
const PER_CONNECTION: usize = 500;
/// Open streams of the process that the other is compared with.
const FEW: usize = 10;
/// Calls under way at a time.
const CALLERS: usize = 4;
/// How long memory may come to rest.
const REST: Duration = Duration::from_secs(3);

/// One process and what is open on it.
struct Side {
    alone: Alone,
    channel: Channel,
    open: Vec<door::Exchange>,
    /// Microseconds of CPU per call, and the median latency, of each slice.
    cpu: Vec<f64>,
    p50: Vec<f64>,
}

pub(crate) fn measure(stage: &Stage, count: usize, rounds: usize, slice: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut few = Side::start(stage, &runtime, "few");
    let mut many = Side::start(stage, &runtime, "many");
    std::thread::sleep(REST);
    let idle = many.alone.kilobytes("VmRSS");
    let verdict = super::against(idle <= 30.0 * 1024.0, "<= 30 MiB");
    let anonymous = many.alone.kilobytes("RssAnon") / 1024.0;
    println!("memory idle (RSS): {:.1} MiB, of which anonymous {anonymous:.1} MiB{verdict}", idle / 1024.0);

    few.subscribe(stage, &runtime, FEW);
    let began = Instant::now();
    many.subscribe(stage, &runtime, count);
    println!("{count} subscriptions of {count} callers opened in {:.1} s", began.elapsed().as_secs_f64());
    // The current-thread runtime must run for the connections' own traffic.
    runtime.block_on(async { tokio::time::sleep(REST).await });
    let each = (many.alone.kilobytes("VmRSS") - idle) / count as f64;
    let verdict = super::against(each <= 24.0, "<= 24 KiB");
    println!("memory per idle subscription (RSS): {each:.1} KiB{verdict}");

    growth(stage, &runtime, [&mut few, &mut many], rounds, slice);
    let [rest, peak] = ["VmRSS", "VmHWM"].map(|field| few.alone.kilobytes(field) / 1024.0);
    println!("memory after load, {FEW} open (RSS): {rest:.1} MiB, at most {peak:.1} MiB");
    let [rest, peak] = ["VmRSS", "VmHWM"].map(|field| many.alone.kilobytes(field) / 1024.0);
    println!("memory after load, {count} open (RSS): {rest:.1} MiB, at most {peak:.1} MiB");
}

/// Calls in turn to the process with few open streams and to that with many.
fn growth(stage: &Stage, runtime: &Runtime, mut sides: [&mut Side; 2], rounds: usize, slice: Duration) {
    let token: Arc<str> = stage.token(&json!({"groups": ["support", "emea"]})).into();
    for round in 0..=rounds {
        if round % 2 == 1 {
            sides.reverse();
        }
        for side in &mut sides {
            side.slice(runtime, &token, slice);
            if round == 0 {
                // The first warms up.
                side.cpu.clear();
                side.p50.clear();
            }
        }
        if round % 2 == 1 {
            sides.reverse();
        }
    }
    let [few, many] = sides;
    for side in [&*few, &*many] {
        let (cpu, p50) = (median(&side.cpu), median(&side.p50));
        println!("{:>6} open streams: {cpu:.1} us of CPU per call, p50 {p50:.0} us", side.open.len());
    }
    for (what, ours, theirs) in [("CPU per call", &many.cpu, &few.cpu), ("p50", &many.p50, &few.p50)] {
        let Estimate { median, low, high } = ratio(ours, theirs);
        println!("{what}, {} / {FEW} open: {median:.3} [{low:.3}, {high:.3}]", many.open.len());
    }
}

impl Side {
    fn start(stage: &Stage, runtime: &Runtime, name: &str) -> Self {
        let alone = stage.portcullis(name);
        let channel = runtime.block_on(door::connect(&alone.socket));
        Self { alone, channel, open: Vec::new(), cpu: Vec::new(), p50: Vec::new() }
    }

    /// Opens so many subscriptions, each of a caller of its own.
    fn subscribe(&mut self, stage: &Stage, runtime: &Runtime, count: usize) {
        runtime.block_on(async {
            let mut channel = self.channel.clone();
            for n in 0..count {
                if n % PER_CONNECTION == 0 {
                    channel = door::connect(&self.alone.socket).await;
                }
                let token = stage.token(&json!({"sub": format!("user-{n}"), "email": format!("user-{n}@acme.com")}));
                self.open.push(door::subscribe(channel.clone(), &token).await);
            }
        });
    }

    fn slice(&mut self, runtime: &Runtime, token: &Arc<str>, length: Duration) {
        let (message, answer) = (Arc::new(setting::call(0, 1024)), Arc::new(setting::answer(1024)));
        let pid = self.alone.pid();
        let before = cpu::nanoseconds(pid);
        let end = Instant::now() + length;
        let caller = |_| {
            let (channel, message, token, answer) =
                (self.channel.clone(), Arc::clone(&message), Arc::clone(token), Arc::clone(&answer));
            async move {
                let mut took = Vec::new();
                while Instant::now() < end {
                    let began = Instant::now();
                    door::call(channel.clone(), &message, &token, &answer).await;
                    took.push(began.elapsed().as_nanos() as f64 / 1000.0);
                }
                took
            }
        };
        let took = runtime.block_on(async { (0..CALLERS).map(caller).collect::<JoinSet<_>>().join_all().await });
        let mut took = took.concat();
        took.sort_by(f64::total_cmp);
        let spent = cpu::nanoseconds(pid).saturating_sub(before);
        self.cpu.push(spent as f64 / 1000.0 / took.len() as f64);
        self.p50.push(quantile(&took, 0.5));
    }
}

impl Alone {
    /// A field of `/proc/PID/status` that is in kB.
    fn kilobytes(&self, field: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the processor runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        number.unwrap_or_else(|| panic!("expected {field} in kB in:\n{status}"))
    }
}
