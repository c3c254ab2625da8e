//! Rung 17 and shadow mode on the wire: every kind of gate, allowing, denying, erring, silent, dying half-way.

#[path = "../../examples/gate/main.rs"]
#[allow(dead_code, reason = "the example's own entry")]
mod example;
pub(crate) mod servers;
mod shadow;
mod time;
mod wire;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::servers::{Gate, Say};
use crate::support::client::Connection;
use crate::support::{Answer, Reply, Stack, Upstream, fixture};

/// A stack whose server has these gates, as YAML in flow style.
pub(crate) fn stack(gates: &str) -> Stack {
    Stack::with(&[("  limits: {request", &format!("  gates: [{gates}]\n  limits: {{request"))], &[])
}

/// A gate's refusal: HTTP 200, the frame, the caller's id, its own code under its own name; its `data`.
#[track_caller]
fn assert_gate_frame(reply: &Reply, id: &Value, code: &str, gate: &str) -> Value {
    assert_eq!((reply.status, reply.header("www-authenticate")), (200, None), "{reply}");
    let body = reply.json();
    assert_eq!((&body["id"], &body["error"]["code"]), (id, &json!(-32000)), "{reply}");
    let data = &body["error"]["data"];
    assert_eq!((&data["error"], &data["plugin"]), (&json!(code), &json!(gate)), "{reply}");
    assert!(
        data["decision"].is_string() && !body["error"]["message"].as_str().unwrap_or_default().is_empty(),
        "{reply}"
    );
    data.clone()
}

#[test]
fn gate_denied_by_our_own_contract_then_allowed_on_one_connection() {
    let gate = Gate::start(Say::Deny);
    let stack = stack(&format!("{{name: acme, grpc: {{address: '{}'}}}}", gate.address()));
    let request = stack.request(&fixture::search());
    let mut connection = Connection::open(stack.envoy.port).expect("a connection");
    let reply = stack.refused_by("payments.limit", 0, || connection.send(&request).expect("a reply"));
    let data = assert_gate_frame(&reply, &json!(1), "payments.limit", "acme");
    assert_eq!(data["details"], json!({"retry_after_seconds": 7, "limit": 1000}), "{data}");
    assert_eq!(reply.json()["error"]["message"], "Ask a manager.");
    assert_eq!(data["description"], "The amount is above the limit.");
    let log = stack.envoy.access_log(1);
    assert_eq!(
        (&log[0]["reason"], &log[0]["details"]),
        (&json!("payments.limit"), &json!("portcullis_payments.limit"))
    );
    gate.say(Say::Allow);
    let reply = connection.send(&request).expect("a reply");
    assert_eq!((reply.status, &reply.json()["id"], stack.upstream.count()), (200, &json!(1), 1), "{reply}");
    // What the gate saw: the principal, never the token.
    let seen = gate.last();
    assert!(seen.contains("ana@acme.com") && seen.contains("printer") && !seen.contains("Bearer"), "{seen}");
}

