//! What a server does wrong. Every other allowed call gets it, so that its neighbours are seen not to.

use std::time::Duration;

use serde_json::{Value, json};

use super::load::{POISON, number_seen};
use super::{Fault, Metric, World};
use crate::support::{Answer, Seen, mcp};

/// Answers that could not be judged.
const UNREADABLE: Metric = Metric::Portcullis("portcullis_decisions_total", &["reason=\"answer.unreadable\""]);
/// Answers that were given.
const ALLOWED: Metric = Metric::Portcullis("portcullis_decisions_total", &["decision=\"allow\""]);
const JSON: &str = "content-type: application/json";

/// A fault whose calls with an even number get what `answer` makes of their id.
fn misbehaves(
    name: &'static str,
    metric: Metric,
    world: World,
    answer: impl Fn(&Value, u64) -> Answer + Clone + Send + Sync + 'static,
) -> Fault {
    let inject = move |world: &mut World| {
        let answer = answer.clone();
        world.stack.upstream.script(move |seen: &Seen| match number_seen(seen) {
            Some(number) if number % 4 == 0 => answer(&seen.json()["id"], number),
            _ => mcp::answer(seen),
        });
    };
    Fault::new(name, metric, world, inject, |world| world.stack.upstream.behave())
}

fn result(id: &Value, text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "resultType": "complete", "content": [{"type": "text", "text": text}], "isError": false,
        "structuredContent": {"count": 1, "cases": []},
    }})
    .to_string()
}

/// A world in which waiting for a server is short, though longer than a machine with other work to do takes to answer.
fn impatient() -> World {
    World::with(&[("  limits: {request", "  timeouts: {wait: 3s, answer: 3s}\n  limits: {request")], &[])
}

pub(crate) fn stalls() -> Fault {
    misbehaves("upstream stalls", UNREADABLE, impatient(), |id, number| {
        let half = result(id, POISON);
        match number % 3 {
            0 => Answer::raw("").until_gone(),
            1 => Answer::chunked(200, &[JSON]).piece(&half[..40]).until_gone(),
            _ => Answer::sse().piece(format!("data: {}", &half[..40])).until_gone(),
        }
    })
}

pub(crate) fn resets() -> Fault {
    misbehaves("upstream resets", UNREADABLE, World::with(&[], &[]), |id, number| {
        let half = result(id, POISON);
        match number % 3 {
            0 => Answer::raw("").close(),
            1 => Answer::raw("HTTP/1.1 200 OK\r\ncontent-").close(),
            _ => Answer::chunked(200, &[JSON]).piece(&half[..40]).close(),
        }
    })
}

pub(crate) fn answers_twice() -> Fault {
    // Two answers to one request, and one stream that answers twice: the second is nobody's.
    misbehaves("upstream answers twice", ALLOWED, World::with(&[], &[]), |id, number| {
        let (first, second) = (result(id, "done"), result(id, POISON));
        if number % 8 == 0 {
            let again = format!("HTTP/1.1 200 OK\r\n{JSON}\r\ncontent-length: {}\r\n\r\n{second}", second.len());
            return Answer::http(200, &[JSON], first).then(again.into_bytes()).wait(Duration::from_millis(50)).close();
        }
        Answer::sse().piece(format!("data: {first}\n\n")).piece(format!("data: {second}\n\n")).end(&[])
    })
}

pub(crate) fn trailers() -> Fault {
    let cluster = "  - name: cases\n    type: STATIC\n";
    let with_trailers = format!(
        "{cluster}    typed_extension_protocol_options:\n      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:\n        \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions\n        explicit_http_config: {{http_protocol_options: {{enable_trailers: true}}}}\n"
    );
    let world = World::with(&[], &[(cluster, &with_trailers)]);
    misbehaves("upstream sends trailers", ALLOWED, world, |id, number| {
        let trailers = ["x-checksum: 1", "grpc-status: 0", "content-type: text/html", "set-cookie: a=b"];
        if number % 8 == 0 {
            return Answer::chunked(200, &[JSON]).piece(result(id, "done")).end(&trailers);
        }
        Answer::sse().piece(format!("data: {}\n\n", result(id, "done"))).end(&trailers)
    })
    .harmless()
}

pub(crate) fn lies_about_length() -> Fault {
    misbehaves("upstream lies about its length", UNREADABLE, World::with(&[], &[]), |id, number| {
        let body = result(id, POISON);
        let said = if number % 8 == 0 { body.len() - 20 } else { body.len() + 20 };
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}\r\ncontent-length: {said}\r\n\r\n{body}");
        Answer::raw(head.into_bytes()).close()
    })
}

pub(crate) fn compresses() -> Fault {
    misbehaves("upstream compresses anyway", UNREADABLE, World::with(&[], &[]), |id, number| {
        let coding = if number % 8 == 0 { "content-encoding: gzip" } else { "content-encoding: br" };
        Answer::http(200, &[JSON, coding], result(id, POISON))
    })
}

pub(crate) fn ends_mid_event() -> Fault {
    misbehaves("upstream ends an event stream mid-event", UNREADABLE, World::with(&[], &[]), |id, number| {
        let (event, half) = (
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}"#,
            result(id, POISON),
        );
        let begun = Answer::sse().piece(format!("data: {event}\n\ndata: {}", &half[..60]));
        if number % 8 == 0 { begun.end(&[]) } else { begun.close() }
    })
}
