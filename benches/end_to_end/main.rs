//! The whole way through a real Envoy: alone, with an external processor that does nothing on the same phases, and with
//! Portcullis, measured in turn in one run. `cargo bench --bench end_to_end`; docs/performance.md says how to read it.
//!
//! Arms take slices of less than a second in turn, so that whatever else the machine does meets all of them alike, and what
//! counts is the ratio of slices of one round. Only ratios have budgets; absolute figures are this machine's.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "figures are for people, and the rest is shared with the tests"
)]

mod arms;
mod authz;
#[path = "../callgrind/mod.rs"]
mod callgrind;
mod collector;
mod cpu;
mod load;
mod noop;
mod report;
#[path = "../setting/mod.rs"]
mod setting;
mod statistics;
mod streams;
#[path = "../../tests/support/mod.rs"]
mod support;
mod upstream;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use mimalloc::MiMalloc;

use arms::Arm;

/// The no-op processor runs in this program, on the same allocator as Portcullis.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "options:
  --rounds N              rounds per setting (20)
  --slice MILLISECONDS    of each arm in each round (700, at most 2000)
  --connections LIST      (1,16)
  --bytes LIST            sizes of calls and answers, 1024 or 65536 (1024)
  --portcullis PATH       another build of Portcullis to measure
  --long 1                1,16,128 connections and 1024,65536 bytes
  --instructions SECONDS  count instructions per call with valgrind's callgrind instead
  --only NAME             of these arms alone, each with NAME in its name (with --instructions)
  --streams N             measure memory, start and event delay with so many open streams instead (10000 for the budgets)
                          (--rounds and --slice count here too)";

/// What to measure.
struct Options {
    rounds: usize,
    slice: Duration,
    connections: Vec<usize>,
    bytes: Vec<usize>,
    portcullis: PathBuf,
    /// Count instructions instead of time, in slices of this length.
    instructions: Option<Duration>,
    /// Of arms with this in their names.
    only: String,
    /// Measure open streams instead, so many.
    streams: Option<usize>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [role, socket, phases] = words.as_slice()
        && role == noop::ROLE
    {
        return noop::serve(&PathBuf::from(socket), phases);
    }
    if let [role, socket, _] = words.as_slice()
        && role == authz::ROLE
    {
        return authz::serve(&PathBuf::from(socket));
    }
    match options(&words) {
        Some(Options { instructions: Some(length), portcullis, only, bytes, .. }) => {
            count(&portcullis, length, &only, &bytes);
        }
        Some(Options { streams: Some(count), portcullis, rounds, slice, .. }) => {
            streams::measure(&portcullis, count, rounds, slice);
        }
        Some(options) => measure(&options),
        None => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    }
}

fn options(words: &[String]) -> Option<Options> {
    let mut options = Options {
        rounds: 20,
        slice: Duration::from_millis(700),
        connections: vec![1, 16],
        bytes: vec![1024],
        portcullis: env!("CARGO_BIN_EXE_portcullis").into(),
        instructions: None,
        only: String::new(),
        streams: None,
    };
    for pair in words.chunks(2) {
        let [name, value] = pair else { return None };
        if name == "--portcullis" {
            options.portcullis = value.into();
            continue;
        }
        if name == "--only" {
            options.only.clone_from(value);
            continue;
        }
        let list = value.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>().ok()?;
        let first = *list.first().filter(|first| **first > 0)?;
        match name.as_str() {
            "--rounds" => options.rounds = first,
            "--slice" => options.slice = Duration::from_millis(u64::try_from(first.min(2000)).ok()?),
            "--connections" => options.connections = list,
            "--bytes" => options.bytes = list,
            "--long" => (options.connections, options.bytes) = (vec![1, 16, 128], vec![1024, 64 * 1024]),
            "--streams" => options.streams = Some(first),
            "--instructions" => options.instructions = Some(Duration::from_secs(u64::try_from(first).ok()?)),
            _ => return None,
        }
    }
    // Ratios need every arm: asked for without instructions it would do nothing.
    (options.only.is_empty() || options.instructions.is_some()).then_some(options)
}

fn measure(options: &Options) {
    let slices = arms::COUNT * options.rounds * options.connections.len() * options.bytes.len();
    bound(options.slice * u32::try_from(slices).expect("a few thousand slices") * 2 + Duration::from_secs(90));
    let stage = arms::Stage::start(&options.portcullis, false);
    let mut arms = stage.arms("");
    for bytes in &options.bytes {
        for arm in &mut arms {
            arm.send(*bytes);
        }
        for connections in &options.connections {
            one_setting(&stage, &mut arms, *connections, options);
            report::print(&arms, *bytes, *connections, options.rounds, options.slice);
        }
    }
    for arm in &arms {
        arm.account();
    }
}

/// Instructions per call of Envoy and of each processor, which no other load on the machine changes.
fn count(portcullis: &Path, length: Duration, only: &str, bytes: &[usize]) {
    bound(Duration::from_mins(8) + length * u32::try_from(6 * arms::COUNT * bytes.len()).unwrap_or(u32::MAX));
    let stage = arms::Stage::start(portcullis, true);
    let mut arms = stage.arms(only);
    assert!(!arms.is_empty(), "expected a part of an arm's name after --only, got {only:?}");
    for bytes in bytes {
        println!("{bytes} B calls, 4 connections; instructions per call");
        println!("  {:<24} {:>9} {:>9}", "arm", "Envoy", "processor");
        for arm in &mut arms {
            arm.send(*bytes);
            let (envoy, processor) = arm.instructions(&stage.load, length);
            println!("  {:<24} {envoy:>9} {:>9}", arm.name, processor.map_or(String::new(), |count| count.to_string()));
        }
    }
}

/// Every arm in turn, forwards in even rounds and backwards in odd ones, so that no arm always follows the same other.
fn one_setting(stage: &arms::Stage, arms: &mut [Arm], connections: usize, options: &Options) {
    for arm in arms.iter_mut() {
        arm.connect(&stage.load, connections);
        arm.slice(&stage.load, Duration::from_millis(300));
        arm.samples.clear();
    }
    for round in 0..options.rounds {
        let mut order: Vec<&mut Arm> = arms.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for arm in order {
            arm.slice(&stage.load, options.slice);
        }
    }
}

/// Ends the program, and with it every child, should it hang.
fn bound(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!(
            "expected the measurement to end within {limit:?}, it did not; what was measured so far stands above"
        );
        std::process::exit(1);
    });
}
