//! Calls that were allowed and got no answer from their server: what their callers read, on both shipped configurations.

use std::time::Duration;

use serde_json::json;

use crate::egress;
use crate::gates::servers::{Gate, Say};
use crate::support::{
    Answer, Envoy, Portcullis, Reply, Request, Stack, Upstream, fixture, free_port, mcp, substitute, wait_for,
};

type Edits<'a> = &'a [(&'a str, &'a str)];

/// One of the two shipped configurations, with what stands around it.
enum Site {
    Edge(Stack),
    Sidecar(egress::World),
}

impl Site {
    /// Both, one after the other, with substitutions in portcullis.yaml and in Envoy's file, and the server on the port `before`
    /// in place of its own.
    fn each(config: Edits<'_>, envoy: Edits<'_>, before: Option<u16>, test: impl Fn(&mut Self)) {
        let made = Stack::made(before, |text, _| substitute(&text, config), |text, _| substitute(&text, envoy));
        test(&mut Self::Edge(made));
        test(&mut Self::Sidecar(egress::World::with(config, envoy, before)));
    }

    fn request(&self) -> Request {
        match self {
            Self::Edge(stack) => stack.request(&fixture::search()),
            Self::Sidecar(world) => world.search(),
        }
    }

    fn envoy(&self) -> &Envoy {
        match self {
            Self::Edge(stack) => &stack.envoy,
            Self::Sidecar(world) => &world.envoy,
        }
    }

    fn upstream(&self) -> &Upstream {
        match self {
            Self::Edge(stack) => &stack.upstream,
            Self::Sidecar(world) => &world.vendor,
        }
    }

    fn portcullis(&mut self) -> &mut Portcullis {
        match self {
            Self::Edge(stack) => &mut stack.portcullis,
            Self::Sidecar(world) => &mut world.portcullis,
        }
    }

    fn send(&self) -> Reply {
        self.request().send(self.envoy().port)
    }

    /// Sends a call, does `then` once the server has it, and gives what came of the call.
    fn send_and(&mut self, then: impl FnOnce(&mut Portcullis)) -> Reply {
        let (request, port) = (self.request(), self.envoy().port);
        let caller = std::thread::spawn(move || request.send(port));
        wait_for(Duration::from_secs(10), || (self.upstream().count() > 0).then_some(())).expect("the server has it");
        then(self.portcullis());
        caller.join().expect("a reply")
    }
}

/// Envoy's own words about a call that was allowed: a JSON-RPC error at Envoy's own status, with the id of the decision.
#[track_caller]
fn assert_unanswered(site: &Site, reply: &Reply, status: u16, details: &str) {
    assert_eq!((reply.status, reply.header("content-type")), (status, Some("application/json")), "{reply}");
    let log = site.envoy().access_log(1);
    assert!(log[0]["details"].as_str().is_some_and(|said| said.starts_with(details)), "{log:?}");
    let decision = log[0]["id"].clone();
    assert!(decision.as_str().is_some_and(|id| !id.is_empty()), "{decision}");
    let message = "no answer came; whether the call was carried out is not known";
    assert_eq!(
        reply.json(),
        json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": message, "data": {"decision": decision}}})
    );
}

/// A refusal of Portcullis's, with the caller's id.
#[track_caller]
fn assert_refused(reply: &Reply, status: u16, reason: &str) {
    assert_eq!((reply.status, reply.header("content-type")), (status, Some("application/json")), "{reply}");
    let body = reply.json();
    assert_eq!((&body["id"], &body["error"]["data"]["error"]), (&json!(1), &json!(reason)), "{reply}");
}

/// The beginning of an answer, which is withheld until the rest of it is there.
fn begun() -> Answer {
    Answer::chunked(200, &["content-type: application/json"]).piece("{\"jsonrpc\":")
}

#[test]
fn envoys_answer_for_a_server_that_does_not_answer_becomes_a_refusal_with_the_callers_id() {
    Site::each(&[], &[], Some(free_port()), |site| {
        let reply = site.send();
        assert_refused(&reply, 502, "answer.unreadable");
        let log = site.envoy().access_log(1);
        assert!(log[0]["flags"].as_str().is_some_and(|flags| flags.contains("UF")), "{log:?}");
    });
    Site::each(&[], &[("timeout: 0s, idle_timeout: 0s", "timeout: 1s")], None, |site| {
        for answer in [Answer::raw("").close(), Answer::raw("").until_gone()] {
            site.upstream().answer(answer);
            assert_refused(&site.send(), 502, "answer.unreadable");
        }
    });
}

