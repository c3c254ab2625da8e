//! The end of the process: what runs finishes or is refused, and nothing undecided passes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::Connection;
use crate::support::{Answer, Reply, Request, Stack, fixture, wait_for};

/// Far more than the bounds that are set here.
const PATIENCE: Duration = Duration::from_secs(30);

fn stack(drain: &str) -> Stack {
    Stack::with(&[("unmatched: deny", &format!("unmatched: deny\ndrain: {drain}"))], &[])
}

/// The result of a call that the server was asked for.
fn result(id: &Value) -> Value {
    let found = json!({"count": 1, "cases": []});
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": [], "structuredContent": found}})
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// Whether this is the refusal of a process that stops, to a caller whose id is known.
fn is_stopping(reply: &Reply) -> bool {
    reply.status == 200 && reply.json()["error"]["data"]["error"] == "overloaded"
}

#[test]
fn sigterm_under_load_lets_nothing_undecided_pass() {
    let mut stack = stack("{timeout: 2s}");
    // Every call takes a while, and those of one caller take longer than there is time.
    stack.upstream.script(|seen| {
        let id = seen.json()["id"].clone();
        let long = id.as_u64().is_some_and(|id| id % 16 == 2);
        let pause = Duration::from_millis(if long { 15_000 } else { 30 });
        let body = result(&id).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        Answer::raw(Vec::new()).wait(pause).then(head.into_bytes()).then(body.into_bytes())
    });
    let (token, port) = (stack.reader(), stack.envoy.port);
    let over = AtomicBool::new(false);
    let request = |number: u64| {
        // Every other call is one that may never pass.
        let mut message = match number % 2 {
            0 => fixture::search(),
            _ => fixture::call("update_case", json!({"id": "7"})),
        };
        message["id"] = json!(number);
        fixture::post(&message).bearer(&token)
    };
    let caller = |first: u64| {
        let mut replies = Vec::new();
        let mut connection = Connection::open(port);
        for number in (first..).step_by(16) {
            if over.load(Ordering::SeqCst) {
                break;
            }
            let reply = connection.as_mut().and_then(|connection| connection.send(&request(number)));
            if reply.as_ref().is_none_or(|reply| reply.header("connection") == Some("close")) {
                connection = Connection::open(port);
            }
            replies.push((number, reply.expect("a reply to every request")));
        }
        replies
    };
    let replies: Vec<(u64, Reply)> = std::thread::scope(|scope| {
        let callers: Vec<_> = (1..=16).map(|first| scope.spawn(move || caller(first))).collect();
        let loaded = wait_for(PATIENCE, || (stack.upstream.count() > 200).then_some(()));
        stack.portcullis.signal(Signal::SIGTERM);
        let ended = wait_for(PATIENCE, || stack.portcullis.ended());
        // A moment more, so that some call finds nobody.
        std::thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::SeqCst);
        assert!(loaded.is_some() && ended.is_some_and(|status| status.success()), "{loaded:?} {ended:?}");
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    });
    let (mut finished, mut refused, mut stopped, mut closed) = (0, 0, 0, 0);
    for (number, reply) in &replies {
        match (number % 2, reply.status) {
            (0, 200) if reply.json()["result"]["structuredContent"]["count"] == 1 => finished += 1,
            (1, 200) if reply.json()["error"]["data"]["error"] == "policy.not_permitted" => refused += 1,
            (_, 200) if is_stopping(reply) => stopped += 1,
            // Portcullis is gone: Envoy's own answer.
            (_, 503) => closed += 1,
            _ => panic!("call {number}: {reply}"),
        }
        assert!(!reply.cut, "call {number}: {reply}");
    }
    assert!(finished > 100 && refused > 100 && stopped > 0 && closed > 0, "{finished} {refused} {stopped} {closed}");
    let passed = stack.upstream.seen().iter().filter(|seen| seen.json()["params"]["name"] != "search_cases").count();
    assert_eq!(passed, 0, "calls that were refused or undecided reached the server");
}

/// Sends `request` on a thread of its own and waits until the server has it.
fn open<'scope, 'env>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    stack: &'env Stack,
    request: Request,
) -> std::thread::ScopedJoinHandle<'scope, Reply> {
    let (before, port) = (stack.upstream.count(), stack.envoy.port);
    let reply = scope.spawn(move || request.send(port));
    wait_for(PATIENCE, || (stack.upstream.count() > before).then_some(())).expect("forwarded");
    reply
}

