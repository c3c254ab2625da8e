use std::borrow::Cow;

use super::*;
use crate::exchange::Verdict;

/// The two keys of the second lock, as a reply sets them.
fn keys(reply: Reply) -> (Option<bool>, Option<String>) {
    let metadata = message(reply).dynamic_metadata.expect("metadata");
    let Some(Kind::StructValue(ours)) = metadata.fields[NAMESPACE].kind.clone() else { panic!("expected a struct") };
    let decided = match ours.fields.get("decided").and_then(|value| value.kind.clone()) {
        Some(Kind::BoolValue(decided)) => Some(decided),
        _ => None,
    };
    let server = match ours.fields.get("server").and_then(|value| value.kind.clone()) {
        Some(Kind::StringValue(server)) => Some(server),
        _ => None,
    };
    (decided, server)
}

fn verdict(decided: bool, server: Option<&str>) -> Verdict {
    Verdict {
        decided,
        decision: if decided { "allow" } else { "" },
        reason: None,
        code: None,
        server: server.map(Into::into),
        method: Cow::Borrowed(""),
        capability: "".into(),
        principal: "".into(),
        id: String::new(),
    }
}

#[test]
fn what_an_earlier_filter_planted_is_overwritten_before_and_with_the_verdict() {
    let undecided = Reply::RequestHeaders { edits: HeaderEdits::default(), verdict: verdict(false, None) };
    assert_eq!(keys(undecided), (Some(false), Some(String::new())));
    let passed = Reply::RequestHeaders { edits: HeaderEdits::default(), verdict: verdict(true, None) };
    assert_eq!(keys(passed), (Some(true), Some(String::new())));
    let allowed = Reply::RequestBody { edits: HeaderEdits::default(), verdict: verdict(true, Some("cases")) };
    assert_eq!(keys(allowed), (Some(true), Some("cases".to_owned())));
}

/// Envoy reads nothing else of such a message, and nothing in it may look like a verdict.
#[test]
fn more_time_is_no_reply() {
    let message = message(Reply::MoreTime(Duration::from_millis(2500)));
    let time = message.override_message_timeout.expect("a time");
    assert_eq!((time.seconds, time.nanos), (2, 500_000_000));
    assert_eq!((message.response, message.dynamic_metadata), (None, None));
}
