//! What streams cost: memory per idle subscription, that open ones make no call dearer, the delay of an event; that memory
//! comes to rest, and how long Portcullis takes to be ready. `cargo bench --bench end_to_end -- --streams 10000`.

mod delay;
mod door;
mod endurance;
mod memory;
mod start;

use std::path::Path;
use std::time::Duration;

use crate::arms::Stage;

/// Measures everything with `count` open streams, and prints it.
pub(crate) fn measure(portcullis: &Path, count: usize, rounds: usize, slice: Duration) {
    let paired = slice * u32::try_from(rounds * 8).expect("a few hundred slices");
    crate::bound(
        paired + Duration::from_mins(10) + Duration::from_millis(20) * u32::try_from(count).unwrap_or(u32::MAX),
    );
    let mut stage = Stage::start(portcullis, false);
    start::measure(&stage);
    memory::measure(&stage, count, rounds, slice);
    endurance::measure(&stage);
    delay::measure(&mut stage, rounds);
}

/// Whether a budget was met, for the end of a line.
fn against(met: bool, budget: &str) -> String {
    format!("  budget {budget}: {}", if met { "met" } else { "MISSED" })
}
