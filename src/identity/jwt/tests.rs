use jsonwebtoken::Algorithm;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Unverified, Verdict};
use crate::identity::{
    IdentityFault, algorithm,
    jwk::KeySet,
    testing::{Signer, b64, good_claims, key_set, with},
};

const DEFAULT: [Algorithm; 5] =
    [Algorithm::RS256, Algorithm::PS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA];

fn keys(signers: &[&Signer]) -> KeySet {
    KeySet::read(key_set(signers).to_string().as_bytes(), &DEFAULT).unwrap().0
}

fn verify(token: &str, keys: &KeySet) -> Result<Verdict, IdentityFault> {
    Unverified::read(token, &DEFAULT, false)?.verify(keys)
}

fn good(token: &str, keys: &KeySet) -> bool {
    matches!(verify(token, keys), Ok(Verdict::Verified(_)))
}

fn invalid(token: &str, keys: &KeySet) -> bool {
    matches!(verify(token, keys), Err(IdentityFault::Invalid { .. }))
}

#[test]
fn every_default_algorithm_verifies() {
    for signer in [
        Signer::rsa("a", Algorithm::RS256),
        Signer::rsa("a", Algorithm::PS256),
        Signer::ec("a"),
        Signer::ec384("a"),
        Signer::ed("a"),
    ] {
        let token = signer.token(&good_claims());
        assert!(good(&token, &keys(&[&signer])), "{token}");
    }
}

#[test]
fn the_other_asymmetric_algorithms_verify_when_accepted_and_only_then() {
    for algorithm in [Algorithm::RS384, Algorithm::RS512, Algorithm::PS384, Algorithm::PS512] {
        let signer = Signer::rsa("a", algorithm);
        let token = signer.token(&good_claims());
        let set = KeySet::read(key_set(&[&signer]).to_string().as_bytes(), &[algorithm]).unwrap().0;
        let read = Unverified::read(&token, &[algorithm], false).unwrap();
        assert!(matches!(read.verify(&set), Ok(Verdict::Verified(_))), "{algorithm:?}");
        assert!(Unverified::read(&token, &DEFAULT, false).is_err(), "{algorithm:?}");
    }
}

#[test]
fn another_key_under_the_same_id_does_not_verify() {
    for (signer, other) in [(Signer::ec("a"), Signer::ec("a")), (Signer::ed("a"), Signer::ed("a"))] {
        assert!(invalid(&other.token(&good_claims()), &keys(&[&signer])));
    }
}

#[test]
fn several_keys_under_one_id_are_all_tried() {
    let (a, b) = (Signer::ec("a"), Signer::ec("a"));
    let set = keys(&[&a, &b]);
    assert!(good(&a.token(&good_claims()), &set) && good(&b.token(&good_claims()), &set));
    assert!(invalid(&Signer::ec("a").token(&good_claims()), &set));
}

#[test]
fn unsigned_and_symmetric_tokens_refuse() {
    let signer = Signer::rsa("a", Algorithm::RS256);
    let set = keys(&[&signer]);
    for alg in ["none", "None", "NONE", "nOnE", "HS256", "HS384", "HS512", "", "ES256K"] {
        let header = json!({"alg": alg, "kid": "a"});
        assert!(invalid(&signer.token_with(&header, &good_claims()), &set), "{alg}");
        let unsigned = format!("{}.{}.", b64(header.to_string()), b64(good_claims().to_string()));
        assert!(invalid(&unsigned, &set), "{alg}");
    }
    // The classic confusion: an HMAC keyed with the public key.
    let modulus = signer.jwk["n"].as_str().unwrap();
    let message =
        format!("{}.{}", b64(json!({"alg": "HS256", "kid": "a"}).to_string()), b64(good_claims().to_string()));
    let key = jsonwebtoken::EncodingKey::from_secret(modulus.as_bytes());
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key.unwrap(), Algorithm::HS256).unwrap();
    assert!(invalid(&format!("{message}.{signature}"), &set));
}

#[test]
fn the_algorithm_is_pinned_by_the_key() {
    let rsa = Signer::rsa("a", Algorithm::PS256);
    let mut pinned = Signer::rsa("a", Algorithm::RS256);
    pinned.jwk["alg"] = json!("RS256");
    assert!(invalid(&rsa.token(&good_claims()), &keys(&[&pinned])));
    assert!(good(&pinned.token(&good_claims()), &keys(&[&pinned])));
    // A header that lies about how it was signed.
    let ec = Signer::ec("a");
    for alg in ["RS256", "ES384", "EdDSA"] {
        assert!(invalid(&ec.token_with(&json!({"alg": alg, "kid": "a"}), &good_claims()), &keys(&[&ec])), "{alg}");
    }
}

#[test]
fn keys_that_the_token_offers_are_never_used() {
    let (own, evil) = (Signer::ec("a"), Signer::ec("evil"));
    let set = keys(&[&own]);
    for (name, value) in [
        ("jwk", evil.jwk.clone()),
        ("jku", json!("https://evil.test/jwks")),
        ("x5u", json!("https://evil.test/x")),
        ("x5c", json!(["MII"])),
    ] {
        let header = with(json!({"alg": "ES256", "kid": "a"}), name, value);
        assert!(invalid(&evil.token_with(&header, &good_claims()), &set), "{name}");
        assert!(
            good(&own.token_with(&header, &good_claims()), &set),
            "{name}: some issuers write it, it means nothing"
        );
    }
}

