//! The sources of identity beside `jwt`, each with what stands in front of it in production; Envoy's part is what
//! deploy/envoy/README.md says to add.

use serde_json::{Value, json};

use crate::support::idp::CLIENT;
use crate::support::stack::Parts;
use crate::support::tls::Authority;
use crate::support::{Reply, Stack, fixture, substitute};

const README: &str = include_str!("../../deploy/envoy/README.md");
/// A configuration for callers without tokens: this identity, and nothing said about scopes or where tokens come from.
fn without_tokens(config: &str, identity: &str) -> String {
    let config = fixture::identified_by(config, &[identity]);
    let lines: String = config
        .lines()
        .filter(|line| !line.starts_with("  capability_scopes:") && !line.starts_with("  authorization_server:"))
        .map(|line| format!("{line}\n"))
        .collect();
    lines
}

/// The YAML block of the README under the line that starts with `heading`.
fn variant(heading: &str) -> &'static str {
    let (_, rest) = README.split_once(heading).expect("the heading is in the README");
    let (_, rest) = rest.split_once("```yaml\n").expect("a YAML block");
    rest.split_once("```").expect("its end").0
}

fn update() -> Value {
    fixture::call("update_case", json!({"id": "17"}))
}

#[track_caller]
fn assert_reason(reply: &Reply, reason: &str) {
    assert_eq!(reply.json()["error"]["data"]["error"], reason, "{reply}");
}

#[test]
fn fixed() {
    let identity = "static: {subject: agent-7, email: ana@acme.com, scopes: [mcp]}";
    let config = |config: String, _: &Parts<'_>| without_tokens(&config, identity);
    let stack = Stack::made(None, config, |edge, _| edge);
    // Whoever gets here is the agent, whatever token it brings.
    stack.allows(&fixture::post(&fixture::search()));
    stack.allows(&stack.request(&fixture::search()));
    assert_eq!(stack.upstream.last().header("authorization"), [format!("Bearer {}", fixture::CREDENTIAL)]);
    let reply = stack.refuses(&fixture::post(&update()), "policy.not_permitted");
    assert_reason(&reply, "policy.not_permitted");
}

#[test]
fn introspection() {
    let config = |config: String, parts: &Parts<'_>| {
        let secret = parts.dir.join("client-secret");
        std::fs::write(&secret, CLIENT.1).expect("the secret is written");
        let issuer = parts.idp.issuer();
        let lines = [
            "introspection:".to_owned(),
            format!("  issuer: {issuer}"),
            format!("  endpoint: {issuer}/introspect"),
            format!("  client: {{id: {}, secret: {{file: {}}}}}", CLIENT.0, secret.display()),
            "  required_scopes: [mcp]".to_owned(),
        ];
        fixture::identified_by(&config, &lines.each_ref().map(String::as_str))
    };
    let stack = Stack::made(None, config, |edge, _| edge);
    let token = stack.idp.opaque(&json!({}));
    stack.allows(&fixture::post(&fixture::search()).bearer(&token));
    let reply = stack.refuses(&fixture::post(&update()).bearer(&token), "policy.not_permitted");
    assert_reason(&reply, "policy.not_permitted");
    for unknown in ["opaque-nobody", &stack.reader()] {
        let reply = stack.refuses(&fixture::post(&fixture::search()).bearer(unknown), "token.invalid");
        assert!(reply.status == 401 && reply.header("www-authenticate").is_some(), "{reply}");
    }
    let other = stack.idp.opaque(&json!({"aud": "https://elsewhere.example"}));
    stack.refuses(&fixture::post(&fixture::search()).bearer(&other), "token.invalid");
    // The authorization server is gone: what is known goes on, what is new cannot be told.
    stack.idp.switch(false);
    stack.allows(&fixture::post(&fixture::search()).bearer(&token));
    let reply = stack.refuses(&fixture::post(&fixture::search()).bearer("opaque-new"), "token.unverifiable");
    assert!(reply.status == 503 && reply.header("retry-after").is_some(), "{reply}");
}

