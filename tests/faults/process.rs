//! What happens to the process of Portcullis and to its socket.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::account::Losses;
use super::{Fault, Metric, World};
use crate::support::wait_for;

/// Envoy could not connect to Portcullis.
const UNREACHABLE: Metric = Metric::Envoy("cluster.portcullis.upstream_cx_connect_fail");

pub(crate) fn killed() -> Fault {
    let world = World::with(&[], &[]);
    Fault::new(
        "killed, and started again",
        UNREACHABLE,
        world,
        |world| world.stack.portcullis.kill(),
        |world| world.stack.portcullis.restart(),
    )
    .losing(Losses { killed: true, retried: true, ..Losses::default() })
}

pub(crate) fn frozen() -> Fault {
    // Seconds instead of ten, so that there are many calls in a run.
    let keepalive =
        [("connection_keepalive: {interval: 5s, timeout: 5s}", "connection_keepalive: {interval: 1s, timeout: 1s}")];
    Fault::new(
        "stopped (SIGSTOP)",
        Metric::Envoy("cluster.portcullis.http2.keepalive_timeout"),
        World::with(&[], &keepalive),
        |world| world.stack.portcullis.stop(),
        |world| world.stack.portcullis.go_on(),
    )
    .losing(Losses { retried: true, ..Losses::default() })
}

pub(crate) fn drained() -> Fault {
    Fault::new(
        "drained (SIGTERM), and started again",
        UNREACHABLE,
        World::with(&[("unmatched: deny", "unmatched: deny\ndrain: {timeout: 2s}")], &[]),
        |world| {
            world.stack.portcullis.signal(Signal::SIGTERM);
            assert!(world.stack.portcullis.await_end(Duration::from_secs(20)).success());
        },
        |world| world.stack.portcullis.restart(),
    )
}

/// With connections that last for 100 calls: what is open goes on whatever becomes of the socket.
fn reconnecting() -> World {
    let often = "common_http_protocol_options: {max_requests_per_connection: 100}\n        explicit_http_config: {http2_protocol_options";
    World::with(&[], &[("explicit_http_config: {http2_protocol_options", often)])
}

pub(crate) fn socket_removed() -> Fault {
    let world = reconnecting();
    // Nobody puts it back: Portcullis does, so soon that no connection may have been missed meanwhile.
    let inject = |world: &mut World| {
        let (socket, before) = (world.dir().join("ext_proc.sock"), world.value(UNREACHABLE));
        let missed = || {
            let _ = fs::remove_file(&socket);
            (world.value(UNREACHABLE) > before).then_some(())
        };
        assert!(wait_for(Duration::from_secs(20), missed).is_some(), "expected Envoy to find no socket");
    };
    Fault::new("socket removed", UNREACHABLE, world, inject, |_| ())
}

pub(crate) fn socket_unreadable() -> Fault {
    let mode = |mode| {
        move |world: &mut World| {
            fs::set_permissions(world.dir().join("ext_proc.sock"), Permissions::from_mode(mode)).expect("our socket");
        }
    };
    Fault::new("socket unreadable", UNREACHABLE, reconnecting(), mode(0o000), mode(0o600))
}
