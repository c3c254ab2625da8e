//! Open streams are the one thing that a reload judges again (ladder.md §5.3).

use std::time::Duration;

use serde_json::{Value, json};

use super::{SEARCHERS, UPDATERS, in_force, replace};
use crate::support::{Answer, Reply, Request, Stack, fixture, wait_for};

/// A subscription to a resource that readers may read.
fn subscription(stack: &Stack) -> Request {
    stack.request(&fixture::rpc(
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": ["cases://case/1"]}}),
    ))
}

/// One event of the server's.
fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

fn updated() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "cases://case/1"}})
}

/// Runs `request` against a stream that the server holds open, and `meanwhile` while it is.
fn while_open(stack: &Stack, request: &Request, answer: Answer, meanwhile: impl FnOnce()) -> Reply {
    stack.upstream.answer(answer);
    let before = stack.upstream.count();
    std::thread::scope(|scope| {
        let reply = scope.spawn(|| stack.send(request));
        wait_for(Duration::from_secs(10), || (stack.upstream.count() > before).then_some(())).expect("forwarded");
        meanwhile();
        reply.join().expect("a reply")
    })
}

#[test]
fn a_subscription_ends_when_a_reload_takes_its_permission() {
    let stack = Stack::start();
    let policy = stack.dir.path().join("policy.yaml");
    replace(&policy, SEARCHERS);
    in_force(&stack, 2);
    // Half an event in front of it is nobody's.
    let open = Answer::sse().piece(event(&updated())).piece("data: {\"half\":").until_gone();
    let nobody = "roles: {reader: [cases:read, cases:write]}\nrules:\n- {match: {domain: acme.com}, role: reader}\n- {match: {sub: ana}, deny: true}\n";
    let reply = while_open(&stack, &subscription(&stack), open, || {
        replace(&policy, UPDATERS);
        in_force(&stack, 3);
    });
    let events = reply.events();
    assert_eq!((events.len(), reply.cut, &events[0]), (2, false, &updated()), "{reply}");
    assert_eq!((&events[1]["id"], &events[1]["error"]["data"]["error"]), (&json!(1), &json!("policy.not_permitted")));
    // A call that is running ends likewise, and says why.
    replace(&policy, SEARCHERS);
    in_force(&stack, 4);
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    let open = Answer::sse().piece(event(&progress)).until_gone();
    let reply = while_open(&stack, &stack.request(&fixture::search()), open, || {
        replace(&policy, nobody);
        in_force(&stack, 5);
    });
    let last = reply.events().pop().expect("an event");
    assert_eq!(last["error"]["data"]["error"], "policy.no_permissions", "{reply}");
    let records = stack.portcullis.audit(2);
    let decided: Vec<_> = records.iter().map(|record| (&record["decision"], &record["reason"])).collect();
    assert_eq!(decided[0], (&json!("refuse"), &json!("policy.not_permitted")));
    assert_eq!(decided[1], (&json!("refuse"), &json!("policy.no_permissions")));
}

#[test]
fn a_stream_that_may_go_on_goes_on_under_the_new_rules() {
    let stack = Stack::start();
    let policy = stack.dir.path().join("policy.yaml");
    let internal = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "cases://case/1/internal"}});
    // Of the second resource the caller hears only once the policy says so; the server sends again and again until then.
    let mut open = Answer::sse().piece(event(&internal)).piece(event(&updated()));
    for _ in 0..100 {
        open = open.wait(Duration::from_millis(50)).piece(event(&internal));
    }
    let open = open.end(&[]);
    let both = "roles: {reader: [cases:read, cases:write]}\nrules:\n- {match: {domain: acme.com}, role: reader}\n";
    let reply = while_open(&stack, &subscription(&stack), open, || {
        replace(&policy, both);
        in_force(&stack, 2);
    });
    let events = reply.events();
    assert_eq!(events[0], updated(), "not heard before the reload: {reply}");
    assert!(!reply.cut && events.len() > 1 && events[1..].iter().all(|event| *event == internal), "{reply}");
}

#[test]
fn a_stream_ends_when_the_rules_of_identity_change() {
    let stack = Stack::start();
    let file = stack.dir.path().join("portcullis.yaml");
    let text = std::fs::read_to_string(&file).expect("the configuration");
    let open = || Answer::sse().piece(event(&updated())).until_gone();
    let reply = while_open(&stack, &subscription(&stack), open(), || {
        replace(&file, &text.replace("audiences: []", "audiences: [more]"));
        in_force(&stack, 2);
    });
    let last = reply.events().pop().expect("an event");
    assert_eq!(last["error"]["data"]["error"], "token.invalid", "{reply}");
    // With the server gone, what was open of it ends too.
    let reply = while_open(&stack, &subscription(&stack), open(), || {
        replace(&file, &text.replace("- name: cases", "- name: tickets"));
        in_force(&stack, 3);
    });
    let last = reply.events().pop().expect("an event");
    assert_eq!(last["error"]["data"]["error"], "route.unmatched", "{reply}");
}
