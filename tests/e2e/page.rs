//! The admin page in a real browser: it is live, and what servers and callers wrote stays text.

use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clients::said;
use crate::support::{Answer, Reply, Request, Seen, Stack, fixture, free_port, mcp, root, wait_for};

/// A description that would do harm as markup, turns what follows around, and has no place to break a line.
const HOSTILE: &str =
    "<img src=x onerror=\"globalThis.hit = 1\"><script>globalThis.hit = 1</script> \u{202e}drawkcab\u{202c} \u{200b}";

/// What the page showed (page.mjs).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    state: String,
    /// Rows of the refusals before the last call, and the columns of each after it, the newest first.
    before: usize,
    refusals: Vec<Vec<String>>,
    /// The code that the last call was refused with, and what a screen reader was told.
    reason: String,
    said: String,
    /// Of the drift: capabilities, lines of both sides that differ, what is marked in them, letters shown by number.
    titles: Vec<String>,
    was: Vec<String>,
    now: Vec<String>,
    marked: Vec<String>,
    unseen: Vec<String>,
    images: usize,
    /// `capability role yes`.
    cells: Vec<String>,
    /// Rows of the matrix that the filter leaves.
    filtered: usize,
    captions: bool,
    /// What hostile script would set.
    hit: Value,
    violations: Vec<String>,
    /// Width of the document and of the phone.
    phone: (u64, u64),
    /// Whether markup cannot be put in.
    inert: bool,
    errors: Vec<String>,
    asked: Vec<String>,
}

fn stack(page: &str) -> (Stack, u16) {
    let port = free_port();
    let listen = format!("/ext_proc.sock\n  admin: {{address: 127.0.0.1:{port}{page}}}\nunmatched");
    (Stack::with(&[("/ext_proc.sock\nunmatched", &listen)], &[]), port)
}

fn get(port: u16, path: &str) -> Reply {
    Request::get(path).authority("localhost").send(port)
}

/// From now on the server describes `search_cases` like this.
fn describe(stack: &Stack, description: &str) {
    let mut tools = fixture::definitions("tool:");
    tools[0]["description"] = json!(description);
    let offering = move |seen: &Seen| {
        let message = seen.json();
        if message["method"] != "tools/list" {
            return mcp::answer(seen);
        }
        let result = json!({"resultType": "complete", "tools": tools});
        Answer::text("application/json", &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    };
    stack.upstream.script(offering.clone());
    stack.upstream.script_own(offering);
}

fn visit(stack: &Stack, port: u16) -> Shown {
    let mut command = Command::new(root().join(".tools/node"));
    command
        .arg(root().join("tests/clients/browser/page.mjs"))
        .arg(format!("http://127.0.0.1:{port}/"))
        .arg(format!("http://127.0.0.1:{}/mcp", stack.envoy.port))
        .arg(stack.reader())
        .env("TOOLS_DIR", root().join(".tools"))
        .env("TMPDIR", stack.dir.path());
    serde_json::from_value(said("browser", command, stack.dir.path())).expect("a visit")
}

#[test]
fn the_page_shows_refusals_as_they_come_and_drift_side_by_side_and_hostile_text_is_text() {
    let (stack, port) = stack(", page: on");
    let description = format!("{HOSTILE}{}", "w".repeat(3000));
    describe(&stack, &description);
    stack.refuses(&stack.request(&fixture::search()), "definition.changed");
    let shown = visit(&stack, port);
    assert_eq!((shown.state.as_str(), shown.before, &*shown.reason), ("Ready", 1, "policy.not_permitted"));
    assert!(shown.said.starts_with("1 new refusal"), "{}", shown.said);
    let [newest, first] = &shown.refusals[..] else { panic!("two refusals: {:?}", shown.refusals) };
    assert!(newest[1].starts_with("policy.not_permitted"), "{newest:?}");
    assert!(newest[2].starts_with("tool:update_case"), "{newest:?}");
    assert_eq!((&*newest[3], &*newest[4]), ("ana@acme.com", "cases"));
    // The decision's id is that of the audit.
    let line = stack.portcullis.audit_of("policy.not_permitted", 0);
    assert_eq!(line["decision_id"], json!(newest[5]), "{line}");
    assert!(first[1].starts_with("definition.changed"), "{first:?}");

    assert_eq!(shown.titles, ["tool:search_cases"]);
    let ([was], [now]) = (&shown.was[..], &shown.now[..]) else { panic!("one line: {:?} {:?}", shown.was, shown.now) };
    let recorded = fixture::definitions("tool:")[0]["description"].as_str().expect("a description").to_owned();
    assert!(was.contains(&recorded), "{was}");
    assert!(now.contains(r#"<img src=x onerror=\"globalThis.hit = 1\"><script>"#), "{now}");
    assert_eq!(shown.marked.len(), 1);
    assert_eq!(shown.unseen, ["U+202E", "U+202C", "U+200B"]);
    assert_eq!((shown.images, &shown.hit, shown.inert), (0, &Value::Null, true));
    assert_eq!((shown.violations, shown.errors), (vec![], vec![]));
    assert_eq!(shown.asked, [format!("127.0.0.1:{port}")], "it works offline");

    for cell in ["tool:search_cases reader yes", "tool:update_case reader no", "tool:update_case editor yes"] {
        assert!(shown.cells.iter().any(|own| own == cell), "expected {cell} in {:?}", shown.cells);
    }
    assert!(shown.captions && shown.filtered == 1, "{}", shown.filtered);
    assert_eq!(shown.phone, (390, 390), "the phone scrolls sideways");
}

#[test]
fn the_page_is_off_unless_it_is_on_and_what_it_asks_for_too() {
    let (_stack, port) = stack("");
    let reply = get(port, "/");
    assert_eq!(reply.status, 404);
    assert!(reply.text().contains("listen.admin.page"), "{reply}");
    for path in ["/page.json", "/page.json?details"] {
        assert_eq!(get(port, path).status, 404, "{path}");
    }
}

#[test]
fn the_page_answers_like_the_rest_of_the_listener() {
    let (stack, port) = stack(", page: on");
    for path in ["/", "/page.json", "/page.json?details"] {
        assert_eq!(Request::get(path).authority("rebound.example").send(port).status, 421, "{path}");
        assert_eq!(Request::new("POST", path).authority("localhost").send(port).status, 405, "{path}");
        let head = Request::new("HEAD", path).authority("localhost").send(port);
        assert_eq!((head.status, head.body.len()), (200, 0), "{head}");
        assert_eq!(head.header("cross-origin-resource-policy"), Some("same-origin"), "{head}");
    }
    stack.allows(&stack.request(&fixture::search()));
    let decided = || (get(port, "/page.json").json()["decisions"]["allow"] == 1).then_some(());
    wait_for(Duration::from_secs(10), decided).expect("a decision");
    let before = get(port, "/page.json").json()["details"].clone();
    assert_eq!(get(port, "/page.json?details").json()["details"], before);
    // A definition that changes again is shown anew, and one that is restored no more.
    describe(&stack, "Something else.");
    stack.post(&fixture::rpc("tools/list", json!({})));
    let changed = get(port, "/page.json").json()["details"].clone();
    assert_ne!(changed, before);
    describe(&stack, "And again.");
    stack.post(&fixture::rpc("tools/list", json!({})));
    let details = get(port, "/page.json?details").json();
    assert_ne!(details["details"], changed);
    assert!(details["drift"][0]["offered"].as_str().expect("a text").contains("And again."), "{details:#}");
    assert!(details["drift"][0]["recorded"].as_str().is_some_and(|text| !text.contains("And again.")), "{details:#}");
}
