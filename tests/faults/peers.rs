//! Whom Portcullis itself asks and tells: the issuer's keys, a gate, a collector, the server's listings.

use std::cell::RefCell;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::{Fault, Metric, World};
use crate::gates::servers::{Gate, Say};
use crate::support::collector::Collector;
use crate::support::portcullis::Setting;
use crate::support::{Answer, Upstream, free_port, mcp};

/// Portcullis starts anew while the issuer's key endpoint fails with `answer`: it knows no key, and nobody. (Keys that were had
/// go on being used, for longer than a run lasts.)
fn keys(name: &'static str, answer: Answer) -> Fault {
    let endpoint = Upstream::start();
    let port = endpoint.port;
    let known = Arc::new(Mutex::new(json!({})));
    let served = Arc::clone(&known);
    let answer_keys = move |_: &_| Answer::json(&served.lock().expect("no holder panics"));
    endpoint.script(answer_keys.clone());
    let world = World::made(
        Setting::default(),
        |config, parts| {
            *known.lock().expect("no holder panics") = parts.idp.jwks();
            config.replace(
                &format!("http://127.0.0.1:{}/jwks.json", parts.idp.port),
                &format!("http://127.0.0.1:{port}/keys"),
            )
        },
        |edge, _| edge,
    );
    let endpoint = Rc::new(endpoint);
    let of_lift = Rc::clone(&endpoint);
    let inject = move |world: &mut World| {
        endpoint.answer(answer.clone());
        world.stack.portcullis.signal(Signal::SIGTERM);
        assert!(world.stack.portcullis.await_end(Duration::from_secs(30)).success());
        world.stack.portcullis.restart();
    };
    let metric = Metric::Portcullis("portcullis_jwks_refreshes_total", &["result=\"failed\""]);
    Fault::new(name, metric, world, inject, move |_| of_lift.script(answer_keys.clone()))
}

pub(crate) fn keys_down() -> Fault {
    keys("start without the issuer's keys", Answer::raw("").close())
}

pub(crate) fn keys_slow() -> Fault {
    keys("start, the issuer's keys hanging", Answer::raw("").until_gone())
}

fn gate(name: &'static str, say: Say) -> Fault {
    let gate = Gate::start(Say::Allow);
    let gates = format!(
        "  gates: [{{name: acme, grpc: {{address: '{}', timeout: 300ms}}, breaker: {{failures: 20, open: 1s}}}}]\n  limits: {{request",
        gate.address()
    );
    let world = World::with(&[("  limits: {request", &gates)], &[]);
    let gate = Rc::new(gate);
    let of_lift = Rc::clone(&gate);
    let metric = Metric::Portcullis("portcullis_gate_calls_total", &["result=\"failed\""]);
    Fault::new(name, metric, world, move |_| gate.say(say), move |_| of_lift.say(Say::Allow))
}

pub(crate) fn gate_down() -> Fault {
    gate("gate fails", Say::Error)
}

pub(crate) fn gate_slow() -> Fault {
    gate("gate hangs", Say::Hang)
}

/// A collector that goes; in its place nobody, or one that takes connections and says nothing.
fn collector(name: &'static str, silent: bool) -> Fault {
    let port = free_port();
    let there = Rc::new(RefCell::new((Some(Collector::start_on(port)), None)));
    let otlp = format!("  otlp: {{endpoint: \"http://127.0.0.1:{port}\", timeout: 1s}}\n  audit: {{stdout: json}}");
    let world = World::with(&[("  audit: {stdout: json}", &otlp)], &[]);
    let of_lift = Rc::clone(&there);
    let metric = Metric::Portcullis("portcullis_audit_dropped_total", &["at=\"otlp\""]);
    let inject = move |_: &mut World| {
        let mut there = there.borrow_mut();
        there.0 = None;
        there.1 = silent.then(|| TcpListener::bind(("127.0.0.1", port)).expect("the collector's port"));
    };
    let lift = move |_: &mut World| {
        let mut there = of_lift.borrow_mut();
        there.1 = None;
        there.0 = Some(Collector::start_on(port));
    };
    Fault::new(name, metric, world, inject, lift).harmless().once()
}

pub(crate) fn collector_down() -> Fault {
    collector("collector down", false)
}

pub(crate) fn collector_hangs() -> Fault {
    collector("collector hangs", true)
}

/// The server answers callers, and Portcullis's own listings not at all.
pub(crate) fn listing_down() -> Fault {
    let refresh = "  record: {file: records/cases.yaml, refresh: 1s}";
    let world = World::with(&[("  record: {file: records/cases.yaml}", refresh)], &[]);
    let metric = Metric::Portcullis("portcullis_definition_listings_total", &["result=\"failed\""]);
    Fault::new(
        "own listings fail",
        metric,
        world,
        |world| world.stack.upstream.script_own(|_| Answer::raw("").wait(Duration::from_millis(20)).close()),
        |world| world.stack.upstream.script_own(mcp::answer),
    )
}
