//! Rungs 8, 9 and 11 to 13: the body, the message, what it reaches.

use super::reason;
use crate::ladder::head::Modes;
use crate::ladder::testing::{document, head, message, post, world};
use crate::ladder::{Head, body, listed, message as rung, permission, policy, scope};
use crate::protocol::{Method, target};

#[test]
fn body_by_its_headers() {
    type Case<'a> = (&'a [(&'a str, &'a str)], bool, &'a str);
    let json = ("content-type", "application/json");
    let world = world(&[]);
    let cases: &[Case<'_>] = &[
        (&[json], false, "passed"),
        (&[("content-type", "Application/JSON ;charset=utf-8")], false, "passed"),
        (&[("content-type", "application/json;CharSet=\"UTF-8\"; v=1")], false, "passed"),
        // Servers that decode by it (body parsers do) would read another call than the one that is judged.
        (&[("content-type", "application/json; charset=utf-7")], false, "body.unsupported_type"),
        (&[("content-type", "application/json;charset=shift_jis")], false, "body.unsupported_type"),
        (&[("content-type", "application/json; charset=utf-8; charset=utf-7")], false, "body.unsupported_type"),
        (&[("content-type", "application/json; charset = utf-7")], false, "body.unsupported_type"),
        (&[("content-type", "application/json; xcharset=utf-7")], false, "body.unsupported_type"),
        (&[("content-type", "application/json; charset*=utf-8''utf-7")], false, "body.unsupported_type"),
        (&[("content-type", "application/json; x=\"a; charset=utf-7\"")], false, "body.unsupported_type"),
        (&[("content-type", "application/json; charset=")], false, "body.unsupported_type"),
        (&[json, ("content-length", "65536")], false, "passed"),
        (&[], false, "body.unsupported_type"),
        (&[("content-type", "application/json-rpc")], false, "body.unsupported_type"),
        (&[("content-type", "text/plain; application/json")], false, "body.unsupported_type"),
        (&[("content-type", "application/jsonx")], true, "body.unsupported_type"),
        (&[json, ("content-encoding", "gzip")], false, "body.encoded"),
        (&[json, ("content-encoding", "identity")], true, "body.encoded"),
        (&[json, ("content-length", "65537")], false, "body.too_large"),
        (&[json, ("content-length", "18446744073709551615")], true, "body.too_large"),
        (&[json, ("content-length", "0")], false, "body.missing"),
        (&[json], true, "body.missing"),
    ];
    for (more, ends, expected) in cases {
        let mut head = head("POST", "/mcp", more);
        head.ends = *ends;
        assert_eq!(reason(&body::check(world.server(), &head)), *expected, "{more:?}");
    }
}

