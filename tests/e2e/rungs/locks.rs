//! Portcullis is gone, frozen or coming back: nothing undecided passes, nobody hangs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Connection;
use crate::support::envoy::with_verdict;
use crate::support::{Envoy, Request, Stack, fixture, stack::edge_edits, wait_for};

#[test]
fn killed_and_restarted() {
    let mut stack = Stack::start();
    stack.allows(&stack.request(&fixture::search()));
    stack.portcullis.kill();
    let reply = stack.post(&fixture::search());
    assert_eq!((reply.status, stack.upstream.count()), (503, 1), "{reply}");
    stack.portcullis.restart();
    stack.allows(&stack.request(&fixture::search()));
}

#[test]
fn frozen_it_refuses_within_the_keepalive_and_goes_on() {
    let stack = Stack::with(
        &[],
        &[("connection_keepalive: {interval: 5s, timeout: 5s}", "connection_keepalive: {interval: 1s, timeout: 1s}")],
    );
    stack.allows(&stack.request(&fixture::search()));
    stack.portcullis.stop();
    let began = Instant::now();
    let reply = stack.post(&fixture::search());
    assert!(reply.status >= 500 && began.elapsed() < Duration::from_secs(12), "after {:?}: {reply}", began.elapsed());
    assert_eq!(stack.upstream.count(), 1);
    stack.portcullis.go_on();
    stack.allows(&stack.request(&fixture::search()));
}

/// What the callers of [`killed_under_load_no_undecided_call_passes`] share.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    /// Raised once Portcullis is dead, lowered before it is started again.
    down: AtomicBool,
    answered: AtomicUsize,
    served: AtomicUsize,
    /// Refusals of calls that were sent and answered while it was down.
    refused_down: AtomicUsize,
    /// Results that nobody may have got: of a refused call, or while it was down.
    leaked: AtomicUsize,
}

impl Load {
    /// One caller: the same request again and again, on one connection as long as that lasts.
    fn call(&self, port: u16, request: &Request, allowed: bool) {
        let mut connection = None;
        while !self.stop.load(Ordering::SeqCst) {
            let began_down = self.down.load(Ordering::SeqCst);
            let reply = connection.get_or_insert_with(|| Connection::open(port).expect("Envoy stays")).send(request);
            let was_down = began_down && self.down.load(Ordering::SeqCst);
            let Some(reply) = reply.filter(|reply| !reply.cut) else {
                connection = None;
                continue;
            };
            let result = reply.status == 200 && reply.text().contains("\"result\"");
            self.answered.fetch_add(1, Ordering::SeqCst);
            self.served.fetch_add(usize::from(result && allowed), Ordering::SeqCst);
            self.refused_down.fetch_add(usize::from(!result && was_down), Ordering::SeqCst);
            self.leaked.fetch_add(usize::from(result && (was_down || !allowed)), Ordering::SeqCst);
        }
    }

    /// Waits until `counter` has grown by `more`.
    fn more(counter: &AtomicUsize, more: usize) {
        let goal = counter.load(Ordering::SeqCst) + more;
        let reached = wait_for(Duration::from_mins(1), || (counter.load(Ordering::SeqCst) >= goal).then_some(()));
        assert!(reached.is_some(), "expected {goal} answers within a minute, got {counter:?}");
    }
}

#[test]
fn killed_under_load_no_undecided_call_passes() {
    let mut stack = Stack::start();
    let (port, allowed) = (stack.envoy.port, stack.request(&fixture::search()));
    let refused = stack.request(&fixture::call("export_cases", serde_json::json!({})));
    let load = Load::default();
    std::thread::scope(|scope| {
        for at in 0..8 {
            let (load, allowed, refused) = (&load, &allowed, &refused);
            scope.spawn(move || load.call(port, if at % 2 == 0 { allowed } else { refused }, at % 2 == 0));
        }
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..3 {
                Load::more(&load.answered, 500);
                stack.portcullis.kill();
                load.down.store(true, Ordering::SeqCst);
                Load::more(&load.refused_down, 16);
                load.down.store(false, Ordering::SeqCst);
                stack.portcullis.restart();
            }
            Load::more(&load.answered, 500);
            Load::more(&load.served, 1);
        }));
        load.stop.store(true, Ordering::SeqCst);
        ended.expect("the load goes on");
    });
    assert!(load.answered.load(Ordering::SeqCst) >= 2000);
    assert_eq!(load.leaked.load(Ordering::SeqCst), 0);
    let undecided = stack.upstream.seen().into_iter().find(|seen| {
        seen.json()["params"]["name"] != "search_cases" || seen.header("authorization") != ["Bearer service-credential"]
    });
    assert!(undecided.is_none(), "{undecided:?}");
}

#[test]
fn its_cluster_removed() {
    let stack = Stack::start();
    let config = crate::support::envoy::EDGE.replace("cluster_name: portcullis}", "cluster_name: missing}");
    let places = edge_edits(&stack.dir.path().join("ext_proc.sock"), stack.upstream.port);
    let envoy = Envoy::start(&config, &places.each_ref().map(|(from, to)| (*from, to.as_str())));
    let reply = stack.request(&fixture::search()).send(envoy.port);
    assert!(reply.status >= 500 && stack.upstream.count() == 0, "{reply}");
}

#[test]
fn a_verdict_planted_ahead_of_it_does_not_count() {
    // The stand-in stands where ext_proc stood; ext_proc comes back behind it, and its "not yet" must win until the verdict.
    let stack = Stack::start();
    let edge = crate::support::envoy::EDGE;
    let start = edge.find("          - name: envoy.filters.http.ext_proc\n").expect("ext_proc");
    let end = edge.find("          - name: envoy.filters.http.rbac\n").expect("rbac");
    let planted = with_verdict(edge, "{decided: true, server: cases}").replace(
        "          - name: envoy.filters.http.rbac\n",
        &format!("{}          - name: envoy.filters.http.rbac\n", &edge[start..end]),
    );
    let places = edge_edits(&stack.dir.path().join("ext_proc.sock"), stack.upstream.port);
    let envoy = Envoy::start(&planted, &places.each_ref().map(|(from, to)| (*from, to.as_str())));
    let refused = stack.request(&fixture::call("export_cases", serde_json::json!({})));
    let reply = refused.send(envoy.port);
    assert!(reply.json()["error"].is_object(), "{reply}");
    assert_eq!(stack.upstream.count(), 0);
    let reply = stack.request(&fixture::search()).send(envoy.port);
    assert_eq!((reply.status, stack.upstream.count()), (200, 1), "{reply}");
}

#[test]
fn a_processing_mode_that_shows_only_a_part_of_the_body_is_refused() {
    for (from, to) in [
        ("request_body_mode: BUFFERED,", "request_body_mode: BUFFERED_PARTIAL,"),
        (
            "request_body_mode: BUFFERED, response_header_mode: SEND, response_body_mode: FULL_DUPLEX_STREAMED, response_trailer_mode: SEND",
            "request_body_mode: BUFFERED, response_header_mode: SEND, response_body_mode: NONE",
        ),
    ] {
        let stack = Stack::with(&[], &[(from, to)]);
        let reply = stack.refuses(&stack.request(&fixture::search()), "internal");
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{to}: {reply}");
    }
}
