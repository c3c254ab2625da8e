//! Gates against servers in this process: every way in which one can answer, fail or keep silent.

mod breaker;
mod build;
pub(super) mod retry;
mod servers;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::config::GateSource;
use super::question::{Arguments, Asker, HttpCall, Question};
use super::{Decision, Gates, Instead, Ruling, Setting};
use crate::message::json::{Document, Limits};
use crate::telemetry::record::Action;
use servers::{Say, Server};

fn document(text: &str) -> Arc<Document> {
    Arc::new(Document::read(text.as_bytes().to_vec(), Limits { depth: 64, nodes: 100_000 }).expect(text))
}

/// A call of `tool` with these arguments.
pub(super) fn question(tool: &str, arguments: &str) -> Question {
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"acme/intent":"tidy up"}}}}}}"#
    );
    Question {
        decision: "d1".into(),
        server: "cases".into(),
        principal: Asker {
            name: "ana@acme.com".into(),
            issuer: "https://auth.acme.com".into(),
            subject: "ana".into(),
            email: Some("ana@acme.com".into()),
            roles: vec!["reader".into()],
            permissions: vec!["cases:read".into(), "cases:write".into()],
        },
        method: "tools/call".into(),
        capabilities: vec![format!("tool:{tool}").into()],
        message: Some(document(&message)),
        http: None,
        headers: vec![("x-user-intent".into(), Some("close my case".into()))],
        claims: document(r#"{"sub":"ana","goal":"sell","nested":{"goal":"buy"},"n":1}"#),
    }
}

/// A plain HTTP request.
pub(super) fn plain() -> Question {
    Question {
        method: "GET".into(),
        capabilities: Vec::new(),
        message: None,
        http: Some(HttpCall { authority: "api.acme.com".into(), path: "/v1/x?y=1".into() }),
        ..question("x", "{}")
    }
}

/// Gates as the configuration would make them; the first argument is JSON, which is YAML too.
pub(super) fn gates(sources: &serde_json::Value) -> Gates {
    let sources: Vec<GateSource> = serde_json::from_value(sources.clone()).expect("gates");
    let setting = Setting { base: std::path::Path::new("/"), priced: Some(&|_| true), budget: Duration::from_mins(2) };
    Gates::build(&sources, &setting).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn grpc(server: &Server) -> serde_json::Value {
    // Longer than any test: a busy machine is no failure of a gate.
    serde_json::json!({"name": "acme", "grpc": {"address": server.address(), "timeout": "30s"}})
}

/// The same for a server that hangs.
fn impatient(server: &Server, timeout: &str) -> serde_json::Value {
    serde_json::json!({"name": "acme", "grpc": {"address": server.address(), "timeout": timeout}})
}

/// Waits until `holds`.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("expected {what} within 20 seconds");
}

fn with(mut gate: serde_json::Value, more: &serde_json::Value) -> serde_json::Value {
    for (key, value) in more.as_object().expect("an object") {
        gate[key] = value.clone();
    }
    gate
}

