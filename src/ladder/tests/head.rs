//! Rungs 4 and 5: the headers that decide, the origin.

use super::reason;
use crate::ladder::testing::{head, headers, post, world};
use crate::ladder::{Head, headers as rung, origin, token};
use crate::message::headers::{Header, HeaderRef, Headers};

fn with(more: &[(&str, &str)]) -> Head {
    head("POST", "/mcp", more)
}

#[test]
fn headers_malformed() {
    let long = |length: usize| "x".repeat(length);
    let (name, short, bearer) = (long(8 * 1024 + 1), long(257), long(16 * 1024 + 1));
    let refused: &[&[(&str, &str)]] = &[
        &[("authorization", "Bearer a"), ("authorization", "Bearer a")],
        &[("authorization", "Bearer a,Bearer b")],
        &[("authorization", &bearer)],
        &[("content-type", "application/json"), ("content-type", "application/json")],
        &[("content-type", "application/json,text/plain")],
        &[("content-type", &short)],
        &[("mcp-method", "a"), ("mcp-method", "a")],
        &[("mcp-method", "tools/call, tools/list")],
        &[("mcp-method", "tools/c\u{e4}ll")],
        &[("mcp-protocol-version", "2026-07-28,2026-07-28")],
        &[("mcp-name", "a"), ("mcp-name", "a")],
        &[("mcp-name", &name)],
        &[("mcp-name", "a\u{7f}")],
        &[("mcp-param-x", "a"), ("mcp-param-y", "b"), ("mcp-param-x", "a")],
        &[("mcp-param-x", "a\u{1}")],
        &[("mcp_name", "a")],
        &[("mcp-name", "a"), ("mcp_name", "b")],
        &[("mcp_method", "tools/call")],
        &[("mcp-protocol_version", "2026-07-28")],
        &[("mcp_param-x", "a")],
        &[("content_type", "application/json")],
    ];
    for more in refused {
        let outcome = rung::check(&with(more));
        assert_eq!(reason(&outcome), "headers.malformed", "{:?}", more[0].0);
        let code = outcome.expect_err("refused").code;
        assert_eq!(code, more[0].0.starts_with("mcp").then_some(-32020), "{:?}", more[0].0);
    }
    let passed: &[&[(&str, &str)]] = &[
        &[],
        &[("mcp-name", "a, b"), ("mcp-param-x", "a,b"), ("mcp-param-y", "\ta ")],
        &[("accept", "a"), ("accept", "b, c"), ("x-anything", "\u{e4}")],
        &[("x_anything", "a"), ("mcp-param-an_other", "b")],
    ];
    for more in passed {
        assert_eq!(reason(&rung::check(&with(more))), "passed", "{more:?}");
    }
}

#[test]
fn a_header_in_bytes_that_are_no_text_is_malformed() {
    let head = headers(&[(":method", "POST"), (":path", "/mcp")]);
    let mut all: Vec<Header> = head.iter().map(HeaderRef::to_owned).collect();
    all.push(Header { name: "mcp-name".into(), value: vec![0xff].into() });
    let head = Head { headers: Headers::new(all), ..Head::default() };
    assert_eq!(reason(&rung::check(&head)), "headers.malformed");
}

#[test]
fn origin_refused() {
    let world = world(&[]);
    for origin in ["https://mcp.acme.com", "https://MCP.acme.com:443", "https://app.acme.com"] {
        assert_eq!(reason(&origin::check(world.server(), &with(&[("origin", origin)]))), "passed", "{origin}");
    }
    assert_eq!(reason(&origin::check(world.server(), &with(&[]))), "passed");
    let refused = [
        "",
        "null",
        "*",
        "http://mcp.acme.com",
        "https://mcp.acme.com:8443",
        "https://mcp.acme.com.evil.example",
        "https://evil.example/https://mcp.acme.com",
        "mcp.acme.com",
        "https://",
        "https://app.acme.com, https://mcp.acme.com",
    ];
    for origin in refused {
        assert_eq!(reason(&origin::check(world.server(), &with(&[("origin", origin)]))), "origin.refused", "{origin}");
    }
    let twice = with(&[("origin", "https://mcp.acme.com"), ("origin", "https://mcp.acme.com")]);
    assert_eq!(reason(&origin::check(world.server(), &twice)), "origin.refused");
}

#[test]
fn a_token_in_the_query_is_invalid_however_it_is_spelt() {
    let world = world(&[]);
    for query in ["access_token=a", "x=1&access_token=a", "access%5Ftoken=a", "access_token", "a=?&access_token=b"] {
        let mut head = post("tools/list", None);
        head.headers = headers(&[(":path", &format!("/mcp?{query}")), ("authorization", "Bearer good")]);
        assert_eq!(reason(&token::presented(world.server(), &head)), "token.invalid", "{query}");
    }
    for query in ["x_access_token=a", "a=access_token", "access_token%3Da=1", ""] {
        let mut head = post("tools/list", None);
        head.headers = headers(&[(":path", &format!("/mcp?{query}"))]);
        assert_eq!(reason(&token::presented(world.server(), &head)), "passed", "{query}");
    }
}
