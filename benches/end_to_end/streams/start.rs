//! From the start of the process to a socket that takes connections.

use std::time::Instant;

use crate::arms::Stage;
use crate::statistics::median;

const STARTS: usize = 10;

pub(crate) fn measure(stage: &Stage) {
    let took = |n: usize| {
        let began = Instant::now();
        let alone = stage.portcullis(&format!("start-{n}"));
        let took = began.elapsed();
        drop(alone);
        took.as_secs_f64() * 1000.0
    };
    let took = median(&(0..STARTS).map(took).collect::<Vec<_>>());
    let verdict = super::against(took <= 200.0, "<= 200 ms");
    println!("start to ready, median of {STARTS}: {took:.0} ms{verdict}");
}
