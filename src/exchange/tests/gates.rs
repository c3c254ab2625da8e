//! Rung 17: a call that waits for its gates, in every event, and what comes of their ruling.

use std::time::Duration;

use super::{Event, Next, Play, Step, answer, piece, sent, shown};
use crate::gates::{Decision, Denial, Failure, Instead, Objection, Ruling};
use crate::ladder::testing::{World, message, post, unseen, world};
use crate::refusal::GateCode;
use crate::telemetry::record::{Action, Asked};

const GATE: &str = "  gates: [{name: acme, grpc: {address: 'unix:/run/gate.sock', timeout: 2s}}]\n  limits:";

/// A server with one gate, and an Envoy with these timeouts.
fn gated(envoy: &str, more: &[(&str, &str)]) -> World {
    let listen = format!("{envoy}unmatched: deny");
    let mut edits = vec![("  limits:", GATE), ("unmatched: deny", listen.as_str())];
    edits.extend_from_slice(more);
    world(&edits)
}

/// A call of the tool `search` with this id, up to its gates.
fn called(world: &World, id: Option<&str>) -> (Play, Step) {
    let text = message(id, "tools/call", r#""name":"search","#);
    Play::asked(world, world.reader(), &text, "tools/call", Some("search"))
}

fn waiting(world: &World) -> Play {
    let (play, step) = called(world, Some("1"));
    assert_eq!(shown(&step), "> ask");
    assert!(play.exchange.question().is_some());
    play
}

fn ruling(what: Option<Instead>) -> Event {
    let objection = what.map(|what| Objection { gate: "acme".into(), what });
    let decision = objection.map_or(Decision::Allow, Decision::Object);
    Event::Opinion(Ruling { decision, shadowed: Vec::new(), notes: Vec::new(), asked: Vec::new() })
}

fn denied() -> Event {
    let code = Some(GateCode::parse("acme.no").expect("a code"));
    ruling(Some(Instead::Denied(Box::new(Denial { code, ..Denial::default() }))))
}

fn unavailable() -> Event {
    ruling(Some(Instead::Unavailable(Failure { code: None, why: "a test's".to_owned(), of_this_call: false })))
}

#[test]
fn every_event_while_the_gates_are_asked() {
    let world = gated("", &[]);
    for (name, event, expected) in [
        ("allowed", ruling(None), "rqb(yes) > wait"),
        ("denied", denied(), "200 gate.denied > finish"),
        ("unavailable", unavailable(), "200 gate.unavailable > finish"),
        ("answered", ruling(Some(Instead::Answered(r#"{"content":[]}"#.into()))), "200 none > finish"),
        ("answered badly", ruling(Some(Instead::Answered("[]".into()))), "502 answer.unreadable > finish"),
        // Envoy's own reply: the request is over.
        ("rsh", answer("504", "text/plain", false), "rsh > wait"),
        ("rsh ends", answer("504", "text/plain", true), "rsh > finish"),
        // None of these may pass for a ruling, and the caller is told in a frame: the id is known.
        ("request", Event::RequestHeaders(post("tools/call", Some("search"))), "200 internal > finish"),
        ("body", Event::RequestBody(b"{}".to_vec()), "200 internal > finish"),
        ("rsb", piece(" ", false), "200 internal > finish"),
        ("rsb.", piece("{}", true), "200 internal > finish"),
        ("rst", Event::ResponseTrailers, "200 internal > finish"),
        ("identity", Event::Identity(Ok(world.reader())), "200 internal > finish"),
        ("refreshed", Event::Refreshed(Ok(())), "200 internal > finish"),
        ("deadline", Event::Deadline, "200 internal > finish"),
        ("overloaded", Event::Overloaded, "200 internal > finish"),
        ("fault", Event::Fault("a test's"), "200 internal > finish"),
    ] {
        let mut play = waiting(&world);
        assert_eq!(play.shown(event), expected, "{name}");
        assert!(play.exchange.question().is_none(), "{name}: nobody is asked any more");
        play.record();
    }
}

#[test]
fn a_ruling_that_nobody_asked_for_is_none() {
    let world = gated("", &[]);
    let begin = |steps: usize| {
        let mut play = Play::new(&world);
        let text = message(Some("1"), "tools/list", "").into_bytes();
        let events = [
            Event::RequestHeaders(post("tools/list", None)),
            Event::Identity(Ok(world.reader())),
            Event::RequestBody(text),
            answer("200", super::JSON, false),
            piece(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#, true),
        ];
        events.into_iter().take(steps).for_each(|event| drop(play.step(event)));
        play
    };
    for (steps, expected) in [
        (0, "503 internal > finish"),
        (1, "503 internal > finish"),
        (2, "503 internal > finish"),
        (3, "200 internal > finish"),
        (4, "200 internal > finish"),
        (5, "> fail"),
    ] {
        assert_eq!(begin(steps).shown(ruling(None)), expected, "after {steps} events");
    }
}

#[test]
fn a_caller_that_goes_away_leaves_one_record_and_no_question() {
    let world = gated("", &[]);
    let record = waiting(&world).record();
    assert_eq!(record.outcome.as_str(), "abort");
}

#[test]
fn envoy_is_asked_for_more_time_only_where_it_grants_it_and_it_is_needed() {
    let short = "envoy: {message_timeout: 1s, max_message_timeout: 6s}\n";
    let tight = "envoy: {message_timeout: 3s, max_message_timeout: 5100ms}\n";
    for (envoy, waited, expected) in [
        // The shipped ten seconds suffice, and without a maximum nothing is granted.
        ("", 0, "> ask"),
        ("", 9, "> ask"),
        (short, 0, "more(2500ms) > ask"),
        (tight, 0, "> ask"),
        // Identity is another message, and Envoy's timer runs anew with each.
        (tight, 30, "> ask"),
    ] {
        let world = gated(envoy, &[]);
        let mut play = Play::new(&world);
        play.step(Event::RequestHeaders(post("tools/call", Some("search"))));
        play.later(waited);
        play.step(Event::Identity(Ok(world.reader())));
        let text = message(Some("1"), "tools/call", r#""name":"search","#).into_bytes();
        let step = play.step(Event::RequestBody(text));
        assert_eq!((shown(&step).as_str(), step.next), (expected, Next::Ask), "{envoy} after {waited} s");
        // It is no verdict: the gate's is still awaited.
        assert_eq!(play.shown(denied()), "200 gate.denied > finish");
    }
}

#[test]
fn a_listing_in_between_uses_up_the_same_message() {
    let envoy = "envoy: {message_timeout: 3s, max_message_timeout: 60s}\nunmatched: deny";
    for (seconds, expected) in [(0, "> ask"), (1, "more(2500ms) > ask"), (50, "more(2500ms) > ask")] {
        let world = unseen(&[("  limits:", GATE), ("unmatched: deny", envoy)]);
        let (mut play, step) = called(&world, Some("1"));
        assert_eq!(shown(&step), "> refresh");
        world.sees("tool:search", r#"{"name":"search"}"#, play.now.instant);
        play.later(seconds);
        assert_eq!(play.shown(Event::Refreshed(Ok(()))), expected, "after {seconds} s");
    }
}

#[test]
fn what_is_asked_for_is_never_more_than_envoy_grants() {
    use crate::ladder::EnvoyTimeouts;
    let at = Duration::from_millis;
    let envoy = EnvoyTimeouts { message: at(1000), max: Some(at(2000)) };
    for (waited, needed, expected) in [
        (0, 400, None),
        (0, 500, None),
        (0, 501, Some(1001)),
        (600, 400, Some(900)),
        (0, 1900, Some(2000)),
        (5000, 0, Some(500)),
    ] {
        assert_eq!(envoy.more(at(waited), at(needed)), expected.map(at), "{waited} {needed}");
    }
    assert_eq!(EnvoyTimeouts { max: None, ..envoy }.more(at(5000), at(5000)), None);
}

#[test]
fn notifications_and_plain_http_are_refused_in_plain_json() {
    let world = gated("", &[]);
    let (mut play, step) = called(&world, None);
    assert_eq!(shown(&step), "> ask");
    let step = play.step(denied());
    assert_eq!(shown(&step), "403 gate.denied > finish");
    let body: serde_json::Value = serde_json::from_str(&sent(&step)).expect("JSON");
    assert_eq!((&body["error"], &body["plugin"], body.get("jsonrpc")), (&"acme.no".into(), &"acme".into(), None));
    // Nobody waits for an answer, so a gate that gives one has said nothing.
    let (mut play, _) = called(&world, None);
    assert_eq!(play.shown(ruling(Some(Instead::Answered("{}".into())))), "403 gate.unavailable > finish");
}

/// In shadow mode what is stale is listed all the same; what that says is recorded, and gates are still asked.
#[test]
fn shadow_mode_with_a_definition_that_cannot_be_checked() {
    let shadow = [("  limits:", GATE), ("  kind: mcp\n", "  kind: mcp\n  mode: shadow\n")];
    for (listed, expected) in [
        (Err("the server is down".to_owned()), &["definition.unverified", "acme.no"][..]),
        (Ok(()), &["definition.unverified", "acme.no"]),
    ] {
        let world = unseen(&shadow);
        let (mut play, step) = called(&world, Some("1"));
        assert_eq!(shown(&step), "> refresh");
        assert_eq!(play.shown(Event::Refreshed(listed)), "> ask");
        assert_eq!(play.shown(denied()), "rqb(yes) > wait");
        let record = play.record();
        let told: Vec<&str> = record.would_refuse.iter().map(|would| &**would).collect();
        assert_eq!((told.as_slice(), record.outcome.as_str()), (expected, "allow"));
    }
    // One that was seen in time has nothing to tell.
    let world = unseen(&shadow);
    let (mut play, _) = called(&world, Some("1"));
    world.sees("tool:search", r#"{"name":"search"}"#, play.now.instant);
    assert_eq!(play.shown(Event::Refreshed(Ok(()))), "> ask");
    assert_eq!(play.shown(ruling(None)), "rqb(yes) > wait");
    assert!(play.record().would_refuse.is_empty());
}

/// What changed is known without a listing: recorded, forwarded, and the gate is asked.
#[test]
fn shadow_mode_with_a_definition_that_changed() {
    let world = world(&[("  limits:", GATE), ("  kind: mcp\n", "  kind: mcp\n  mode: shadow\n")]);
    world.sees("tool:search", r#"{"name":"search","title":"x"}"#, std::time::Instant::now());
    let mut play = waiting(&world);
    assert_eq!(play.shown(unavailable()), "rqb(yes) > wait");
    let told: Vec<String> = play.record().would_refuse.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["definition.changed", "gate.unavailable"]);
}

#[test]
fn what_came_of_an_objection_is_told_as_it_was() {
    for (edits, expected, told) in [
        (&[][..], "200 gate.denied > finish", Action::Deny),
        (&[("  kind: mcp", "  kind: mcp\n  mode: shadow")][..], "rqb(yes) > wait", Action::Audit),
    ] {
        let world = gated("", edits);
        let mut play = waiting(&world);
        let Event::Opinion(mut ruling) = denied() else { panic!("a ruling") };
        let (from, to) = (play.now.instant, play.now.instant);
        let (gate, kind, said, action) = ("acme".into(), "grpc", "deny", Action::Deny);
        ruling.asked = vec![Asked { gate, kind, shadow: false, said, action, from, to }];
        assert_eq!(play.shown(Event::Opinion(ruling)), expected);
        assert_eq!(play.record().asked[0].action, told);
    }
}
