//! Each fault of the harness once, with a few hundred calls; `make faults` repeats them with many.

#[allow(dead_code, reason = "`make faults` needs more of it, for its table")]
#[path = "../faults/mod.rs"]
mod harness;

use self::harness::{Fault, Scale, disk, envoy, inside, peers, process, run, upstream};

/// Lets it happen; nothing may have come of it that may not.
#[track_caller]
fn holds(fault: Fault) {
    let report = run(fault, Scale { around: 64, during: 128, total: 256 });
    let violations = report.violations();
    assert!(
        violations.is_empty(),
        "{}: {} faults, of them {:#?}",
        report.name,
        violations.len(),
        &violations[..violations.len().min(5)]
    );
}

#[test]
fn fault_killed() {
    holds(process::killed());
}

#[test]
fn fault_frozen() {
    holds(process::frozen());
}

#[test]
fn fault_drained() {
    holds(process::drained());
}

#[test]
fn fault_socket_removed() {
    holds(process::socket_removed());
}

#[test]
fn fault_socket_unreadable() {
    holds(process::socket_unreadable());
}

#[test]
fn fault_cluster_removed() {
    holds(envoy::cluster_removed());
}

#[test]
fn fault_message_timeout() {
    holds(envoy::message_timeout());
}

#[test]
fn fault_reset_mid_body() {
    holds(envoy::reset_mid_body());
}

#[test]
fn fault_unread_clients() {
    holds(inside::unread_clients());
}

#[test]
fn fault_reloaded() {
    holds(inside::reloaded());
}

#[test]
fn fault_disk_full_refuse() {
    holds(disk::full_refuse());
}

#[test]
fn fault_disk_full_drop() {
    holds(disk::full_drop());
}

#[test]
fn fault_disk_device_refuse() {
    holds(disk::device_refuse());
}

#[test]
fn fault_disk_device_drop() {
    holds(disk::device_drop());
}

#[test]
fn fault_clock_ahead() {
    holds(inside::clock_ahead());
}

#[test]
fn fault_clock_back() {
    holds(inside::clock_back());
}

#[test]
fn fault_upstream_stalls() {
    holds(upstream::stalls());
}

#[test]
fn fault_upstream_resets() {
    holds(upstream::resets());
}

#[test]
fn fault_upstream_answers_twice() {
    holds(upstream::answers_twice());
}

#[test]
fn fault_upstream_trailers() {
    holds(upstream::trailers());
}

#[test]
fn fault_upstream_lies_about_length() {
    holds(upstream::lies_about_length());
}

#[test]
fn fault_upstream_compresses() {
    holds(upstream::compresses());
}

#[test]
fn fault_upstream_ends_mid_event() {
    holds(upstream::ends_mid_event());
}

#[test]
fn fault_keys_down() {
    holds(peers::keys_down());
}

#[test]
fn fault_keys_slow() {
    holds(peers::keys_slow());
}

#[test]
fn fault_gate_down() {
    holds(peers::gate_down());
}

#[test]
fn fault_gate_slow() {
    holds(peers::gate_slow());
}

#[test]
fn fault_collector_down() {
    holds(peers::collector_down());
}

#[test]
fn fault_collector_hangs() {
    holds(peers::collector_hangs());
}

#[test]
fn fault_listing_down() {
    holds(peers::listing_down());
}
