//! Rungs 1 to 8, decided on the headers.

use serde_json::json;

use super::{assert_challenge, assert_frame, assert_plain};
use crate::support::client::Connection;
use crate::support::{Request, Stack, fixture, idp};

#[test]
fn route_unmatched() {
    let stack = Stack::start();
    for path in ["/other", "/", "/mcp/", "//mcp", "/mcp%2f", "/x/../mcp", "/MCP"] {
        let reply = stack.refuses(&stack.request(&fixture::search()).path(path), "route.unmatched");
        assert_plain(&reply, 403, "route.unmatched", "route");
    }
    assert_plain(&stack.refuses(&Request::get("/other"), "route.unmatched"), 403, "route.unmatched", "route");
}

#[test]
fn route_undecidable() {
    let attributes =
        "request_attributes: [source.address, connection.uri_san_peer_certificate, xds.route_name, xds.cluster_name]";
    let stack = Stack::with(&[], &[(attributes, "request_attributes: [source.address]")]);
    let reply = stack.refuses(&stack.request(&fixture::search()), "route.undecidable");
    assert_plain(&reply, 403, "route.undecidable", "route");
}

#[test]
fn metadata_is_served_without_a_token() {
    let stack = Stack::start();
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let reply = stack.send(&Request::get(path));
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some("*")), "{reply}");
        let document = reply.json();
        assert_eq!(document["resource"], fixture::RESOURCE);
        assert_eq!(document["authorization_servers"], json!([stack.idp.issuer()]));
        let head = stack.send(&Request::new("HEAD", path));
        assert_eq!((head.status, head.body.len()), (200, 0), "{head}");
        let options = stack.send(&Request::new("OPTIONS", path));
        assert!((200..300).contains(&options.status), "{options}");
        assert_eq!(options.header("access-control-allow-origin"), Some("*"), "{options}");
    }
    let reply = stack.send(&Request::get("/.well-known/oauth-authorization-server"));
    assert_eq!((reply.status, &reply.json()["issuer"]), (200, &json!(stack.idp.issuer())), "{reply}");
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn method_not_allowed() {
    let stack = Stack::start();
    let requests = [
        Request::get("/mcp"),
        Request::new("DELETE", "/mcp"),
        Request::get("/mcp").bearer(&stack.reader()),
        Request::get("/mcp").body("{}"),
        Request::new("PUT", "/mcp").body(fixture::search().to_string()).bearer(&stack.reader()),
        Request::new("OPTIONS", "/mcp")
            .add("origin", "https://evil.example")
            .add("access-control-request-method", "POST"),
    ];
    for request in requests {
        let reply = stack.refuses(&request, "method.not_allowed");
        assert_frame(&reply, 405, -32000, None);
        assert_eq!(reply.header("allow"), Some("POST"), "{reply}");
    }
    let head = stack.send(&Request::new("HEAD", "/mcp"));
    assert_eq!((head.status, head.body.len()), (405, 0), "{head}");
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn preflights_of_allowed_origins_are_envoys() {
    let stack = Stack::start();
    let preflight = Request::new("OPTIONS", "/mcp")
        .add("origin", "https://app.example.com")
        .add("access-control-request-method", "POST");
    let reply = stack.send(&preflight);
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (200, Some("https://app.example.com")),
        "{reply}"
    );
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn upgrades_and_tunnels_are_refused_at_once() {
    let stack = Stack::start();
    let upgrade = stack.request(&fixture::search()).add("connection", "upgrade").add("upgrade", "websocket");
    let reply = stack.send(&upgrade);
    assert!((400..500).contains(&reply.status), "{reply}");
    let tunnel = b"CONNECT mcp.test:443 HTTP/1.1\r\nhost: mcp.test:443\r\n\r\n";
    let reply = Connection::open(stack.envoy.port).and_then(|mut to| to.send_raw(tunnel, false)).expect("a reply");
    assert!((400..500).contains(&reply.status), "{reply}");
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn headers_malformed() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    let token = stack.reader();
    let mcp = [
        good.clone().add("mcp-method", "tools/call"),
        good.clone().add("mcp-name", "search_cases"),
        good.clone().add("mcp-protocol-version", "2026-07-28"),
        good.clone().set("mcp-method", "tools/call, tools/list"),
        good.clone().set("mcp-protocol-version", "2026-07-28,2026-07-28"),
        good.clone().add("mcp-param-region", "eu").add("mcp-param-region", "us"),
        good.clone().set("mcp-name", &"x".repeat(20_000)),
    ];
    for request in mcp {
        assert_frame(&stack.refuses(&request, "headers.malformed"), 400, -32020, None);
    }
    let others = [
        good.clone().add("authorization", &format!("Bearer {token}")),
        good.clone().add("content-type", "application/json"),
    ];
    for request in others {
        assert_frame(&stack.refuses(&request, "headers.malformed"), 400, -32600, None);
    }
}

#[test]
fn origin_refused() {
    let stack = Stack::start();
    for origin in ["https://evil.example", "null", "https://mcp.test.evil.example", "http://mcp.test"] {
        let reply = stack.refuses(&stack.request(&fixture::search()).add("origin", origin), "origin.refused");
        assert_frame(&reply, 403, -32000, None);
    }
    for origin in ["https://mcp.test", "https://app.example.com"] {
        stack.allows(&stack.request(&fixture::search()).add("origin", origin));
    }
}

#[test]
fn token_missing() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    for request in [good.clone().without("authorization"), good.clone().set("authorization", "Basic YTpi")] {
        let reply = stack.refuses(&request, "token.missing");
        let challenge = assert_challenge(&reply, 401, None);
        assert!(challenge.contains("scope=\"mcp\""), "{challenge}");
    }
}

