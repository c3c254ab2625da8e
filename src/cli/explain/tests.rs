use std::path::{Path, PathBuf};

use super::{ExplainArgs, decide, report};

const ANA: &str = r#"{"sub":"ana","email":"ana@acme.com","email_verified":true,"scope":"mcp"}"#;

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policy-tests").join(file)
}

/// Ana, who calls the server of the example.
fn ana(capability: &str) -> ExplainArgs {
    ExplainArgs {
        config: example("portcullis.yaml"),
        claims: Some(ANA.to_owned()),
        fill_claims: true,
        capability: Some(capability.to_owned()),
        ..ExplainArgs::default()
    }
}

fn text(args: &ExplainArgs) -> String {
    report::text(&decide(args).unwrap_or_else(|fault| panic!("{fault}"))).expect("a text")
}

fn fault(args: &ExplainArgs) -> String {
    decide(args).map(|_| ()).expect_err("a fault")
}

#[test]
fn the_text_tells_who_why_and_what_comes_back() {
    let told = text(&ana("tool:update_case"));
    let expected = "\
server       cases
capability   tool:update_case
principal    ana@acme.com
  issuer     https://auth.acme.com
  subject    ana
  roles      reader
  holds      cases:read
  rules[0]: domain is acme.com -> role reader

   1  route       pass
";
    assert!(told.starts_with(expected), "{told}");
    let (_, rest) = told.split_once("  12  policy      pass\n").expect("rung 12");
    let expected = "  \
13  permission  refuse  policy.not_permitted
  14  scope       skip
";
    assert!(rest.starts_with(expected), "{rest}");
    let (_, rest) = told.split_once("  21  screen      skip\n\n").expect("the last rung");
    assert!(rest.starts_with("answered here: HTTP 200\n  content-type: application/json\n  cache-control: no-store\n\n  {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,"), "{rest}");
    let mut listing = ana("");
    (listing.capability, listing.method) = (None, Some("tools/list".to_owned()));
    let told = text(&listing);
    assert!(
        told.ends_with("\nforwarded to the server\nof what was recorded the caller is shown: tool:search_cases\n"),
        "{told}"
    );
}

#[test]
fn what_others_wrote_cannot_steer_a_terminal() {
    let told = text(&ana("tool:\u{1b}[2Jx"));
    assert!(!told.contains('\u{1b}') && told.contains("capability   tool:\u{fffd}[2Jx"), "{told}");
}

#[test]
fn the_json_has_these_members_and_no_other() {
    let explained = decide(&ana("tool:update_case")).expect("decided");
    let json = report::json_text(&explained).expect("JSON");
    let order = ["\"principal\"", "\"matched_rules\"", "\"denied_by\"", "\"rungs\"", "\"answer\""];
    let places: Vec<_> = order.iter().map(|name| json.find(&format!("\n  {name}: ")).expect(name)).collect();
    assert!(places.is_sorted(), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(5));
    assert_eq!(
        json["principal"],
        serde_json::json!({"name": "ana@acme.com", "issuer": "https://auth.acme.com", "subject": "ana", "email": "ana@acme.com",
            "domain": "acme.com", "roles": ["reader"], "permissions": ["cases:read"]})
    );
    let rules = serde_json::json!([{"index": 0, "match": "domain is acme.com", "roles": ["reader"]}]);
    assert_eq!((&json["matched_rules"], &json["denied_by"]), (&rules, &serde_json::Value::Null));
    assert_eq!(json["rungs"].as_array().map(Vec::len), Some(21));
    assert_eq!(json["rungs"][11], serde_json::json!({"rung": "policy", "outcome": "pass"}));
    let refused = serde_json::json!({"rung": "permission", "outcome": "refuse", "reason": "policy.not_permitted"});
    assert_eq!((&json["rungs"][12], &json["rungs"][13]["outcome"]), (&refused, &serde_json::json!("skip")));
    let answer = &json["answer"];
    assert_eq!((&answer["status"], &answer["headers"]["cache-control"]), (&200.into(), &"no-store".into()));
    let body: serde_json::Value = serde_json::from_str(answer["body"].as_str().expect("a body")).expect("a frame");
    assert_eq!(body["error"]["data"]["error"], "policy.not_permitted");
    let denied = ExplainArgs { claims: Some(ANA.replace("\"ana\"", "\"contractor-17\"")), ..ana("search_cases") };
    let json = report::json_text(&decide(&denied).expect("decided")).expect("JSON");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["denied_by"], &json["matched_rules"][1]["index"]), (&2.into(), &2.into()));
    let allowed = ExplainArgs { arguments: Some(r#"{"query":"x"}"#.to_owned()), ..ana("search_cases") };
    let json = report::json_text(&decide(&allowed).expect("decided")).expect("JSON");
    assert!(json.ends_with("\n  \"answer\": null\n}\n"), "{json}");
}

#[test]
fn faults_say_what_to_change() {
    let lost = ExplainArgs { server: Some("other".to_owned()), ..ana("x") };
    assert_eq!(fault(&lost), "portcullis: expected a server `other`; the configuration has `cases`\n");
    let claims = ExplainArgs { claims: Some("{\"sub\":".to_owned()), ..ana("x") };
    assert!(fault(&claims).starts_with("portcullis: expected the claims as a JSON object, but "));
    let missing = ExplainArgs { claims: Some("nowhere.json".to_owned()), ..ana("x") };
    assert!(fault(&missing).starts_with("portcullis: nowhere.json: expected a file that can be read, but "));
    let folder = tempfile::tempdir().expect("a folder");
    let request = folder.path().join("request.http");
    std::fs::write(&request, "POST /mcp\n").expect("a file");
    let bad = ExplainArgs { request: Some(request.clone()), capability: None, ..ana("x") };
    let told = fault(&bad);
    assert_eq!(
        told,
        format!("portcullis: {}: line 1: expected a request line such as `POST /mcp HTTP/1.1`\n", request.display())
    );
}

/// A price that nobody decided keeps the configuration from loading, so there is nothing to explain.
#[test]
fn a_price_that_is_still_open_is_a_fault_of_the_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["portcullis.yaml", "policy.yaml", "record.yaml", "record.json"] {
        let text = std::fs::read_to_string(example(file)).expect("a file of the example");
        std::fs::write(folder.path().join(file), text.replace("permission: cases:write", "permission: TODO"))
            .expect("a file");
    }
    let told = fault(&ExplainArgs { config: folder.path().join("portcullis.yaml"), ..ana("tool:update_case") });
    assert!(told.contains("record.yaml:4:") && told.contains("TODO"), "{told}");
}
