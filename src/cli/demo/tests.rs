//! The demo's parts on their own. The whole chain is run by `make demo`, which checks itself.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::extract::{Request as Incoming, State};
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::client::{Answer, Connection, Request};
use super::identity_provider::{IdentityProvider, Person};
use super::narrator::Narrator;
use super::process::Process;
use super::stage::substitute;
use super::story::{self, Cast};
use super::watch::{Seen, Watch};

const RESOURCE: &str = "http://127.0.0.1:1/mcp";
const SOMEONE: Person = Person { sub: "someone", email: "someone@acme.com", groups: &["a-group"] };

/// What a token says when it is checked against the provider's own JWKS, as Portcullis would check it.
fn verified(idp: &IdentityProvider, token: &str, audience: &str) -> jsonwebtoken::errors::Result<Value> {
    let set: JwkSet = serde_json::from_slice(idp.jwks()).unwrap();
    let header = jsonwebtoken::decode_header(token)?;
    let key = DecodingKey::from_jwk(set.find(&header.kid.unwrap()).unwrap())?;
    let mut rules = Validation::new(Algorithm::ES256);
    rules.set_audience(&[audience]);
    rules.set_issuer(&["http://127.0.0.1:7"]);
    Ok(jsonwebtoken::decode(token, &key, &rules)?.claims)
}

#[test]
fn a_token_verifies_with_the_published_key_for_its_audience_only() {
    let idp = IdentityProvider::new(7, RESOURCE.to_owned()).unwrap();
    let token = idp.token(&SOMEONE, "mcp cases:write").unwrap();
    let claims = verified(&idp, &token, RESOURCE).unwrap();
    assert_eq!(claims["email"], "someone@acme.com");
    assert_eq!(claims["email_verified"], true);
    assert_eq!(claims["groups"], json!(["a-group"]));
    assert_eq!(claims["scope"], "mcp cases:write");
    assert!(verified(&idp, &token, "http://127.0.0.1:2/mcp").is_err());
    let other = IdentityProvider::new(7, RESOURCE.to_owned()).unwrap();
    assert!(verified(&other, &token, RESOURCE).is_err(), "a key is made anew for each run");
}

#[tokio::test]
async fn the_key_set_is_served_and_nothing_else() {
    let idp = IdentityProvider::new(7, RESOURCE.to_owned()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    idp.serve(listener);
    let mut connection = Connection::open(port).await.unwrap();
    let answer = connection.send(&Request::get("/jwks.json")).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body.as_bytes()), (200, idp.jwks()));
    assert!(!answer.body.contains("\"d\""), "the private part is not published");
    assert_eq!(connection.send(&Request::get("/")).await.unwrap().status.as_u16(), 404);
}

#[test]
fn substitution_is_one_pass_and_misses_nothing() {
    let pairs = [("one", "two".to_owned()), ("two", "one".to_owned())];
    assert_eq!(substitute("one two one, onetwo", &pairs).unwrap(), "two one two, twoone");
    let error = substitute("only one", &pairs).unwrap_err().to_string();
    assert!(error.contains("`two`"), "{error}");
}

