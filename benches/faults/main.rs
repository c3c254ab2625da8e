//! Faults under load against a real Envoy, each again and again until there were enough calls, and a table of what came of them.
//! `make faults`; docs/security.md says how to read it.

#![allow(
    clippy::cast_precision_loss,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "figures are for people, and the rest is shared with the tests"
)]

#[path = "../../tests/faults/mod.rs"]
mod faults;
#[path = "../../tests/support/mod.rs"]
mod support;

#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../../tests/e2e/gates/servers.rs"]
mod servers;

/// As the end-to-end tests have it.
mod gates {
    pub(crate) use crate::servers;
}

use std::process::ExitCode;

use faults::{Fault, Report, Scale, disk, envoy, inside, peers, process, run, upstream};

const USAGE: &str = "options:
  --calls N     calls of each fault, at least (4200)
  --only WORDS  the faults in whose names this stands";

/// A fault that is not built yet: each has a stack of its own.
type Maker = fn() -> Fault;

/// All of them.
const FAULTS: &[(&str, Maker)] = &[
    ("process killed", process::killed),
    ("process frozen", process::frozen),
    ("process drained", process::drained),
    ("process socket removed", process::socket_removed),
    ("process socket unreadable", process::socket_unreadable),
    ("envoy cluster removed", envoy::cluster_removed),
    ("envoy message timeout", envoy::message_timeout),
    ("envoy reset mid body", envoy::reset_mid_body),
    ("inside unread clients", inside::unread_clients),
    ("inside reloaded", inside::reloaded),
    ("disk device refuse", disk::device_refuse),
    ("disk device drop", disk::device_drop),
    ("disk full refuse", disk::full_refuse),
    ("disk full drop", disk::full_drop),
    ("inside clock ahead", inside::clock_ahead),
    ("inside clock back", inside::clock_back),
    ("upstream stalls", upstream::stalls),
    ("upstream resets", upstream::resets),
    ("upstream answers twice", upstream::answers_twice),
    ("upstream trailers", upstream::trailers),
    ("upstream lies about length", upstream::lies_about_length),
    ("upstream compresses", upstream::compresses),
    ("upstream ends mid event", upstream::ends_mid_event),
    ("peers keys down", peers::keys_down),
    ("peers keys slow", peers::keys_slow),
    ("peers gate down", peers::gate_down),
    ("peers gate slow", peers::gate_slow),
    ("peers collector down", peers::collector_down),
    ("peers collector hangs", peers::collector_hangs),
    ("peers listing down", peers::listing_down),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (mut calls, mut only) = (4_200, String::new());
    for pair in words.chunks(2) {
        match pair {
            [name, value] if name == "--only" => only.clone_from(value),
            [name, value] if name == "--calls" && value.parse::<u64>().is_ok() => {
                calls = value.parse().unwrap_or(calls);
            }
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }
    let scale = Scale { around: 200, during: 600, total: calls };
    let chosen = FAULTS.iter().filter(|(name, _)| name.contains(&only));
    let reports: Vec<Report> = chosen.map(|(name, fault)| told(name, fault(), scale)).collect();
    if reports.is_empty() {
        let names: Vec<_> = FAULTS.iter().map(|(name, _)| name).collect();
        eprintln!("expected a part of a fault's name, got {only:?}; the names: {names:?}");
        return ExitCode::FAILURE;
    }
    table(&reports)
}

fn told(name: &str, fault: Fault, scale: Scale) -> Report {
    eprintln!("{name} ...");
    let report = run(fault, scale);
    let violations = report.violations();
    for violation in violations.iter().take(5) {
        eprintln!("  VIOLATION {violation}");
    }
    eprintln!("  {} calls, {} violations", report.account.calls, violations.len());
    report
}

fn table(reports: &[Report]) -> ExitCode {
    println!(
        "| fault | times | calls | met it | served | refused | by Envoy | cut | undecided | hung | no record | slowest | well again | shown by |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for Report { name, metric, account, harmless, met, rounds, shown, recovery } in reports {
        let served = if *harmless { " [served]" } else { "" };
        println!(
            "| {name}{served} | {rounds} | {} | {met} | {} | {} | {} | {} | {} | {} | {} | {:.1} s | {:.1} s | `{metric}` +{shown} |",
            account.calls,
            account.results,
            account.refused,
            account.envoy,
            account.broken,
            account.undecided.len(),
            account.hung,
            account.unaudited,
            account.slowest.as_secs_f64(),
            recovery.as_secs_f64(),
        );
    }
    let calls: usize = reports.iter().map(|report| report.account.calls).sum();
    let violations: usize = reports.iter().map(|report| report.violations().len()).sum();
    println!("\n{} faults, {calls} calls, {violations} violations", reports.len());
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
