use super::{PeerRules, SpiffeId};
use crate::identity::{IdentityFault, config::PeerSource};

fn rules(trust_domains: &[&str], ids: &[&str]) -> PeerRules {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PeerRules::new(&PeerSource { trust_domains: owned(trust_domains), ids: owned(ids), scopes: Vec::new() }).unwrap()
}

fn accepts(rules: &PeerRules, uri: &str) -> bool {
    match rules.accept(Some(uri)) {
        Ok(id) => {
            assert_eq!(id.id, uri);
            true
        }
        Err(IdentityFault::Unidentified { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn only_spiffe_ids_of_the_one_spelling() {
    for good in ["spiffe://acme.com/agent", "spiffe://acme.com/ns/Prod/sa/agent_7.x", "spiffe://acme.com"] {
        assert_eq!(SpiffeId::read(good).unwrap().trust_domain, "acme.com", "{good}");
    }
    for bad in [
        "",
        "spiffe://",
        "SPIFFE://acme.com/a",
        "spiffe:/acme.com/a",
        "https://acme.com/a",
        "spiffe://ACME.com/a",
        "spiffe://acme.com/",
        "spiffe://acme.com/a/",
        "spiffe://acme.com//a",
        "spiffe://acme.com/./a",
        "spiffe://acme.com/../a",
        "spiffe://acme.com/a?b",
        "spiffe://acme.com/a#b",
        "spiffe://u@acme.com/a",
        "spiffe://acme.com:1/a",
        "spiffe://acme.com/%61",
        "spiffe://acme.com/a b",
        "spiffe://acme.com/a,spiffe://acme.com/b",
    ] {
        assert!(SpiffeId::read(bad).is_none(), "{bad}");
    }
    assert!(SpiffeId::read(&format!("spiffe://acme.com/{}", "a".repeat(3000))).is_none());
}

#[test]
fn what_is_listed_is_accepted() {
    let any = rules(&[], &[]);
    assert!(accepts(&any, "spiffe://anywhere/agent"));
    let some = rules(&["acme.com"], &["spiffe://other.org/agent"]);
    assert!(accepts(&some, "spiffe://acme.com/x"));
    assert!(accepts(&some, "spiffe://other.org/agent"));
    assert!(!accepts(&some, "spiffe://other.org/agent2"));
    assert!(!accepts(&some, "spiffe://sub.acme.com/x"));
    assert!(!accepts(&any, "not an id"));
}

#[test]
fn absence_is_not_a_challenge() {
    for uri in [None, Some("")] {
        assert!(matches!(rules(&[], &[]).accept(uri), Err(IdentityFault::Unidentified { .. })));
    }
}