#[test]
fn open_answers_end_properly() {
    let stack = stack("{timeout: 2s}");
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    let first = event(&progress);
    let whole = event(&result(&json!("short")));
    stack.upstream.script(move |seen| {
        let sse = Answer::sse().piece(&first);
        match seen.json()["id"].as_str() {
            Some("short") => sse.wait(Duration::from_secs(1)).piece(&whole).end(&[]),
            Some("json") => Answer::raw(Vec::new()).until_gone(),
            _ => sse.piece("data: {\"half\":").until_gone(),
        }
    });
    let call = |id: &str, mut message: Value| {
        message["id"] = json!(id);
        stack.request(&message)
    };
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let (subscription, short, long, json, stalled) = std::thread::scope(|scope| {
        let subscription = open(scope, &stack, call("sub", fixture::rpc("subscriptions/listen", wanted)));
        let short = open(scope, &stack, call("short", fixture::search()));
        let long = open(scope, &stack, call("long", fixture::search()));
        let json = open(scope, &stack, call("json", fixture::search()));
        let (stalled, port) = (stack.request(&fixture::search()).stalled(b"{"), stack.envoy.port);
        let stalled = scope.spawn(move || stalled.send(port));
        std::thread::sleep(Duration::from_millis(300));
        stack.portcullis.signal(Signal::SIGTERM);
        (subscription, short, long, json, stalled).join_all()
    });
    // As a server that closes ends it: the client subscribes again.
    let complete = json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": "sub"}});
    let events = subscription.events();
    assert_eq!((subscription.cut, events.len(), &events[0]), (false, 2, &progress), "{subscription}");
    assert_eq!(events[1], json!({"jsonrpc": "2.0", "id": "sub", "result": complete}));
    // There was time for this one,
    assert_eq!((short.cut, short.events()), (false, vec![progress.clone(), result(&json!("short"))]), "{short}");
    // and none for these: the error event at an event border, a refusal in the answer's place, a refusal before the verdict.
    let events = long.events();
    assert_eq!((long.cut, events.len()), (false, 2), "{long}");
    assert_eq!((&events[1]["id"], &events[1]["error"]["data"]["error"]), (&json!("long"), &json!("overloaded")));
    assert!(is_stopping(&json) && json.json()["id"] == "json", "{json}");
    assert_eq!(stalled.status, 503, "{stalled}");
    let mut stack = stack;
    assert!(stack.portcullis.await_end(PATIENCE).success());
    // Telemetry went last: every decision is told.
    let records = stack.portcullis.audit(5);
    let mut told: Vec<_> = records.iter().map(|record| record["decision"].as_str().unwrap_or_default()).collect();
    told.sort_unstable();
    assert_eq!(told, ["allow", "allow", "refuse", "refuse", "refuse"], "{records:#?}");
}

/// Joins all five.
trait JoinAll {
    fn join_all(self) -> (Reply, Reply, Reply, Reply, Reply);
}

type Handle<'scope> = std::thread::ScopedJoinHandle<'scope, Reply>;

impl JoinAll for (Handle<'_>, Handle<'_>, Handle<'_>, Handle<'_>, Handle<'_>) {
    fn join_all(self) -> (Reply, Reply, Reply, Reply, Reply) {
        let join = |handle: Handle<'_>| handle.join().expect("a reply");
        (join(self.0), join(self.1), join(self.2), join(self.3), join(self.4))
    }
}

#[test]
fn a_second_sigterm_ends_at_once_and_closed() {
    let mut stack = stack("{delay: 10m, timeout: 10m}");
    stack.upstream.answer(Answer::raw(Vec::new()).until_gone());
    let (request, port) = (stack.request(&fixture::search()), stack.envoy.port);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || request.send(port));
        wait_for(PATIENCE, || (stack.upstream.count() > 0).then_some(())).expect("forwarded");
        stack.portcullis.signal(Signal::SIGTERM);
        wait_for(PATIENCE, || stack.portcullis.log().contains("stopping").then_some(())).expect("told");
        stack.portcullis.signal(Signal::SIGTERM);
        assert!(stack.portcullis.await_end(PATIENCE).success());
        let reply = running.join().expect("a reply");
        assert!(reply.status >= 500, "{reply}");
    });
    let count = stack.upstream.count();
    assert_eq!(stack.post(&fixture::search()).status, 503);
    assert_eq!(stack.upstream.count(), count);
}
