use std::sync::Arc;

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::{Current, KeyStore, KeyStores, NoKeys, Source};
use crate::identity::{
    fetch::requestable,
    testing::{Answer, FakeServer, NOW, Signer, key_set},
};

const ES256: Algorithm = Algorithm::ES256;

async fn started(answer: Answer) -> (FakeServer, Arc<KeyStore>) {
    let server = FakeServer::start(answer).await;
    let url = requestable(&format!("{}/jwks", server.url)).unwrap();
    let store = KeyStores::new().get(Source::Url(url), &[ES256]);
    (server, store)
}

async fn ask(store: &Arc<KeyStore>, id: &str, now: u64) -> Result<Arc<Current>, NoKeys> {
    store.keys(|keys| keys.knows(Some(id), ES256), now).await
}

async fn knows(store: &Arc<KeyStore>, id: &str, now: u64) -> bool {
    ask(store, id, now).await.unwrap().keys.knows(Some(id), ES256)
}

fn keys(ids: &[&str]) -> Answer {
    let signers: Vec<_> = ids.iter().map(|id| Signer::ec(id)).collect();
    Answer::json(&key_set(&signers.iter().collect::<Vec<_>>()))
}

/// Waits for what runs in the background, as long as it takes (at most some seconds).
async fn until(what: impl Fn() -> bool) {
    for _ in 0..500 {
        if what() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it never happened");
}

#[tokio::test]
async fn a_set_is_fetched_once_and_kept() {
    let (server, store) = started(keys(&["a"])).await;
    for second in 0..400 {
        assert!(knows(&store, "a", NOW + second).await);
    }
    assert_eq!(server.count(), 1);
    assert_eq!(store.generation(), 1);
}

#[tokio::test]
async fn everyone_waits_for_the_same_first_fetch() {
    let (server, store) = started(Answer { delay_ms: 100, ..keys(&["a"]) }).await;
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            tokio::spawn({
                let store = Arc::clone(&store);
                async move { knows(&store, "a", NOW).await }
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap());
    }
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_rotated_key_is_found_by_one_refetch() {
    let (server, store) = started(keys(&["a"])).await;
    assert!(knows(&store, "a", NOW).await);
    server.answer(keys(&["a", "b"]));
    assert!(knows(&store, "b", NOW + 31).await);
    assert_eq!(server.count(), 2);
    assert_eq!(store.generation(), 2);
}

#[tokio::test]
async fn a_storm_of_unknown_ids_is_one_fetch_per_cooldown() {
    let (server, store) = started(keys(&["a"])).await;
    assert!(knows(&store, "a", NOW).await);
    for second in 0..30 {
        assert!(!knows(&store, &format!("x{second}"), NOW + second).await);
    }
    assert_eq!(server.count(), 1, "within the cooldown of the first fetch");
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            tokio::spawn({
                let store = Arc::clone(&store);
                async move { knows(&store, &format!("y{n}"), NOW + 30).await }
            })
        })
        .collect();
    for task in tasks {
        assert!(!task.await.unwrap());
    }
    assert_eq!(server.count(), 2);
    for second in 31..60 {
        assert!(!knows(&store, "z", NOW + second).await);
    }
    assert_eq!(server.count(), 2);
    assert_eq!(store.generation(), 1, "the same keys are the same generation");
}

