use super::{IdentityFault, token};

#[test]
fn one_bearer_token_of_any_case_is_taken() {
    for value in ["Bearer abc.d-e_f~g+h/==", "bearer abc.d-e_f~g+h/==", "BEARER   abc.d-e_f~g+h/=="] {
        assert_eq!(token(Some(value)).unwrap(), "abc.d-e_f~g+h/==");
    }
}

#[test]
fn no_bearer_is_missing() {
    for value in
        [None, Some(""), Some("Basic dXNlcjpwdw=="), Some("abc.def.ghi"), Some("BearerX abc"), Some("DPoP abc")]
    {
        assert!(matches!(token(value), Err(IdentityFault::Missing)), "{value:?}");
    }
}

#[test]
fn a_bearer_that_is_not_one_token_is_invalid() {
    for value in [
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a,b",
        "Bearer a, Bearer b",
        "Bearer =",
        "Bearer a=b",
        "Bearer ü",
        "Bearer \"a\"",
        "Bearer a\tb",
    ] {
        assert!(matches!(token(Some(value)), Err(IdentityFault::Invalid { .. })), "{value:?}");
    }
    let long = format!("Bearer {}", "a".repeat(20_000));
    assert!(matches!(token(Some(&long)), Err(IdentityFault::Invalid { .. })));
}
