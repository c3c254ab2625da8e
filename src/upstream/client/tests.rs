use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::testing::{Asked, Raw, Scripted, discovered, tool};
use super::{MAX_PAGES, Progress};
use crate::policy::Kind;
use crate::protocol::Method;
use crate::upstream::CredentialSource;
use crate::upstream::SecretSource;

fn quiet(_: Progress) {}

fn page(asked: &Asked, tools: &[&str], next: Value) -> Raw {
    let mut result = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "public"});
    result["tools"] = tools.iter().map(|name| tool(name)).collect();
    if !next.is_null() {
        result["nextCursor"] = next;
    }
    Raw::result(asked, result)
}

/// What listing the tools of a server fails with that answers everything so.
async fn fault(script: impl Fn(&Asked) -> Raw + Send + Sync + 'static) -> String {
    let server = Scripted::start(script).await;
    server.client().list(&[Kind::Tool], &quiet).await.expect_err("a fault").to_string()
}

async fn fault_of(answer: Raw) -> String {
    fault(move |_| answer.clone()).await
}

/// The same for a result.
async fn fault_of_result(result: Value) -> String {
    fault(move |asked| Raw::result(asked, result.clone())).await
}

#[tokio::test]
async fn a_survey_asks_for_what_is_advertised_and_nothing_else() {
    let server = Scripted::start(|asked| match asked.body["method"].as_str() {
        Some("server/discover") => Raw::result(asked, discovered(&["tools", "resources", "logging"])),
        Some("tools/list") => page(asked, &["search"], Value::Null),
        Some("resources/list") => Raw::result(asked, json!({"resources": [{"name": "faq", "uri": "cases://faq"}]})),
        _ => Raw::http(
            404,
            "application/json",
            &json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": {"code": -32601, "message": "no"}}).to_string(),
        ),
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "s3cret\n").unwrap();
    let bearer = SecretSource { file: Some("token".into()), env: None };
    let credential = CredentialSource::Bearer(bearer).load(dir.path()).unwrap();
    let client = server.client_with(|settings| settings.credential = credential);
    let steps = Mutex::new(Vec::new());
    let listing = client.survey(&|step| steps.lock().unwrap().push(step)).await.unwrap();
    assert_eq!(listing.instructions.as_deref(), Some("Search first."));
    assert_eq!(listing.kinds, [Kind::Tool, Kind::Resource]);
    let labels: Vec<String> = listing.entries.iter().map(|listed| listed.label.to_string()).collect();
    // The server knows no templates, which is its right.
    assert_eq!(labels, ["tool:search", "resource:faq"]);
    let methods = [Method::Discover, Method::ToolsList, Method::ResourcesList, Method::TemplatesList];
    assert_eq!(*steps.lock().unwrap(), methods.map(|method| Progress { method, page: 1, entries: 0 }));
    let asked = server.asked();
    assert_eq!(asked.len(), 4, "prompts were not asked for: {asked:?}");
    for (request, method) in asked.iter().zip(methods) {
        for line in [
            "POST /mcp HTTP/1.1",
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            "accept-encoding: identity",
            "mcp-protocol-version: 2026-07-28",
            "authorization: Bearer s3cret",
        ] {
            assert!(request.head.iter().any(|own| own == line), "{line}: {request:?}");
        }
        assert!(request.head.contains(&format!("mcp-method: {}", method.as_str())), "{request:?}");
        let meta = &request.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
    }
    assert_ne!(asked[0].body["id"], asked[1].body["id"]);
}

#[tokio::test]
async fn pages_follow_their_cursors_the_empty_one_too_and_keep_every_digit() {
    let server = Scripted::start(|asked| match &asked.body["params"]["cursor"] {
        Value::Null => page(asked, &["a"], json!("")),
        // A page may be empty and still have a successor.
        Value::String(cursor) if cursor.is_empty() => page(asked, &[], json!("x\"y")),
        Value::String(cursor) if cursor == "x\"y" => page(asked, &[], json!("z")),
        _ => Raw::http(
            200,
            "application/json; charset=utf-8",
            &format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[ {{"name":"b","m":9007199254740993, "_meta":1}}],"nextCursor":null}}}}"#,
                asked.body["id"]
            ),
        ),
    })
    .await;
    let listing = server.client().list(&[Kind::Tool], &quiet).await.unwrap();
    let texts: Vec<&str> = listing.entries.iter().map(|listed| listed.document.text()).collect();
    assert_eq!(texts[1], r#"{"name":"b","m":9007199254740993, "_meta":1}"#);
    assert_eq!((texts.len(), server.asked().len()), (2, 4));
}

