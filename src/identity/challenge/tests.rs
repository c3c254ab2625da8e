use proptest::prelude::*;

use super::{Challenge, ChallengeError};

const METADATA: &str = "https://mcp.acme.com/.well-known/oauth-protected-resource/mcp";

#[test]
fn a_missing_token_carries_no_error() {
    let challenge = Challenge { error: None, scopes: &["mcp", "cases:read"], resource_metadata: METADATA };
    assert_eq!(
        challenge.header_value(),
        r#"Bearer scope="mcp cases:read", resource_metadata="https://mcp.acme.com/.well-known/oauth-protected-resource/mcp""#
    );
}

#[test]
fn the_attributes_stand_in_the_order_of_rfc_6750() {
    let error = Some((ChallengeError::InsufficientScope, "more scope is needed"));
    let challenge = Challenge { error, scopes: &["mcp"], resource_metadata: METADATA };
    assert_eq!(
        challenge.header_value(),
        r#"Bearer error="insufficient_scope", error_description="more scope is needed", scope="mcp", resource_metadata="https://mcp.acme.com/.well-known/oauth-protected-resource/mcp""#
    );
}

#[test]
fn without_scopes_the_attribute_is_left_out() {
    let error = Some((ChallengeError::InvalidToken, "bad"));
    let challenge = Challenge { error, scopes: &[], resource_metadata: METADATA };
    assert!(!challenge.header_value().contains("scope="));
    assert!(challenge.header_value().starts_with("Bearer error=\"invalid_token\", "));
}

proptest! {
    #[test]
    fn no_text_can_end_its_quotes(description in "\\PC*|[\\x00-\\x7F]*", scope in "\\PC*", url in "\\PC*") {
        let scopes = [scope.as_str(), "mcp"];
        let challenge = Challenge { error: Some((ChallengeError::InvalidToken, &description)), scopes: &scopes, resource_metadata: &url };
        let value = challenge.header_value();
        prop_assert!(value.bytes().all(|byte| (0x20..0x7F).contains(&byte) && byte != b'\\'));
        prop_assert_eq!(value.matches('"').count(), 8);
        prop_assert!(http::HeaderValue::from_str(&value).is_ok());
    }
}
