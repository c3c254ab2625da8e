//! Getting the bearer token out of an `Authorization` value (RFC 6750 §2.1, RFC 9110 §11.4).

use super::IdentityFault;

/// Longer tokens are refused before anything is computed about them.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The token in an `Authorization` value.
///
/// # Errors
/// [`IdentityFault::Missing`] when there is no value or it has another scheme than `Bearer` (compared without case);
/// [`IdentityFault::Invalid`] when what follows is not exactly one `b64token`.
pub(super) fn token(authorization: Option<&str>) -> Result<&str, IdentityFault> {
    let value = authorization.ok_or(IdentityFault::Missing)?.trim_matches([' ', '\t']);
    let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Err(IdentityFault::Missing);
    }
    let token = rest.trim_start_matches(' ');
    if token.len() > MAX_TOKEN_BYTES {
        let detail = format!("expected a token of at most {MAX_TOKEN_BYTES} bytes, got {}", token.len());
        return Err(IdentityFault::invalid("the access token is too long", detail));
    }
    if !is_b64token(token) {
        return Err(IdentityFault::invalid(
            "the Authorization header does not hold exactly one bearer token",
            "expected `Bearer` and one b64token (RFC 6750 §2.1)",
        ));
    }
    Ok(token)
}

/// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`
///
/// Without an early exit, so that many bytes of a long token are looked at together.
#[allow(clippy::needless_bitwise_bool, reason = "a branch would keep the compiler from doing that")]
fn is_b64token(token: &str) -> bool {
    let body = token.trim_end_matches('=');
    let one = |byte: u8| byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    !body.is_empty() & body.bytes().fold(true, |all, byte| all & one(byte))
}

#[cfg(test)]
mod tests;
