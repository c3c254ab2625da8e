//! What holds without Portcullis: the shipped files load, and whatever stands where it should stand, nothing undecided passes.

use std::collections::HashSet;
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use crate::support::client::Connection;
use crate::support::envoy::{EDGE, validate, with_verdict, without_filter};
use crate::support::stack::edge_edits;
use crate::support::{Answer, Envoy, Idp, Reply, Request, Upstream, fixture, free_port, root, substitute};

/// edge.yaml with an `ext_proc` socket that nobody listens on.
fn edge_alone(upstream: &Upstream, edits: &[(&str, &str)]) -> Envoy {
    let socket = std::path::Path::new("/nonexistent/ext_proc.sock");
    let places = edge_edits(socket, upstream.port);
    Envoy::start(&substitute(EDGE, edits), &places.each_ref().map(|(from, to)| (*from, to.as_str())))
}

/// Envoy refused in its own name: a JSON-RPC error at this status that gives nothing away.
#[track_caller]
pub(crate) fn assert_envoy_refused(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{reply}");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply}");
    assert_eq!(
        reply.json(),
        json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": "the request could not be authorized"}})
    );
}

#[test]
fn the_shipped_files_load_without_a_warning() {
    for name in ["edge.yaml", "sidecar.yaml"] {
        validate(&root().join("deploy/envoy").join(name))
            .unwrap_or_else(|said| panic!("expected Envoy to accept {name}, it said:\n{said}"));
    }
}

#[test]
fn no_portcullis_no_passage() {
    let upstream = Upstream::start();
    let envoy = edge_alone(&upstream, &[]);
    eprintln!("Envoy was ready after {:?}", envoy.started_in);
    for reply in [
        fixture::post(&fixture::search()).send(envoy.port),
        fixture::post(&fixture::search()).send_h2(envoy.port),
        Request::get("/mcp").send(envoy.port),
        Request::get("/other").send(envoy.port),
    ] {
        assert_envoy_refused(&reply, 503);
    }
    assert_eq!(upstream.count(), 0);
    let log = envoy.access_log(4);
    assert!(log[0]["details"].as_str().is_some_and(|details| details.starts_with("ext_proc_error")), "{log:?}");
}

