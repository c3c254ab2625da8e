//! Rungs 1 to 3: which server is meant, its documents, the HTTP method.

use super::reason;
use crate::ladder::head::normal_authority;
use crate::ladder::route::{Route, find};
use crate::ladder::testing::{World, head, headers, world};
use crate::ladder::{Head, metadata, method};

/// A request to an authority and path, from a route that no server names.
fn to(method: &str, authority: &str, path: &str) -> Head {
    let mut head = head(method, path, &[]);
    head.attributes.route = Some(String::new());
    head.headers = headers(&[(":method", method), (":path", path), (":authority", authority), (":scheme", "https")]);
    head
}

/// What rung 1 says: a server's name, `pass`, or the reason.
fn found(world: &World, head: &Head) -> String {
    match find(&world.snapshot, head) {
        Ok(Route::Guarded(server)) => server.name.to_string(),
        Ok(Route::Pass) => "pass".to_owned(),
        Err(refusal) => refusal.reason.as_str().to_owned(),
    }
}

const BY_AUTHORITY: (&str, &str) = (
    "match: {route: [cases, cases-stream]}",
    "match: {authority: [mcp.acme.com, \"Alias.acme.com:8443\"], path: /mcp}",
);
const PASS: (&str, &str) = ("unmatched: deny", "unmatched: pass");

#[test]
fn envoys_route_names_a_server_whatever_the_caller_wrote() {
    let world = world(&[PASS]);
    for (route, expected) in [("cases", "cases"), ("cases-stream", "cases"), ("Cases", "pass"), ("", "pass")] {
        let mut head = to("POST", "elsewhere.example.com", "/anything");
        head.attributes.route = Some(route.into());
        assert_eq!(found(&world, &head), expected, "{route:?}");
    }
}

#[test]
fn route_undecidable() {
    for matcher in ["match: {route: cases}", "match: {cluster: cases}"] {
        let world = world(&[PASS, ("match: {route: [cases, cases-stream]}", matcher)]);
        let mut head = to("POST", "mcp.acme.com", "/mcp");
        head.attributes.route = None;
        assert_eq!(found(&world, &head), "route.undecidable", "{matcher}");
    }
    // Where nobody is matched by it, nobody misses it.
    let world = world(&[BY_AUTHORITY]);
    let mut head = to("POST", "mcp.acme.com", "/mcp");
    head.attributes.route = None;
    assert_eq!(found(&world, &head), "cases");
}

#[test]
fn authorities_compare_without_case_default_port_and_trailing_dot() {
    let world = world(&[BY_AUTHORITY, PASS]);
    let same = [
        "mcp.acme.com",
        "MCP.Acme.com",
        "mcp.acme.com:443",
        "mcp.acme.com.",
        "mcp.acme.com.:443",
        "mcp.acme.com:0443",
        "mcp.acme.com:",
        "mcp.acme.com..",
        "user@mcp.acme.com",
        "a:b@mcp.acme.com:443",
        "alias.acme.com:8443",
        "ALIAS.acme.com.:08443",
    ];
    for authority in same {
        assert_eq!(found(&world, &to("POST", authority, "/mcp")), "cases", "{authority}");
        assert_eq!(found(&world, &to("POST", authority, "/mcp?x=1")), "cases", "{authority}");
    }
    for other in [
        "acme.com",
        "mcp.acme.com:8443",
        "alias.acme.com",
        "mcp.acme.com.evil.example",
        "mcp.acme.com@evil.example",
        "",
        ":443",
        "[::1]",
    ] {
        assert_eq!(found(&world, &to("POST", other, "/mcp")), "pass", "{other}");
    }
    for (authority, scheme, normal) in [
        ("[::1]:443", "https", "[::1]"),
        ("[::1]:80", "http", "[::1]"),
        ("[::1]:8080", "http", "[::1]:8080"),
        ("::1", "https", "::1"),
        ("a:80", "https", "a:80"),
        ("a:80", "http", "a"),
        ("a:443", "http", "a"),
        ("a:x", "https", "a:x"),
    ] {
        assert_eq!(normal_authority(authority, scheme), normal, "{authority}");
    }
}

#[test]
fn port_80_of_an_authority_is_no_port_to_a_request_of_http() {
    let matcher = ("match: {route: [cases, cases-stream]}", "match: {authority: \"vendor.internal:80\", path: /mcp}");
    let world = world(&[matcher, PASS]);
    for (authority, scheme) in
        [("vendor.internal", "http"), ("vendor.internal:80", "http"), ("vendor.internal:80", "https")]
    {
        let mut head = to("POST", authority, "/mcp");
        head.headers =
            headers(&[(":method", "POST"), (":path", "/mcp"), (":authority", authority), (":scheme", scheme)]);
        assert_eq!(found(&world, &head), "cases", "{scheme}://{authority}");
    }
}