#[test]
fn message_by_its_bytes() {
    let world = world(&[]);
    let sized = |size: usize| {
        let mut text = message(Some("1"), "tools/list", "").into_bytes();
        text.resize(size, b' ');
        text
    };
    let deep = |depth: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
    let cases: &[(Vec<u8>, &str)] = &[
        (sized(65536), "passed"),
        (sized(65537), "body.too_large"),
        (vec![], "body.missing"),
        (b" ".to_vec(), "json.invalid"),
        (b"{} {}".to_vec(), "json.invalid"),
        (vec![b'"', 0xff, b'"'], "json.invalid"),
        (b"\xef\xbb\xbf{}".to_vec(), "json.invalid"),
        (br#""\ud800""#.to_vec(), "json.invalid"),
        (b"NaN".to_vec(), "json.invalid"),
        (deep(16).into_bytes(), "passed"),
        (deep(17).into_bytes(), "json.too_deep"),
        (br#"{"a":1,"\u0061":2}"#.to_vec(), "json.duplicate_key"),
        (br#"{"x":[{"a":{"b":1,"b":1}}]}"#.to_vec(), "json.duplicate_key"),
    ];
    for (bytes, expected) in cases {
        let outcome = rung::read(world.server(), bytes.clone());
        assert_eq!(reason(&outcome), *expected, "{:.60}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn message_by_its_members() {
    let with = |params: &str| message(Some("1"), "tools/call", params);
    let cases = [
        (message(Some("1"), "tools/list", ""), "passed"),
        (message(None, "tools/list", ""), "passed"),
        (message(Some(r#""\u0061""#), "tools/list", ""), "passed"),
        (message(Some("-9007199254740993"), "tools/list", ""), "passed"),
        (message(None, "notifications/progress", ""), "passed"),
        (message(Some("1"), "notifications/progress", ""), "rpc.invalid"),
        (message(Some("1"), "notifications/unknown", ""), "rpc.invalid"),
        (message(Some("null"), "tools/list", ""), "rpc.invalid"),
        (message(Some("1.0"), "tools/list", ""), "rpc.invalid"),
        (message(Some("1e3"), "tools/list", ""), "rpc.invalid"),
        (message(Some("true"), "tools/list", ""), "rpc.invalid"),
        (message(Some("[1]"), "tools/list", ""), "rpc.invalid"),
        (message(Some("1"), "", ""), "rpc.invalid"),
        ("[]".into(), "rpc.batch"),
        (format!("[{}]", message(Some("1"), "tools/list", "")), "rpc.batch"),
        ("1".into(), "rpc.invalid"),
        ("{}".into(), "rpc.invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(), "rpc.invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#.into(), "rpc.invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#.into(), "rpc.invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#.into(), "rpc.invalid"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#.into(), "rpc.invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","more":1}"#.into(), "rpc.invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"x"}"#.into(), "json.case_variant_key"),
        (with(r#""Name":"x","#), "json.case_variant_key"),
        (with(r#""argument\u017F":{},"#), "json.case_variant_key"),
        (with(r#""ref":{"URI":1},"#), "json.case_variant_key"),
        (with(r#""notifications":{"TaskIds":1},"#), "json.case_variant_key"),
        (with(r#""name":"x","arguments":{"Name":1,"Method":2},"#), "passed"),
    ];
    for (text, expected) in cases {
        assert_eq!(reason(&rung::message(&document(&text))), expected, "{text}");
    }
}

#[test]
fn every_method_is_listed_or_not() {
    for method in Method::ALL {
        assert_eq!(listed::check(method.as_str()).ok(), Some(*method));
    }
    for name in
        ["ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/get", "Tools/list", "tools/list ", ""]
    {
        assert_eq!(reason(&listed::check(name)), "method.unlisted", "{name}");
    }
}

#[test]
fn policy_and_permission_of_what_is_reached() {
    let world = world(&[]);
    let (reader, editor) = (world.reader(), world.editor());
    let nobody = world.caller("{}", &["mcp"], None);
    for method in Method::ALL {
        let expected = if *method == Method::Discover { "passed" } else { "policy.no_permissions" };
        assert_eq!(reason(&policy::check(*method, &nobody.principal)), expected, "{method:?}");
        assert_eq!(reason(&policy::check(*method, &reader.principal)), "passed");
    }
    let prompt = r#""ref":{"type":"ref/prompt","name":"triage"},"#;
    let cases = [
        (Method::ToolsCall, r#""name":"search","#, "passed", "passed"),
        (Method::ToolsCall, r#""name":"update","#, "policy.not_permitted", "passed"),
        (Method::ToolsCall, r#""name":"Search","#, "policy.unpriced", "policy.unpriced"),
        (Method::ToolsCall, r#""name":"tool:search","#, "policy.unpriced", "policy.unpriced"),
        (Method::ToolsCall, r#""name":"triage","#, "policy.unpriced", "policy.unpriced"),
        (Method::ToolsCall, r#""name":"","#, "policy.unnamed", "policy.unnamed"),
        (Method::ToolsCall, r#""name":1,"#, "policy.unnamed", "policy.unnamed"),
        (Method::ToolsCall, "", "policy.unnamed", "policy.unnamed"),
        (Method::PromptsGet, r#""name":"triage","#, "passed", "passed"),
        (Method::ResourcesRead, r#""uri":"cases://case/1","#, "passed", "passed"),
        (Method::ResourcesRead, r#""uri":"cases://case/7","#, "policy.not_permitted", "passed"),
        (Method::ResourcesRead, r#""uri":"cases://case/%37","#, "policy.unnamed", "policy.unnamed"),
        (Method::ResourcesRead, r#""uri":"cases://case/7 ","#, "policy.unnamed", "policy.unnamed"),
        (Method::ResourcesRead, r#""uri":"cases://other","#, "policy.unpriced", "policy.unpriced"),
        (Method::Complete, prompt, "passed", "passed"),
        (Method::Complete, r#""ref":{"type":"ref/resource","uri":"cases://case/{id}"},"#, "passed", "passed"),
        (Method::Complete, r#""ref":{"type":"ref/tool","name":"search"},"#, "policy.unnamed", "policy.unnamed"),
        (
            Method::Listen,
            r#""notifications":{"resourceSubscriptions":["cases://case/1","cases://case/7"]},"#,
            "policy.not_permitted",
            "passed",
        ),
        (
            Method::Listen,
            r#""notifications":{"resourceSubscriptions":["cases://case/1",1]},"#,
            "policy.unnamed",
            "policy.unnamed",
        ),
        (Method::Listen, r#""notifications":{"resourceSubscriptions":null},"#, "policy.unnamed", "policy.unnamed"),
        (Method::Listen, r#""notifications":{"resourceSubscriptions":[]},"#, "passed", "passed"),
        (Method::Listen, r#""notifications":{"taskIds":[]},"#, "policy.unpriced", "policy.unpriced"),
        (Method::Listen, r#""notifications":[],"#, "policy.unnamed", "policy.unnamed"),
        (Method::Listen, "", "passed", "passed"),
        (Method::ToolsList, "", "passed", "passed"),
    ];
    for (method, members, of_reader, of_editor) in cases {
        let document = document(&message(Some("1"), method.as_str(), members));
        let target = target::of(method, document.root().get("params"));
        for (caller, expected) in [(&reader, of_reader), (&editor, of_editor)] {
            let outcome = permission::check(world.server(), &caller.principal, &target);
            assert_eq!(reason(&outcome), expected, "{method:?} {members} by {}", caller.principal);
        }
    }
}

#[test]
fn scope_insufficient() {
    let world = world(&[]);
    let server = world.server();
    assert_eq!(reason(&scope::baseline(server, &world.reader())), "passed");
    assert_eq!(reason(&scope::baseline(server, &world.caller("{}", &[], None))), "scope.insufficient");
    let update = server.prices.tool("update").expect("priced");
    assert_eq!(reason(&scope::capabilities(server, &world.editor(), &[update])), "passed");
    let refusal = scope::capabilities(server, &world.reader(), &[update]).expect_err("a scope is missing");
    let challenge = refusal.challenge.expect("a challenge");
    assert!(challenge.contains(r#"scope="mcp cases:write""#), "{challenge}");
}

#[test]
fn a_processing_mode_that_shows_only_a_part_refuses() {
    for (modes, expected) in
        [(Modes::Whole, None), (Modes::Other, Some("internal")), (Modes::Unknown, Some("internal"))]
    {
        let head = Head { modes, ..post("tools/list", None) };
        let refused = body::modes(&head).err();
        assert_eq!(refused.map(|refusal| refusal.reason.as_str()), expected, "{modes:?}");
    }
}