#[test]
fn envoy_jwt() {
    let config = |config: String, parts: &Parts<'_>| {
        let issuer = format!("  issuer: {}", parts.idp.issuer());
        let lines = ["envoy_jwt:", &issuer, "  payload_key: acme", "  required_scopes: [mcp]"];
        fixture::identified_by(&config, &lines)
    };
    let edge = |edge: String, parts: &Parts<'_>| {
        let keys = format!("local_jwks: {{inline_string: '{}'}}", parts.idp.jwks());
        let remote =
            "remote_jwks: {http_uri: {uri: \"https://auth.example.com/jwks.json\", cluster: auth, timeout: 5s}}";
        let filter = substitute(
            variant("Tokens verified by Envoy"),
            &[
                (remote, &keys),
                ("https://auth.example.com", &parts.idp.issuer()),
                // So that Portcullis's own check of the audience is what refuses below.
                ("audiences: [\"https://mcp.example.com/mcp\"]", "audiences: []"),
            ],
        );
        let before = "          - name: envoy.filters.http.ext_proc\n";
        substitute(&edge, &[(before, &format!("{filter}{before}"))])
    };
    let stack = Stack::made(None, config, edge);
    stack.allows(&stack.request(&fixture::search()));
    let reply = stack.refuses(&stack.request(&update()), "policy.not_permitted");
    assert_reason(&reply, "policy.not_permitted");
    // No token: Envoy leaves the challenge to Portcullis. A token for someone else: the second look.
    let reply = stack.refuses(&fixture::post(&fixture::search()), "token.missing");
    assert!(reply.status == 401 && reply.header("www-authenticate").is_some(), "{reply}");
    let other = stack.idp.token(&json!({"aud": "https://elsewhere.example"}));
    stack.refuses(&fixture::post(&fixture::search()).bearer(&other), "token.invalid");
    // What Envoy cannot verify never gets as far.
    let count = stack.upstream.count();
    let reply = stack.send(&fixture::post(&fixture::search()).bearer(&stack.idp.forged(&json!({}))));
    assert_eq!((reply.status, stack.upstream.count()), (401, count), "{reply}");
}

#[test]
fn peer() {
    let authority = Authority::new();
    let config = |config: String, _: &Parts<'_>| {
        let config = without_tokens(&config, "peer: {trust_domains: [acme.com], scopes: [mcp]}");
        substitute(&config, &[("policy: {file: policy.yaml}", PEERS)])
    };
    let edge = |edge: String, parts: &Parts<'_>| {
        let file = |name: &str| parts.dir.join(name).display().to_string();
        authority.issue(&["mcp.test"], None).write_pem(&parts.dir.join("tls.crt"), &parts.dir.join("tls.key"));
        authority.write_pem(&parts.dir.join("clients.crt"));
        let socket = substitute(
            variant("TLS from callers"),
            &[
                ("/etc/envoy/tls.crt", &file("tls.crt")),
                ("/etc/envoy/tls.key", &file("tls.key")),
                ("/etc/envoy/clients.crt", &file("clients.crt")),
            ],
        );
        substitute(&edge, &[("  clusters:\n", &format!("{socket}  clusters:\n"))])
    };
    let stack = Stack::made(None, config, edge);
    let port = stack.envoy.port;
    let send = |message: &Value, uri: Option<&str>| {
        let certificate = authority.issue(&["agent"], uri);
        authority.send(&fixture::post(message), port, Some(&certificate)).expect("a reply")
    };
    let agent = Some("spiffe://acme.com/agent");
    let reply = send(&fixture::search(), agent);
    assert_eq!((reply.status, stack.upstream.count()), (200, 1), "{reply}");
    assert_reason(&send(&update(), agent), "policy.not_permitted");
    for stranger in [Some("spiffe://evil.example/agent"), Some("https://acme.com/agent"), None] {
        let reply = stack.refused_by("token.missing", 0, || send(&fixture::search(), stranger));
        assert!(reply.status == 403 && reply.json()["error"] == "token.missing", "{reply}");
    }
    // Envoy lets nobody in whose certificate it cannot verify, and a header proves nothing.
    let request = fixture::post(&fixture::search()).add("x-forwarded-client-cert", "URI=spiffe://acme.com/agent");
    assert!(authority.send(&request, port, None).is_none());
    let forged = Authority::new().issue(&["agent"], agent);
    assert!(authority.send(&request, port, Some(&forged)).is_none());
    let reply = authority.send(&request, port, Some(&authority.issue(&["agent"], None))).expect("a reply");
    assert_eq!((reply.status, stack.upstream.count()), (403, 1), "{reply}");
}

const PEERS: &str = r#"policy:
    roles: {reader: [cases:read], editor: [cases:write]}
    rules:
    - {match: {sub: "spiffe://acme.com/agent"}, role: reader}"#;