#[test]
fn token_in_the_query_is_refused_beside_a_good_one() {
    let stack = Stack::start();
    let token = stack.reader();
    let request = stack.request(&fixture::search()).path(&format!("/mcp?access_token={token}"));
    let reply = stack.send(&request);
    assert_eq!((reply.status, stack.upstream.count()), (401, 0), "{reply}");
    assert_eq!(stack.send(&request.without("authorization")).status, 401);
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn token_invalid() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    let issue = |claims| stack.idp.token(&claims);
    let tokens = [
        "nonsense".into(),
        stack.idp.forged(&json!({})),
        issue(json!({"iss": "https://evil.example"})),
        issue(json!({"aud": "https://other.test/mcp"})),
        issue(json!({"aud": null})),
        issue(json!({"sub": null})),
        issue(json!({"sub": 7})),
        issue(json!({"exp": null})),
        issue(json!({"nbf": idp::now() + 3600})),
        issue(json!({"email": null})),
        issue(json!({"email_verified": false})),
        issue(json!({"email_verified": "true"})),
    ];
    for token in tokens {
        let reply = stack.refuses(&good.clone().bearer(&token), "token.invalid");
        assert_challenge(&reply, 401, Some("invalid_token"));
    }
}

#[test]
fn token_expired() {
    let stack = Stack::start();
    let token = stack.idp.token(&json!({"exp": idp::now() - 120}));
    let reply = stack.refuses(&fixture::post(&fixture::search()).bearer(&token), "token.expired");
    assert_challenge(&reply, 401, Some("invalid_token"));
}

#[test]
fn token_unverifiable() {
    let mut stack = Stack::start();
    // The keys were fetched at the start, so it takes another start to have none.
    stack.idp.switch(false);
    stack.portcullis.restart();
    let reply = stack.refuses(&stack.request(&fixture::search()), "token.unverifiable");
    assert_frame(&reply, 503, -32000, None);
    assert!(reply.header("retry-after").is_some(), "{reply}");
}

#[test]
fn scope_insufficient_for_the_baseline() {
    let stack = Stack::start();
    let token = stack.idp.token(&json!({"scope": "openid"}));
    let reply = stack.refuses(&fixture::post(&fixture::search()).bearer(&token), "scope.insufficient");
    let challenge = assert_challenge(&reply, 403, Some("insufficient_scope"));
    assert!(challenge.contains("scope=\"mcp\""), "{challenge}");
}

#[test]
fn body_unsupported_type() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    for request in [good.clone().set("content-type", "text/plain"), good.clone().without("content-type")] {
        assert_frame(&stack.refuses(&request, "body.unsupported_type"), 415, -32600, None);
    }
    stack.allows(&good.set("content-type", "Application/JSON; charset=utf-8"));
}

#[test]
fn body_encoded() {
    let stack = Stack::start();
    let reply = stack.refuses(&stack.request(&fixture::search()).add("content-encoding", "gzip"), "body.encoded");
    assert_frame(&reply, 415, -32600, None);
}

#[test]
fn body_missing() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    for request in [good.clone().no_body(), good.clone().body("")] {
        assert_frame(&stack.refuses(&request, "body.missing"), 400, -32600, None);
        let reply = stack.refused_by("body.missing", 0, || request.send_h2(stack.envoy.port));
        assert_frame(&reply, 400, -32600, None);
    }
}