#[test]
fn critical_extensions_refuse() {
    let signer = Signer::ec("a");
    for crit in [json!(["b64"]), json!([]), json!("b64"), json!(null)] {
        let header = json!({"alg": "ES256", "kid": "a", "crit": crit});
        assert!(invalid(&signer.token_with(&header, &good_claims()), &keys(&[&signer])), "{crit}");
    }
}

#[test]
fn typ_is_that_of_an_access_token() {
    let signer = Signer::ec("a");
    let read = |typ: &Value, require| {
        let token = signer.token_with(&with(json!({"alg": "ES256", "kid": "a"}), "typ", typ.clone()), &good_claims());
        Unverified::read(&token, &DEFAULT, require).is_ok()
    };
    for typ in [json!("at+jwt"), json!("AT+JWT"), json!("application/at+jwt")] {
        assert!(read(&typ, false) && read(&typ, true), "{typ}");
    }
    for typ in [json!("JWT"), json!("jwt"), json!(null)] {
        assert!(read(&typ, false) && !read(&typ, true), "{typ}");
    }
    for typ in [
        json!("dpop+jwt"),
        json!("logout+jwt"),
        json!("secevent+jwt"),
        json!("id_token"),
        json!(""),
        json!(1),
        json!(["at+jwt"]),
    ] {
        assert!(!read(&typ, false), "{typ}");
    }
}

#[test]
fn header_members_of_the_wrong_type_refuse() {
    let signer = Signer::ec("a");
    let set = keys(&[&signer]);
    for header in [
        json!({"alg": ["ES256"], "kid": "a"}),
        json!({"alg": "ES256", "kid": 1}),
        json!({"alg": "ES256", "kid": ["a"]}),
        json!({"kid": "a"}),
        json!(["ES256"]),
        json!("ES256"),
    ] {
        assert!(invalid(&signer.token_with(&header, &good_claims()), &set), "{header}");
    }
}

#[test]
fn repeated_members_refuse() {
    let signer = Signer::ec("a");
    let set = keys(&[&signer]);
    let header = r#"{"alg":"ES256","kid":"a"}"#;
    assert!(good(&signer.sign(header, r#"{"sub":"a"}"#), &set));
    for claims in [r#"{"sub":"a","sub":"b"}"#, r#"{"sub":"a","s\u0075b":"b"}"#, r#"{"x":{"y":1,"y":2}}"#] {
        assert!(invalid(&signer.sign(header, claims), &set), "{claims}");
    }
    for header in [r#"{"alg":"ES256","alg":"none","kid":"a"}"#, r#"{"alg":"ES256","kid":"a","kid":"b"}"#] {
        assert!(invalid(&signer.sign(header, r#"{"sub":"a"}"#), &set), "{header}");
    }
}

#[test]
fn a_payload_that_is_no_object_refuses() {
    let signer = Signer::ec("a");
    for claims in ["[]", "\"a\"", "1", "", "{", "{} {}", "nul"] {
        assert!(invalid(&signer.sign(r#"{"alg":"ES256","kid":"a"}"#, claims), &keys(&[&signer])), "{claims}");
    }
}

#[test]
fn what_has_not_three_parts_refuses() {
    let signer = Signer::ec("a");
    let set = keys(&[&signer]);
    let token = signer.token(&good_claims());
    let parts: Vec<_> = token.split('.').collect();
    for bad in [
        String::new(),
        ".".into(),
        "..".into(),
        "...".into(),
        parts[0].into(),
        parts[..2].join("."),
        format!("{token}."),
        format!(".{token}"),
        format!("{token}.{}", parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}..{}", parts[0], parts[2]),
        format!("{token}="),
        format!("{}=.{}.{}", parts[0], parts[1], parts[2]),
    ] {
        assert!(invalid(&bad, &set), "{bad}");
    }
}

#[test]
fn without_a_kid_the_one_key_serves_and_a_rotated_one_is_unknown() {
    let (signer, newer) = (Signer::ec("a"), Signer::ec("b"));
    let header = json!({"alg": "ES256"});
    assert!(good(&signer.token_with(&header, &good_claims()), &keys(&[&signer])));
    assert!(matches!(verify(&newer.token_with(&header, &good_claims()), &keys(&[&signer])), Ok(Verdict::UnknownKey)));
    assert!(invalid(&signer.token_with(&header, &good_claims()), &keys(&[&signer, &newer])));
}

#[test]
fn no_refusal_repeats_the_token() {
    let signer = Signer::ec("a");
    let token = Signer::ec("a").token(&good_claims());
    let Err(fault) = verify(&token, &keys(&[&signer])) else { panic!("expected a refusal") };
    let text = format!("{fault} {fault:?}");
    assert!(token.split('.').all(|part| !text.contains(part)), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_changed_character_anywhere_never_verifies(at in any::<prop::sample::Index>(), other in "[A-Za-z0-9_-]") {
        let signer = Signer::ed("a");
        let token = signer.token(&good_claims());
        let at = at.index(token.len());
        let mut changed = token.clone();
        changed.replace_range(at..=at, &other);
        prop_assume!(changed != token);
        prop_assert!(!good(&changed, &keys(&[&signer])));
    }

    #[test]
    fn any_text_is_refused_without_a_panic(token in "\\PC*|[A-Za-z0-9_.-]*") {
        let accepted = algorithm::named("ES256").unwrap();
        prop_assert!(Unverified::read(&token, &[accepted], false).is_err());
    }
}
