mod block;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Authenticator, Caller, Fault, IdentityFault, KeyStores, Presented, Setting,
    config::IdentitySource,
    testing::{Answer, FakeServer, ISSUER, NOW, RESOURCE, Signer, good_claims, key_set, with},
};
use crate::policy::{Policy, Scopes, Segment};

/// The parts of a configuration around the identity block.
struct World {
    dir: tempfile::TempDir,
    policy: Arc<Policy>,
    scopes: Arc<Scopes>,
    keys: KeyStores,
}

impl World {
    fn new() -> Self {
        let policy = json!({
            "roles": {"reader": ["cases:read"], "agent": ["cases:write"]},
            "rules": [
                {"match": {"domain": "acme.com"}, "role": "reader"},
                {"match": {"issuer": "spiffe://acme.com"}, "role": "agent"},
                {"match": {"claim": {"sub": "machine"}}, "role": "agent"},
            ],
        });
        let policy = Policy::compile(&serde_json::from_value(policy).unwrap()).unwrap();
        let capabilities = [("tool:x".to_owned(), vec!["cases:read".to_owned(), "cases:write".to_owned()])];
        let implies = [("admin".to_owned(), vec!["cases:write".to_owned()])].into();
        let scopes = Scopes::compile(&["mcp".to_owned()], &capabilities, &implies).unwrap();
        Self {
            dir: tempfile::tempdir().unwrap(),
            policy: Arc::new(policy),
            scopes: Arc::new(scopes),
            keys: KeyStores::new(),
        }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn build(&self, block: Value) -> Result<Authenticator, Vec<Fault>> {
        let source: IdentitySource = serde_json::from_value(block).unwrap();
        let (policy, scopes) = (Arc::clone(&self.policy), Arc::clone(&self.scopes));
        Authenticator::build(
            &source,
            &Setting { resource: RESOURCE, base: self.dir.path(), policy, scopes, keys: &self.keys },
        )
    }

    fn jwt(&self, signers: &[&Signer]) -> Authenticator {
        self.file("jwks.json", &key_set(signers).to_string());
        self.build(json!({"jwt": {"issuer": ISSUER, "jwks": {"file": "jwks.json"}}})).unwrap()
    }

    fn scope_names(&self, caller: &Caller) -> Vec<String> {
        self.scopes.names(&caller.scopes).map(str::to_owned).collect()
    }

    /// Every fault as `path: message`.
    fn faults(&self, block: Value) -> Vec<String> {
        let Err(faults) = self.build(block) else { return Vec::new() };
        let step = |segment: &Segment| match segment {
            Segment::Key(key) => key.clone(),
            Segment::Index(index) => index.to_string(),
        };
        faults
            .iter()
            .map(|fault| format!("{}: {}", fault.path.iter().map(step).collect::<Vec<_>>().join("."), fault.message))
            .collect()
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

async fn at(authenticator: &Authenticator, token: &str, now: u64) -> Result<Arc<Caller>, IdentityFault> {
    let value = bearer(token);
    authenticator.authenticate(&Presented { authorization: Some(&value), ..Presented::default() }, now).await
}

fn cached(authenticator: &Authenticator, token: &str, now: u64) -> Option<Arc<Caller>> {
    let value = bearer(token);
    authenticator.cached(&Presented { authorization: Some(&value), ..Presented::default() }, now)
}

#[tokio::test]
async fn a_good_token_makes_a_caller_with_principal_and_scopes() {
    let (world, signer) = (World::new(), Signer::ec("a"));
    let authenticator = world.jwt(&[&signer]);
    let caller = at(&authenticator, &signer.token(&with(good_claims(), "scope", json!("mcp admin unheard-of"))), NOW)
        .await
        .unwrap();
    assert_eq!(caller.principal.to_string(), "ann@acme.com");
    assert_eq!(*caller.principal.roles, [Arc::from("reader")]);
    assert_eq!(world.scope_names(&caller), ["mcp", "cases:write", "admin"]);
    assert_eq!(caller.expires_at, Some(NOW + 3630));
    assert!(authenticator.challenges());
}

#[tokio::test]
async fn each_reason_of_rung_6_has_its_fault() {
    let (world, signer) = (World::new(), Signer::ec("a"));
    let authenticator = world.jwt(&[&signer]);
    let none = authenticator.authenticate(&Presented::default(), NOW).await;
    assert!(matches!(none, Err(IdentityFault::Missing)));
    let basic = Presented {
        authorization: Some("Basic dTpw"),
        jwt_metadata: Some("{}"),
        peer_uri: Some("spiffe://acme.com/a"),
    };
    assert!(matches!(authenticator.authenticate(&basic, NOW).await, Err(IdentityFault::Missing)));
    let token = |name, value| signer.token(&with(good_claims(), name, value));
    assert!(matches!(at(&authenticator, "nonsense", NOW).await, Err(IdentityFault::Invalid { .. })));
    assert!(matches!(at(&authenticator, &token("aud", json!("other")), NOW).await, Err(IdentityFault::Invalid { .. })));
    assert!(matches!(
        at(&authenticator, &token("exp", json!(NOW - 60)), NOW).await,
        Err(IdentityFault::Expired { .. })
    ));
    assert!(matches!(
        at(&authenticator, &Signer::ec("b").token(&good_claims()), NOW).await,
        Err(IdentityFault::Invalid { .. })
    ));
    let down = world.build(json!({"jwt": {"issuer": ISSUER, "jwks": "http://127.0.0.1:1/jwks"}})).unwrap();
    let fault = at(&down, &signer.token(&good_claims()), NOW).await.err().unwrap();
    assert!(matches!(fault, IdentityFault::Unverifiable { retry_after_seconds: 1.., .. }), "{fault}");
}

#[tokio::test]
async fn a_token_is_remembered_until_it_expires_and_five_minutes_at_most() {
    let (world, signer) = (World::new(), Signer::ec("a"));
    let authenticator = world.jwt(&[&signer]);
    let (long, short) = (signer.token(&good_claims()), signer.token(&with(good_claims(), "exp", json!(NOW + 60))));
    for token in [&long, &short] {
        assert!(cached(&authenticator, token, NOW).is_none());
        let caller = at(&authenticator, token, NOW).await.unwrap();
        assert!(Arc::ptr_eq(&caller, &cached(&authenticator, token, NOW).unwrap()));
        assert!(Arc::ptr_eq(&caller, &at(&authenticator, token, NOW + 1).await.unwrap()));
    }
    assert!(cached(&authenticator, &long, NOW + 299).is_some());
    assert!(cached(&authenticator, &long, NOW + 300).is_none());
    assert!(cached(&authenticator, &short, NOW + 89).is_some());
    assert!(cached(&authenticator, &short, NOW + 90).is_none());
    assert!(matches!(at(&authenticator, &short, NOW + 90).await, Err(IdentityFault::Expired { .. })));
    assert!(cached(&authenticator, &format!("{long}x"), NOW).is_none());
}

#[tokio::test]
async fn failures_are_not_remembered_as_callers() {
    let (world, signer) = (World::new(), Signer::ec("a"));
    let authenticator = world.jwt(&[&signer]);
    let token = signer.token(&with(good_claims(), "nbf", json!(NOW + 100)));
    assert!(at(&authenticator, &token, NOW).await.is_err());
    assert!(cached(&authenticator, &token, NOW).is_none());
    assert!(at(&authenticator, &token, NOW + 100).await.is_ok());
}

#[tokio::test]
async fn a_changed_key_set_forgets_every_token() {
    let (world, old, new) = (World::new(), Signer::ec("old"), Signer::ec("new"));
    let authenticator = world.jwt(&[&old]);
    let (before, after) = (old.token(&good_claims()), new.token(&good_claims()));
    assert!(at(&authenticator, &before, NOW).await.is_ok());
    world.file("jwks.json", &key_set(&[&new]).to_string());
    assert!(at(&authenticator, &after, NOW + 30).await.is_ok());
    assert!(cached(&authenticator, &before, NOW + 30).is_none());
    assert!(matches!(at(&authenticator, &before, NOW + 30).await, Err(IdentityFault::Invalid { .. })));
    assert!(cached(&authenticator, &after, NOW + 30).is_some());
}

#[tokio::test]
async fn a_rotated_key_without_an_id_is_found_too() {
    let (world, old, new) = (World::new(), Signer::ec("old"), Signer::ec("new"));
    let authenticator = world.jwt(&[&old]);
    let header = json!({"alg": "ES256"});
    assert!(at(&authenticator, &old.token_with(&header, &good_claims()), NOW).await.is_ok());
    world.file("jwks.json", &key_set(&[&new]).to_string());
    let token = new.token_with(&header, &good_claims());
    assert!(matches!(at(&authenticator, &token, NOW + 10).await, Err(IdentityFault::Invalid { .. })));
    assert!(at(&authenticator, &token, NOW + 30).await.is_ok());
}

#[tokio::test]
async fn only_configured_algorithms_and_types_pass() {
    let (world, signer) = (World::new(), Signer::ec("a"));
    world.file("jwks.json", &key_set(&[&signer, &Signer::ed("e")]).to_string());
    let ed_only = world
        .build(json!({"jwt": {"issuer": ISSUER, "jwks": {"file": "jwks.json"}, "algorithms": ["EdDSA"]}}))
        .unwrap();
    assert!(at(&ed_only, &signer.token(&good_claims()), NOW).await.is_err());
    let strict =
        world.build(json!({"jwt": {"issuer": ISSUER, "jwks": {"file": "jwks.json"}, "require_typ": true}})).unwrap();
    assert!(at(&strict, &signer.token(&good_claims()), NOW).await.is_ok());
    assert!(at(&strict, &signer.token_with(&json!({"alg": "ES256", "kid": "a"}), &good_claims()), NOW).await.is_err());
}

async fn introspecting(world: &World) -> (FakeServer, Authenticator) {
    let server =
        FakeServer::start(Answer::json(&with(with(good_claims(), "active", json!(true)), "iss", Value::Null))).await;
    world.file("secret", "p@ss word\n");
    let client = json!({"id": "port:cullis", "secret": {"file": "secret"}});
    let block = json!({"introspection": {"issuer": ISSUER, "endpoint": format!("{}/introspect", server.url), "client": client}});
    let authenticator = world.build(block).unwrap();
    (server, authenticator)
}

#[tokio::test]
async fn introspection_asks_once_per_token_and_minute() {
    let world = World::new();
    let (server, authenticator) = introspecting(&world).await;
    let caller = at(&authenticator, "opaque/+token", NOW).await.unwrap();
    assert_eq!(&*caller.claims.issuer, ISSUER);
    assert_eq!(world.scope_names(&caller), ["mcp", "cases:read"]);
    assert!(at(&authenticator, "opaque/+token", NOW + 59).await.is_ok());
    assert_eq!(server.count(), 1);
    assert!(cached(&authenticator, "opaque/+token", NOW + 60).is_none());
    assert!(at(&authenticator, "opaque/+token", NOW + 60).await.is_ok());
    assert_eq!(server.count(), 2);
    let seen = &server.seen()[0];
    assert_eq!((&*seen.path, &*seen.body), ("/introspect", "token=opaque%2F%2Btoken&token_type_hint=access_token"));
    // RFC 6749 §2.3.1: `port%3Acullis:p%40ss+word`.
    assert_eq!(seen.authorization.as_deref(), Some("Basic cG9ydCUzQWN1bGxpczpwJTQwc3Mrd29yZA=="));
}

/// A reload under load must not ask the authorization server about everybody at once, nor keep what the old policy gave.
#[tokio::test]
async fn a_reload_judges_verified_callers_anew_and_verifies_none_again() {
    let world = World::new();
    let (server, before) = introspecting(&world).await;
    let caller = at(&before, "opaque", NOW).await.unwrap();
    assert_eq!(*caller.principal.roles, [Arc::from("reader")]);
    let policy = json!({"roles": {"other": ["x"], "agent": ["cases:write"]}, "rules": [{"match": {"domain": "acme.com"}, "role": "agent"}]});
    let scopes = Scopes::compile(&["other".to_owned(), "mcp".to_owned()], &[], &[].into()).unwrap();
    let World { dir, keys, .. } = world;
    let world = World {
        dir,
        keys,
        policy: Arc::new(Policy::compile(&serde_json::from_value(policy).unwrap()).unwrap()),
        scopes: Arc::new(scopes),
    };
    let block = |issuer: &str| {
        let client = json!({"id": "port:cullis", "secret": {"file": "secret"}});
        json!({"introspection": {"issuer": issuer, "endpoint": format!("{}/introspect", server.url), "client": client}})
    };
    let after = world.build(block(ISSUER)).unwrap();
    let again = cached(&after, "opaque", NOW + 1).expect("verified before");
    assert_eq!((*again.principal.roles).to_vec(), [Arc::from("agent")]);
    assert_eq!(world.scope_names(&again), ["mcp"]);
    assert!(Arc::ptr_eq(&again, &cached(&after, "opaque", NOW + 1).unwrap()), "judged once, not with every call");
    assert_eq!((server.count(), again.expires_at), (1, caller.expires_at));
    // It dies when it would have.
    assert!(cached(&after, "opaque", NOW + 60).is_none());
    // A call that began before goes on as it began.
    assert_eq!(*cached(&before, "opaque", NOW + 1).unwrap().principal.roles, [Arc::from("reader")]);
    assert!(after.again(&caller, &before).is_some());
    // Other rules of verification know nobody.
    let other = world.build(block("https://other.test")).unwrap();
    assert!(cached(&other, "opaque", NOW + 1).is_none() && other.again(&caller, &before).is_none());
}

#[tokio::test]
async fn an_introspected_token_must_be_active_and_hold_the_same_rules() {
    let world = World::new();
    let (server, authenticator) = introspecting(&world).await;
    let active = with(good_claims(), "active", json!(true));
    for answer in [
        json!({"active": false}),
        with(active.clone(), "active", json!(false)),
        with(active.clone(), "iss", json!("https://evil.test")),
        with(active.clone(), "iss", json!(7)),
        with(active.clone(), "aud", Value::Null),
        with(active.clone(), "aud", json!("other")),
        with(active.clone(), "sub", Value::Null),
        with(active.clone(), "exp", Value::Null),
        with(active.clone(), "email_verified", json!(false)),
    ] {
        server.answer(Answer::json(&answer));
        assert!(matches!(at(&authenticator, "t", NOW).await, Err(IdentityFault::Invalid { .. })), "{answer}");
    }
    server.answer(Answer::json(&with(active.clone(), "exp", json!(NOW - 60))));
    assert!(matches!(at(&authenticator, "t", NOW).await, Err(IdentityFault::Expired { .. })));
    server.answer(Answer::json(&active));
    assert!(at(&authenticator, "t", NOW).await.is_ok(), "a refusal is not remembered");
}

#[tokio::test]
async fn an_introspection_endpoint_without_a_usable_answer_is_unverifiable() {
    let world = World::new();
    let (server, authenticator) = introspecting(&world).await;
    let good = with(good_claims(), "active", json!(true));
    for answer in [
        Answer::status(500),
        Answer::status(401),
        Answer { status: 302, ..Answer::json(&good) },
        Answer { body: "<html>".into(), ..Answer::json(&good) },
        Answer { body: r#"{"active":false,"active":true}"#.into(), ..Answer::json(&good) },
        Answer::json(&good_claims()),
        Answer::json(&with(good.clone(), "active", json!("true"))),
        Answer::json(&json!([good])),
    ] {
        let text = format!("{} {}", answer.status, answer.body);
        server.answer(answer);
        let fault = at(&authenticator, "t", NOW).await.err().unwrap();
        assert!(matches!(fault, IdentityFault::Unverifiable { retry_after_seconds: 1.., .. }), "{text}: {fault}");
    }
}

#[tokio::test]
async fn introspection_takes_a_rotated_client_secret() {
    let world = World::new();
    let (server, authenticator) = introspecting(&world).await;
    let watch = tokio::spawn(authenticator.watch().unwrap());
    world.file("secret", "new");
    let mut tries = 0;
    while server.seen().last().and_then(|seen| seen.authorization.clone()).as_deref()
        != Some("Basic cG9ydCUzQWN1bGxpczpuZXc=")
    {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert!(at(&authenticator, &format!("t{tries}"), NOW).await.is_ok());
        tries += 1;
        assert!(tries < 150, "the new secret was never used");
    }
    drop(authenticator);
    watch.await.unwrap();
    assert!(world.jwt(&[&Signer::ec("a")]).watch().is_none());
}

#[tokio::test]
async fn the_claims_that_envoy_verified_are_checked_again() {
    let world = World::new();
    let authenticator = world.build(json!({"envoy_jwt": {"issuer": ISSUER, "payload_key": "claims"}})).unwrap();
    assert_eq!(authenticator.payload_key(), Some("claims"));
    let ask = async |claims: &str| {
        authenticator
            .authenticate(
                &Presented { jwt_metadata: Some(claims), authorization: Some("Bearer x"), peer_uri: None },
                NOW,
            )
            .await
    };
    // Envoy hands numbers on as doubles.
    let text = good_claims().to_string().replace(&(NOW + 3600).to_string(), "1.8000036e9");
    assert!(text.contains("e9"));
    let caller = ask(&text).await.unwrap();
    assert_eq!(caller.expires_at, Some(NOW + 3630));
    assert!(Arc::ptr_eq(
        &caller,
        &authenticator.cached(&Presented { jwt_metadata: Some(&text), ..Presented::default() }, NOW).unwrap()
    ));
    for (name, value) in
        [("iss", json!("https://evil.test")), ("aud", json!("other")), ("sub", Value::Null), ("exp", Value::Null)]
    {
        assert!(
            matches!(ask(&with(good_claims(), name, value).to_string()).await, Err(IdentityFault::Invalid { .. })),
            "{name}"
        );
    }
    assert!(matches!(
        ask(&with(good_claims(), "exp", json!(NOW - 60)).to_string()).await,
        Err(IdentityFault::Expired { .. })
    ));
    for text in ["", "null", "[]", "{", r#"{"sub":"a","sub":"b"}"#] {
        assert!(matches!(ask(text).await, Err(IdentityFault::Invalid { .. })), "{text}");
    }
    let bearer_only = Presented { authorization: Some("Bearer x"), ..Presented::default() };
    assert!(matches!(authenticator.authenticate(&bearer_only, NOW).await, Err(IdentityFault::Missing)));
}

#[tokio::test]
async fn a_peer_is_its_spiffe_id() {
    let world = World::new();
    let authenticator = world.build(json!({"peer": {"trust_domains": ["acme.com"], "scopes": ["mcp"]}})).unwrap();
    let presented = |uri| Presented { peer_uri: uri, authorization: Some("Bearer x"), ..Presented::default() };
    let caller = authenticator.authenticate(&presented(Some("spiffe://acme.com/agent")), NOW).await.unwrap();
    assert_eq!((&*caller.claims.issuer, &*caller.claims.subject), ("spiffe://acme.com", "spiffe://acme.com/agent"));
    assert_eq!(*caller.principal.roles, [Arc::from("agent")]);
    assert_eq!(world.scope_names(&caller), ["mcp"]);
    assert_eq!(caller.expires_at, None);
    assert!(authenticator.cached(&presented(Some("spiffe://acme.com/agent")), NOW).is_some());
    assert!(!authenticator.challenges());
    for uri in [None, Some("spiffe://evil.org/agent"), Some("https://acme.com/agent")] {
        assert!(
            matches!(authenticator.authenticate(&presented(uri), NOW).await, Err(IdentityFault::Unidentified { .. })),
            "{uri:?}"
        );
        assert!(authenticator.cached(&presented(uri), NOW).is_none());
    }
}

#[tokio::test]
async fn a_static_caller_is_always_the_same() {
    let world = World::new();
    let authenticator = world
        .build(json!({"static": {"subject": "machine", "email": "bot@acme.com", "scopes": ["mcp", "admin"]}}))
        .unwrap();
    let caller = authenticator.cached(&Presented::default(), NOW).unwrap();
    assert_eq!(caller.principal.to_string(), "bot@acme.com");
    assert_eq!(*caller.principal.roles, [Arc::from("reader"), Arc::from("agent")]);
    assert_eq!(world.scope_names(&caller), ["mcp", "cases:write", "admin"]);
    assert!(Arc::ptr_eq(&caller, &authenticator.authenticate(&Presented::default(), NOW).await.unwrap()));
    assert!(!authenticator.challenges());
}