#[tokio::test]
async fn a_failing_refetch_is_rate_limited_too() {
    let (server, store) = started(keys(&["a"])).await;
    assert!(knows(&store, "a", NOW).await);
    server.answer(Answer::status(500));
    for second in 30..60 {
        assert!(!knows(&store, "x", NOW + second).await);
        assert!(knows(&store, "a", NOW + second).await);
    }
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn the_last_fifth_of_its_life_refreshes_in_the_background() {
    let (server, store) = started(keys(&["a"])).await;
    assert!(knows(&store, "a", NOW).await);
    server.answer(Answer { delay_ms: 50, ..keys(&["a"]) });
    assert!(knows(&store, "a", NOW + 480).await);
    assert!(knows(&store, "a", NOW + 481).await);
    until(|| store.generation() == 2).await;
    assert_eq!(server.count(), 2);
    assert!(knows(&store, "a", NOW + 700).await);
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_set_past_its_time_is_fetched_before_it_is_used() {
    let (server, store) = started(keys(&["a"])).await;
    assert!(knows(&store, "a", NOW).await);
    server.answer(keys(&["b"]));
    assert!(!knows(&store, "a", NOW + 600).await, "a withdrawn key must not outlive its time");
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_bridged_for_an_hour() {
    let (server, store) = started(keys(&["a"])).await;
    assert!(knows(&store, "a", NOW).await);
    server.answer(Answer::status(503));
    assert!(knows(&store, "a", NOW + 600).await);
    assert_eq!(server.count(), 2);
    for second in 601..630 {
        assert!(knows(&store, "a", NOW + second).await);
    }
    assert_eq!(server.count(), 2, "nobody asks a dead issuer for each call");
    // From then on in the background.
    assert!(knows(&store, "a", NOW + 630).await);
    until(|| server.count() == 3).await;
    assert!(knows(&store, "a", NOW + 600 + 3599).await);
    let fault = ask(&store, "a", NOW + 600 + 3600 + 60).await.err().unwrap();
    assert!(fault.retry_after_seconds >= 1);
    server.answer(keys(&["a"]));
    assert!(knows(&store, "a", NOW + 600 + 3600 + 70).await);
}

#[tokio::test]
async fn without_any_keys_it_is_unverifiable_and_asks_now_and_then() {
    let (server, store) = started(Answer::status(500)).await;
    let fault = ask(&store, "a", NOW).await.err().unwrap();
    assert_eq!(fault.retry_after_seconds, 5);
    assert!(fault.detail.contains("500"), "{}", fault.detail);
    for second in 0..5 {
        let fault = ask(&store, "a", NOW + second).await.err().unwrap();
        assert_eq!(fault.retry_after_seconds, 5 - second);
    }
    assert_eq!(server.count(), 1);
    server.answer(keys(&["a"]));
    assert!(knows(&store, "a", NOW + 5).await);
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn max_age_rules_within_bounds() {
    for (header, still_good, over) in [
        ("public, max-age=100", 99, 100),
        ("max-age=1", 29, 30),
        ("max-age=0, must-revalidate", 29, 30),
        ("MAX-AGE=999999999", 86_399, 86_400),
        ("no-store", 599, 600),
        ("max-age=x", 599, 600),
    ] {
        let (server, store) = started(Answer { cache_control: Some(header), ..keys(&["a"]) }).await;
        assert!(knows(&store, "a", NOW).await);
        // Failing from now on: a set that is still good is used without waiting for anything.
        server.answer(Answer { cache_control: Some(header), ..keys(&["b"]) });
        let good = ask(&store, "a", NOW + still_good).await.unwrap();
        assert!(good.keys.knows(Some("a"), ES256), "{header}");
        let (server, store) = started(Answer { cache_control: Some(header), ..keys(&["a"]) }).await;
        assert!(knows(&store, "a", NOW).await);
        server.answer(keys(&["b"]));
        assert!(!knows(&store, "a", NOW + over).await, "{header}");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_take_the_fetch_with_it() {
    let (server, store) = started(Answer { delay_ms: 100, ..keys(&["a"]) }).await;
    let leader = tokio::spawn({
        let store = Arc::clone(&store);
        async move { knows(&store, "a", NOW).await }
    });
    until(|| server.count() == 1).await;
    leader.abort();
    assert!(knows(&store, "a", NOW).await);
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_clock_that_is_set_back_stops_nothing() {
    let (server, store) = started(keys(&["a"])).await;
    assert!(knows(&store, "a", NOW).await);
    server.answer(keys(&["a", "b"]));
    assert!(knows(&store, "b", NOW - 86_400).await);
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn redirects_errors_and_oversized_answers_are_no_keys() {
    for answer in [
        Answer { status: 302, ..keys(&["a"]) },
        Answer { status: 404, ..keys(&["a"]) },
        Answer { status: 204, ..keys(&["a"]) },
        Answer { body: "<html>".into(), ..keys(&[]) },
        Answer { body: format!(r#"{{"keys":[],"x":"{}"}}"#, "x".repeat(1 << 20)), ..keys(&[]) },
        keys(&[]),
    ] {
        let (server, store) = started(answer).await;
        assert!(ask(&store, "a", NOW).await.is_err());
        assert_eq!(server.count(), 1, "a redirect must not be followed");
    }
}

#[tokio::test]
async fn stores_are_shared_while_they_are_used() {
    let stores = KeyStores::new();
    let source = || Source::Discovery("https://auth.test".into());
    let first = stores.get(source(), &[ES256]);
    assert!(Arc::ptr_eq(&first, &stores.get(source(), &[ES256])));
    assert!(!Arc::ptr_eq(&first, &stores.get(source(), &[Algorithm::RS256])));
    let old = Arc::downgrade(&first);
    drop(first);
    assert!(old.upgrade().is_none());
}

#[tokio::test]
async fn a_file_is_a_key_set_too_and_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jwks.json");
    std::fs::write(&path, keys(&["a"]).body).unwrap();
    let store = KeyStores::new().get(Source::File(path.clone()), &[ES256]);
    assert!(knows(&store, "a", NOW).await);
    std::fs::write(&path, keys(&["b"]).body).unwrap();
    assert!(knows(&store, "b", NOW + 30).await);
}

fn discovering(server: &FakeServer, path: &str) -> (String, Arc<KeyStore>) {
    let issuer = format!("{}{path}", server.url);
    let store = KeyStores::new().get(Source::Discovery(issuer.clone()), &[ES256]);
    (issuer, store)
}

fn metadata(issuer: &str, jwks_uri: &str) -> Value {
    json!({"issuer": issuer, "jwks_uri": jwks_uri})
}

#[tokio::test]
async fn the_key_set_is_discovered_where_the_standards_put_it() {
    for (path, well_known) in [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/tenant", "/.well-known/oauth-authorization-server/tenant"),
        ("/tenant", "/tenant/.well-known/openid-configuration"),
        ("/tenant", "/.well-known/openid-configuration/tenant"),
    ] {
        let server = FakeServer::start(Answer::status(404)).await;
        let (issuer, store) = discovering(&server, path);
        let (document, set) = (metadata(&issuer, &format!("{}/keys", server.url)), keys(&["a"]));
        server.answer_by(move |seen| match &*seen.path {
            "/keys" => set.clone(),
            path if path == well_known => Answer::json(&document),
            _ => Answer::status(404),
        });
        assert!(knows(&store, "a", NOW).await, "{path} {well_known}");
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_or_without_keys_refuses() {
    let server = FakeServer::start(Answer::status(404)).await;
    let (issuer, _) = discovering(&server, "");
    let keys_at = format!("{}/keys", server.url);
    for document in [
        metadata("https://evil.test", &keys_at),
        metadata(&format!("{issuer}/"), &keys_at),
        json!({"jwks_uri": keys_at}),
        json!({"issuer": [issuer], "jwks_uri": keys_at}),
        json!({"issuer": issuer}),
        metadata(&issuer, "http://auth.test/keys"),
        metadata(&issuer, "file:///etc/passwd"),
        metadata(&issuer, "/keys"),
    ] {
        let (_, store) = discovering(&server, "");
        let text = document.to_string();
        let set = keys(&["a"]);
        server.answer_by(move |seen| if seen.path == "/keys" { set.clone() } else { Answer::json(&document) });
        assert!(ask(&store, "a", NOW).await.is_err(), "{text}");
    }
    assert!(server.seen().iter().all(|seen| seen.path != "/keys"));
}
