//! The gate: instructions of each part of the core under callgrind, and what each may cost at most.

use std::process::ExitCode;

use portcullis::message::json::Document;
use portcullis::record::Schema;
use portcullis::screen::config::DetectorsSource;
use portcullis::screen::{Detectors, Found};

use crate::callgrind;
use crate::filters::{SCHEMA, arguments, document};
use crate::parts::{self, KIB, LIMITS};
use crate::setting::{Size, USUAL, call};
use crate::world::World;

/// How often a part runs uncounted, then counted.
const WARM: usize = 8;
const TIMES: u64 = 32;

/// The name of a part, the most instructions that it may take, and how it is run.
type Part = (&'static str, u64, fn(Counter));

/// Ceilings are about a tenth above what a release build took on x86-64 with valgrind 3.19 when they were set; whoever makes
/// a part cheaper lowers its ceiling.
const PARTS: &[Part] = &[
    ("reader, 1 KiB", 9_300, |counter| reader(counter, KIB)),
    ("reader, 64 KiB", 142_000, |counter| reader(counter, 64 * KIB)),
    ("envelope", 7_030, |counter| {
        let mut envelope = parts::envelope();
        counter.count(|| (), |()| envelope());
    }),
    ("decision", DECISION, |counter| decide(counter, World::of(USUAL))),
    ("exchange", 99_000, |counter| {
        let world = World::of(USUAL);
        counter.count(parts::events(world, 0), |events| world.exchange(events));
    }),
    ("exchange refused", 80_900, |counter| {
        let world = World::of(USUAL);
        counter.count(parts::events(world, 1), |events| world.refused(events));
    }),
    ("schema check, 1 KiB", 42_200, |counter| {
        let schema = Schema::compile(document(SCHEMA).root()).expect("compiles");
        let arguments = arguments(r#"{"field":"owner","op":"is"}"#);
        counter.count(|| (), |()| schema.check(arguments.root()).expect("they fit"));
    }),
    ("listing, 10 tools", 119_000, |counter| filter(counter, 10, false)),
    ("listing, 200 tools", 2_200_000, |counter| filter(counter, 200, false)),
    ("listing, 2,000 tools", 21_900_000, |counter| filter(counter, 2_000, false)),
    ("listing respelled, 10 tools", 207_000, |counter| filter(counter, 10, true)),
    ("listing respelled, 200 tools", 3_950_000, |counter| filter(counter, 200, true)),
    ("listing respelled, 2,000 tools", 39_400_000, |counter| filter(counter, 2_000, true)),
    ("screening 64 KiB of ASCII", 93_000, |counter| {
        screen(counter, "Printer does not answer since Monday; the case is open, see http://example.com/cases/17. ");
    }),
    ("screening 64 KiB of other text", 154_000, |counter| {
        screen(counter, "Der Drucker antwortet nicht, Größe überprüfen, Übergabe heute. ");
    }),
    ("screening 64 KiB, hostile", 1_520_000, |counter| screen(counter, "<important ")),
    ("decision, 10 rules", DECISION, |counter| rules(counter, 10)),
    ("decision, 100 rules", DECISION, |counter| rules(counter, 100)),
    ("decision, 1,000 rules", DECISION, |counter| rules(counter, 1_000)),
    ("decision, 10,000 rules", DECISION, |counter| rules(counter, 10_000)),
    ("decision, 10 priced tools", DECISION, |counter| tools(counter, 10)),
    ("decision, 100 priced tools", DECISION, |counter| tools(counter, 100)),
    ("decision, 1,000 priced tools", DECISION, |counter| tools(counter, 1_000)),
    ("decision, 10,000 priced tools", DECISION, |counter| tools(counter, 10_000)),
    ("decision, 10 principals seen", DECISION, |counter| principals(counter, 10)),
    ("decision, 100 principals seen", DECISION, |counter| principals(counter, 100)),
    ("decision, 1,000 principals seen", DECISION, |counter| principals(counter, 1_000)),
    ("decision, 10,000 principals seen", DECISION, |counter| principals(counter, 10_000)),
];

/// One ceiling whatever the configuration holds: a decision does not grow.
const DECISION: u64 = 70_700;

/// Runs this part, to be counted by callgrind.
pub(crate) fn run(name: &str) -> ExitCode {
    let (_, _, run) = PARTS.iter().find(|(own, ..)| *own == name).expect("a part");
    run(Counter { times: TIMES });
    ExitCode::SUCCESS
}

/// Counts every part whose name holds `some` and prints the table; fails where one is above its ceiling.
pub(crate) fn gate(some: &str) -> ExitCode {
    if cfg!(debug_assertions) {
        eprintln!(
            "expected a release build, for which the ceilings are; run `cargo bench --bench core -- --instructions`"
        );
        return ExitCode::FAILURE;
    }
    if !PARTS.iter().any(|(name, ..)| name.contains(some)) {
        let names: Vec<_> = PARTS.iter().map(|(name, ..)| name).collect();
        eprintln!("expected a part of a name, got {some:?}; the names: {names:?}");
        return ExitCode::FAILURE;
    }
    println!("{:<36} {:>14} {:>14}", "instructions per operation", "counted", "at most");
    let mut above = Vec::new();
    for (name, most, _) in PARTS.iter().filter(|(name, ..)| name.contains(some)) {
        let counted = callgrind::count(&format!("core {name}"), &["--part", name]) / TIMES;
        let verdict = if counted > *most { "  ABOVE" } else { "" };
        println!("{name:<36} {counted:>14} {most:>14}{verdict}");
        if counted > *most {
            above.push(*name);
        }
    }
    if above.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "expected no part above its ceiling, found {}: {}; make it cheaper, or say in benches/core/instructions.rs why it \
         may cost more",
        above.len(),
        above.join(", ")
    );
    ExitCode::FAILURE
}

/// Runs a part so often, for callgrind to count.
struct Counter {
    times: u64,
}

impl Counter {
    /// Counts `work` on what `input` makes, which is not counted.
    fn count<I, O>(self, mut input: impl FnMut() -> I, mut work: impl FnMut(I) -> O) {
        for _ in 0..WARM {
            drop(work(input()));
        }
        for _ in 0..self.times {
            let input = input();
            drop(callgrind::collected(|| work(input)));
        }
    }
}

fn reader(counter: Counter, bytes: usize) {
    let body = call(0, bytes).to_string().into_bytes();
    counter.count(|| body.clone(), |body| Document::read(body, LIMITS).expect("good JSON"));
}

fn filter(counter: Counter, tools: usize, respelled: bool) {
    counter.count(parts::listings(tools, respelled), parts::filter(tools));
}

fn screen(counter: Counter, sentence: &str) {
    let text = sentence.repeat(64 * KIB / sentence.len());
    let answer = document(&format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#));
    let detectors = Detectors::compile(&DetectorsSource::default()).expect("no patterns");
    counter.count(|| (), |()| assert_eq!(detectors.scan(answer.root()), Found::default()));
}

fn decide(counter: Counter, world: &World) {
    counter.count(parts::events(world, 0), |events| drop(world.decide(events)));
}

fn rules(counter: Counter, rules: usize) {
    decide(counter, World::of(Size { rules, ..USUAL }));
}

fn tools(counter: Counter, tools: usize) {
    decide(counter, World::of(Size { tools, ..USUAL }));
}

fn principals(counter: Counter, callers: usize) {
    decide(counter, &World::with_callers(callers).0);
}
