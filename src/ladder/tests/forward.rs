//! What a forwarded call loses and gains.

use crate::ladder::forward::{HeaderEdits, private_answer, request};
use crate::ladder::testing::{headers, world};

const PASSTHROUGH: (&str, &str) = ("credential: {bearer: {file: token}}", "credential: passthrough");
const NONE: (&str, &str) = ("credential: {bearer: {file: token}}", "credential: none");

fn edits(edit: &[(&str, &str)], pairs: &[(&str, &str)], read: bool) -> HeaderEdits {
    let mut edits = request(&headers(pairs), &world(edit).server().credential, read);
    edits.remove.sort_unstable();
    edits.remove.dedup();
    edits
}

#[test]
fn the_callers_credential_is_exchanged_removed_or_kept() {
    let token = &[("authorization", "Bearer caller")];
    let exchanged = edits(&[], token, false);
    assert_eq!(exchanged.set, [("authorization", b"Bearer service-credential".to_vec())]);
    assert!(exchanged.remove.is_empty());
    let removed = edits(&[NONE], token, false);
    assert_eq!((removed.set.len(), removed.remove), (0, vec!["authorization".into()]));
    assert_eq!(edits(&[PASSTHROUGH], token, false), HeaderEdits::default());
    assert_eq!(edits(&[PASSTHROUGH], token, true).set, [("accept-encoding", b"identity".to_vec())]);
}

#[test]
fn what_is_the_callers_alone_is_removed() {
    for name in [
        "cookie",
        "proxy-authorization",
        "proxy-connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "connection",
        "x-method-override",
        "x-http-method",
        "x-http-method-override",
        "x-portcullis-decision",
        "x_http_method_override",
        "proxy_authorization",
        "x_portcullis-decision",
    ] {
        assert_eq!(edits(&[PASSTHROUGH], &[(name, "close")], false).remove, [name], "{name}");
    }
    for name in ["mcp-name", "mcp-param-x", "accept", "user-agent", "traceparent", "x-anything", "mcp-session-id"] {
        assert_eq!(edits(&[PASSTHROUGH], &[(name, "a")], false), HeaderEdits::default(), "{name}");
    }
}

#[test]
fn connection_names_more_but_not_what_the_decision_stands_on() {
    let named = |value: &str| edits(&[], &[("connection", value)], true).remove;
    assert_eq!(named("keep-alive, X-Private ,\tx-more"), ["connection", "keep-alive", "x-more", "x-private"]);
    for kept in [
        "close",
        "",
        ",,",
        "mcp-name, Mcp-Method, MCP-Protocol-Version, mcp-param-x",
        "authorization",
        "accept-encoding",
        "content-type, content-length, host, accept",
        ":path, :authority, :method",
    ] {
        assert_eq!(named(kept), ["connection"], "{kept}");
    }
    let twice = edits(&[], &[("connection", "x-a"), ("connection", "x-b")], true);
    assert_eq!(twice.remove, ["connection", "x-a", "x-b"]);
}

#[test]
fn an_answer_for_one_caller_is_cached_by_nobody() {
    let edits = private_answer();
    assert_eq!(edits.set, [("cache-control", b"private, no-store".to_vec())]);
    for gone in ["etag", "last-modified", "expires"] {
        assert!(edits.remove.iter().any(|name| name == gone), "{gone}");
    }
}
