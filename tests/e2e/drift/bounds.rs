//! What callers can make Portcullis ask of the server, and what a caller waits for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{details, listed, offer, offering, without};
use crate::support::client::Connection;
use crate::support::{Reply, Stack, fixture, mcp, wait_for};

/// How long a vanished capability is remembered (`upstream::book::NEGATIVE`).
const NEGATIVE: Duration = Duration::from_secs(5);

#[test]
fn twenty_first_calls_make_one_listing() {
    const CALLERS: usize = 20;
    let stack = Stack::start();
    // Long enough for all of them to come while it is under way.
    stack.upstream.script_own(|seen| {
        std::thread::sleep(Duration::from_millis(500));
        mcp::answer(seen)
    });
    let search = stack.request(&fixture::search());
    let start = Barrier::new(CALLERS);
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut connection = Connection::open(stack.envoy.port).expect("a connection");
                start.wait();
                for _ in 0..3 {
                    let reply = connection.send(&search).expect("a reply");
                    assert!(reply.status == 200 && reply.json().get("result").is_some(), "{reply}");
                }
            });
        }
    });
    assert_eq!(stack.upstream.count(), 3 * CALLERS);
    assert_eq!(listed(&stack), 1, "one for all, and none within the interval");
    assert_eq!(stack.upstream.own_count("server/discover"), 0);
}

#[test]
fn after_the_interval_the_server_is_listed_again_and_a_steady_caller_goes_on() {
    let stack = Stack::with(&[("records/cases.yaml}", "records/cases.yaml, refresh: 1s}")], &[]);
    let (search, start) = (stack.request(&fixture::search()), Instant::now());
    while start.elapsed() < Duration::from_secs(4) {
        stack.allows(&search);
        std::thread::sleep(Duration::from_millis(20));
    }
    // Listings are at least a second apart, and one per interval is due; a slow machine makes them fewer.
    let (count, most) = (listed(&stack), 1 + usize::try_from(start.elapsed().as_secs()).expect("a few"));
    assert!((3..=most).contains(&count), "expected 3 to {most} listings, got {count}");
    // Then the rug is pulled, and no listing passes: within the interval and a listing the caller is refused.
    stack.upstream.script_own(offering(&super::pulled()));
    let refused = wait_for(Duration::from_secs(5), || {
        let reply = stack.send(&search);
        reply.json().get("error").is_some().then_some(reply)
    });
    let reply = refused.expect("the change is seen within the interval");
    assert_eq!(details(&reply, "definition.changed")["fields"], json!(["description", "inputSchema"]));
}

/// While the server is listed ahead of expiry, calls are decided by what is known.
#[test]
fn nobody_waits_for_the_listing_ahead_of_expiry() {
    let stack = Stack::with(&[("records/cases.yaml}", "records/cases.yaml, refresh: 8s}")], &[]);
    let search = stack.request(&fixture::search());
    stack.allows(&search);
    let go = Arc::new(AtomicBool::new(false));
    let of_script = go.clone();
    stack.upstream.script_own(move |seen| {
        let _ = wait_for(Duration::from_secs(20), || of_script.load(Ordering::SeqCst).then_some(()));
        mcp::answer(seen)
    });
    let under_way = wait_for(Duration::from_secs(8), || {
        stack.allows(&search);
        (listed(&stack) == 2).then_some(())
    });
    assert!(under_way.is_some(), "expected a listing ahead of expiry");
    // It hangs, and still: these return before it does.
    for _ in 0..3 {
        stack.allows(&search);
    }
    go.store(true, Ordering::SeqCst);
    stack.allows(&search);
    assert_eq!(listed(&stack), 2);
}

/// A match is older than the interval by the time the listing is there, and yet it is newer than the call.
#[test]
fn a_listing_slower_than_the_interval_refuses_nobody() {
    let stack = Stack::with(&[("records/cases.yaml}", "records/cases.yaml, refresh: 1s}")], &[]);
    stack.upstream.script_own(|seen| {
        std::thread::sleep(Duration::from_millis(1300));
        mcp::answer(seen)
    });
    let search = stack.request(&fixture::search());
    for _ in 0..2 {
        stack.allows(&search);
    }
    // Slow and changed is changed.
    stack.upstream.script_own(|seen| {
        std::thread::sleep(Duration::from_millis(1300));
        offering(&super::pulled())(seen)
    });
    std::thread::sleep(Duration::from_millis(1100));
    let refused = wait_for(Duration::from_secs(10), || {
        let reply = stack.send(&search);
        reply.json().get("error").is_some().then_some(reply)
    });
    details(&refused.expect("the change is seen"), "definition.changed");
}

#[test]
fn a_thousand_calls_of_a_vanished_tool_list_the_server_a_handful_of_times() {
    const CONNECTIONS: usize = 4;
    const CALLS: usize = 250;
    let stack = Stack::start();
    offer(&stack, &without("search_cases"));
    let (search, start) = (stack.request(&fixture::search()), Instant::now());
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut connection = Connection::open(stack.envoy.port).expect("a connection");
                for _ in 0..CALLS {
                    let reply = connection.send(&search).expect("a reply");
                    details(&reply, "definition.gone");
                    refused.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((refused.into_inner(), stack.upstream.count()), (CONNECTIONS * CALLS, 0));
    // "Gone" is remembered for `NEGATIVE` from the end of the listing that said so, and callers who come together wait
    // for the same one: so one at the start, and one more for each such time that has passed since.
    let spent = start.elapsed();
    let most = 1 + spent.as_millis() / NEGATIVE.as_millis();
    let count = listed(&stack);
    assert!(count >= 1 && count as u128 <= most, "expected at most {most} listings in {spent:?}, got {count}");
}

/// The header names and values without the clock's, and the body.
fn bytes(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let headers = reply.headers.iter().filter(|(name, _)| name != "date").cloned().collect();
    (reply.status, headers, reply.text())
}

#[test]
fn hidden_makes_gone_unpriced_and_not_permitted_the_same() {
    let hidden = ("disclose: explicit", "disclose: hidden");
    let stack = Stack::with(&[hidden], &[]);
    offer(&stack, &without("update_case"));
    let update = fixture::call("update_case", json!({"id": "17"}));
    let gone = stack.refuses(&fixture::post(&update).bearer(&stack.editor()), "definition.gone");
    let not_permitted = stack.refuses(&stack.request(&update), "policy.not_permitted");
    // The same tool where nobody priced it.
    let stack = Stack::made(
        None,
        |config, parts| {
            let file = parts.dir.join("records/cases.yaml");
            let prices = std::fs::read_to_string(&file).expect("cases.yaml");
            let kept: String = prices
                .lines()
                .filter(|line| !line.contains("tool:update_case"))
                .map(|line| format!("{line}\n"))
                .collect();
            assert_ne!(kept, prices);
            std::fs::write(file, kept).expect("cases.yaml");
            crate::support::substitute(
                &config,
                &[hidden, ("  capability_scopes: {\"tool:update_case\": [cases:write]}\n", "")],
            )
        },
        |edge, _| edge,
    );
    let unpriced = stack.refuses(&fixture::post(&update).bearer(&stack.editor()), "policy.unpriced");
    assert_eq!(bytes(&gone), bytes(&not_permitted));
    assert_eq!(bytes(&gone), bytes(&unpriced));
    let expected =
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool: update_case"}});
    assert_eq!(gone.json(), expected, "{gone}");
}