#[test]
fn each_request_of_the_story_is_what_it_says() {
    let call = Request::call("7", "search_cases", r#"{"query":"x"}"#).bearing("abc").claiming("Mcp-Name", "other");
    let body: Value = serde_json::from_str(&call.body).unwrap();
    assert_eq!(body["params"]["name"], "search_cases");
    assert_eq!(body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert!(call.headers.contains(&("Mcp-Name", "other".to_owned())));
    assert!(call.headers.contains(&("Authorization", "Bearer abc".to_owned())));
    let list: Value = serde_json::from_str(&Request::mcp("tools/list", "1", None, "").body).unwrap();
    assert_eq!(list["method"], "tools/list");
}

#[test]
fn an_id_is_read_as_its_bytes_stand() {
    let answer =
        |body: &str| Answer { status: http::StatusCode::OK, headers: http::HeaderMap::new(), body: body.to_owned() };
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":9007199254740993,"error":{}}"#).id(), "9007199254740993");
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":"a\u0062","result":{}}"#).id(), r#""a\u0062""#);
    assert_eq!(answer(r#"{"jsonrpc":"2.0","error":{"id":1}}"#).id(), "");
}

fn shell(script: &str, folder: &Path) -> Process {
    let log = folder.join("log");
    Process::start("the part", Path::new("/bin/sh"), &["-c", script], log, "").unwrap()
}

#[tokio::test]
async fn a_part_that_ends_before_it_is_ready_is_named_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = shell("echo no such module >&2; exit 3", folder.path());
    let error = process.ready("it to listen", async || false).await.unwrap_err().to_string();
    for part in ["the part", "expected it to listen", "exit status: 3", "no such module"] {
        assert!(error.contains(part), "expected `{part}` in: {error}");
    }
}

#[test]
fn a_program_that_is_not_there_is_named_with_what_to_do() {
    let start = Process::start("the part", Path::new("no/such/file"), &[], PathBuf::from("log"), "Install it.");
    let error = start.err().unwrap().to_string();
    assert!(error.contains("no/such/file") && error.contains("Install it."), "{error}");
}

#[tokio::test]
async fn a_stopped_part_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = shell("trap '' TERM INT; while :; do sleep 1; done", folder.path());
    let entry = PathBuf::from(format!("/proc/{}", process.id().unwrap()));
    assert!(entry.exists());
    process.stop().await;
    assert!(!entry.exists());
}

/// An unguarded server that lets everything through, and logs each request as the demo's upstream does.
#[derive(Clone)]
struct Unguarded {
    log: PathBuf,
    /// What it pretends to have received as Authorization; none for what it did receive.
    credential: Option<&'static str>,
}

impl Unguarded {
    async fn start(credential: Option<&'static str>, folder: &Path) -> (u16, PathBuf) {
        let log = folder.join("upstream.log");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Self { log: log.clone(), credential };
        let app = Router::new().fallback(Self::answer).with_state(state);
        tokio::spawn(async move { axum::serve(listener, app).await });
        (port, log)
    }

    async fn answer(State(this): State<Self>, request: Incoming) -> String {
        let authorization = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        let authorization = authorization.map(|received| this.credential.unwrap_or(received).to_owned());
        let http = format!("{} {}", request.method(), request.uri().path());
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let name = body.pointer("/params/name").or(body.pointer("/params/uri"));
        let client = body.pointer("/params/_meta/io.modelcontextprotocol~1clientInfo/name");
        let line = json!({
            "http": http, "method": body["method"], "name": name, "client": client, "authorization": authorization,
        });
        let mut log = OpenOptions::new().create(true).append(true).open(&this.log).unwrap();
        writeln!(log, "a line that is no JSON\n{line}").unwrap();
        let id = body["id"].clone();
        let result = json!({"resultType": "complete", "structuredContent": {"total": 2}});
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    }
}

#[tokio::test]
async fn the_watch_tells_what_came_since_the_last_time() {
    let folder = tempfile::tempdir().unwrap();
    let (port, log) = Unguarded::start(None, folder.path()).await;
    let mut watch = Watch::new(port, log);
    assert_eq!(watch.seen().await.unwrap(), []);
    let mut client = Connection::open(port).await.unwrap();
    client.send(&Request::call("1", "search_cases", "{}")).await.unwrap();
    client.send(&Request::read("2", "cases://case/1")).await.unwrap();
    let seen: Vec<String> = watch.seen().await.unwrap().iter().map(Seen::brief).collect();
    assert_eq!(seen, ["tools/call search_cases", "resources/read cases://case/1"]);
    assert_eq!(watch.seen().await.unwrap(), []);
}

#[tokio::test]
async fn the_watch_leaves_out_the_listings_of_portcullis_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (port, log) = Unguarded::start(None, folder.path()).await;
    let mut watch = Watch::new(port, log);
    let mut client = Connection::open(port).await.unwrap();
    let listing = Request::mcp("tools/list", "1", None, "");
    let own = |request: &Request| {
        let body = request.body.replace(r#""portcullis-demo""#, r#""portcullis""#);
        assert_ne!(body, request.body);
        Request { body, ..request.clone() }
    };
    client.send(&own(&listing)).await.unwrap();
    assert_eq!(watch.seen().await.unwrap(), []);
    for request in [&listing, &own(&Request::call("2", "search_cases", "{}")), &Request::misbehave("no")] {
        client.send(request).await.unwrap();
    }
    let seen: Vec<String> = watch.seen().await.unwrap().iter().map(Seen::brief).collect();
    assert_eq!(seen, ["tools/list", "tools/call search_cases", "POST /misbehave/no"]);
}

/// How the story ends over a server that guards nothing.
async fn story_over_unguarded(credential: Option<&'static str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (port, log) = Unguarded::start(credential, folder.path()).await;
    let idp = IdentityProvider::new(7, RESOURCE.to_owned()).unwrap();
    let cast = Cast::new(&idp, port, folder.path().join("portcullis.yaml")).unwrap();
    let mut watch = Watch::new(port, log);
    let mut narrator = Narrator::new(Vec::new(), false);
    format!("{:#}", story::tell(&cast, &mut watch, &mut narrator).await.unwrap_err())
}

#[tokio::test]
async fn the_story_fails_when_the_callers_token_reaches_the_upstream() {
    let error = story_over_unguarded(None).await;
    assert!(error.contains("An allowed call") && error.contains("came `Bearer eyJ"), "{error}");
}

#[tokio::test]
async fn the_story_fails_when_a_call_that_must_be_refused_goes_through() {
    let error = story_over_unguarded(Some("Bearer upstream-")).await;
    assert!(error.contains("A refusal") && error.contains("the code: expected `-32000`, came ``"), "{error}");
}

#[test]
fn the_story_is_printed_compact_and_without_secrets_or_colours() {
    let mut printed = Vec::new();
    let token = "eyJ".to_owned() + &"x".repeat(400);
    let long = format!(r#"{{"query":"{}"}}"#, "é".repeat(600));
    Narrator::new(&mut printed, false).request(&Request::call("1", "search_cases", &long).bearing(&token)).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.contains("→ POST /mcp") && printed.contains("Mcp-Name: search_cases"), "{printed}");
    assert!(printed.contains("bytes)") && printed.chars().count() < 800, "{printed}");
    assert!(!printed.contains(&token) && !printed.contains('\x1b'), "{printed}");
    let mut coloured = Vec::new();
    Narrator::new(&mut coloured, true).holds("it").unwrap();
    assert_eq!(String::from_utf8(coloured).unwrap(), "\x1b[32m✓ it\x1b[0m\n");
}

#[test]
fn the_printed_commands_carry_every_header() {
    for request in story::to_try() {
        let command = request.as_curl(8080);
        for (name, value) in &request.headers {
            assert!(command.contains(&format!("-H \"{name}: {value}\"")), "{command}");
        }
        assert!(command.starts_with("curl -sS http://127.0.0.1:8080/mcp"), "{command}");
        assert!(!request.body.contains('\''), "single quotes would end the shell word: {command}");
    }
}