#[tokio::test]
async fn an_answer_may_be_a_stream() {
    let server = Scripted::start(|asked| {
        let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"tools": [tool("a")]}}).to_string();
        let (head, tail) = answer.split_at(answer.find(",\"result\"").unwrap());
        Raw::events(&format!(
            ": hello\r\n\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{}}}}\r\n\r\n\
             data: {head}\ndata:{tail}\n\ndata: never read\n\n"
        ))
    })
    .await;
    assert_eq!(server.client().list(&[Kind::Tool], &quiet).await.unwrap().entries.len(), 1);
    for (text, words) in [
        ("", "the stream holds no answer"),
        ("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}\n", "the stream holds no answer"),
        ("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n", "a message of the server's own"),
        ("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}\n\n", "id 1, got one to \"2\""),
        ("data: {\n\n", "expected acceptable JSON: the text ended inside a value"),
    ] {
        let told = fault_of(Raw::events(text)).await;
        assert!(told.starts_with("tools/list, page 1: ") && told.contains(words), "{text}: {told}");
    }
    let flood = format!(": {}\n\n", "x".repeat(10_000)).repeat(110);
    assert!(fault_of(Raw::events(&flood)).await.contains("at most 1048576 bytes"));
}

#[tokio::test]
async fn pagination_that_does_not_end_is_a_fault() {
    let circles = fault(|asked| page(asked, &[], json!("same"))).await;
    assert!(circles.starts_with("tools/list, page 2: ") && circles.contains("\"same\" a second time"), "{circles}");
    let next = |asked: &Asked| json!(format!("{}x", asked.body["params"]["cursor"].as_str().unwrap_or_default()));
    let ignored = fault(move |asked| page(asked, &["a", "b"], next(asked))).await;
    assert!(ignored.starts_with("tools/list, page 2: ") && ignored.contains("ignores the cursor"), "{ignored}");
    let endless = fault(move |asked| {
        let cursor = next(asked);
        page(asked, &[cursor.as_str().unwrap()], cursor.clone())
    })
    .await;
    assert_eq!(
        endless,
        format!("tools/list, page {MAX_PAGES}: expected at most {MAX_PAGES} pages, the server has more")
    );
}