async fn ask(gates: &Gates) -> Ruling {
    gates.ask(&question("update", r#"{"id":"7"}"#)).await
}

/// What happens in place of the call, in one word, and the words for the operator.
fn told(ruling: &Ruling) -> (&'static str, String) {
    match &ruling.decision {
        Decision::Allow => ("allow", String::new()),
        Decision::Object(objection) => match &objection.what {
            Instead::Denied(denial) => {
                ("deny", denial.code.as_ref().map_or(String::new(), |code| code.as_str().into()))
            }
            Instead::Answered(result) => ("answer", result.clone()),
            Instead::Unavailable(failure) => ("unavailable", failure.why.clone()),
        },
    }
}

#[tokio::test]
async fn a_grpc_gate_allows_denies_and_answers() {
    let server = Server::start(Say::Allow).await;
    let gates = gates(&serde_json::json!([grpc(&server)]));
    let Ruling { decision, shadowed, notes, asked } = ask(&gates).await;
    assert_eq!((decision, shadowed, notes), (Decision::Allow, vec![], vec![]));
    let [one] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((&*one.gate, one.kind, one.shadow, one.said), ("acme", "grpc", false, "allow"));
    assert_eq!(one.action, Action::Allow);
    assert!(one.to > one.from);
    let seen = server.last().expect("it was asked");
    let call = seen.call.expect("a call");
    let principal = seen.principal.expect("a principal");
    assert_eq!(
        (call.method.as_str(), call.arguments_json.as_str(), call.arguments_truncated),
        ("tools/call", r#"{"id":"7"}"#, false)
    );
    assert_eq!(call.capabilities, ["tool:update"]);
    assert_eq!((principal.issuer.as_str(), principal.subject.as_str()), ("https://auth.acme.com", "ana"));
    assert_eq!(
        (principal.roles, principal.permissions),
        (vec!["reader".to_owned()], vec!["cases:read".to_owned(), "cases:write".to_owned()])
    );
    server.say(Say::Deny("payments.limit"));
    let Decision::Object(objection) = ask(&gates).await.decision else { panic!("expected an objection") };
    let Instead::Denied(denial) = objection.what else { panic!("expected a denial") };
    assert_eq!(
        (&*objection.gate, denial.code.as_ref().map(crate::refusal::GateCode::as_str)),
        ("acme", Some("payments.limit"))
    );
    assert_eq!((denial.text.as_deref(), denial.retry_after), (Some("too much"), Some(7)));
    server.say(Say::Deny("Not A Code"));
    assert_eq!(told(&ask(&gates).await), ("deny", String::new()));
    server.say(Say::Answer(r#"{"content":[]}"#));
    assert_eq!(told(&ask(&gates).await), ("answer", r#"{"content":[]}"#.into()));
}

#[tokio::test]
async fn whatever_is_no_opinion_refuses_unless_the_configuration_lets_it_pass() {
    let server = Server::start(Say::Error).await;
    for (say, why) in [
        (Say::Error, "Unavailable: no"),
        (Say::Nothing, "without any"),
        (Say::Hang, "within 300ms"),
        (Say::Cut, "gRPC"),
    ] {
        server.say(say);
        let gate = if why.contains("within") { impatient(&server, "300ms") } else { grpc(&server) };
        let strict = gates(&serde_json::json!([gate]));
        let lenient = gates(&serde_json::json!([with(gate, &serde_json::json!({"on_failure": "allow"}))]));
        let ruling = ask(&strict).await;
        assert_eq!((ruling.asked[0].said, ruling.asked[0].action), ("failed", Action::Deny));
        let (what, told) = told(&ruling);
        assert_eq!(what, "unavailable", "{say:?}");
        assert!(told.contains(why), "{say:?}: {told}");
        let ruling = ask(&lenient).await;
        assert_eq!(ruling.decision, Decision::Allow, "{say:?}");
        assert_eq!((ruling.asked[0].said, ruling.asked[0].action), ("failed", Action::Allow));
        assert!(ruling.notes[0].contains("gate acme failed and lets calls pass"), "{:?}", ruling.notes);
    }
}

#[tokio::test]
async fn nobody_listening_is_told_at_once_and_a_gate_that_comes_up_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("gate.sock");
    let gate =
        serde_json::json!([{"name": "a", "grpc": {"address": format!("unix:{}", path.display()), "timeout": "60s"}}]);
    let gates = gates(&gate);
    // Long before its timeout; and the operator reads where nobody listens.
    let ruling = tokio::time::timeout(Duration::from_secs(30), ask(&gates)).await.expect("an answer at once");
    let (what, why) = told(&ruling);
    assert_eq!(what, "unavailable");
    assert!(why.starts_with(&format!("unix:{}: gRPC ", path.display())), "{why}");
    let _server = Server::start_unix(&path, Say::Allow);
    assert_eq!(told(&ask(&gates).await).0, "allow");
}

#[tokio::test]
async fn a_dead_gate_costs_a_bounded_time_and_comes_back() {
    let server = Server::start(Say::Hang).await;
    let breaker = |open: &str| serde_json::json!({"breaker": {"failures": 2, "open": open}});
    let resting = gates(&serde_json::json!([with(impatient(&server, "300ms"), &breaker("60m"))]));
    let mut asked = 0;
    for _ in 0..20 {
        let (what, why) = told(&ask(&resting).await);
        assert_eq!(what, "unavailable");
        asked += usize::from(why.contains("within 300ms"));
    }
    assert_eq!(asked, 2, "after two failures nobody waits for it");
    let back = gates(&serde_json::json!([with(impatient(&server, "2s"), &breaker("100ms"))]));
    for _ in 0..2 {
        assert_eq!(told(&ask(&back).await).0, "unavailable");
    }
    server.say(Say::Allow);
    for _ in 0..200 {
        if told(&ask(&back).await).0 == "allow" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("expected it to be asked again within ten seconds");
}

#[tokio::test]
async fn calls_beyond_the_bound_wait_within_their_timeout() {
    let server = Server::start(Say::Hang).await;
    let gates = gates(&serde_json::json!([with(impatient(&server, "1s"), &serde_json::json!({"concurrency": 1}))]));
    let (first, second) = tokio::join!(ask(&gates), ask(&gates));
    let all = [told(&first).1, told(&second).1];
    // A slot may come free with the last moment: then that is what the call waited for.
    assert!(all.iter().any(|told| told.contains("slot") && told.contains("1s")), "{all:?}");
    assert!(all.iter().any(|told| told == "it did not answer within 1s"), "{all:?}");
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_gates() {
    let server = Server::start(Say::Hang).await;
    let gates = gates(&serde_json::json!([impatient(&server, "60s")]));
    tokio::select! {
        ruling = ask(&gates) => panic!("{ruling:?}"),
        () = until("a question", || server.asked.load(Ordering::SeqCst) == 1) => {}
    }
    until("the question to be cancelled", || server.cancelled.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn the_first_objection_wins_and_ends_the_asking() {
    let (first, second) = (Server::start(Say::Deny("first.no")).await, Server::start(Say::Deny("second.no")).await);
    let one = with(grpc(&first), &serde_json::json!({"name": "one"}));
    let two = with(grpc(&second), &serde_json::json!({"name": "two"}));
    let gates = gates(&serde_json::json!([one, two]));
    assert_eq!(told(&ask(&gates).await), ("deny", "first.no".into()));
    assert_eq!(second.asked.load(Ordering::SeqCst), 0);
    first.say(Say::Allow);
    assert_eq!(told(&ask(&gates).await), ("deny", "second.no".into()));
}

#[tokio::test]
async fn a_shadow_gate_is_asked_beside_the_others_and_changes_nothing() {
    let (shadow, real) = (Server::start(Say::Deny("shadow.no")).await, Server::start(Say::Allow).await);
    let one = with(grpc(&shadow), &serde_json::json!({"name": "one", "mode": "shadow"}));
    let two = with(grpc(&real), &serde_json::json!({"name": "two"}));
    let gates = gates(&serde_json::json!([one, two]));
    let ruling = ask(&gates).await;
    assert_eq!(ruling.decision, Decision::Allow);
    assert_eq!((ruling.shadowed.len(), &*ruling.shadowed[0].gate), (1, "one"));
    let actions: Vec<_> = ruling.asked.iter().map(|asked| (&*asked.gate, asked.action)).collect();
    assert!(actions.contains(&("one", Action::Audit)) && actions.contains(&("two", Action::Allow)), "{actions:?}");
    // An objection that counts does not wait for one that does not.
    shadow.say(Say::Hang);
    real.say(Say::Deny("real.no"));
    let ruling = tokio::time::timeout(Duration::from_secs(20), ask(&gates)).await;
    assert_eq!(told(&ruling.expect("an objection, before the shadow's 30 seconds")), ("deny", "real.no".into()));
}

#[tokio::test]
async fn a_gate_is_asked_about_its_capabilities_only() {
    let server = Server::start(Say::Deny("no")).await;
    let gates = gates(&serde_json::json!([with(
        grpc(&server),
        &serde_json::json!({"capabilities": ["update", "prompt:triage"]})
    )]));
    assert!(gates.concern(&["tool:update"].into_iter()) && gates.concern(&["tool:x", "prompt:triage"].into_iter()));
    assert!(!gates.concern(&["tool:search"].into_iter()) && !gates.concern(&std::iter::empty()));
    assert_eq!(gates.ask(&question("search", "{}")).await.decision, Decision::Allow);
    assert_eq!(told(&ask(&gates).await).0, "deny");
}

#[tokio::test]
async fn one_caller_cannot_close_a_gate_to_all() {
    let server = Server::start(Say::Refuse).await;
    let breaker = serde_json::json!({"breaker": {"failures": 2, "open": "60s"}});
    let gates = gates(&serde_json::json!([with(grpc(&server), &breaker)]));
    for _ in 0..10 {
        assert_eq!(told(&ask(&gates).await).0, "unavailable");
    }
    assert_eq!(server.asked.load(Ordering::SeqCst), 10, "it is asked each time: it is up");
    server.say(Say::Allow);
    assert_eq!(told(&ask(&gates).await).0, "allow");
}

#[tokio::test]
async fn a_gate_is_told_the_intent_where_so_configured_and_what_was_cut() {
    let server = Server::start(Say::Allow).await;
    ask(&gates(&serde_json::json!([grpc(&server)]))).await;
    assert_eq!(server.last().expect("it was asked").intent, None);
    let mut gate = grpc(&server);
    gate["grpc"]["intent"] = serde_json::json!({"claim": "goal"});
    gate["grpc"]["arguments"] = "6B".into();
    ask(&gates(&serde_json::json!([gate]))).await;
    let seen = server.last().expect("it was asked");
    let call = seen.call.expect("a call");
    assert_eq!(
        (seen.intent.as_deref(), call.arguments_json.as_str(), call.arguments_truncated),
        (Some("sell"), r#"{"id":"#, true)
    );
}

#[test]
fn the_time_that_gates_may_take_is_of_those_that_are_asked() {
    let gate = |name: &str, timeout: &str, more: serde_json::Value| {
        with(serde_json::json!({"name": name, "grpc": {"address": "http://a:1", "timeout": timeout}}), &more)
    };
    let gates = gates(&serde_json::json!([
        gate("a", "1s", serde_json::json!({})),
        gate("b", "2s", serde_json::json!({"capabilities": ["pay"]})),
        gate("c", "1500ms", serde_json::json!({"mode": "shadow"})),
        {"name": "d", "cel": "true"},
    ]));
    assert_eq!(gates.patience(&question("pay", "{}")), Duration::from_secs(3));
    assert_eq!(gates.patience(&question("other", "{}")), Duration::from_millis(1500));
}

#[test]
fn arguments_are_what_the_caller_wrote() {
    assert_eq!(question("x", r#"{"a": 1.0,"b":"\u0041"}"#).arguments(), r#"{"a": 1.0,"b":"\u0041"}"#);
    let read = |method: &str, params: &str| {
        let message = document(&format!(r#"{{"params":{params}}}"#));
        Question { method: method.into(), message: Some(message), ..question("x", "{}") }.arguments()
    };
    assert_eq!(read("resources/read", r#"{"uri":"a:b","_meta":{"x":1}}"#), r#"{"uri":"a:b"}"#);
    assert_eq!(read("tools/call", r#"{"name":"x"}"#), "{}");
    assert_eq!(plain().arguments(), "");
    assert_eq!(Arguments::cut("aé", 2), Arguments { json: "a", truncated: true });
    assert_eq!(Arguments::cut("aé", 3), Arguments { json: "aé", truncated: false });
}

#[test]
fn an_intent_is_found_where_the_configuration_says() {
    let find = |source: serde_json::Value| {
        let source: super::config::IntentSource = serde_json::from_value(source).expect("a source");
        source.find(&question("x", "{}")).map(str::to_owned)
    };
    assert_eq!(find(serde_json::json!({"header": "x-user-intent"})).as_deref(), Some("close my case"));
    assert_eq!(find(serde_json::json!({"meta": "acme/intent"})).as_deref(), Some("tidy up"));
    assert_eq!(find(serde_json::json!({"claim": "goal"})).as_deref(), Some("sell"));
    assert_eq!(find(serde_json::json!({"claim": "nested.goal"})).as_deref(), Some("buy"));
    for none in
        [serde_json::json!({"claim": "n"}), serde_json::json!({"header": "x"}), serde_json::json!({"meta": "x"})]
    {
        assert_eq!(find(none), None);
    }
    let look = |length: usize| {
        let headers = vec![("x-user-intent".into(), Some("i".repeat(length)))];
        let source: super::config::IntentSource =
            serde_json::from_value(serde_json::json!({"header": "x-user-intent"})).expect("a source");
        let question = Question { headers, ..question("x", "{}") };
        matches!(source.look(&question), super::Intent::Unreadable)
    };
    assert_eq!((look(8192), look(8193)), (false, true));
}
