//! Memory of an idle subscription, and that open ones make no call dearer.
//!
//! Calls share their HTTP/2 connection with up to 500 of the open streams, as they do behind an Envoy.

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
/// Open streams of the processes that the one with the most is measured beside; the first is what all are compared with.
const FEWER: [usize; 3] = [10, 100, 1000];
/// Calls under way at a time.
const CALLERS: usize = 4;
/// How long memory may come to rest.
const REST: Duration = Duration::from_secs(3);

/// One process and what is open on it.
struct Side {
    alone: Alone,
    /// The connection that was opened last.
    channel: Channel,
    /// How many subscriptions it is to have.
    count: usize,
    open: Vec<door::Exchange>,
    /// Microseconds of CPU per call, and the median latency, of each slice.
    cpu: Vec<f64>,
    p50: Vec<f64>,
}

pub(crate) fn measure(stage: &Stage, count: usize, rounds: usize, slice: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let counts: Vec<usize> = FEWER.into_iter().filter(|fewer| *fewer < count).chain([count]).collect();
    let mut sides: Vec<Side> = counts.iter().map(|count| Side::start(stage, &runtime, *count)).collect();
    std::thread::sleep(REST);
    let idle = sides.iter().map(|side| side.kilobytes("VmRSS")).fold(0.0, f64::max);
    let anonymous = sides.iter().map(|side| side.kilobytes("RssAnon")).fold(0.0, f64::max) / 1024.0;
    let verdict = super::against(idle <= 30.0 * 1024.0, "<= 30 MiB");
    println!("memory idle (RSS): {:.1} MiB, of which anonymous {anonymous:.1} MiB{verdict}", idle / 1024.0);

    for side in &mut sides {
        side.open(stage, &runtime);
    }
    growth(stage, &runtime, &mut sides, rounds, slice);
    for side in &sides {
        let [rest, peak] = ["VmRSS", "VmHWM"].map(|field| side.kilobytes(field) / 1024.0);
        println!("memory after load, {} open (RSS): {rest:.1} MiB, at most {peak:.1} MiB", side.count);
    }
    if let Some(mut most) = sides.pop() {
        most.close(stage, &runtime, slice);
    }
}

/// Calls to each process in turn, forwards and backwards.
fn growth(stage: &Stage, runtime: &Runtime, sides: &mut [Side], rounds: usize, slice: Duration) {
    let token: Arc<str> = stage.token(&json!({"groups": ["support", "emea"]})).into();
    for round in 0..=rounds {
        for side in &mut *sides {
            side.slice(runtime, &token, slice);
            if round == 0 {
                // The first warms up.
                side.cpu.clear();
                side.p50.clear();
            }
        }
        sides.reverse();
    }
    sides.sort_by_key(|side| side.count);
    for side in &*sides {
        let (cpu, p50) = (median(&side.cpu), median(&side.p50));
        println!("{:>6} open streams: {cpu:.1} us of CPU per call, p50 {p50:.0} us", side.count);
    }
    let [few, more @ ..] = sides else { return };
    for many in more {
        for (what, ours, theirs) in [("CPU per call", &many.cpu, &few.cpu), ("p50", &many.p50, &few.p50)] {
            let Estimate { median, low, high } = ratio(ours, theirs);
            println!("{what}, {} / {} open: {median:.3} [{low:.3}, {high:.3}]", many.count, few.count);
        }
    }
}

impl Side {
    fn start(stage: &Stage, runtime: &Runtime, count: usize) -> Self {
        let alone = stage.portcullis(&format!("open-{count}"));
        let channel = runtime.block_on(door::connect(&alone.socket));
        Self { alone, channel, count, open: Vec::new(), cpu: Vec::new(), p50: Vec::new() }
    }

    fn kilobytes(&self, field: &str) -> f64 {
        kilobytes(self.alone.pid(), field)
    }

    /// Opens its subscriptions, each of a caller of its own, and tells what they take.
    fn open(&mut self, stage: &Stage, runtime: &Runtime) {
        let (idle, began) = (self.kilobytes("VmRSS"), Instant::now());
        runtime.block_on(async {
            for n in 0..self.count {
                if n > 0 && n % PER_CONNECTION == 0 {
                    self.channel = door::connect(&self.alone.socket).await;
                }
                let token = stage.token(&json!({"sub": format!("user-{n}"), "email": format!("user-{n}@acme.com")}));
                self.open.push(door::subscribe(self.channel.clone(), &token).await);
            }
        });
        let took = began.elapsed().as_secs_f64();
        // The current-thread runtime must run for the connections' own traffic.
        runtime.block_on(async { tokio::time::sleep(REST).await });
        let each = (self.kilobytes("VmRSS") - idle) / self.count as f64;
        // Of a few it says little: whole pages are counted.
        let verdict = if self.count < 10_000 { String::new() } else { super::against(each <= 24.0, "<= 24 KiB") };
        println!(
            "{} subscriptions of as many callers, opened in {took:.1} s: {each:.1} KiB (RSS) for each{verdict}",
            self.count
        );
    }

    /// Ends its subscriptions, and tells what is left of them when calls went on.
    fn close(&mut self, stage: &Stage, runtime: &Runtime, slice: Duration) {
        self.open.clear();
        let token: Arc<str> = stage.token(&json!({"groups": ["support", "emea"]})).into();
        for _ in 0..2 {
            // The allocator gives back what has been free for a second, when it is next called.
            runtime.block_on(async { tokio::time::sleep(REST).await });
            self.slice(runtime, &token, slice);
        }
        let rest = self.kilobytes("VmRSS") / 1024.0;
        println!("memory after {} subscriptions ended (RSS): {rest:.1} MiB", self.count);
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

/// A field of `/proc/PID/status` that is in kB.
pub(super) fn kilobytes(pid: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the processor runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    number.unwrap_or_else(|| panic!("expected {field} in kB in:\n{status}"))
}
