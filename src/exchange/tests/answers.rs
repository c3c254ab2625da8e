//! Answers that are late, half, twice or empty, and what goes down of them.

use super::{Event, JSON, Play, SSE, answer, piece, sent, shown};
use crate::ladder::testing::{World, headers, message, world};

const LISTING: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"update"},{"name":"search"}]}}"#;
const FILTERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"search"}],"cacheScope":"private"}}"#;
const PROGRESS: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n";

fn streaming(world: &World) -> Play {
    let mut play = Play::listing(world);
    assert_eq!(play.shown(answer("200", SSE, false)), "rsh > wait");
    play
}

#[test]
fn a_listing_is_filtered_however_it_is_split() {
    let world = world(&[]);
    for at in 0..=LISTING.len() {
        let (one, two) = LISTING.split_at(at);
        let mut play = Play::listing(&world);
        assert_eq!(play.shown(answer("200", JSON, false)), "> wait");
        assert_eq!(play.shown(piece(one, false)), "> wait");
        let step = play.step(piece(two, true));
        assert_eq!((shown(&step).as_str(), sent(&step).as_str()), ("rsh rsb. > finish", FILTERED));
        let record = play.record();
        assert_eq!((record.entries_hidden, record.wire_status), (1, Some(200)));
        // The same as an event.
        let event = format!("data: {LISTING}\n\n");
        let (one, two) = event.split_at(at);
        let mut play = streaming(&world);
        assert_eq!(play.shown(piece(one, false)), "> wait");
        let step = play.step(piece(two, true));
        assert_eq!((shown(&step), sent(&step)), ("rsb. > finish".to_owned(), format!("data: {FILTERED}\n\n")));
    }
}

#[test]
fn an_answer_of_pieces_of_any_sizes_is_whole() {
    let world = world(&[]);
    let digits: String = (0..6000).map(|n| format!("{n} ")).collect();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","content":[{{"type":"text","text":"{digits}"}}]}}}}"#
    );
    // Around the size up to which a piece is copied, alone and mixed.
    for sizes in [&[1][..], &[4096], &[4097], &[4095, 1], &[1, 4097], &[5000, 3, 4096], &[usize::MAX]] {
        let mut play = Play::call(&world, Some("1"));
        assert_eq!(play.shown(answer("200", JSON, false)), "> wait");
        let (mut left, mut sizes) = (text.as_str(), sizes.iter().cycle());
        while let Some((one, rest)) = left.split_at_checked((*sizes.next().expect("a size")).min(left.len() - 1)) {
            assert_eq!(play.shown(piece(one, false)), "> wait");
            left = rest;
            if left.len() == 1 {
                break;
            }
        }
        let step = play.step(piece(left, true));
        assert_eq!((shown(&step).as_str(), sent(&step) == text), ("rsh rsb. > finish", true), "{sizes:?}");
    }
}

#[test]
fn trailers_keep_their_place_behind_the_body() {
    let world = world(&[]);
    let mut play = Play::listing(&world);
    play.step(answer("200", JSON, false));
    play.step(piece(LISTING, false));
    let step = play.step(Event::ResponseTrailers);
    assert_eq!((shown(&step).as_str(), sent(&step).as_str()), ("rsh rsb rst > finish", FILTERED));
}

#[test]
fn nothing_of_a_stream_is_left_behind_its_answer() {
    let world = world(&[]);
    for rest in [format!("data: {LISTING}\n\n"), PROGRESS.to_owned(), "data: {".to_owned(), ": x\n".to_owned()] {
        let mut play = streaming(&world);
        let step = play.step(piece(&format!("{PROGRESS}data: {LISTING}\n\n{rest}"), true));
        assert_eq!(
            (shown(&step), sent(&step)),
            ("rsb. > finish".to_owned(), format!("{PROGRESS}data: {FILTERED}\n\n"))
        );
        assert_eq!(play.record().outcome.as_str(), "allow");
    }
}

