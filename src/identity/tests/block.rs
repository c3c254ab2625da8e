//! The `identity` block of a server: its shapes, faults and schema.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::World;
use crate::identity::config::IdentitySource;
use crate::identity::testing::ISSUER;

#[test]
fn a_block_names_exactly_one_source() {
    let world = World::new();
    for block in [json!({}), json!({"peer": {}, "static": {"subject": "a"}})] {
        let faults = world.faults(block);
        assert!(faults.len() == 1 && faults[0].contains("exactly one"), "{faults:?}");
    }
    assert!(serde_json::from_value::<IdentitySource>(json!({"none": {}})).is_err());
}

#[test]
fn all_faults_of_a_block_come_at_once_with_their_paths() {
    let world = World::new();
    let faults = world.faults(json!({"jwt": {
        "issuer": "", "jwks": "http://auth.test/jwks", "algorithms": ["RS256", "HS256", "none"], "audiences": ["ok", ""], "email_claim": "",
    }}));
    let paths: Vec<_> = faults.iter().map(|fault| fault.split(": ").next().unwrap()).collect();
    assert_eq!(
        paths,
        ["jwt.algorithms.1", "jwt.algorithms.2", "jwt.issuer", "jwt.email_claim", "jwt.audiences.1", "jwt.jwks"]
    );
    let client = json!({"id": "", "secret": {"file": "missing"}});
    let faults =
        world.faults(json!({"introspection": {"issuer": ISSUER, "endpoint": "ftp://auth.test", "client": client}}));
    let paths: Vec<_> = faults.iter().map(|fault| fault.split(": ").next().unwrap()).collect();
    assert_eq!(paths, ["introspection.endpoint", "introspection.client.id", "introspection.client.secret"]);
}

#[test]
fn single_faults_of_a_block() {
    let world = World::new();
    world.file("empty.json", r#"{"keys":[]}"#);
    let jwks = |jwks: Value| json!({"jwt": {"issuer": ISSUER, "jwks": jwks}});
    for (block, path) in [
        (jwks(json!({"file": "missing.json"})), "jwt.jwks.file: cannot read"),
        (jwks(json!({"file": "empty.json"})), "jwt.jwks.file: expected at least one usable key"),
        (jwks(json!("https://u:p@auth.test/jwks")), "jwt.jwks: "),
        (jwks(json!("/jwks")), "jwt.jwks: "),
        (json!({"jwt": {"issuer": "my-issuer"}}), "jwt.issuer: "),
        (json!({"jwt": {"issuer": "http://auth.test"}}), "jwt.issuer: "),
        (json!({"jwt": {"issuer": ISSUER, "algorithms": []}}), "jwt.algorithms: "),
        (json!({"envoy_jwt": {"issuer": ISSUER, "payload_key": ""}}), "envoy_jwt.payload_key: "),
        (json!({"peer": {"trust_domains": ["ok", "spiffe://acme.com"]}}), "peer.trust_domains.1: "),
        (json!({"peer": {"ids": ["acme.com/agent"]}}), "peer.ids.0: "),
        (json!({"static": {"subject": ""}}), "static.subject: "),
        (json!({"static": {"subject": "a", "email": "bot"}}), "static.email: "),
    ] {
        let faults = world.faults(block.clone());
        assert!(faults.len() == 1 && faults[0].starts_with(path), "{block}: {faults:?}");
    }
    // Nothing is fetched at load: an issuer that is down does not keep the service down.
    assert!(world.build(jwks(json!("http://127.0.0.1:1/jwks"))).is_ok());
    assert!(world.build(json!({"jwt": {"issuer": "https://auth.invalid"}})).is_ok());
}

#[test]
fn the_shapes_of_the_identity_block() {
    let read = |block: Value| serde_json::from_value::<IdentitySource>(block);
    let source = read(json!({"jwt": {
        "issuer": ISSUER, "jwks": "https://auth.test/jwks", "audiences": [], "required_scopes": ["mcp"],
        "scopes": {"implies": {"admin": ["cases:write"]}, "advertised": ["cases:read"]}, "require_email": true, "leeway": "1m",
    }})).unwrap();
    assert_eq!((source.issuer(), source.required_scopes()), (Some(ISSUER), &["mcp".to_owned()][..]));
    assert_eq!(source.scopes().unwrap().advertised, ["cases:read"]);
    let fixed = read(json!({"static": {"subject": "a", "scopes": ["mcp"]}})).unwrap();
    assert_eq!((fixed.issuer(), fixed.required_scopes(), fixed.scopes()), (None, &["mcp".to_owned()][..], None));
    for bad in [
        json!({"jwt": {}}),
        json!({"jwt": {"issuer": ISSUER, "isuer": ISSUER}}),
        json!({"jwt": {"issuer": ISSUER, "jwks": {"url": "x"}}}),
        json!({"jwt": {"issuer": ISSUER, "scopes": {"implied": {}}}}),
        json!({"introspection": {"issuer": ISSUER, "endpoint": "https://a", "client": {"id": "a", "secret": "s3cret"}}}),
        json!({"static": {}}),
    ] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn the_schema_accepts_what_the_shapes_accept() {
    let schema = serde_json::to_value(schemars::schema_for!(IdentitySource)).unwrap();
    assert_eq!(schema["properties"].as_object().unwrap().len(), 5);
    assert_eq!(
        (&schema["minProperties"], &schema["maxProperties"], &schema["additionalProperties"]),
        (&json!(1), &json!(1), &json!(false))
    );
    let undocumented = undocumented(&schema, Path::new("identity"));
    assert!(undocumented.is_empty(), "keys without a description: {undocumented:?}");
}

/// Paths of properties that have no description.
fn undocumented(schema: &Value, at: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if property.get("description").is_none() {
            found.push(at.join(name));
        }
        found.extend(undocumented(property, &at.join(name)));
    }
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        found.extend(undocumented(definition, &at.join(name)));
    }
    found
}