#[test]
fn an_id_of_every_kind_and_size_comes_back() {
    let gate = Gate::start(Say::Deny);
    let stack = stack(&format!("{{name: acme, grpc: {{address: '{}'}}}}", gate.address()));
    let message = fixture::search().to_string();
    let long = format!("\"{}\"", "x".repeat(1_000_000));
    let digits = format!("-{}", "9".repeat(400));
    for id in [
        "1",
        "\"1\"",
        "-0",
        "9007199254740993",
        "-9223372036854775809",
        &digits,
        "\"a\\u0062\"",
        r#""\ud83d\ude00\/""#,
        "\"😀\"",
        r#""\u0000\"\\""#,
        "\"\"",
        &long,
    ] {
        let body = message.replacen("\"id\":1", &format!("\"id\":{id}"), 1);
        assert!(body.contains(id));
        let reply = stack.send(&stack.request(&fixture::search()).body(body));
        assert_eq!(reply.status, 200);
        assert!(reply.text().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#)), "{reply}");
    }
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn details_that_cannot_be_rendered_leave_the_frame_without_data() {
    let gate = Gate::start(Say::BadDetails);
    let stack = stack(&format!("{{name: acme, grpc: {{address: '{}'}}}}", gate.address()));
    let reply = stack.refuses(&stack.request(&fixture::search()), "payments.limit");
    let body = reply.json();
    assert_eq!((reply.status, &body["id"], body["error"].get("data")), (200, &json!(1), None), "{reply}");
    let record = stack.portcullis.audit_of("payments.limit", 0);
    assert!(record["detail"].as_str().is_some_and(|detail| detail.contains("could not be rendered")), "{record}");
}

#[test]
fn gate_unavailable_whatever_goes_wrong() {
    let gate = Gate::start(Say::Error);
    let yaml =
        format!("{{name: acme, grpc: {{address: '{}', timeout: 300ms}}, breaker: {{failures: 1000}}}}", gate.address());
    let strict = stack(&yaml);
    for say in [Say::Error, Say::Nothing, Say::Hang, Say::Panic] {
        gate.say(say);
        let reply = strict.refuses(&strict.request(&fixture::search()), "gate.unavailable");
        let data = assert_gate_frame(&reply, &json!(1), "gate.unavailable", "acme");
        // Why it failed is for the operator.
        assert!(data.get("description").is_none() && data.get("details").is_none(), "{data}");
    }
    let lenient = stack(&yaml.replace("{name: acme,", "{name: acme, on_failure: allow,"));
    lenient.allows(&lenient.request(&fixture::search()));
    // Something that is no gate at all: it takes the question, says half a word and closes.
    let other = Upstream::start();
    other.answer(Answer::raw("HTTP/1.1 200 OK\r\ncontent-le").close());
    let dying = stack(&format!("{{name: acme, grpc: {{address: 'http://127.0.0.1:{}'}}}}", other.port));
    dying.refuses(&dying.request(&fixture::search()), "gate.unavailable");
}

#[test]
fn a_dead_gate_does_not_cost_every_call_its_timeout() {
    let gate = Gate::start(Say::Hang);
    let stack = stack(&format!(
        "{{name: acme, grpc: {{address: '{}', timeout: 500ms}}, breaker: {{failures: 2}}}}",
        gate.address()
    ));
    let request = stack.request(&fixture::search());
    let begun = Instant::now();
    for _ in 0..20 {
        assert_gate_frame(&stack.send(&request), &json!(1), "gate.unavailable", "acme");
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "20 calls took {:?}", begun.elapsed());
    assert_eq!((gate.asked(), stack.upstream.count()), (2, 0));
}

#[test]
fn a_caller_who_goes_away_takes_the_question_back() {
    let gate = Gate::start(Say::Hang);
    let stack = stack(&format!("{{name: acme, grpc: {{address: '{}', timeout: 4s}}}}", gate.address()));
    let connection = Connection::open(stack.envoy.port).expect("a connection");
    std::io::Write::write_all(&mut &connection.stream, &stack.request(&fixture::search()).bytes()).expect("it is sent");
    assert!(crate::support::wait_for(Duration::from_secs(3), || (gate.asked() == 1).then_some(())).is_some());
    drop(connection);
    let cancelled = crate::support::wait_for(Duration::from_secs(3), || (gate.cancelled() == 1).then_some(()));
    assert!(cancelled.is_some(), "expected the gate's call to be cancelled before its timeout");
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn a_gate_answers_in_the_tools_place() {
    let gate =
        Gate::start(Say::Answer(r#"{"resultType":"complete","content":[{"type":"text","text":"Which printer?"}]}"#));
    let stack = stack(&format!("{{name: acme, grpc: {{address: '{}'}}}}", gate.address()));
    // A tool without a recorded outputSchema: the answer is held to it like an upstream's.
    let call = fixture::call("update_case", json!({"id": "7"}));
    let reply = stack.send(&fixture::post(&call).bearer(&stack.editor()));
    assert_eq!((reply.status, stack.upstream.count()), (200, 0), "{reply}");
    assert_eq!(reply.json()["result"]["content"][0]["text"], "Which printer?");
    assert_eq!(reply.json()["id"], 1);
    let record = &stack.portcullis.audit(1)[0];
    assert_eq!(
        (&record["decision"], &record["gate"], &record["wire_status"]),
        (&json!("answer"), &json!("acme"), &json!("200"))
    );
    // It is read as strictly as an upstream's answer.
    gate.say(Say::Answer(r#"{"resultType":"other"}"#));
    let reply = stack.refused_by("answer.unreadable", 0, || stack.send(&stack.request(&fixture::search())));
    assert_eq!(reply.status, 502, "{reply}");
    assert_eq!(stack.portcullis.audit_of("answer.unreadable", 0)["gate"], "acme");
    // What is no JSON object never comes near a frame: the gate failed, and its breaker does not count it.
    let splice = r#"{"content":[],"isError":true},"extra":{"a":1}"#;
    for bad in ["", "[]", r#"{"a":1,"a":2}"#, r#"{}},"error":{"code":1"#, splice, splice] {
        gate.say(Say::Answer(bad));
        let reply = stack.refuses(&stack.request(&fixture::search()), "gate.unavailable");
        assert_gate_frame(&reply, &json!(1), "gate.unavailable", "acme");
        let record = stack.portcullis.audit_of("gate.unavailable", stack.portcullis.audited() - 1);
        assert!(record["detail"].as_str().is_some_and(|detail| detail.contains("to be one JSON object")), "{record}");
    }
}

#[test]
fn ext_authz_judges_with_its_own_protocol() {
    let gate = Gate::start_ext_authz(Say::Deny);
    let stack = stack(&format!(
        "{{name: opa, ext_authz: {{address: '{}', timeout: 400ms}}, breaker: {{failures: 1000}}}}",
        gate.address()
    ));
    let request = stack.request(&fixture::search());
    let reply = stack.refuses(&request, "opa.hours");
    let data = assert_gate_frame(&reply, &json!(1), "opa.hours", "opa");
    assert_eq!(
        (&reply.json()["error"]["message"], &data["details"]),
        (&json!("Closed."), &json!({"retry_after_seconds": 30}))
    );
    for (say, reason) in [
        (Say::Error, "gate.unavailable"),
        (Say::Hang, "gate.unavailable"),
        (Say::Nothing, "gate.unavailable"),
        // It dies half-way.
        (Say::Panic, "gate.unavailable"),
        (Say::Edit, "ext_authz.edits"),
        // Its own HTTP status is not ours: a denial at 503 is a frame at 200.
        (Say::Busy, "ext_authz.denied"),
    ] {
        gate.say(say);
        assert_gate_frame(&stack.refuses(&request, reason), &json!(1), reason, "opa");
    }
    gate.say(Say::Allow);
    stack.allows(&request);
    let seen = gate.last();
    assert!(seen.contains("tool:search_cases") && !seen.contains("Bearer"), "{seen}");
}

#[test]
fn a_challenge_of_a_gate_passes_only_where_it_may() {
    let gate = Gate::start_ext_authz(Say::Challenge);
    let config = format!("{{name: opa, ext_authz: {{address: '{}', challenges: pass}}}}", gate.address());
    let open = stack(&config);
    let reply = open.refuses(&open.request(&fixture::search()), "ext_authz.denied");
    assert_eq!(
        (reply.status, reply.header("www-authenticate")),
        (401, Some("Bearer error=\"insufficient_user_authentication\"")),
        "{reply}"
    );
    let closed = stack(&config.replace(", challenges: pass", ""));
    let reply = closed.refuses(&closed.request(&fixture::search()), "ext_authz.denied");
    assert_gate_frame(&reply, &json!(1), "ext_authz.denied", "opa");
}

#[test]
fn a_judge_asks_what_the_user_wanted() {
    let model = Upstream::start();
    let say = |content: &str| {
        model.answer(Answer::json(&json!({"choices": [{"message": {"role": "assistant", "content": content}}]})));
    };
    let stack = stack(&format!(
        "{{name: ibac, judge: {{url: 'http://127.0.0.1:{}/v1/chat/completions', model: m, timeout: 500ms, intent: {{header: x-user-intent}}}}, breaker: {{failures: 1000}}}}",
        model.port
    ));
    say(r#"{"verdict":"allow","reason":""}"#);
    let request =
        stack.request(&fixture::search()).add("x-user-intent", "find my printer case").add("cookie", "session=1");
    stack.allows(&request);
    let asked = model.last();
    let body = asked.json();
    assert!(
        body["messages"][1]["content"].as_str().is_some_and(|text| text.contains("find my printer case")),
        "{body}"
    );
    assert!(asked.header("cookie").is_empty() && asked.header("authorization").is_empty(), "{:?}", asked.headers);
    say(r#"{"verdict":"deny","reason":"secret thoughts"}"#);
    let reply = stack.refuses(&request, "ibac.blocked");
    assert_gate_frame(&reply, &json!(1), "ibac.blocked", "ibac");
    assert!(!reply.text().contains("secret thoughts"));
    assert!(
        stack.portcullis.audit_of("ibac.blocked", 0)["detail"]
            .as_str()
            .is_some_and(|text| text.contains("secret thoughts"))
    );
    say("Let me think about it.");
    stack.refuses(&request, "ibac.judge_uncertain");
    stack.refuses(&stack.request(&fixture::search()), "ibac.no_intent");
    model.answer(Answer::http(503, &[], ""));
    assert_gate_frame(&stack.refuses(&request, "ibac.judge_unavailable"), &json!(1), "ibac.judge_unavailable", "ibac");
    model.answer(Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\":").close());
    stack.refuses(&request, "ibac.judge_unavailable");
    model.answer(Answer::chunked(200, &[]).wait(Duration::from_secs(2)));
    stack.refuses(&request, "ibac.judge_unavailable");
    model.answer(Answer::http(401, &[], ""));
    stack.refuses(&request, "ibac.unconfigured");
}

#[test]
fn a_rule_holds_for_its_capabilities_and_fails_closed() {
    let stack = stack("{name: amounts, cel: 'arguments.limit <= 10', capabilities: ['tool:search_cases']}");
    let call = |arguments: Value| stack.request(&fixture::call("search_cases", arguments));
    stack.allows(&call(json!({"query": "x", "limit": 10})));
    let reply = stack.refuses(&call(json!({"query": "x", "limit": 11})), "cel.denied");
    assert_gate_frame(&reply, &json!(1), "cel.denied", "amounts");
    stack.refuses(&call(json!({"query": "x"})), "cel.undecidable");
    // Others are none of its business.
    stack.allows(&stack.request(&fixture::read("cases://case/7")));
    stack.allows(&stack.request(&fixture::rpc("tools/list", json!({}))));
}

#[test]
fn what_the_policy_refuses_no_gate_is_asked_about() {
    let gate = Gate::start(Say::Allow);
    let stack = stack(&format!("{{name: acme, grpc: {{address: '{}'}}}}", gate.address()));
    stack.refuses(&stack.request(&fixture::call("update_case", json!({"id": "7"}))), "policy.not_permitted");
    stack.allows(&stack.request(&fixture::rpc("tools/list", json!({}))));
    assert_eq!(gate.asked(), 0);
}

/// The configuration with its server turned into one of plain HTTP.
fn plain_http(gates: &str) -> Stack {
    let gates = format!("  kind: http\n  gates: [{gates}]\n");
    Stack::with(
        &[
            ("  kind: mcp\n", &gates),
            ("  protocol: [\"2026-07-28\"]\n", ""),
            ("  policy: {file: policy.yaml}\n", ""),
            ("  record: {file: records/cases.yaml}\n", ""),
            ("  capability_scopes: {\"tool:update_case\": [cases:write]}\n", ""),
            ("  limits: {request: 1MiB, listing: 1MiB, answer: 16MiB, depth: 64}\n", ""),
            (
                "  denials: {policy_status: 200, disclose: explicit, step_up: challenge, code: -32000, unlisted_method_status: 404, upstream_status: 502}\n",
                "",
            ),
            ("    url: http://127.0.0.1:", "    #"),
        ],
        &[],
    )
}

#[test]
fn plain_http_is_judged_too_and_refused_in_plain_json() {
    let gate = Gate::start(Say::Deny);
    let stack = plain_http(&format!("{{name: acme, grpc: {{address: '{}'}}}}", gate.address()));
    stack.upstream.answer(Answer::http(200, &[], "hello"));
    let request = crate::support::Request::get("/mcp?x=1").bearer(&stack.reader());
    let reply = stack.refuses(&request, "payments.limit");
    let body = reply.json();
    assert_eq!((reply.status, reply.header("retry-after")), (403, Some("7")), "{reply}");
    assert_eq!(
        (&body["error"], &body["plugin"], &body["message"]),
        (&json!("payments.limit"), &json!("acme"), &json!("Ask a manager."))
    );
    assert!(gate.last().contains("/mcp?x=1"), "{}", gate.last());
    gate.say(Say::Answer("{}"));
    assert_eq!(stack.refuses(&request, "gate.unavailable").status, 403);
    gate.say(Say::Allow);
    assert_eq!(stack.allows(&request).text(), "hello");
}

#[test]
fn the_example_gate_is_a_gate() {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], crate::support::free_port()));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(example::serve(address)).expect("it serves");
    });
    let up = || std::net::TcpStream::connect(address).ok();
    assert!(crate::support::wait_for(Duration::from_secs(5), up).is_some(), "expected the example to listen");
    let stack = stack(&format!("{{name: refunds, grpc: {{address: 'http://{address}'}}}}"));
    stack.allows(&stack.request(&fixture::search()));
}
