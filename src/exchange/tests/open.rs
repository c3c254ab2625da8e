//! The end of the process and a reload, in every state.

use std::sync::Arc;

use super::{Event, JSON, Play, SSE, answer, piece, sent, shown};
use crate::ladder::testing::{message, post, world};
use crate::refusal::Reason;

#[test]
fn whatever_is_open_at_the_end_is_refused_or_ended() {
    let world = world(&[]);
    // Nothing came yet, the identity, the body.
    let mut play = Play::new(&world);
    assert_eq!(play.shown(Event::Stop), "503 overloaded > finish");
    let mut play = Play::new(&world);
    play.step(Event::RequestHeaders(post("tools/list", None)));
    assert_eq!(play.shown(Event::Stop), "503 overloaded > finish");
    let mut play = Play::new(&world);
    play.step(Event::RequestHeaders(post("tools/list", None)));
    play.step(Event::Identity(Ok(world.reader())));
    assert_eq!(play.shown(Event::Stop), "503 overloaded > finish");
    assert_eq!(play.record().outcome.as_str(), "refuse");
    // The answer, its rest: under the caller's id.
    let mut play = Play::listing(&world);
    let step = play.step(Event::Stop);
    assert_eq!(shown(&step), "200 overloaded > finish");
    assert!(sent(&step).contains(r#""id":1,"#) && sent(&step).contains("retry_after_seconds"), "{}", sent(&step));
    let mut play = Play::listing(&world);
    play.step(answer("200", JSON, false));
    play.step(piece("{\"jsonrpc\"", false));
    assert_eq!(play.shown(Event::Stop), "200 overloaded > finish");
    // A running stream: one more event, at a border, then its end. What Envoy still sends is ignored; then it fails.
    let mut play = Play::call(&world, Some("7"));
    play.step(answer("200", SSE, false));
    play.step(piece("data: {\"half", false));
    let step = play.step(Event::Stop);
    assert_eq!(shown(&step), "rsb. > wait");
    assert!(sent(&step).starts_with("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":"), "{}", sent(&step));
    assert_eq!(play.shown(piece("of it\n\n", false)), "> wait");
    assert_eq!(play.shown(Event::Stop), "> fail");
    assert_eq!(play.record().reason.map(Reason::as_str), Some("overloaded"));
}

#[test]
fn a_drain_ends_subscriptions_and_nothing_else() {
    let world = world(&[]);
    let mut play = Play::call(&world, Some("7"));
    let due = play.due();
    assert_eq!(play.shown(Event::Draining), "> wait", "a call whose answer is awaited goes on");
    assert_eq!(play.due(), due, "and keeps its time");
    play.step(answer("200", SSE, false));
    assert_eq!(play.shown(Event::Draining), "> wait");
    let text = message(Some(r#""a\"b""#), "subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#);
    let (mut play, step) = Play::asked(&world, world.reader(), &text, "subscriptions/listen", None);
    assert_eq!(shown(&step), "rqb(yes) > wait");
    play.step(answer("200", SSE, false));
    let step = play.step(Event::Draining);
    assert_eq!(shown(&step), "rsb. > wait");
    let meta = r#"{"io.modelcontextprotocol/subscriptionId":"a\"b"}"#;
    let whole = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"result\":{{\"resultType\":\"complete\",\"_meta\":{meta}}}}}\n\n"
    );
    assert_eq!(sent(&step), whole);
    assert_eq!(play.record().outcome.as_str(), "allow");
}

#[test]
fn a_reload_is_nobodys_affair_but_a_streams() {
    let world = world(&[]);
    let mut play = Play::new(&world);
    play.step(Event::RequestHeaders(post("tools/list", None)));
    play.step(Event::Identity(Ok(world.reader())));
    let due = play.due();
    assert_eq!(play.shown(Event::Reloaded(Arc::clone(&world.snapshot))), "> wait");
    assert_eq!((play.due(), play.exchange.is_streaming()), (due, false));
    let body = message(Some("1"), "tools/list", "").into_bytes();
    assert_eq!(play.shown(Event::RequestBody(body)), "rqb(yes) > wait");
}
