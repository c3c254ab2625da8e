//! What clients send.

use super::{CURRENT, Measured, Rung, SIZE, TOKEN, honest_arguments, list, list_within, many, message, padded};

/// As many as fit.
fn items(item: fn(usize) -> String) -> String {
    list_within(TOKEN, TOKEN, item)
}

/// A small body: the honest one is what identity providers write.
pub(super) fn claims() -> Rung {
    let mut rung = Rung::of("6, a token that says 8 KiB");
    let claims = |members: String| {
        let own = r#""iss":"https://auth.acme.com","aud":"https://mcp.acme.com/mcp","sub":"someone","exp":1900000000"#;
        format!(r#"{{{own},"email":"ana@acme.com","email_verified":true,{members}}}"#).into_bytes()
    };
    let mut arm = |name, members: fn() -> String| {
        rung.arm(name, ("", ""), Measured::Claims, move || claims(members()), None);
    };
    arm("groups", || format!(r#""groups":[{}],"scope":"mcp""#, items(|n| format!("\"emea-support-{n}\""))));
    arm("short groups", || format!(r#""groups":[{}],"scope":"mcp""#, items(|n| format!("\"{n:x}\""))));
    arm("short claims", || format!(r#"{},"scope":"mcp""#, items(|n| format!("\"{n:x}\":0"))));
    arm("escaped claims", || format!(r#"{},"scope":"mcp""#, items(|n| format!("\"\\u0061{n:x}\":0"))));
    arm("short scopes", || format!(r#""scope":["mcp",{}]"#, items(|n| format!("\"{n:x}\""))));
    arm("empty scopes", || format!(r#""scope":"mcp {}""#, items(|_| "    ".into())));
    rung
}

pub(super) fn reading() -> Rung {
    let mut rung = Rung::of("9, reading");
    let array = |most: usize, item: fn(usize) -> String| move || format!(r#"{{"a":[{}]}}"#, list(most, item));
    let keys = |key: fn(usize) -> String| move || format!("{{{}}}", list(120_000, |n| format!("\"{}\":0", key(n))));
    let text = |part: &'static str| move || format!(r#"{{"q":"{}"}}"#, many(part));
    rung.call("rows", "free", honest_arguments, None);
    rung.call("one text", "free", text("printer does not answer, "), None);
    rung.call("empty arrays", "free", array(250_000, |_| "[]".into()), None);
    rung.call("digits", "free", array(250_000, |_| "0".into()), None);
    rung.call("too many digits", "free", array(500_000, |_| "0".into()), Some("body.too_large"));
    rung.call("exponents", "free", array(250_000, |_| "1e-9".into()), None);
    rung.call("deep arrays", "free", array(2000, |_| format!("{}{}", "[".repeat(59), "]".repeat(59))), None);
    rung.call("deep objects", "free", array(1400, |_| format!("{}0{}", r#"{"":"#.repeat(59), "}".repeat(59))), None);
    rung.call("escapes", "free", text(r"\u00e9"), None);
    rung.call("surrogates", "free", text(r"\ud83d\ude00"), None);
    rung.call("texts of one escape", "free", array(250_000, |_| r#""\n""#.into()), None);
    rung.call("short keys", "free", keys(|n| format!("{n:x}")), None);
    rung.call("keys in falling order", "free", keys(|n| format!("{:06}", 999_999 - n)), None);
    rung.call("keys with a long beginning in common", "free", keys(|n| format!("{}{n:06}", "k".repeat(200))), None);
    rung.call("keys with eight bytes in common", "free", keys(|n| format!("kkkkkkkk{:x}", n * 7919 % 120_000)), None);
    rung.call("escaped keys", "free", keys(|n| format!(r"\u0061{n}")), None);
    let common = keys(|n| format!(r"\nkkkkkkk{:x}", n * 7919 % 120_000));
    rung.call("escaped keys with eight bytes in common", "free", common, None);
    let repeated = || format!("{{{},\"0\":1}}", list(100_000, |n| format!("\"{n:x}\":0")));
    rung.call("a key twice among many", "free", repeated, Some("json.duplicate_key"));
    let objects = |most: usize, keys: usize| {
        move || {
            let object = (0..keys).map(|n| format!("\"{}{n:02}\":0", "k".repeat(6))).collect::<Vec<_>>().join(",");
            format!(r#"{{"a":[{}]}}"#, list(most, |_| format!("{{{object}}}")))
        }
    };
    rung.call("objects of twelve keys", "free", objects(9_000, 12), None);
    rung.call("objects of thirteen keys", "free", objects(8_400, 13), None);
    rung
}

pub(super) fn envelope() -> Rung {
    let mut rung = Rung::of("9 and 10, message and envelope");
    let search = ("tools/call", "free");
    rung.call("rows", "free", honest_arguments, None);
    let mut members = |name, item: fn(usize) -> String| {
        let body = move || {
            let members = list(120_000, |n| format!("\"{}\":0", item(n)));
            message("1", "tools/call", &format!(r#""name":"free","arguments":{{}},{members},"#))
        };
        rung.arm(name, search, Measured::Request, body, None);
    };
    members("unknown members", |n| format!("k{n}"));
    members("members of a known length", |n| format!("{n:09}"));
    members("members outside of ASCII", |n| format!("é{n:x}"));
    members("members that fold nearly to a known one", |n| format!("protocolVerſio{n:x}"));
    members("members that fold to a known length", |n| format!("progreſſ{:x}", n + 0x100_0000));
    members("members that fold to ASCII", |n| format!("ſ{n:x}"));
    members("members that fold to two letters", |n| format!("ß{n:x}"));
    members("members with a dotless i", |n| format!("ı{n:x}"));
    members("members of many long s", |n| format!("{n:x}{}", "ſ".repeat(50)));
    let unknown = || list(110_000, |n| format!("\"{n:x}\":0"));
    let last = move || message("1", "tools/call", &format!(r#"{},"name":"free","arguments":{{}},"#, unknown()));
    rung.arm("known members behind unknown ones", search, Measured::Request, last, None);
    let meta = move || {
        let known = format!(
            r#""io.modelcontextprotocol/protocolVersion":"{CURRENT}","io.modelcontextprotocol/clientCapabilities":{{}}"#
        );
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","arguments":{},"_meta":{"#;
        padded(format!("{text}{},{known}}}}}}}", unknown()))
    };
    rung.arm("known members of _meta behind unknown ones", search, Measured::Request, meta, None);
    let id = |id: String| move || message(&id, "tools/call", r#""name":"free","arguments":{},"#);
    rung.arm("an id of digits", search, Measured::Request, move || id(many("7"))(), None);
    rung.arm("an id of escapes", search, Measured::Request, move || id(format!("\"{}\"", many(r"\u00e9")))(), None);
    rung
}

pub(super) fn resources() -> Rung {
    let mut rung = Rung::of("12 and 13, what resources cost");
    let mut subscribe = |name, uris: fn() -> String| {
        let body = move || {
            let members = format!(r#""notifications":{{"resourceSubscriptions":[{}]}},"#, uris());
            message("1", "subscriptions/listen", &members)
        };
        rung.arm(name, ("subscriptions/listen", ""), Measured::Request, body, None);
    };
    subscribe("URIs in a subscription", || list(SIZE, |n| format!("\"cases://case/number-{n}\"")));
    subscribe("short URIs", || list(SIZE, |n| format!("\"cases://case/{n:x}\"")));
    subscribe("one URI again and again", || list(SIZE, |_| "\"cases://case/1\"".into()));
    subscribe("URIs of many readings", || list(SIZE, |n| format!("\"cases://aaaaaaaaaaaaaaaaaaaa?q={n}&r=a&s=a\"")));
    subscribe("one URI of many readings", || format!("\"cases://{}\"", many("a?q=a&r=a/")));
    subscribe("one URI of encoded octets", || format!("\"cases://x{}a\"", many("a%20")));
    let completion = || {
        let reference = format!(r#"{{"type":"ref/resource","uri":"cases://{}"}}"#, many("a?q=a&r=a/"));
        message("1", "completion/complete", &format!(r#""ref":{reference},"argument":{{"name":"q","value":""}},"#))
    };
    rung.arm("a completion of many readings", ("completion/complete", ""), Measured::Request, completion, None);
    rung
}

pub(super) fn schemas() -> Rung {
    let mut rung = Rung::of("16, arguments");
    let array = |most: usize, item: fn(usize) -> String| move || format!(r#"{{"a":[{}]}}"#, list(most, item));
    let numbers = || array(200_000, |n| n.to_string());
    let keys =
        |most: usize, key: fn(usize) -> String| move || format!("{{{}}}", list(most, |n| format!("\"{}\":0", key(n))));
    let (uncheckable, invalid) = (Some("arguments.uncheckable"), Some("arguments.invalid"));
    rung.call("rows under a usual schema", "rows", honest_arguments, None);
    rung.call("pattern", "pattern", || format!(r#"{{"s":"{}"}}"#, many("a")), None);
    rung.call("pattern that fails at the end", "pattern", || format!(r#"{{"s":"{}!"}}"#, many("a")), invalid);
    rung.call("short texts under a pattern and a format", "text", array(250_000, |_| "\"a\"".into()), None);
    rung.call("uniqueItems of numbers", "unique", numbers(), None);
    rung.call("uniqueItems of objects", "unique", array(30_000, |n| format!(r#"{{"aaaaaaaaaa":[{n}]}}"#)), None);
    rung.call("uniqueItems of exponents", "unique", array(200_000, |n| format!("1e{n}")), None);
    rung.call(
        "uniqueItems of many keys",
        "unique",
        array(9_000, |n| {
            format!("{{{}}}", (0..12).map(|key| format!("\"{:x}\":{n}", 99 - key)).collect::<Vec<_>>().join(","))
        }),
        None,
    );
    rung.call("contains", "contains", array(120_000, |_| "{}".into()), None);
    rung.call("references that double", "double", numbers(), uncheckable);
    rung.call("anyOf whose last branch fits", "any", numbers(), uncheckable);
    rung.call("enum of forty, the last", "enum", array(200_000, |_| "-40".into()), None);
    rung.call("unevaluatedItems", "unevaluated_items", numbers(), None);
    rung.call("required of forty among many keys", "required", keys(100_000, |n| format!("{n:x}")), invalid);
    rung.call("names under patterns", "names", keys(100_000, |n| format!("{n:x}0")), None);
    rung.call("dependentSchemas", "dependent", keys(100_000, |n| format!("{n:x}")), None);
    rung.call("unevaluatedProperties", "unevaluated", keys(100_000, |n| format!("{n:x}")), None);
    rung.call("twenty arguments that headers repeat", "mirrored", keys(100_000, |n| format!("{n:x}")), None);
    rung.call("a number of many digits", "number", || format!(r#"{{"n":{}}}"#, many("3")), None);
    rung.call("multiples with long exponents", "multiple", array(60_000, |_| format!("3e{}", "9".repeat(30))), None);
    rung
}

/// Looks at every row and finds nothing.
const RULE: &str = "!has(arguments.rows) || !arguments.rows.exists(row, row == 1)";

pub(super) fn gates() -> Rung {
    let mut rung = Rung::of("17, a CEL rule");
    let mut arm = |name, arguments: fn() -> String| {
        let body = move || super::call("free", &arguments());
        rung.arm(name, ("tools/call", "free"), Measured::Gate(RULE), body, None);
    };
    arm("rows", honest_arguments);
    arm("digits", || format!(r#"{{"rows":[{}]}}"#, list(200_000, |_| "0".into())));
    arm("exponents", || format!(r#"{{"rows":[{}]}}"#, list(200_000, |_| "1e-9".into())));
    arm("empty arrays", || format!(r#"{{"rows":[{}]}}"#, list(200_000, |_| "[]".into())));
    arm("short keys", || format!("{{{}}}", list(100_000, |n| format!("\"{n:x}\":0"))));
    arm("escapes", || format!(r#"{{"q":"{}"}}"#, many(r"\u00e9")));
    rung
}