#[test]
fn the_second_lock_holds_without_the_first() {
    let upstream = Upstream::start();
    let socket = std::path::Path::new("/nonexistent/ext_proc.sock");
    let places = edge_edits(socket, upstream.port);
    let envoy = Envoy::start(
        &without_filter(EDGE, "envoy.filters.http.ext_proc"),
        &places.each_ref().map(|(from, to)| (*from, to.as_str())),
    );
    for request in [
        fixture::post(&fixture::search()),
        Request::get("/mcp"),
        Request::get("/other"),
        Request::new("DELETE", "/mcp"),
    ] {
        assert_envoy_refused(&request.send(envoy.port), 403);
        assert_envoy_refused(&request.send_h2(envoy.port), 403);
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn the_second_lock_holds_when_the_first_fails_open() {
    let upstream = Upstream::start();
    let envoy = edge_alone(&upstream, &[("failure_mode_allow: false", "failure_mode_allow: true")]);
    assert_envoy_refused(&fixture::post(&fixture::search()).send(envoy.port), 403);
    assert_eq!(upstream.count(), 0);
}

/// edge.yaml with a stand-in for the verdict.
fn edge_with_metadata(upstream: &Upstream, metadata: &str) -> Envoy {
    let places = edge_edits(std::path::Path::new("/nonexistent/ext_proc.sock"), upstream.port);
    Envoy::start(&with_verdict(EDGE, metadata), &places.each_ref().map(|(from, to)| (*from, to.as_str())))
}

#[test]
fn a_verdict_for_another_server_does_not_open_the_route() {
    let upstream = Upstream::start();
    for metadata in
        ["{decided: true, server: other}", "{decided: true}", "{decided: false, server: cases}", "{server: cases}"]
    {
        let envoy = edge_with_metadata(&upstream, metadata);
        for request in [fixture::post(&fixture::search()), Request::get("/mcp")] {
            assert_eq!(request.send(envoy.port).status, 403, "{metadata}");
        }
        assert_eq!(upstream.count(), 0, "{metadata}");
    }
}

#[test]
fn a_verdict_opens_its_route_and_what_the_route_removes_is_gone() {
    let upstream = Upstream::start();
    let envoy = edge_with_metadata(&upstream, "{decided: true, server: cases}");
    let message = fixture::search();
    upstream.answer(Answer::http(
        503,
        &["set-cookie: a=b", "www-authenticate: Bearer", "content-type: application/json", "x-kept: yes"],
        "{}",
    ));
    // Retries and time limits of a decided call are not the caller's to choose.
    let request = fixture::post(&message)
        .add("x-envoy-retry-on", "5xx")
        .add("x-envoy-max-retries", "3")
        .add("x-envoy-upstream-rq-timeout-ms", "1")
        .add("x-envoy-anything", "1");
    let reply = request.send(envoy.port);
    assert_eq!((reply.status, upstream.count()), (503, 1), "{reply}");
    assert_eq!(
        (reply.header("set-cookie"), reply.header("www-authenticate"), reply.header("x-kept")),
        (None, None, Some("yes")),
        "{reply}"
    );
    let seen = upstream.last();
    assert_eq!(seen.json(), message);
    let left: Vec<_> = seen
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-envoy-") && name != "x-envoy-expected-rq-timeout-ms")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // A route that leads nowhere, whatever the verdict says.
    assert_eq!(Request::get("/other").send(envoy.port).status, 404);
    assert_eq!(upstream.count(), 1);
}

#[test]
fn the_identity_provider_signs_what_it_serves() {
    let idp = Idp::start();
    let keys = Request::get("/jwks.json").send(idp.port).json();
    let key: jsonwebtoken::jwk::Jwk = serde_json::from_value(keys["keys"][0].clone()).expect("a JWK");
    let key = jsonwebtoken::DecodingKey::from_jwk(&key).expect("a key");
    let mut rules = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::ES256);
    rules.set_audience(&[fixture::RESOURCE]);
    let claims = |token: &str| jsonwebtoken::decode::<serde_json::Value>(token, &key, &rules).map(|token| token.claims);
    let good = claims(&idp.token(&json!({"email": null, "groups": ["a"]}))).expect("a good token");
    assert_eq!((good.get("email"), &good["groups"], &good["sub"]), (None, &json!(["a"]), &json!("ana")));
    assert!(claims(&idp.forged(&json!({}))).is_err());
    assert_eq!(idp.fetches(), 1);
    idp.switch(false);
    assert!(Request::get("/jwks.json").try_send(idp.port).is_none());
    idp.switch(true);
    idp.rotate("key-2");
    assert_eq!(Request::get("/jwks.json").send(idp.port).json()["keys"][0]["kid"], "key-2");
    assert!(claims(&idp.token(&json!({}))).is_err());
}

#[test]
fn digests_are_over_the_canonical_form() {
    // {"a":[1,"x\n",null],"b":15e1,"é":true}, computed apart.
    let definition = json!({"b": 150, "a": [1, "x\n", null], "é": true, "_meta": {"x": 1}, "icons": []});
    assert_eq!(fixture::digest(&definition), "sha256:1c53d936fe6f48ea3d1f44ac09c1104078dc7a65a68cbbb16b6ce94ade73faac");
}

#[test]
fn no_upgrade_and_no_tunnel_reaches_a_guarded_server_even_with_a_verdict() {
    let upstream = Upstream::start();
    let envoy = edge_with_metadata(&upstream, "{decided: true, server: cases}");
    let upgrade = fixture::post(&fixture::search()).add("connection", "upgrade").add("upgrade", "websocket");
    assert_eq!(upgrade.send(envoy.port).status, 403);
    let tunnel = b"CONNECT mcp.test:443 HTTP/1.1\r\nhost: mcp.test:443\r\n\r\n";
    let reply = Connection::open(envoy.port).and_then(|mut to| to.send_raw(tunnel, false)).expect("a reply");
    assert_eq!(reply.status, 404, "{reply}");
    assert_eq!(upstream.count(), 0);
}

/// What stands in for a server that is gone must not be another test's server.
#[test]
fn a_free_port_is_given_to_nobody_else_and_can_be_listened_on() {
    let ports: HashSet<u16> = std::iter::repeat_with(free_port).take(200).collect();
    assert_eq!(ports.len(), 200);
    let connected = |port: &&u16| TcpStream::connect(("127.0.0.1", **port)).is_ok();
    assert_eq!(ports.iter().find(connected), None);
    let others: Vec<_> = (0..500).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let given = others.iter().map(|listener| listener.local_addr().expect("its address").port());
    assert_eq!(given.filter(|port| ports.contains(port)).count(), 0);
    for port in ports {
        // Twice: what was there goes, and comes back on the same port.
        for _ in 0..2 {
            let listener = TcpListener::bind(("127.0.0.1", port)).expect("whoever names it may have it");
            TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            drop(listener);
        }
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "{port}");
    }
}