#[test]
fn route_unmatched_on_a_named_authority_whatever_unmatched_says() {
    for edits in [&[BY_AUTHORITY, PASS][..], &[BY_AUTHORITY], &[PASS]] {
        let world = world(edits);
        let paths = [
            "/",
            "/mcp/",
            "//mcp",
            "/mcp//",
            "/./mcp",
            "/x/../mcp",
            "/mcp/.",
            "/MCP",
            "/mcp%2f",
            "/%6dcp",
            "\\mcp",
            "/mcp\\",
            "/mcp;x",
            "/mcp#x",
            "",
            "*",
            "mcp",
            "https://mcp.acme.com/mcp",
            "/.well-known/openid-configuration",
        ];
        for path in paths {
            assert_eq!(found(&world, &to("POST", "mcp.acme.com", path)), "route.unmatched", "{path}");
        }
        assert_eq!(found(&world, &to("CONNECT", "mcp.acme.com:443", "")), "route.unmatched");
        // A tunnel's port proves nothing about what stands behind it.
        assert_eq!(found(&world, &to("CONNECT", "MCP.acme.com.:8443", "")), "route.unmatched");
    }
}

#[test]
fn route_unmatched_elsewhere_is_the_configurations_choice() {
    let post = to("POST", "elsewhere.example.com", "/mcp");
    let tunnel = to("CONNECT", "elsewhere.example.com:443", "");
    for elsewhere in [post, tunnel] {
        assert_eq!(found(&world(&[]), &elsewhere), "route.unmatched");
        assert_eq!(found(&world(&[PASS]), &elsewhere), "pass");
    }
}

#[test]
fn well_known_paths_lead_to_the_server_of_their_authority() {
    let world = world(&[BY_AUTHORITY]);
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
    ] {
        let get = to("GET", "mcp.acme.com", path);
        assert_eq!(found(&world, &get), "cases");
        let answer = metadata::answer(world.server(), &get).expect("the document");
        assert_eq!((answer.status, answer.body.is_empty()), (200, false));
        assert!(answer.headers.contains(&("access-control-allow-origin", "*".into())));
        assert!(metadata::answer(world.server(), &to("HEAD", "mcp.acme.com", path)).expect("its head").body.is_empty());
        assert_eq!(
            metadata::answer(world.server(), &to("OPTIONS", "mcp.acme.com", path)).map(|answer| answer.status),
            Some(204)
        );
        assert_eq!(found(&world, &to("GET", "elsewhere.example.com", path)), "route.unmatched");
        assert_eq!(metadata::answer(world.server(), &to("GET", "mcp.acme.com", &format!("{path}/"))), None);
    }
    // Two servers on one authority: the root form would be either's, so it is nobody's.
    let second = "- name: other
  kind: http
  match: {authority: mcp.acme.com, path: /other}
  resource: https://mcp.acme.com/other
  identity: {jwt: {issuer: https://auth.acme.com, jwks: https://auth.acme.com/jwks.json}}
- name: cases\n";
    let world = crate::ladder::testing::world(&[BY_AUTHORITY, ("- name: cases\n", second)]);
    let get = |path: &str| found(&world, &to("GET", "mcp.acme.com", path));
    assert_eq!(get("/.well-known/oauth-protected-resource"), "route.unmatched");
    assert_eq!(get("/.well-known/oauth-protected-resource/mcp"), "cases");
    assert_eq!(get("/.well-known/oauth-protected-resource/other"), "other");
    assert_eq!((get("/mcp").as_str(), get("/other").as_str()), ("cases", "other"));
}

#[test]
fn method_not_allowed() {
    let world = world(&[]);
    let document = "/.well-known/oauth-protected-resource/mcp";
    let cases = [
        ("POST", "/mcp", &[][..], ""),
        ("GET", "/mcp", &[], "POST"),
        ("post", "/mcp", &[], "POST"),
        ("", "/mcp", &[], "POST"),
        ("QUERY", "/mcp", &[], "POST"),
        ("POST", "/mcp", &[("upgrade", "websocket")], "POST"),
        ("POST", "/mcp", &[(":protocol", "websocket")], "POST"),
        ("CONNECT", "", &[], "POST"),
        ("DELETE", document, &[], "GET, HEAD, OPTIONS"),
        ("POST", document, &[], "GET, HEAD, OPTIONS"),
    ];
    for (name, path, more, allow) in cases {
        let outcome = method::check(world.server(), &head(name, path, more));
        assert_eq!(reason(&outcome), if allow.is_empty() { "passed" } else { "method.not_allowed" }, "{name} {path}");
        if let Err(refusal) = outcome {
            assert_eq!(refusal.allow, allow, "{name} {path}");
        }
    }
}