#[test]
fn an_event_that_may_not_pass_ends_its_stream_with_the_error_event() {
    let world = world(&[]);
    let second = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
    let request = r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}"#;
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":{"code":1,"message":""}}"#;
    let variant = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"URI":"x"}}"#;
    let strange = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"resultType":"input_required"}}"#;
    for data in [second, request, both, variant, strange, "[]", "x", "7", r#"{"jsonrpc":"2.0"}"#] {
        let mut play = streaming(&world);
        let step = play.step(piece(&format!("{PROGRESS}data: {data}\n\n{PROGRESS}"), false));
        assert_eq!(shown(&step), "rsb. > wait", "{data}");
        let sent = sent(&step);
        let behind = sent.strip_prefix(PROGRESS).expect("what came before stays");
        assert!(behind.starts_with(r#"data: {"jsonrpc":"2.0","id":1,"error":{"code":-32010,"#), "{behind}");
        assert_eq!(behind.matches("data:").count(), 1, "{behind}");
        let record = play.record();
        assert_eq!((record.outcome.as_str(), record.wire_status), ("refuse", Some(200)));
    }
}

#[test]
fn a_head_without_a_body_keeps_its_refusal_out_of_the_stream() {
    let world = world(&[]);
    for kind in [SSE, JSON] {
        let mut play = Play::listing(&world);
        assert_eq!(play.shown(answer("200", kind, true)), "502 answer.unreadable > finish");
    }
    // A subscription may end at once.
    let text = message(Some("1"), "subscriptions/listen", r#""notifications":{},"#);
    let (mut play, _) = Play::asked(&world, world.reader(), &text, "subscriptions/listen", None);
    assert_eq!(play.shown(answer("200", SSE, true)), "rsh > finish");
    assert_eq!(play.record().outcome.as_str(), "allow");
}

#[test]
fn who_sent_no_id_may_get_nothing_and_never_an_answer() {
    let world = world(&[]);
    let bare = |ends| Event::ResponseHeaders { headers: headers(&[(":status", "202")]), ends };
    assert_eq!(Play::call(&world, None).shown(bare(true)), "rsh > finish");
    let mut play = Play::call(&world, None);
    assert_eq!(play.shown(bare(false)), "> wait");
    assert_eq!(play.shown(piece("", true)), "rsh rsb. > finish");
    for id in ["1", "null"] {
        let mut play = Play::call(&world, None);
        play.step(answer("200", JSON, false));
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(play.shown(piece(&text, true)), "502 answer.mismatched > finish");
    }
    // With an id nothing is no answer.
    let mut play = Play::call(&world, Some("1"));
    assert_eq!(play.shown(bare(false)), "502 answer.unreadable > finish");
}

#[test]
fn a_held_answer_is_refused_when_its_time_is_over_even_if_its_pieces_never_pause() {
    let world = world(&[]);
    let mut play = Play::listing(&world);
    play.step(answer("200", JSON, false));
    assert_eq!(play.due(), Some(60));
    for _ in 0..59 {
        play.later(1);
        assert_eq!(play.shown(piece(" ", false)), "> wait");
        assert_eq!(play.due(), Some(60));
    }
    play.later(1);
    assert_eq!(play.shown(piece(LISTING, true)), "502 answer.unreadable > finish");
}

#[test]
fn half_an_event_is_held_for_so_long_and_comments_are_no_events() {
    let world = world(&[]);
    let mut play = streaming(&world);
    assert_eq!(play.due(), None);
    // A comment that is whole lets the next one have its own time.
    for (text, due) in [(": on\n: o", Some(60)), ("n\n: o", Some(80)), ("n", Some(80)), ("\n", None)] {
        assert!(play.shown(piece(text, false)).ends_with("> wait"));
        assert_eq!(play.due(), due, "{text:?}");
        play.later(20);
    }
    let mut play = streaming(&world);
    play.step(piece("data: {", false));
    assert_eq!(play.due(), Some(60));
    play.later(59);
    assert_eq!(play.shown(Event::Deadline), "> wait");
    assert_eq!(play.shown(piece(" ", false)), "> wait");
    play.later(1);
    assert_eq!(play.shown(piece(" ", false)), "rsb. > wait");
    assert_eq!(play.record().outcome.as_str(), "refuse");
}

#[test]
fn a_stream_ends_when_the_token_behind_it_does() {
    let world = world(&[]);
    let until = |seconds: u64| world.caller(r#"{"email":"ana@acme.com"}"#, &["mcp"], Some(super::NOW + seconds));
    for by_deadline in [true, false] {
        let text = message(Some("1"), "tools/list", "");
        let (mut play, _) = Play::asked(&world, until(30), &text, "tools/list", None);
        play.step(answer("200", SSE, false));
        assert_eq!(play.due(), Some(30));
        play.later(29);
        assert_eq!(play.shown(piece(PROGRESS, false)), "rsb > wait");
        play.later(1);
        let step = play.step(if by_deadline { Event::Deadline } else { piece(PROGRESS, false) });
        assert_eq!(shown(&step), "rsb. > wait");
        assert!(sent(&step).contains("token.expired") && !sent(&step).contains("progress"), "{}", sent(&step));
        assert_eq!(play.record().reason.map(crate::refusal::Reason::as_str), Some("token.expired"));
    }
}

#[test]
fn events_about_resources_are_heard_by_those_who_may_read_them() {
    let world = world(&[]);
    let updated = |uri: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{{\"uri\":{uri}}}}}\n\n"
        )
    };
    let heard = |caller, uri: &str| {
        let text = message(Some("1"), "subscriptions/listen", r#""notifications":{},"#);
        let (mut play, step) = Play::asked(&world, caller, &text, "subscriptions/listen", None);
        assert_eq!(shown(&step), "rqb(yes) > wait");
        play.step(answer("200", SSE, false));
        !sent(&play.step(piece(&updated(uri), false))).is_empty()
    };
    assert!(heard(world.reader(), "\"cases://case/1\""));
    assert!(heard(world.editor(), "\"cases://case/7\""));
    for uri in ["\"cases://case/7\"", "\"cases://other\"", "\"cases://case/%31\"", "7", "null"] {
        assert!(!heard(world.reader(), uri), "{uri}");
    }
}

#[test]
fn a_404_passes_untouched_and_a_redirect_never() {
    let world = world(&[]);
    let mut play = Play::call(&world, Some("1"));
    assert_eq!(play.shown(answer("404", "text/html", false)), "rsh > wait");
    let step = play.step(piece("<html>", true));
    assert_eq!((shown(&step).as_str(), sent(&step).as_str()), ("rsb. > finish", "<html>"));
    assert_eq!(play.record().wire_status, Some(404));
    for status in ["300", "302", "307", "399", "100", "101", "199", "600", "", "OK"] {
        let step = Play::call(&world, Some("1")).shown(answer(status, JSON, false));
        assert_eq!(step, "502 answer.unreadable > finish", "{status}");
    }
}
