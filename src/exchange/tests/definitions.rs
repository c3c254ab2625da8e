//! Rung 15: a call whose definition was not seen lately waits for a listing of the server, and no other does.

use super::{Event, Play, answer, piece, sent, shown};
use crate::ladder::testing::{World, message, unseen, unwatched, world};
use crate::upstream::book::Sighting;

/// A call of the tool `search`, up to rung 15.
fn called(world: &World) -> (Play, String) {
    let text = message(Some("1"), "tools/call", r#""name":"search","#);
    let (play, step) = Play::asked(world, world.reader(), &text, "tools/call", Some("search"));
    (play, shown(&step))
}

#[test]
fn what_was_seen_lately_is_not_listed_again_and_what_was_not_is() {
    let world = unseen(&[]);
    let (mut play, shown) = called(&world);
    assert_eq!(shown, "> refresh");
    let (_, since) = play.exchange.outdated().expect("whom to list");
    assert_eq!(since, play.now.instant);
    assert_eq!(world.sees("tool:search", r#"{"name":"search"}"#, play.now.instant), Sighting::Matches);
    assert_eq!(play.shown(Event::Refreshed(Ok(()))), "rqb(yes) > wait");
    assert_eq!(called(&world).1, "rqb(yes) > wait");
}

#[test]
fn definition_changed() {
    let world = world(&[]);
    let changed = r#"{"name":"search","description":"x","title":"y","_meta":{"z":1}}"#;
    assert_eq!(world.sees("tool:search", changed, std::time::Instant::now()), Sighting::Changed);
    let text = message(Some("7"), "tools/call", r#""name":"search","#);
    let (play, step) = Play::asked(&world, world.reader(), &text, "tools/call", Some("search"));
    assert_eq!(shown(&step), "200 definition.changed > finish");
    let body = sent(&step);
    assert!(body.starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"#), "{body}");
    assert!(body.contains(r#""plugin":"definition","details":{"fields":["description","title"]}"#), "{body}");
    assert_eq!(play.record().reason.map(crate::refusal::Reason::as_str), Some("definition.changed"));
}

#[test]
fn definition_unverified() {
    let world = unseen(&[]);
    for listed in [Ok(()), Err("the server is down".to_owned())] {
        let (mut play, _) = called(&world);
        assert_eq!(play.shown(Event::Refreshed(listed)), "200 definition.unverified > finish");
    }
}

#[test]
fn what_matched_since_the_call_asked_is_fresh_for_it_however_long_that_took() {
    let world = unseen(&[]);
    let (mut play, _) = called(&world);
    assert_eq!(world.sees("tool:search", r#"{"name":"search"}"#, play.now.instant), Sighting::Matches);
    play.now.instant += std::time::Duration::from_hours(24);
    assert_eq!(play.shown(Event::Refreshed(Ok(()))), "rqb(yes) > wait");
}

#[test]
fn while_the_server_is_listed_nothing_else_is_expected_but_envoys_own_reply() {
    let world = unseen(&[]);
    for (event, expected) in [
        // The id is known: what cannot go on is told in a frame at 200.
        (Event::Deadline, "200 internal > finish"),
        (Event::RequestBody(Vec::new()), "200 internal > finish"),
        (piece("x", true), "200 internal > finish"),
        (answer("504", "text/plain", true), "rsh > finish"),
        (Event::Fault("a test's"), "200 internal > finish"),
    ] {
        let (mut play, _) = called(&world);
        assert_eq!(play.shown(event), expected);
        play.record();
    }
}

#[test]
fn a_listing_that_passes_tells_of_drift_and_does_not_show_it() {
    let world = world(&[]);
    let mut play = Play::listing(&world);
    play.step(answer("200", super::JSON, false));
    let listing =
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"search","inputSchema":{}},{"name":"update"}]}}"#;
    let step = play.step(piece(listing, true));
    assert_eq!(sent(&step), r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"cacheScope":"private"}}"#);
    assert_eq!(called(&world).1, "200 definition.changed > finish");
}

#[test]
fn list_changed_that_passes_makes_the_next_call_list_first() {
    let world = world(&[]);
    assert_eq!(called(&world).1, "rqb(yes) > wait");
    let mut play = Play::call(&world, Some("1"));
    play.step(answer("200", super::SSE, false));
    play.step(piece("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n", false));
    assert_eq!(called(&world).1, "rqb(yes) > wait");
    play.step(piece("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n", false));
    assert_eq!(called(&world).1, "> refresh");
}

#[test]
fn a_listing_that_was_under_way_when_the_server_said_that_it_changed_confirms_nothing() {
    let world = world(&[]);
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"search"}]}}"#;
    let mut under_way = Play::listing(&world);
    under_way.step(answer("200", super::JSON, false));
    let mut play = Play::call(&world, Some("1"));
    play.step(answer("200", super::SSE, false));
    play.step(piece("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n", false));
    under_way.step(piece(list, true));
    assert_eq!(called(&world).1, "> refresh");
    // One that was asked for since then does.
    let mut after = Play::listing(&world);
    after.step(answer("200", super::JSON, false));
    after.step(piece(list, true));
    assert_eq!(called(&world).1, "rqb(yes) > wait");
}

#[test]
fn what_nobody_watches_is_neither_called_nor_listed() {
    // No configuration makes such a server; if a change ever does, it must not open anything.
    let world = unwatched();
    let (play, shown) = called(&world);
    assert_eq!(shown, "200 definition.unverified > finish");
    let record = play.record();
    assert!(record.log.as_deref().is_some_and(|log| log.contains("nobody watches")), "{record:?}");
    let mut play = Play::listing(&world);
    play.step(answer("200", super::JSON, false));
    let step = play.step(piece(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"search"}]}}"#, true));
    assert_eq!(sent(&step), r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"cacheScope":"private"}}"#);
}
