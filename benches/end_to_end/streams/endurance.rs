//! That memory comes to rest: after many calls through Envoy, and after many reloads. And that HTTP/2 keeps its connections
//! over them: some of its limits count over the whole life of one.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::memory::kilobytes;
use crate::arms::Stage;
use crate::support::wait_for;

/// Calls, and how many of them warm up.
const CALLS: (u64, u64) = (10_000, 100_000);
const CONNECTIONS: usize = 16;
/// Reloads, and how many of them warm up.
const RELOADS: (usize, usize) = (10, 100);
/// How long one reload may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn measure(stage: &Stage) {
    calls(stage);
    reloads(stage);
}

fn calls(stage: &Stage) {
    let mut arm = stage.enduring();
    let pid = arm.processor().expect("its process");
    arm.send(1024);
    arm.connect(&stage.load, CONNECTIONS);
    let before = arm.envoy().stat("cluster.portcullis.upstream_cx_total");
    let mut until = |calls: u64| {
        while arm.calls() < calls {
            arm.slice(&stage.load, Duration::from_secs(1));
        }
        kilobytes(pid, "VmRSS") / 1024.0
    };
    let (warm, after) = (until(CALLS.0), until(CALLS.1));
    let opened = arm.envoy().stat("cluster.portcullis.upstream_cx_total");
    println!("memory after {} calls (RSS): {warm:.1} MiB, after {}: {after:.1} MiB", CALLS.0, arm.calls());
    println!("HTTP/2 connections to Portcullis: {before} at the first call, {opened} in all");
    arm.account();
}

fn reloads(stage: &Stage) {
    let alone = stage.portcullis("reloads");
    let log = alone.socket.with_file_name("processor.log");
    let pid = Pid::from_raw(alone.pid().try_into().expect("a process id"));
    let taken = || fs::read_to_string(&log).expect("its log").matches("a changed configuration is in force").count();
    let until = |reloads: usize| {
        for reload in taken()..reloads {
            kill(pid, Signal::SIGHUP).expect("the process takes signals");
            wait_for(PATIENCE, || (taken() > reload).then_some(()))
                .unwrap_or_else(|| panic!("expected reload {reload} to be taken within {PATIENCE:?}"));
        }
        // What was in force before is freed beside.
        std::thread::sleep(Duration::from_secs(3));
        kilobytes(alone.pid(), "VmRSS") / 1024.0
    };
    let start = kilobytes(alone.pid(), "VmRSS") / 1024.0;
    let (warm, after) = (until(RELOADS.0), until(RELOADS.1));
    println!(
        "memory at the start (RSS): {start:.1} MiB, after {} reloads {warm:.1} MiB, after {} {after:.1} MiB",
        RELOADS.0, RELOADS.1
    );
}
