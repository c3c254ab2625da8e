//! How often the core asks for memory, on the configuration that its budgets are stated for. A budget that is exceeded is a
//! failure here and not a figure of a benchmark; `cargo bench --bench core` says how long the same parts take.
#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "what is shared with the benchmarks is written to be read"
)]

#[path = "../benches/core/parts.rs"]
#[allow(dead_code, reason = "the benchmarks use the rest of it")]
mod parts;
#[path = "../benches/setting/mod.rs"]
mod setting;
mod support;
#[path = "../benches/core/world.rs"]
#[allow(dead_code, reason = "the benchmarks use the rest of it")]
mod world;

use setting::USUAL;
use world::World;

/// The most allocations of a run of `work`, growing ones included, once what is made once was made.
fn allocations<I, O>(mut input: impl FnMut() -> I, mut work: impl FnMut(I) -> O) -> u64 {
    for _ in 0..4 {
        drop(work(input()));
    }
    let mut most = 0;
    for _ in 0..8 {
        let input = input();
        let mut output = None;
        let counted = allocation_counter::measure(|| output = Some(work(input)));
        most = most.max(counted.count_total);
    }
    most
}

/// The counter is in place and counts what grows.
#[test]
fn allocations_are_counted() {
    assert_eq!(allocations(|| 1_u8, Box::new), 1);
    assert_eq!(allocations(|| (), |()| ()), 0);
    let grown = allocations(
        || (),
        |()| {
            (0..100_u64).fold(Vec::new(), |mut all, n| {
                all.push(n);
                all
            })
        },
    );
    assert!(grown > 3, "{grown}");
}

#[test]
fn a_decision_allocates_little() {
    let world = World::of(USUAL);
    let counted = allocations(parts::events(world, 0), |events| world.decide(events));
    assert!((1..=16).contains(&counted), "expected a decision to allocate 1 to 16 times, got {counted}");
}

#[test]
fn an_exchange_allocates_little() {
    let world = World::of(USUAL);
    let counted = allocations(parts::events(world, 0), |events| world.exchange(events));
    assert!((1..=24).contains(&counted), "expected an exchange to allocate 1 to 24 times, got {counted}");
}

#[test]
fn a_listing_of_2_000_tools_seen_before_allocates_little() {
    let counted = allocations(parts::listings(2_000, false), parts::filter(2_000));
    assert!((1..=16).contains(&counted), "expected a listing to allocate 1 to 16 times, got {counted}");
}
