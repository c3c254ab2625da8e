//! A process that is reloaded all day stays as small as it was.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Request, Stack, fixture, free_port, substitute, wait_for};

const PATIENCE: Duration = Duration::from_secs(30);

/// Resident memory in KiB, open files and threads of a process.
fn size(id: u32) -> (u64, usize, usize) {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("its status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    let count = |what: &str| fs::read_dir(format!("/proc/{id}/{what}")).expect("its folder").count();
    (resident.expect("its memory").parse().expect("a number"), count("fd"), count("task"))
}

#[test]
fn a_thousand_reloads_leave_nothing_behind() {
    const RELOADS: u64 = 1_000;
    let port = free_port();
    let listen = format!("/ext_proc.sock\n  admin: {{address: 127.0.0.1:{port}}}\nunmatched");
    let stack =
        Stack::made(None, |config, _| substitute(&config, &[("/ext_proc.sock\nunmatched", &listen)]), |edge, _| edge);
    let status = || Request::get("/status").authority("localhost").send(port).json();
    let generation = || status()["configuration"]["generation"].as_u64().expect("a number");
    let tasks = |status: &Value| status["tasks"].as_u64().expect("a number");
    let search = stack.request(&fixture::search());
    let id = stack.portcullis.id();
    let reload = |wanted: u64| {
        stack.portcullis.signal(Signal::SIGHUP);
        wait_for(PATIENCE, || (generation() >= wanted).then_some(())).expect("reloaded");
    };
    (2..100).for_each(reload);
    stack.allows(&search);
    // What follows a secret's file ends a moment after what it served.
    let settled = |most: u64| wait_for(PATIENCE, || Some(tasks(&status())).filter(|tasks| *tasks <= most));
    let few = settled(40).expect("tasks of old configurations end");
    let (memory, files, threads) = size(id);
    (100..=RELOADS).for_each(reload);
    stack.allows(&search);
    assert!(settled(few + 10).is_some(), "tasks were {few}, are {}", tasks(&status()));
    let after = size(id);
    eprintln!("memory {memory} KiB, then {} KiB; tasks {few}", after.0);
    assert!(after.0 < memory + 32 * 1024, "memory was {memory} KiB, is {} KiB", after.0);
    assert!(after.1 <= files + 8, "open files were {files}, are {}", after.1);
    assert!(after.2 <= threads + 8, "threads were {threads}, are {}", after.2);
    assert!(stack.upstream.own_count("tools/list") <= 4 && stack.idp.fetches() == 1);
}
