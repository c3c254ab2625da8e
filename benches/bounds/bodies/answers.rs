//! What servers answer.

use super::{Measured, Rung, SIZE, honest_arguments, list, many, result};

pub(super) fn listings() -> Rung {
    let mut rung = Rung::of("18 and 19, a listing");
    let mut arm = |name, entries: fn() -> String| {
        let body = move || result(&format!(r#""tools":[{}]"#, entries()));
        rung.arm(name, ("tools/list", ""), Measured::Answer("application/json"), body, None);
    };
    arm("usual definitions", || {
        list(SIZE, |n| {
            format!(
                r#"{{"name":"tool_{n:05}","title":"Tool number {n}","description":"Finds support cases by their text, their owner and their status, newest first.","inputSchema":{{"type":"object","required":["query"],"properties":{{"query":{{"type":"string"}},"limit":{{"type":"integer","minimum":1}}}}}}}}"#
            )
        })
    });
    arm("the smallest entries", || list(90_000, |_| r#"{"name":""}"#.into()));
    arm("entries with names", || list(60_000, |n| format!(r#"{{"name":"{n:x}"}}"#)));
    arm("recorded names", || list(60_000, |_| r#"{"name":"any"}"#.into()));
    arm("recorded names, changed in turn", || list(60_000, |n| format!(r#"{{"name":"any","{}":0}}"#, n % 7)));
    arm("recorded names with many members", || {
        let members = (0..30).map(|n| format!("\"{:x}\":0", 99 - n)).collect::<Vec<_>>().join(",");
        list(4_500, |_| format!(r#"{{"name":"any",{members}}}"#))
    });
    arm("a recorded name with many members", || {
        format!(r#"{{"name":"any",{}}}"#, list(100_000, |n| format!("\"{n:x}\":0")))
    });
    arm("a recorded definition, spelled anew", || {
        list(SIZE, |n| format!(r#"{{"name":"free","inputSchema":{}{{"type":"object"}}}}"#, " ".repeat(n % 2)))
    });
    arm("names behind many members", || {
        list(10, |n| {
            format!(r#"{{{},"name":"{n:x}"}}"#, super::list_within(SIZE / 11, SIZE, |n| format!("\"{n:x}\":0")))
        })
    });
    arm("entries with keys outside of ASCII", || list(40_000, |_| r#"{"name":"","é":0}"#.into()));
    let body = || result(&format!(r#"{},"tools":[]"#, list(100_000, |n| format!("\"{n:x}\":0"))));
    rung.arm("a list behind many members", ("tools/list", ""), Measured::Answer("application/json"), body, None);
    rung
}

pub(super) fn screening() -> Rung {
    let mut rung = Rung::of("20 and 21, screening");
    let mut arm = |name, members: Box<dyn Fn() -> String>| {
        let body = move || result(&members());
        rung.arm(name, ("tools/call", "free"), Measured::Answer("application/json"), body, None);
    };
    let said = |text: &'static str| -> Box<dyn Fn() -> String> {
        Box::new(move || format!(r#""content":[{{"type":"text","text":"{}"}}]"#, many(text)))
    };
    let rows = || format!(r#""content":[],"structuredContent":{}"#, honest_arguments());
    arm("rows", Box::new(rows));
    arm("prose", said("Der Drucker für den Empfang antwortet nicht. "));
    arm("plain prose", said("The printer at the desk does not answer. "));
    arm("combining characters", said("e\u{301}\u{308}"));
    arm("invisible characters", said("\u{200b}"));
    arm("letters that are invisible", said("\u{e0061}"));
    arm("invisible ones between letters", said("i\u{200b}g\u{200b}n\u{200b}"));
    arm("invisible ones that are spelling", said("\u{6cc}\u{200c}"));
    arm("escaped invisible characters", said(r"\u200b"));
    arm("words that nearly speak to the model", said("ignore all ignore previous "));
    arm("beginnings of tags", said("<important "));
    arm("beginnings of sentences to the model", said("do not tell the "));
    arm("white space behind a beginning", said("do\u{2003}\u{2003}\u{2003}"));
    arm("joined emoji", said("\u{1f469}\u{200d}"));
    let texts = |text: &'static str| -> Box<dyn Fn() -> String> {
        Box::new(move || {
            format!(r#""content":[{}]"#, list(35_000, |_| format!(r#"{{"type":"text","text":"{text}"}}"#)))
        })
    };
    arm("many short texts", texts("é"));
    arm("many texts that speak to the model", texts("~/.ssh"));
    arm("many texts with invisible characters", texts("\u{200b}"));
    let split = || format!(r#""content":[],"x":[{}]"#, list(120_000, |_| r#""<system","#.to_owned() + r#"">""#));
    arm("tags that end in the next text", Box::new(split));
    arm("many members", Box::new(|| format!(r#"{},"content":[]"#, list(100_000, |n| format!("\"{n:x}\":0")))));
    rung
}

pub(super) fn streams() -> Rung {
    let mut rung = Rung::of("18 to 21, a stream of events");
    let mut arm = |name, method, text: &'static str| {
        let body = move || {
            let mut bytes = many(text).into_bytes();
            bytes.extend_from_slice(b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n");
            bytes
        };
        rung.arm(name, method, Measured::Answer("text/event-stream"), body, None).tools = 1_000;
    };
    let call = ("tools/call", "free");
    arm(
        "notifications",
        call,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":0.5,\"message\":\"looking for printers\"}}\n\n",
    );
    arm("small notifications", call, "data:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n");
    arm("unknown notifications", call, "data:{\"jsonrpc\":\"2.0\",\"method\":\"\"}\n\n");
    arm("changed lists", call, "data:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n");
    arm(
        "updated resources",
        ("subscriptions/listen", ""),
        "data:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"cases://a?q=&r=\"}}\n\n",
    );
    arm(
        "notifications that speak to the model",
        call,
        "data:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"~/.ssh\"}}\n\n",
    );
    arm("blank lines", call, "\n");
    arm("line ends of two bytes", call, "\r\n");
    arm("comments", call, ":\n");
    arm("empty events", call, "data\n\n");
    arm("events without data", call, "id\n\n");
    arm("empty data lines", call, "data\n");
    rung
}
