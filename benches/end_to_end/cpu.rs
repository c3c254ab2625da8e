//! CPU time of a process.

use std::fs;

/// Nanoseconds that all threads of a process have run, from the scheduler's own count: `/proc/PID/stat` counts in ticks of
/// 10 ms, which is too coarse for a slice.
pub(crate) fn nanoseconds(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap_or_else(|fault| panic!("expected process {pid} to run, got {fault}"));
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum()
}
