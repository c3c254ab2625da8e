//! What an exchange tells of itself: times by phase, and the way up where a span wants it.

use std::time::Duration;

use super::{Event, JSON, Play, answer, piece};
use crate::exchange::{Exchange, Next};
use crate::ladder::testing::{World, message, post, unseen, world};
use crate::message::headers::{Header, HeaderRef, Headers};
use crate::refusal::{Reason, Rung};
use crate::telemetry::record::{Outcome, Passage, Record, Trails, Wait};

const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// A call of `tool` up to its verdict. Every step takes 1 ms, everything that is waited for 10 ms.
fn play(world: &World, trails: Trails, tool: &str, header: Option<&str>, meta: &str) -> Record {
    let mut play = Play::new(world);
    play.exchange = Exchange::new(world.snapshot.clone(), "d1".into(), play.now).with_trails(trails);
    let mut head = post("tools/call", Some(tool));
    if let Some(parent) = header {
        let all = head.headers.iter().map(HeaderRef::to_owned);
        let all = all.chain([Header::new("traceparent", parent.as_bytes())]);
        head.headers = Headers::new(all.collect());
    }
    let mut text = message(Some("1"), "tools/call", &format!(r#""name":"{tool}","#));
    text = text.replacen(r#""_meta":{"#, &format!(r#""_meta":{{{meta}"#), 1);
    for event in
        [Event::RequestHeaders(head), Event::Identity(Ok(world.reader())), Event::RequestBody(text.into_bytes())]
    {
        let began = play.now.instant;
        let mut step = play.exchange.step(event, play.now);
        if step.next == Next::Refresh {
            world.sees("tool:search", r#"{"name":"search"}"#, play.now.instant);
            step = play.exchange.step(Event::Refreshed(Ok(())), play.now);
        }
        assert_ne!(step.next, Next::Fail);
        play.exchange.stepped(began, began + Duration::from_millis(1));
        play.records.extend(play.exchange.take_record());
        play.now.instant += Duration::from_millis(11);
    }
    play.record()
}

#[test]
fn times_are_told_by_phase_and_add_up() {
    let record = play(&world(&[]), Trails::Never, "search", None, "");
    assert_eq!(record.outcome, Outcome::Allowed);
    assert_eq!(record.phases.own, Duration::from_millis(3));
    let waits: Vec<_> = record.phases.waits().collect();
    assert_eq!(waits, [(Wait::Identity, Duration::from_millis(10)), (Wait::Body, Duration::from_millis(10))]);
    assert_eq!(record.decision_time, Duration::from_millis(23));
    assert!(record.trail.is_none());
}

#[test]
fn a_refusal_ends_with_the_step_that_gave_it() {
    let record = play(&world(&[]), Trails::Never, "update", None, "");
    assert_eq!((record.outcome, record.reason), (Outcome::Refused, Some(Reason::PolicyNotPermitted)));
    assert_eq!((record.decision_time, record.duration), (Duration::from_millis(23), Duration::from_millis(23)));
    assert_eq!(record.rpc_code, Some(-32000));
}

#[test]
fn a_trail_tells_every_rung_up_to_the_one_that_refused() {
    let record = play(&world(&[]), Trails::ParentOrRoot, "update", None, "");
    let trail = record.trail.expect("a trail");
    let passed: Vec<_> =
        trail.rungs.iter().filter(|(_, said, _)| *said == Passage::Pass).map(|(rung, ..)| *rung).collect();
    let words: Vec<_> = passed.iter().map(|rung| rung.as_str()).collect();
    assert_eq!(words.join(" "), "route method headers origin token scope body message envelope listed policy");
    let (rung, said, _) = trail.rungs.last().expect("rungs");
    assert_eq!((*rung, *said), (Rung::Permission, Passage::Refuse(Reason::PolicyNotPermitted)));
    assert_eq!((trail.request_id.as_deref(), trail.waits.len()), (Some("1"), 2));
}

#[test]
fn shadow_mode_leaves_its_would_be_refusal_in_the_trail() {
    let world = world(&[("  kind: mcp", "  kind: mcp\n  mode: shadow")]);
    let trail = play(&world, Trails::Always, "update", None, "").trail.expect("a trail");
    let not_passed: Vec<_> = trail
        .rungs
        .iter()
        .filter(|(_, said, _)| *said != Passage::Pass)
        .map(|(rung, said, _)| (*rung, *said))
        .collect();
    assert_eq!(not_passed[0], (Rung::Permission, Passage::WouldRefuse(Reason::PolicyNotPermitted)));
}

#[test]
fn sampling_follows_the_parent_that_counts() {
    let world = world(&[]);
    let meta = |parent: &str| format!(r#""traceparent":"{parent}","#);
    for (trails, header, own, kept) in [
        (Trails::Never, Some(SAMPLED), None, false),
        (Trails::ParentOrRoot, None, None, true),
        (Trails::ParentOrRoot, Some(UNSAMPLED), None, false),
        (Trails::ParentOrRoot, Some(UNSAMPLED), Some(SAMPLED), true),
        (Trails::ParentOrRoot, Some(SAMPLED), Some(UNSAMPLED), false),
        (Trails::ParentOrRoot, Some(UNSAMPLED), Some("nonsense"), false),
        (Trails::SampledParent, None, None, false),
        (Trails::SampledParent, Some(SAMPLED), None, true),
        (Trails::Always, Some(UNSAMPLED), None, true),
    ] {
        let record = play(&world, trails, "search", header, &own.map(meta).unwrap_or_default());
        assert_eq!(record.trail.is_some(), kept, "{trails:?} {header:?} {own:?}");
        let parent = own.filter(|own| own.starts_with("00")).or(header);
        assert_eq!(record.parent.map(|parent| parent.to_string()).as_deref(), parent);
        let linked = (own.is_some_and(|own| own.starts_with("00"))).then_some(header).flatten();
        assert_eq!(record.link.map(|link| link.to_string()).as_deref(), linked);
    }
}

#[test]
fn a_call_that_had_to_list_first_keeps_the_link_to_the_header() {
    let meta = format!(r#""traceparent":"{SAMPLED}","#);
    let record = play(&unseen(&[]), Trails::Always, "search", Some(UNSAMPLED), &meta);
    assert_eq!(record.outcome, Outcome::Allowed);
    assert_eq!(record.parent.map(|parent| parent.to_string()).as_deref(), Some(SAMPLED));
    assert_eq!(record.link.map(|link| link.to_string()).as_deref(), Some(UNSAMPLED));
}

#[test]
fn a_status_is_told_only_where_it_went_down() {
    let world = world(&[]);
    let mut withheld = Play::call(&world, Some("1"));
    assert_eq!(withheld.shown(answer("200", JSON, false)), "> wait");
    assert_eq!(withheld.shown(piece(r#"{"jsonrpc":"#, false)), "> wait");
    let record = withheld.record();
    assert_eq!((record.outcome, record.wire_status), (Outcome::Allowed, None));
    let mut running = Play::call(&world, Some("1"));
    assert_eq!(running.shown(answer("200", super::SSE, false)), "rsh > wait");
    assert_eq!(running.record().wire_status, Some(200));
}

#[test]
fn an_error_is_told_whatever_its_code_is() {
    let world = world(&[]);
    for (code, told) in [(r#""code":-32602,"#, -32602), ("", 0), (r#""code":1.5,"#, 0), (r#""code":"x","#, 0)] {
        let mut play = Play::call(&world, Some("1"));
        assert_eq!(play.shown(answer("200", JSON, false)), "> wait");
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{{code}"message":"no"}}}}"#);
        assert_eq!(play.shown(piece(&body, true)), "rsh rsb. > finish");
        assert_eq!(play.record().rpc_code, Some(told), "{code}");
    }
}
