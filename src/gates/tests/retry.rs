//! What a retry after `input_required` shows to gates, and what of a gate's answer reaches a frame.

use proptest::prelude::*;

use super::servers::{Say, Server};
use super::{ask, document, gates, grpc, impatient, question, told};
use crate::gates::Question;
use crate::gates::decide::result;
use crate::message::json::{Document, Limits};

/// The retry of a call, with what the gate asked for.
pub(in crate::gates) fn retry() -> Question {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":1},"requestState":"s\u0031","name":"update","inputResponses":{"ok": true},"arguments":{"id":"7"}}}"#;
    Question { message: Some(document(message)), ..question("update", "{}") }
}

const OTHER: &str = r#"{"requestState":"s\u0031","inputResponses":{"ok": true}}"#;

#[tokio::test]
async fn a_retry_shows_its_answers_and_state() {
    let server = Server::start(Say::Allow).await;
    let whole = gates(&serde_json::json!([grpc(&server)]));
    whole.ask(&retry()).await;
    let call = server.last().and_then(|seen| seen.call).expect("a call");
    assert_eq!((call.arguments_json.as_str(), call.other_params_json.as_deref()), (r#"{"id":"7"}"#, Some(OTHER)));
    assert!(!call.arguments_truncated && !call.other_params_truncated);
    let mut short = grpc(&server);
    short["grpc"]["arguments"] = "10B".into();
    gates(&serde_json::json!([short])).ask(&retry()).await;
    let call = server.last().and_then(|seen| seen.call).expect("a call");
    assert_eq!((call.other_params_json.as_deref(), call.other_params_truncated), (OTHER.get(..10), true));
    ask(&whole).await;
    assert_eq!(server.last().and_then(|seen| seen.call).expect("a call").other_params_json, None);
    assert_eq!(Question { method: "resources/read".into(), ..retry() }.other_params(), None);
}

#[tokio::test]
async fn a_gate_is_told_how_long_it_is_waited_for() {
    let server = Server::start(Say::Allow).await;
    assert_eq!(told(&ask(&gates(&serde_json::json!([impatient(&server, "30s")]))).await).0, "allow");
    let told = server.timeout().expect("grpc-timeout");
    let micros: u64 = told.strip_suffix('u').and_then(|digits| digits.parse().ok()).expect(&told);
    assert!((1..=30_000_000).contains(&micros), "{told}");
}

#[tokio::test]
async fn an_answer_that_is_no_json_object_is_the_gates_failure() {
    let server = Server::start(Say::Allow).await;
    let gates = gates(&serde_json::json!([grpc(&server)]));
    for bad in
        [r#"{"content":[],"isError":true},"extra":{"a":1}"#, "", "[]", r#"{"a":1,"a":2}"#, "{", "{} {}", "\"x\"", "{}}"]
    {
        server.say(Say::Answer(bad));
        let (what, why) = told(&ask(&gates).await);
        assert_eq!(what, "unavailable", "{bad}");
        assert!(why.starts_with("expected `answer.result_json` to be one JSON object, got "), "{bad}: {why}");
    }
}

/// Pieces that break out of an object if anything does.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("\"a\":1".to_owned()),
        Just(",".to_owned()),
        Just("\"extra\":{}".to_owned()),
        Just("{\"content\":[]}".to_owned()),
        Just(" ".to_owned()),
        "[\\x00-\\x7f]{0,4}",
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_a_gate_answers_the_frame_has_its_three_members(text in hostile()) {
        if let Ok(result) = result(&text) {
            let request = document(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
            let id = crate::ladder::message::id(&request).expect("an id");
            let frame = crate::ladder::gate::answer(id, &result);
            let frame = Document::read(frame, Limits { depth: 200, nodes: 1_000_000 }).expect("JSON");
            let members: Vec<_> = frame.root().entries().map(|(key, _)| key.as_str().unwrap_or_default()).collect();
            prop_assert_eq!(members, ["jsonrpc", "id", "result"]);
            prop_assert_eq!(frame.root().get("result").map(|value| value.raw()), Some(text.trim_matches([' ', '\t', '\n', '\r'])));
        }
    }
}