#[test]
fn an_answer_that_breaks_off_before_its_head_went_down_is_an_error_at_envoys_status() {
    Site::each(&[], &[("timeout: 0s, idle_timeout: 0s", "timeout: 1s")], None, |site| {
        site.upstream().answer(begun().until_gone());
        let reply = site.send();
        assert_unanswered(site, &reply, 504, "response_timeout");
    });
    Site::each(&[], &[], None, |site| {
        site.upstream().answer(begun().close());
        let reply = site.send();
        assert_unanswered(site, &reply, 502, "upstream_reset_after_response_started");
    });
}

#[test]
fn portcullis_killed_behind_the_verdict_is_an_error_at_envoys_status() {
    // Ahead of the answer's head, and while the answer is withheld.
    for answer in [Answer::raw("").until_gone(), begun().until_gone()] {
        Site::each(&[], &[], None, |site| {
            site.upstream().answer(answer.clone());
            let reply = site.send_and(Portcullis::kill);
            assert_unanswered(site, &reply, 503, "ext_proc_error_gRPC_error_13");
        });
    }
}

#[test]
fn portcullis_frozen_behind_the_verdict_is_an_error_at_envoys_status() {
    // What waits for an answer in FULL_DUPLEX_STREAMED has no `message_timeout`: the keepalive ends it.
    let edits =
        [("interval: 5s, timeout: 5s", "interval: 1s, timeout: 1s"), ("message_timeout: 10s", "message_timeout: 1s")];
    Site::each(&[], &edits, None, |site| {
        site.upstream().script(|seen| {
            std::thread::sleep(Duration::from_millis(500));
            mcp::answer(seen)
        });
        let reply = site.send_and(|portcullis| portcullis.stop());
        assert_unanswered(site, &reply, 503, "ext_proc_error_gRPC_error_13");
        site.portcullis().go_on();
        site.upstream().behave();
        let served = wait_for(Duration::from_secs(20), || (site.send().status == 200).then_some(()));
        assert!(served.is_some(), "expected calls to be served once Portcullis goes on");
    });
}

#[test]
fn refusals_in_place_of_an_answer_stay_as_they_are() {
    let knobs = "  limits: {request";
    let config = [(knobs, &*format!("  timeouts: {{wait: 300ms, answer: 300ms}}\n{knobs}"))];
    Site::each(&config, &[], None, |site| {
        let answers = [
            (Answer::text("text/html", "<p>"), 502, "answer.unreadable"),
            (Answer::raw("").until_gone(), 502, "answer.unreadable"),
            (begun().until_gone(), 502, "answer.unreadable"),
            (Answer::http(503, &["content-type: text/plain"], "no"), 502, "answer.unreadable"),
            (Answer::http(401, &[], ""), 502, "upstream.unauthorized"),
            (Answer::json(&json!({"jsonrpc": "2.0", "id": 2, "result": {}})), 502, "answer.mismatched"),
        ];
        for (answer, status, reason) in answers {
            site.upstream().answer(answer);
            assert_refused(&site.send(), status, reason);
        }
        // What the server itself says, at its own status, is no local reply.
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "its own"}});
        site.upstream().answer(Answer::http(500, &["content-type: application/json"], error.to_string()));
        let reply = site.send();
        assert_eq!((reply.status, reply.json()), (500, error), "{reply}");
    });
}

#[test]
fn refusals_ahead_of_the_verdict_stay_as_they_are() {
    let gate = Gate::start(Say::Error);
    let knobs = "  limits: {request";
    let gates = format!("  gates: [{{name: acme, grpc: {{address: '{}', timeout: 300ms}}}}]\n{knobs}", gate.address());
    Site::each(&[(knobs, &gates)], &[], None, |site| {
        assert_refused(&site.send(), 200, "gate.unavailable");
        assert_eq!(site.upstream().count(), 0);
    });
    Site::each(&[("/jwks.json", "/no.json")], &[], None, |site| {
        // What is refused by its headers alone has no id.
        let reply = site.send();
        assert_eq!((reply.status, reply.header("retry-after").is_some()), (503, true), "{reply}");
        let body = reply.json();
        assert_eq!((body.get("id"), &body["error"]["data"]["error"]), (None, &json!("token.unverifiable")), "{reply}");
        assert_eq!(site.upstream().count(), 0);
    });
}
