//! The bodies: for each rung an honest one, then the dearest ones we know of.

use std::iter::repeat_n;

use portcullis::protocol::version::CURRENT;

use super::world::Recorded;

/// Bytes of every body.
const SIZE: usize = 1 << 20;

/// Where the work happens.
pub(crate) enum Measured {
    /// Rungs 8 to 16.
    Request,
    /// A CEL rule over the arguments.
    Gate(&'static str),
    /// Rungs 18 to 21, on an answer of this content type.
    Answer(&'static str),
}

pub(crate) struct Arm {
    pub(crate) rung: &'static str,
    pub(crate) name: &'static str,
    pub(crate) honest: bool,
    pub(crate) method: &'static str,
    pub(crate) named: String,
    pub(crate) measured: Measured,
    pub(crate) body: Vec<u8>,
    /// The reason for which it is refused in the end.
    pub(crate) refused: Option<&'static str>,
}

pub(crate) const RECORDED: &[Recorded] = &[
    ("tool:free", "cases:read", None, r#"{"name":"free","inputSchema":{"type":"object"}}"#),
    (
        "tool:rows",
        "cases:read",
        None,
        r#"{"name":"rows","inputSchema":{"type":"object","required":["rows"],"additionalProperties":false,"properties":{"rows":{"type":"array","items":{"type":"object","required":["id","owner"],"additionalProperties":false,"properties":{"id":{"type":"integer","minimum":0},"open":{"type":"boolean"},"owner":{"type":"string","maxLength":100},"title":{"type":"string","maxLength":200}}}}}}}"#,
    ),
    (
        "tool:pattern",
        "cases:read",
        None,
        r#"{"name":"pattern","inputSchema":{"type":"object","properties":{"s":{"type":"string","pattern":"^(a|aa|[a-z]*a){1,20}$"}}}}"#,
    ),
    (
        "tool:unique",
        "cases:read",
        None,
        r#"{"name":"unique","inputSchema":{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}}"#,
    ),
    (
        "tool:double",
        "cases:read",
        None,
        r##"{"name":"double","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"allOf":[{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"}]},"d":{"allOf":[{"type":"integer"},{"minimum":0}]}}}}"##,
    ),
    (
        "tool:any",
        "cases:read",
        None,
        r#"{"name":"any","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","required":["b"]},{"type":"array"},{"const":-1},{"enum":[-2,-3]},{"type":"integer","minimum":1000000},{"type":"null"},{"type":"integer"}]}}}}}"#,
    ),
    (
        "tool:number",
        "cases:read",
        None,
        r#"{"name":"number","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":0,"multipleOf":3}}}}"#,
    ),
    ("resource:case", "cases:read", Some("cases://case/{id}"), r#"{"name":"case","uriTemplate":"cases://case/{id}"}"#),
    (
        "resource:deep",
        "cases:read",
        Some("cases://{+a}a{+b}a{+c}"),
        r#"{"name":"deep","uriTemplate":"cases://{+a}a{+b}a{+c}"}"#,
    ),
    (
        "resource:find",
        "cases:read",
        Some("cases://{+p}{?q,r,s}"),
        r#"{"name":"find","uriTemplate":"cases://{+p}{?q,r,s}"}"#,
    ),
];

/// As many of `item(n)` as fit beside what else a body holds, with commas between, but no more than `most`.
fn list(most: usize, item: impl Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(SIZE);
    for n in 0..most {
        let item = item(n);
        if out.len() + item.len() + 600 > SIZE {
            break;
        }
        if n > 0 {
            out.push(',');
        }
        out += &item;
    }
    out
}

fn many(text: &str) -> String {
    repeat_n(text, (SIZE - 600) / text.len()).collect()
}

/// Fills a message up to the size with white space, which costs least.
fn message(id: &str, method: &str, members: &str) -> Vec<u8> {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{CURRENT}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    padded(text)
}

fn padded(mut text: String) -> Vec<u8> {
    text.extend(repeat_n(' ', SIZE.saturating_sub(text.len())));
    text.into_bytes()
}

fn call(tool: &str, arguments: &str) -> Vec<u8> {
    message("1", "tools/call", &format!(r#""name":"{tool}","arguments":{arguments},"#))
}

fn result(members: &str) -> Vec<u8> {
    padded(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{{members}}}}}"#))
}

fn said(text: &str) -> Vec<u8> {
    result(&format!(r#""content":[{{"type":"text","text":"{text}"}}]"#))
}

/// Records as programs send them.
fn rows() -> String {
    list(SIZE, |n| format!(r#"{{"id":{n},"open":true,"owner":"ana@acme.com","title":"printer does not answer"}}"#))
}

impl Arm {
    /// The call whose answer is measured.
    pub(crate) fn request(&self) -> Vec<u8> {
        let members = match self.method {
            "tools/call" => r#""name":"free","arguments":{},"#,
            "subscriptions/listen" => r#""notifications":{},"#,
            _ => "",
        };
        let mut bytes = message("1", self.method, members);
        bytes.truncate(bytes.trim_ascii_end().len());
        bytes
    }
}

/// A rung, whose arms follow, the honest one first.
struct Rung(&'static str, Vec<Arm>);

impl Rung {
    fn arm(
        &mut self,
        name: &'static str,
        (method, named): (&'static str, &str),
        measured: Measured,
        body: Vec<u8>,
        refused: Option<&'static str>,
    ) {
        let honest = self.1.is_empty();
        self.1.push(Arm { rung: self.0, name, honest, method, named: named.to_owned(), measured, body, refused });
    }

    fn call(&mut self, name: &'static str, tool: &'static str, arguments: &str, refused: Option<&'static str>) {
        self.arm(name, ("tools/call", tool), Measured::Request, call(tool, arguments), refused);
    }
}

pub(crate) fn arms() -> Vec<Arm> {
    let rungs = [reading(), envelope(), resources(), schemas(), gates(), listings(), screening(), streams()];
    rungs.into_iter().flat_map(|rung| rung.1).collect()
}

fn reading() -> Rung {
    let mut rung = Rung("9, reading", Vec::new());
    let keys = |key: &dyn Fn(usize) -> String| format!("{{{}}}", list(120_000, |n| format!("\"{}\":0", key(n))));
    rung.call("rows", "free", &format!(r#"{{"rows":[{}]}}"#, rows()), None);
    rung.call("one text", "free", &format!(r#"{{"q":"{}"}}"#, many("printer does not answer, ")), None);
    rung.call("empty arrays", "free", &format!(r#"{{"a":[{}]}}"#, list(250_000, |_| "[]".into())), None);
    rung.call("digits", "free", &format!(r#"{{"a":[{}]}}"#, list(250_000, |_| "0".into())), None);
    rung.call(
        "too many digits",
        "free",
        &format!(r#"{{"a":[{}]}}"#, list(500_000, |_| "0".into())),
        Some("body.too_large"),
    );
    rung.call(
        "deep arrays",
        "free",
        &format!(r#"{{"a":[{}]}}"#, list(2000, |_| format!("{}{}", "[".repeat(59), "]".repeat(59)))),
        None,
    );
    rung.call("escapes", "free", &format!(r#"{{"q":"{}"}}"#, many(r"\u00e9")), None);
    rung.call("short keys", "free", &keys(&|n| format!("{n:x}")), None);
    rung.call("keys in falling order", "free", &keys(&|n| format!("{:06}", 999_999 - n)), None);
    rung.call("keys with a long beginning in common", "free", &keys(&|n| format!("{}{n:06}", "k".repeat(200))), None);
    rung.call("escaped keys", "free", &keys(&|n| format!(r"\u0061{n}")), None);
    rung.call(
        "objects of twelve keys",
        "free",
        &format!(
            r#"{{"a":[{}]}}"#,
            list(9_000, |_| format!(
                "{{{}}}",
                (0..12).map(|n| format!("\"{}{n:02}\":0", "k".repeat(6))).collect::<Vec<_>>().join(",")
            ))
        ),
        None,
    );
    rung
}

fn envelope() -> Rung {
    let mut rung = Rung("9 and 10, message and envelope", Vec::new());
    let search = ("tools/call", "free");
    let members =
        |members: String| message("1", "tools/call", &format!(r#""name":"free","arguments":{{}},{members},"#));
    rung.call("rows", "free", &format!(r#"{{"rows":[{}]}}"#, rows()), None);
    rung.arm("unknown members", search, Measured::Request, members(list(120_000, |n| format!(r#""k{n}":0"#))), None);
    rung.arm(
        "members of a known length",
        search,
        Measured::Request,
        members(list(120_000, |n| format!(r#""{n:09}":0"#))),
        None,
    );
    rung.arm(
        "members outside of ASCII",
        search,
        Measured::Request,
        members(list(120_000, |n| format!(r#""é{n:x}":0"#))),
        None,
    );
    rung.arm(
        "members that fold nearly to a known one",
        search,
        Measured::Request,
        members(list(120_000, |n| format!(r#""protocolVerſio{n:x}":0"#))),
        None,
    );
    rung.arm(
        "an id of digits",
        search,
        Measured::Request,
        message(&many("7"), "tools/call", r#""name":"free","arguments":{},"#),
        None,
    );
    rung.arm(
        "an id of escapes",
        search,
        Measured::Request,
        message(&format!("\"{}\"", many(r"\u00e9")), "tools/call", r#""name":"free","arguments":{},"#),
        None,
    );
    rung
}

fn resources() -> Rung {
    let mut rung = Rung("12 and 13, what resources cost", Vec::new());
    let subscribe = |uris: String| {
        message("1", "subscriptions/listen", &format!(r#""notifications":{{"resourceSubscriptions":[{uris}]}},"#))
    };
    let listen = ("subscriptions/listen", "");
    rung.arm(
        "URIs in a subscription",
        listen,
        Measured::Request,
        subscribe(list(SIZE, |n| format!("\"cases://case/number-{n}\""))),
        None,
    );
    rung.arm(
        "short URIs",
        listen,
        Measured::Request,
        subscribe(list(SIZE, |n| format!("\"cases://case/{n:x}\""))),
        None,
    );
    rung.arm(
        "URIs of many readings",
        listen,
        Measured::Request,
        subscribe(list(SIZE, |n| format!("\"cases://aaaaaaaaaaaaaaaaaaaa?q={n}&r=a&s=a\""))),
        None,
    );
    rung.arm(
        "one URI of many readings",
        listen,
        Measured::Request,
        subscribe(format!("\"cases://{}\"", many("a?q=a&r=a/"))),
        None,
    );
    rung.arm(
        "one URI of encoded octets",
        listen,
        Measured::Request,
        subscribe(format!("\"cases://x{}a\"", many("a%20"))),
        None,
    );
    rung
}

fn schemas() -> Rung {
    let mut rung = Rung("16, arguments", Vec::new());
    let numbers = || list(200_000, |n| n.to_string());
    rung.call("rows under a usual schema", "rows", &format!(r#"{{"rows":[{}]}}"#, rows()), None);
    rung.call("pattern", "pattern", &format!(r#"{{"s":"{}"}}"#, many("a")), None);
    rung.call(
        "pattern that fails at the end",
        "pattern",
        &format!(r#"{{"s":"{}!"}}"#, many("a")),
        Some("arguments.invalid"),
    );
    rung.call("uniqueItems of numbers", "unique", &format!(r#"{{"a":[{}]}}"#, numbers()), None);
    rung.call(
        "uniqueItems of objects",
        "unique",
        &format!(r#"{{"a":[{}]}}"#, list(30_000, |n| format!(r#"{{"aaaaaaaaaa":[{n}]}}"#))),
        None,
    );
    rung.call(
        "references that double",
        "double",
        &format!(r#"{{"a":[{}]}}"#, numbers()),
        Some("arguments.uncheckable"),
    );
    rung.call(
        "anyOf whose last branch fits",
        "any",
        &format!(r#"{{"a":[{}]}}"#, numbers()),
        Some("arguments.uncheckable"),
    );
    rung.call("a number of many digits", "number", &format!(r#"{{"n":{}}}"#, many("3")), None);
    rung
}

/// Looks at every row and finds nothing.
const RULE: &str = "!has(arguments.rows) || !arguments.rows.exists(row, row == 1)";

fn gates() -> Rung {
    let mut rung = Rung("17, a CEL rule", Vec::new());
    let mut arm = |name, arguments: String| {
        rung.arm(name, ("tools/call", "free"), Measured::Gate(RULE), call("free", &arguments), None);
    };
    arm("rows", format!(r#"{{"rows":[{}]}}"#, rows()));
    arm("digits", format!(r#"{{"rows":[{}]}}"#, list(200_000, |_| "0".into())));
    arm("empty arrays", format!(r#"{{"rows":[{}]}}"#, list(200_000, |_| "[]".into())));
    arm("short keys", format!("{{{}}}", list(100_000, |n| format!("\"{n:x}\":0"))));
    arm("escapes", format!(r#"{{"q":"{}"}}"#, many(r"\u00e9")));
    rung
}

fn listings() -> Rung {
    let mut rung = Rung("18 and 19, a listing", Vec::new());
    let (list_tools, json) = (("tools/list", ""), "application/json");
    let tools = |entries: String| result(&format!(r#""tools":[{entries}]"#));
    let usual = |n: usize| {
        format!(
            r#"{{"name":"tool_{n:05}","title":"Tool number {n}","description":"Finds support cases by their text, their owner and their status, newest first.","inputSchema":{{"type":"object","required":["query"],"properties":{{"query":{{"type":"string"}},"limit":{{"type":"integer","minimum":1}}}}}}}}"#
        )
    };
    rung.arm("usual definitions", list_tools, Measured::Answer(json), tools(list(SIZE, usual)), None);
    rung.arm(
        "the smallest entries",
        list_tools,
        Measured::Answer(json),
        tools(list(90_000, |_| r#"{"name":""}"#.into())),
        None,
    );
    rung.arm(
        "entries with names",
        list_tools,
        Measured::Answer(json),
        tools(list(60_000, |n| format!(r#"{{"name":"{n:x}"}}"#))),
        None,
    );
    rung.arm(
        "recorded names",
        list_tools,
        Measured::Answer(json),
        tools(list(60_000, |_| r#"{"name":"any"}"#.into())),
        None,
    );
    rung.arm(
        "a recorded name with many members",
        list_tools,
        Measured::Answer(json),
        tools(format!(r#"{{"name":"any",{}}}"#, list(100_000, |n| format!("\"{n:x}\":0")))),
        None,
    );
    rung.arm(
        "entries with keys outside of ASCII",
        list_tools,
        Measured::Answer(json),
        tools(list(40_000, |_| r#"{"name":"","é":0}"#.into())),
        None,
    );
    rung
}

fn screening() -> Rung {
    let mut rung = Rung("20 and 21, screening", Vec::new());
    let mut arm = |name, body| rung.arm(name, ("tools/call", "free"), Measured::Answer("application/json"), body, None);
    arm("prose", said(&many("Der Drucker für den Empfang antwortet nicht. ")));
    arm("plain prose", said(&many("The printer at the desk does not answer. ")));
    arm("combining characters", said(&many("e\u{301}\u{308}")));
    arm("invisible characters", said(&many("\u{200b}")));
    arm("letters that are invisible", said(&many("\u{e0061}")));
    arm("invisible ones between letters", said(&many("i\u{200b}g\u{200b}n\u{200b}")));
    arm("escaped invisible characters", said(&many(r"\u200b")));
    arm("words that nearly speak to the model", said(&many("ignore all ignore previous ")));
    arm("joined emoji", said(&many("\u{1f469}\u{200d}")));
    arm(
        "many short texts",
        result(&format!(r#""content":[{}]"#, list(35_000, |_| r#"{"type":"text","text":"é"}"#.into()))),
    );
    rung
}

fn streams() -> Rung {
    let mut rung = Rung("18 to 21, a stream of events", Vec::new());
    let events = |text: &str| {
        let mut bytes = many(text).into_bytes();
        bytes.extend_from_slice(b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n");
        bytes
    };
    let mut arm =
        |name, body| rung.arm(name, ("tools/call", "free"), Measured::Answer("text/event-stream"), body, None);
    arm(
        "notifications",
        events(
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":0.5,\"message\":\"looking for printers\"}}\n\n",
        ),
    );
    arm("small notifications", events("data:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"));
    arm("blank lines", events("\n"));
    arm("comments", events(":\n"));
    arm("empty events", events("data\n\n"));
    arm("events without data", events("id\n\n"));
    arm("empty data lines", events("data\n"));
    rung
}
