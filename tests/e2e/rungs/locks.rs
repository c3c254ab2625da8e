//! Portcullis is gone, frozen or coming back: nothing undecided passes, nobody hangs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::envoy::with_verdict;
use crate::support::{Envoy, Stack, fixture, stack::edge_edits};

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

#[test]
fn killed_under_load_no_undecided_call_passes() {
    let mut stack = Stack::start();
    let (port, allowed) = (stack.envoy.port, stack.request(&fixture::search()));
    let refused = stack.request(&fixture::call("export_cases", serde_json::json!({})));
    let (stop, served, leaked) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for at in 0..4 {
            let request = if at % 2 == 0 { &allowed } else { &refused };
            let (stop, served, leaked) = (&stop, &served, &leaked);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let Some(reply) = request.try_send(port) else {
                        continue;
                    };
                    let result = reply.status == 200 && reply.text().contains("\"result\"");
                    served.fetch_add(usize::from(result), Ordering::SeqCst);
                    leaked.fetch_add(usize::from(result && at % 2 == 1), Ordering::SeqCst);
                }
            });
        }
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(300));
            stack.portcullis.kill();
            std::thread::sleep(Duration::from_millis(200));
            stack.portcullis.restart();
        }
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::SeqCst);
    });
    assert!(served.load(Ordering::SeqCst) > 0, "expected some allowed calls");
    assert_eq!(leaked.load(Ordering::SeqCst), 0);
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
