//! The core without gRPC: what a decision costs, by part, with its allocations, and that it does not grow with the
//! configuration. `cargo bench --bench core`; docs/performance.md says how to read it.
//!
//! `-- --instructions` counts instructions instead and fails where a part takes more than it may; a name behind it picks the
//! parts that hold it in theirs.
#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "what is shared with the tests is written to be read"
)]

#[path = "../callgrind/mod.rs"]
mod callgrind;
#[path = "../schema/filters.rs"]
mod filters;
mod instructions;
mod parts;
#[path = "../setting/mod.rs"]
mod setting;
#[path = "../../tests/support/mod.rs"]
mod support;
mod world;

use std::process::ExitCode;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher};
use mimalloc::MiMalloc;
use portcullis::message::json::Document;
use portcullis::refusal::{Addressee, Denials, Detail, Reason, Refusal, Rung, render};
use serde_json::json;

use parts::{KIB, LIMITS};
use setting::{Size, USUAL, call};
use world::World;

/// The program's own allocator, counted.
#[global_allocator]
static ALLOCATOR: AllocProfiler<MiMalloc> = AllocProfiler::new(MiMalloc);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--instructions"] => instructions::gate(""),
        ["--instructions", some] => instructions::gate(some),
        ["--part", name] => instructions::run(name),
        _ => {
            divan::main();
            ExitCode::SUCCESS
        }
    }
}

/// Rung 9's reading of a body.
#[divan::bench(args = [KIB, 64 * KIB, 1024 * KIB])]
fn reader(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = call(0, bytes).to_string().into_bytes();
    bencher
        .counter(BytesCount::new(bytes))
        .with_inputs(|| body.clone())
        .bench_local_values(|body| Document::read(body, LIMITS).expect("good JSON"));
}

/// The same on a body of many small values instead of one long text.
#[divan::bench(args = [64 * KIB])]
fn reader_of_small_values(bencher: Bencher<'_, '_>, bytes: usize) {
    let rows = (0..bytes / 32).map(|n| json!({"id": n, "on": true, "x": "abc"})).collect::<Vec<_>>();
    let body = json!(rows).to_string().into_bytes();
    bencher
        .counter(BytesCount::new(body.len()))
        .with_inputs(|| body.clone())
        .bench_local_values(|body| Document::read(body, LIMITS).expect("good JSON"));
}

/// Rungs 9 and 10 on a body that was read.
#[divan::bench]
fn envelope(bencher: Bencher<'_, '_>) {
    bencher.bench_local(parts::envelope());
}

/// A token that was seen before.
#[divan::bench]
fn token(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    bencher.bench_local(|| world.cached(&world.authorization));
}

/// The budget's core decision: from the request's head to the verdict, 1 KiB, token seen before.
#[divan::bench]
fn decision(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    bencher.with_inputs(parts::events(world, 0)).bench_local_values(|events| drop(world.decide(events)));
}

/// The same, and the answer of 1 KiB read and released, and the audit record taken.
#[divan::bench]
fn exchange(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    bencher.with_inputs(parts::events(world, 0)).bench_local_values(|events| world.exchange(events));
}

/// A call whose permission is not held, frame and record included.
#[divan::bench]
fn exchange_refused(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    bencher.with_inputs(parts::events(world, 1)).bench_local_values(|events| world.refused(events));
}

/// The frame of a policy refusal.
#[divan::bench]
fn frame(bencher: Bencher<'_, '_>) {
    let refusal = Refusal::new(Reason::PolicyNotPermitted, Rung::Permission)
        .message("You may not use the tool 'tool_00001': it needs the permission 'area-1:use'.")
        .description("ana@acme.com does not hold 'area-1:use', which 'tool:tool_00001' costs.")
        .detail("permission", Detail::Text("area-1:use".into()));
    let to = Addressee { id: Some("\"request-17\""), method: "tools/call" };
    bencher.bench_local(|| render(&refusal, Denials::default(), to, "0123456789ab00000001"));
}

/// Rungs 18 and 19 on a listing of which every second entry goes: read, filtered, spliced. The server lists the same bytes
/// again and again.
#[divan::bench(args = [10, 200, 2000])]
fn listing_filtered(bencher: Bencher<'_, '_>, tools: usize) {
    filter(bencher, tools, false);
}

/// The same from a server that spells each listing otherwise than the last, so that every definition is compared.
#[divan::bench(args = [10, 200, 2000])]
fn listing_respelled(bencher: Bencher<'_, '_>, tools: usize) {
    filter(bencher, tools, true);
}

fn filter(bencher: Bencher<'_, '_>, tools: usize, respelled: bool) {
    let mut listings = parts::listings(tools, respelled);
    let bytes = BytesCount::new(listings().len());
    bencher.counter(bytes).with_inputs(listings).bench_local_values(parts::filter(tools));
}

/// What must not make a call dearer.
mod growth {
    use super::{Bencher, Size, USUAL, World, parts};

    #[divan::bench(args = [10, 10_000])]
    fn rules(bencher: Bencher<'_, '_>, rules: usize) {
        decide(bencher, World::of(Size { rules, ..USUAL }));
    }

    #[divan::bench(args = [10, 10_000])]
    fn prices(bencher: Bencher<'_, '_>, tools: usize) {
        decide(bencher, World::of(Size { tools, ..USUAL }));
    }

    /// One caller's calls after so many others were seen.
    #[divan::bench(args = [10, 10_000])]
    fn callers_seen(bencher: Bencher<'_, '_>, callers: usize) {
        decide(bencher, &World::with_callers(callers).0);
    }

    /// So many callers in turn; what grows is the distance to memory.
    #[divan::bench(args = [10, 10_000])]
    fn callers_in_turn(bencher: Bencher<'_, '_>, callers: usize) {
        let (world, tokens) = World::with_callers(callers);
        let mut turn = tokens.iter().cycle();
        bencher.bench_local(|| turn.next().map(|token| world.cached(token)));
    }

    fn decide(bencher: Bencher<'_, '_>, world: &World) {
        bencher.with_inputs(parts::events(world, 0)).bench_local_values(|events| drop(world.decide(events)));
    }
}
