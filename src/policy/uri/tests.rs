use proptest::prelude::*;
use url::Url;

use super::{NotNormal, normal_form};

#[test]
fn normal_uris_pass() {
    for uri in [
        "cases://case/42",
        "cases://Case/42",
        "cases:",
        "urn:isbn:0451450523",
        "file:///etc/hosts",
        "https://mcp.acme.com/a%20b/%C3%A9?q=a%2Fb&r=../x#f/./g",
        "https://user@h.test:8443/",
        "https://[::1]:8443/x",
        "https://[::1]/x",
        "http://h.test:443/",
        "cases://case/.hidden/..x/...",
        "cases://HOST:80/",
        "a+b-c.d://x//y",
        "screen://a;v=1/b=c,d!$&'()*+",
    ] {
        assert_eq!(normal_form(uri), Ok(()), "{uri}");
    }
}

#[test]
fn each_rule_refuses_by_its_name() {
    for (uri, rule) in [
        ("case/42", NotNormal::NotAbsolute),
        ("", NotNormal::NotAbsolute),
        ("//host/x", NotNormal::NotAbsolute),
        ("1a:x", NotNormal::NotAbsolute),
        (":x", NotNormal::NotAbsolute),
        ("a/b:c", NotNormal::NotAbsolute),
        ("secret://payroll ", NotNormal::Space),
        (" secret://payroll", NotNormal::Space),
        ("secret://pay\troll", NotNormal::Control),
        ("secret://payroll\n", NotNormal::Control),
        ("secret://pay\0roll", NotNormal::Control),
        ("secret://payroll\u{7f}", NotNormal::Control),
        ("secret://a\\b", NotNormal::Backslash),
        ("secret://é", NotNormal::NotAscii),
        ("secret://\u{200b}", NotNormal::NotAscii),
        ("secret://a|b", NotNormal::Character),
        ("secret://a%", NotNormal::MalformedPercent),
        ("secret://a%2", NotNormal::MalformedPercent),
        ("secret://a%G0", NotNormal::MalformedPercent),
        ("secret://a%+1", NotNormal::MalformedPercent),
        ("secret://a%2fb", NotNormal::LowerCasePercent),
        ("secret://a?q=%c3%A9", NotNormal::LowerCasePercent),
        ("secret://p%61yroll", NotNormal::EncodedUnreserved),
        ("secret://a%7Eb", NotNormal::EncodedUnreserved),
        ("secret://a%2Eb", NotNormal::EncodedUnreserved),
        ("Secret://a", NotNormal::UpperCaseScheme),
        ("https://Acme.com/", NotNormal::UpperCaseHost),
        ("https://u@Acme.com/", NotNormal::UpperCaseHost),
        ("https://[::A]/", NotNormal::UpperCaseHost),
        ("https://h%2Bx/", NotNormal::EncodedHost),
        ("http://h:80/", NotNormal::Port),
        ("https://h:443", NotNormal::Port),
        ("ws://h:80", NotNormal::Port),
        ("wss://[::1]:443", NotNormal::Port),
        ("ftp://h:21/x", NotNormal::Port),
        ("https://h:/x", NotNormal::Port),
        ("https://h:08443/x", NotNormal::Port),
        ("https:h/x", NotNormal::NoHost),
        ("https:/h/x", NotNormal::NoHost),
        ("https:///h/x", NotNormal::NoHost),
        ("file:/etc/hosts", NotNormal::NoHost),
    ] {
        assert_eq!(normal_form(uri), Err(rule), "{uri:?}");
    }
}

#[test]
fn dot_segments_refuse_however_they_are_spelt() {
    for uri in [
        "cases://a/./b",
        "cases://a/../b",
        "cases://a/..",
        "cases://a/.",
        "cases://../b",
        "cases:../b",
        "cases:..",
        "cases://a/%2e/b",
        "cases://a/%2E%2E/b",
        "cases://a/.%2e",
        "cases://a/%2e./b",
        "cases://a/..?q",
        "cases://a/..#f",
        "cases://a/..%2Fb",
        "cases://a%2F../b",
        "cases://a/..%5Cb",
        "cases://a/%2E%2E%2F",
        "cases://a/..%2f",
    ] {
        assert_eq!(normal_form(uri), Err(NotNormal::DotSegment), "{uri}");
    }
}

#[test]
fn templates_are_judged_by_their_literal_text() {
    for good in [
        "cases://case/{id}",
        "https://{Host}/x",
        "https://h.test:{port}/",
        "https://h.test{/path*}{?q,r}{#f}",
        "{+uri}",
        "cases://a/{.ext}",
        "cases://{a}/{b}",
        "x://a{&q}{;p}",
    ] {
        assert_eq!(normal_form(good), Ok(()), "{good}");
    }
    for (bad, rule) in [
        ("Cases://case/{id}", NotNormal::UpperCaseScheme),
        ("https://h.test:443{/path}", NotNormal::Port),
        ("https://H.test/{x}", NotNormal::UpperCaseHost),
        ("cases://a/../{x}", NotNormal::DotSegment),
        ("cases://a b/{x}", NotNormal::Space),
        ("cases://%{x}", NotNormal::MalformedPercent),
        ("case/{id}", NotNormal::NotAbsolute),
    ] {
        assert_eq!(normal_form(bad), Err(rule), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_text_gets_an_answer(text in any::<String>()) {
        let _ = normal_form(&text);
    }

    /// What passes survives the parser that upstreams use most: its path, host and port stay as they are.
    #[test]
    fn a_web_uri_that_passes_is_not_rewritten(
        text in "(https?|wss?|ftp|HTTP):/{1,3}([a-zA-Z0-9@.]|%2[bBeE]){1,6}(:[0-9]{0,4})?(/([a-z.A-Z;=,+~-]|%[0-9a-fA-F]{2}|\\.\\.|\\\\){0,4}){1,4}(\\?[a-z=&./%]{0,4})?"
    ) {
        if normal_form(&text).is_ok() && let Ok(parsed) = Url::parse(&text) {
            let host = parsed.host_str().unwrap_or_default();
            // Numeric hosts are rewritten as addresses (`1` becomes 0.0.0.1): not part of the normal form.
            prop_assume!(host.bytes().any(|byte| byte.is_ascii_alphabetic()) && !text.contains('@'));
            prop_assert_eq!(parsed.as_str(), text);
        }
    }

    /// For private schemes: resolving against nothing changes nothing.
    #[test]
    fn a_private_uri_that_passes_is_not_rewritten(text in "[a-c]{1,2}://[a-zA-Z]{1,3}(/([a-z.A-Z %\t]|%2e|%2E|\\.\\.){0,4}){1,4}") {
        if normal_form(&text).is_ok() {
            let parsed = Url::parse(&text).expect("a normal URI parses");
            prop_assert_eq!(parsed.as_str(), text);
        }
    }
}