#[tokio::test]
async fn what_is_no_answer_of_this_server_is_a_fault() {
    let unknown = json!({"jsonrpc": "2.0", "error": {"code": -32602, "message": "no such cursor\u{1b}[31m"}});
    for (answer, words) in [
        (Raw::http(302, "text/html", ""), "a redirect (HTTP 302)"),
        (Raw::http(401, "application/json", "{}"), "HTTP 401: the server refuses our credential"),
        (Raw::http(403, "text/plain", ""), "HTTP 403: the server refuses our credential"),
        (Raw::http(500, "text/html", "<html>"), "got HTTP 500"),
        (Raw::http(502, "application/json", "<html>"), "got HTTP 502"),
        (Raw::http(503, "application/json", "{\"a\":1}"), "got HTTP 503"),
        (Raw::http(200, "text/html", "{}"), "content-type \"text/html\""),
        (Raw::http(200, "application/jsonp", "{}"), "content-type \"application/jsonp\""),
        (Raw::http(200, "application/json; charset=utf-7", "{}"), "content-type \"application/json; charset=utf-7\""),
        (Raw::http(200, "application/json", "[]"), "one JSON-RPC 2.0 message"),
        (Raw::http(200, "application/json", "{\"a\":1,\"a\":2}"), "a key is repeated"),
        (Raw::http(400, "application/json", &unknown.to_string()), "error -32602: \"no such cursor\\u{1b}[31m\""),
        (Raw::json(&json!({"jsonrpc": "2.0", "id": "1", "result": {"tools": []}})), "id 1, got one to \"\\\"1\\\"\""),
        (Raw::json(&json!({"jsonrpc": "2.0", "result": {"tools": []}})), "id 1, got one to none"),
        (Raw::json(&json!({"jsonrpc": "2.0", "method": "notifications/progress"})), "a message of the server's own"),
        (Raw::json(&json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}})), "an object `result` or an `error`"),
        (Raw::json(&json!({"jsonrpc": "2.0", "id": 1, "result": [], "Id": 2})), "differs only by case"),
        (Raw { bytes: Vec::new(), ..Raw::default() }, "cannot connect or talk to the server"),
        (Raw { bytes: b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n".to_vec(), ..Raw::default() }, "content-encoding \"gzip\""),
        (Raw { bytes: b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"jsonrpc\"".to_vec(), ..Raw::default() }, "ended half-way"),
        (Raw::http(200, "application/json", &" ".repeat((1 << 20) + 1)), "at most 1048576 bytes"),
    ] {
        let told = fault_of(answer.clone()).await;
        assert!(told.starts_with("tools/list, page 1: ") && told.contains(words), "{answer:?}: {told}");
    }
    let slow = Scripted::start(|_| Raw { pause: Duration::from_secs(30), bytes: Vec::new() }).await;
    let impatient = slow.client_with(|settings| settings.timeout = Duration::from_millis(300));
    let told = impatient.list(&[Kind::Tool], &quiet).await.expect_err("no answer").to_string();
    assert!(told.contains("a whole answer within 300ms"), "{told}");
    let nobody = Scripted::start(|_| Raw::default()).await.client();
    let told = nobody.list(&[Kind::Tool], &quiet).await.expect_err("nobody listens").to_string();
    assert!(told.contains("cannot connect or talk to the server"), "{told}");
}

#[tokio::test]
async fn a_result_that_is_no_listing_is_a_fault() {
    for (result, words) in [
        (json!({}), "a list under the method's member"),
        (json!({"tools": {}}), "a list under the method's member"),
        (json!({"tools": [], "Tools": []}), "differs only by case"),
        (json!({"tools": [], "resultType": "input_required"}), "resultType \"input_required\""),
        (json!({"tools": [], "nextCursor": 7}), "`nextCursor` as a string, got \"7\""),
        (json!({"tools": [tool("a"), 7]}), "entry 1: expected `name` as a string"),
        (json!({"tools": [{"name": ""}]}), "entry 0: expected `name` as a string that is not empty"),
        (json!({"tools": [{"name": "a", "Name": "b"}]}), "entry 0: expected the protocol's keys"),
    ] {
        let told = fault_of_result(result.clone()).await;
        assert!(told.starts_with("tools/list, page 1: ") && told.contains(words), "{result}: {told}");
    }
    let script = |asked: &Asked| Raw::result(asked, json!({"resources": [{"name": "a"}]}));
    let server = Scripted::start(script).await;
    let told = server.client().list(&[Kind::Resource], &quiet).await.expect_err("no uri").to_string();
    assert!(told.contains("entry 0: expected `uri`"), "{told}");
    for (change, words) in [
        (json!({"supportedVersions": ["2025-11-25"]}), "a server that speaks 2026-07-28"),
        (json!({"supportedVersions": null}), "a server that speaks 2026-07-28"),
        (json!({"instructions": ["x"]}), "`instructions` as a string"),
        (json!({"capabilities": null}), "an object `capabilities`"),
    ] {
        let mut result = discovered(&["tools"]);
        result.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let server = Scripted::start(move |asked| Raw::result(asked, result.clone())).await;
        let told = server.client().survey(&quiet).await.expect_err("a fault").to_string();
        assert!(told.starts_with("server/discover, page 1: ") && told.contains(words), "{change}: {told}");
    }
}

/// A server that is there at first and dies between two pages leaves no half listing.
#[tokio::test]
async fn half_a_listing_is_none() {
    let told = fault(|asked| match asked.body["params"]["cursor"].as_str() {
        None => page(asked, &["a"], json!("2")),
        Some(_) => Raw::default(),
    })
    .await;
    assert!(told.starts_with("tools/list, page 2: cannot connect or talk to the server"), "{told}");
}
