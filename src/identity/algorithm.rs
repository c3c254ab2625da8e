//! The signature algorithms that may be accepted: asymmetric ones only.

use jsonwebtoken::Algorithm;

/// The algorithm that a token header, a JWK or the configuration names; `None` for everything that is not an
/// asymmetric signature we verify: `none`, the HMACs (a public key must never serve as a shared secret), encryption.
pub(super) fn named(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        "PS256" => Algorithm::PS256,
        "PS384" => Algorithm::PS384,
        "PS512" => Algorithm::PS512,
        "ES256" => Algorithm::ES256,
        "ES384" => Algorithm::ES384,
        // RFC 9864 gives the one Edwards curve that we verify its own name.
        "EdDSA" | "Ed25519" => Algorithm::EdDSA,
        _ => return None,
    })
}

/// For messages: every name that [`named`] knows.
pub(super) const NAMES: &str = "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";

pub(super) const RSA: &[Algorithm] =
    &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512];

/// The name under which [`named`] knows an algorithm.
pub(super) fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::RS256 => "RS256",
        Algorithm::RS384 => "RS384",
        Algorithm::RS512 => "RS512",
        Algorithm::PS256 => "PS256",
        Algorithm::PS384 => "PS384",
        Algorithm::PS512 => "PS512",
        Algorithm::ES256 => "ES256",
        Algorithm::ES384 => "ES384",
        Algorithm::EdDSA => "EdDSA",
        _ => "not accepted",
    }
}
