use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::{Found, KeySet};
use crate::identity::{
    algorithm,
    testing::{Signer, b64, key_set, with},
};

fn all() -> Vec<Algorithm> {
    algorithm::NAMES.split(", ").map(|name| algorithm::named(name).unwrap()).collect()
}

fn read(document: &Value) -> Result<(KeySet, Vec<String>), String> {
    KeySet::read(document.to_string().as_bytes(), &all())
}

fn one(jwk: &Value) -> Result<KeySet, String> {
    read(&json!({"keys": [jwk]})).map(|(set, _)| set)
}

fn found(set: &KeySet, id: Option<&str>, algorithm: Algorithm) -> &'static str {
    match set.find(id, algorithm) {
        Found::Keys(_) => "found",
        Found::Unknown => "unknown",
        Found::Unfit(_) => "unfit",
    }
}

#[test]
fn only_asymmetric_signatures_have_a_name() {
    for name in ["none", "None", "HS256", "HS384", "HS512", "RSA-OAEP", "ES512", "ES256K", "rs256", ""] {
        assert!(algorithm::named(name).is_none(), "{name}");
    }
    for algorithm in all() {
        assert_eq!(algorithm::named(algorithm::name(algorithm)), Some(algorithm));
    }
}

#[test]
fn a_key_serves_the_algorithms_of_its_type_and_curve_only() {
    let set = one(&Signer::ec("a").jwk).unwrap();
    assert_eq!(found(&set, Some("a"), Algorithm::ES256), "found");
    for other in [Algorithm::ES384, Algorithm::RS256, Algorithm::EdDSA] {
        assert_eq!(found(&set, Some("a"), other), "unfit");
    }
    let set = one(&with(Signer::rsa("r", Algorithm::RS256).jwk, "alg", json!("PS256"))).unwrap();
    assert_eq!(found(&set, Some("r"), Algorithm::PS256), "found");
    assert_eq!(found(&set, Some("r"), Algorithm::RS256), "unfit");
}

#[test]
fn unusable_keys_are_left_out() {
    let ec = || Signer::ec("a").jwk;
    let rsa = || Signer::rsa("r", Algorithm::RS256).jwk;
    let cases = [
        json!({"kty": "oct", "kid": "a", "k": b64([1; 32])}),
        json!({"kty": "oct", "kid": "a", "k": b64([1; 32]), "alg": "HS256"}),
        with(ec(), "kty", json!("RSA")),
        with(ec(), "kty", Value::Null),
        with(ec(), "kty", json!(7)),
        with(ec(), "crv", json!("P-521")),
        with(ec(), "crv", json!("P-384")),
        with(ec(), "alg", json!("ES384")),
        with(ec(), "alg", json!("HS256")),
        with(ec(), "alg", json!("none")),
        with(ec(), "alg", json!(["ES256"])),
        with(ec(), "use", json!("enc")),
        with(ec(), "use", json!(1)),
        with(ec(), "key_ops", json!(["sign"])),
        with(ec(), "key_ops", json!("verify")),
        with(ec(), "d", json!(b64([1; 32]))),
        with(ec(), "x", json!(b64([1; 31]))),
        with(ec(), "x", json!("*")),
        with(ec(), "y", Value::Null),
        with(ec(), "kid", json!(1)),
        with(rsa(), "n", json!(b64([0xFF; 128]))),
        with(rsa(), "n", json!(b64([&[0; 128][..], &[0xFF; 128]].concat()))),
        with(rsa(), "n", json!(b64([&[0x7F][..], &[0xFF; 255]].concat()))),
        with(rsa(), "n", json!(b64([0xFF; 2048]))),
        with(rsa(), "e", json!(b64([1]))),
        with(rsa(), "e", json!(b64([4]))),
        with(rsa(), "e", json!("")),
        with(rsa(), "alg", json!("ES256")),
        with(Signer::ed("e").jwk, "crv", json!("X25519")),
        with(Signer::ed("e").jwk, "crv", json!("Ed448")),
        with(Signer::ed("e").jwk, "x", json!(b64([1; 57]))),
        json!("key"),
        json!(null),
    ];
    for jwk in cases {
        assert!(one(&jwk).is_err(), "{jwk}");
        let (set, left_out) = read(&json!({"keys": [jwk, Signer::ed("good").jwk]})).unwrap();
        assert_eq!(left_out.len(), 1);
        assert_eq!(found(&set, Some("good"), Algorithm::EdDSA), "found");
    }
}

#[test]
fn a_key_that_says_what_it_is_for_is_taken() {
    let jwk =
        with(with(with(Signer::ec("a").jwk, "use", json!("sig")), "key_ops", json!(["verify"])), "alg", json!("ES256"));
    assert_eq!(found(&one(&jwk).unwrap(), Some("a"), Algorithm::ES256), "found");
    assert_eq!(
        found(&one(&with(Signer::ed("e").jwk, "alg", json!("Ed25519"))).unwrap(), Some("e"), Algorithm::EdDSA),
        "found"
    );
}

#[test]
fn a_key_for_no_accepted_algorithm_is_left_out() {
    let document = key_set(&[&Signer::ec("a")]).to_string();
    assert!(KeySet::read(document.as_bytes(), &[Algorithm::RS256]).is_err());
}

#[test]
fn what_is_no_key_set_refuses() {
    for text in ["", "{}", "[]", r#"{"keys":{}}"#, r#"{"keys":[]}"#, r#"{"keys":[],"keys":[]}"#, "not json"] {
        assert!(KeySet::read(text.as_bytes(), &all()).is_err(), "{text}");
    }
}

#[test]
fn without_a_kid_only_a_single_fitting_key_serves() {
    let (a, b, e) = (Signer::ec("a"), Signer::ec("b"), Signer::ed("e"));
    let (set, _) = read(&key_set(&[&a, &b, &e])).unwrap();
    assert_eq!(found(&set, None, Algorithm::ES256), "unfit");
    assert_eq!(found(&set, None, Algorithm::EdDSA), "found");
    assert_eq!(found(&set, None, Algorithm::RS256), "unknown");
    assert_eq!(found(&set, Some("c"), Algorithm::ES256), "unknown");
}

#[test]
fn a_key_without_an_id_serves_no_token_that_names_one() {
    let set = one(&with(Signer::ec("a").jwk, "kid", Value::Null)).unwrap();
    assert_eq!(found(&set, Some("a"), Algorithm::ES256), "unknown");
    assert_eq!(found(&set, None, Algorithm::ES256), "found");
}
