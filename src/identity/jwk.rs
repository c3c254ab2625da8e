//! One key set (RFC 7517): which keys are usable, and for which algorithms.
//!
//! The algorithms of a key are fixed here, by its own type, curve and `alg`. A token only chooses among them, so it
//! cannot have an RSA key taken for an HMAC secret, nor a P-256 key for another curve.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use smallvec::SmallVec;

use super::algorithm;
use crate::message::json::{Document, Kind, Limits, Value};

/// A key set document is small; these only bound a hostile one.
const LIMITS: Limits = Limits { depth: 16, nodes: 50_000 };
/// More keys than any rotation needs; bounds the search per token.
const MAX_KEYS: usize = 100;
/// RFC 7518 §3.3: RSA keys of 2048 bits or larger.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The usable keys of one key set.
pub(super) struct KeySet {
    keys: Vec<Key>,
}

/// One public key.
pub(super) struct Key {
    id: Option<Box<str>>,
    algorithms: SmallVec<[Algorithm; 6]>,
    pub(super) decoding: DecodingKey,
}

/// What a key set has for a token.
pub(super) enum Found<'a> {
    /// Keys to try; more than one only when the set gives several keys one id.
    Keys(SmallVec<[&'a Key; 2]>),
    /// The id (or, without an id, any key for the algorithm) is not there: a newer set may have it.
    Unknown,
    /// The id is there, for other algorithms; or there is no id and more than one key could be meant.
    Unfit(&'static str),
}

impl KeySet {
    /// Reads a key set. Keys that are not for verifying one of `accepted` are left out, each with a reason.
    ///
    /// # Errors
    /// The document is not a key set, or holds no usable key at all.
    pub(super) fn read(bytes: &[u8], accepted: &[Algorithm]) -> Result<(Self, Vec<String>), String> {
        let document =
            Document::read(bytes.to_vec(), LIMITS).map_err(|fault| format!("expected a JSON key set: {fault}"))?;
        let list = document.root().get("keys").filter(|keys| keys.kind() == Kind::Array);
        let list = list.ok_or("expected a key set, an object with an array `keys` (RFC 7517 §5)")?;
        let mut keys = Vec::new();
        let mut left_out = Vec::new();
        for (index, jwk) in list.items().take(MAX_KEYS).enumerate() {
            match Key::read(jwk, accepted) {
                Ok(key) => keys.push(key),
                Err(reason) => left_out.push(format!("key {index} is not usable: {reason}")),
            }
        }
        if keys.is_empty() {
            return Err(format!("expected at least one usable key, found none; {}", left_out.join("; ")));
        }
        Ok((Self { keys }, left_out))
    }

    /// The keys for a token with this `kid` and `alg`.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Found<'_> {
        let fits = |key: &&Key| key.algorithms.contains(&algorithm);
        let Some(id) = id else {
            let fitting: SmallVec<_> = self.keys.iter().filter(fits).take(2).collect();
            return match fitting.len() {
                0 => Found::Unknown,
                1 => Found::Keys(fitting),
                _ => Found::Unfit("the token has no kid, and more than one key of the issuer could be meant"),
            };
        };
        let mut named = self.keys.iter().filter(|key| key.id.as_deref() == Some(id)).peekable();
        if named.peek().is_none() {
            return Found::Unknown;
        }
        let fitting: SmallVec<_> = named.filter(fits).collect();
        if fitting.is_empty() {
            Found::Unfit("the key that the token's kid names is not for the token's alg")
        } else {
            Found::Keys(fitting)
        }
    }

    /// Whether [`KeySet::find`] would not say [`Found::Unknown`].
    pub(super) fn knows(&self, id: Option<&str>, algorithm: Algorithm) -> bool {
        !matches!(self.find(id, algorithm), Found::Unknown)
    }
}

impl Key {
    fn read(jwk: Value<'_>, accepted: &[Algorithm]) -> Result<Self, String> {
        if jwk.kind() != Kind::Object {
            return Err("expected an object".into());
        }
        if text(jwk, "use")?.is_some_and(|purpose| purpose != "sig") {
            return Err("its `use` is not `sig`".into());
        }
        if let Some(operations) = jwk.get("key_ops")
            && !operations.items().any(|operation| operation.as_str() == Some("verify"))
        {
            return Err("its `key_ops` do not include `verify`".into());
        }
        if jwk.get("d").is_some() {
            return Err("it is a private key; whoever can read this set can sign tokens".into());
        }
        let (decoding, possible) = public_key(jwk)?;
        let own = match text(jwk, "alg")? {
            None => None,
            Some(name) => Some(algorithm::named(name).ok_or_else(|| format!("its `alg` {name:?} is not accepted"))?),
        };
        if own.is_some_and(|own| !possible.contains(&own)) {
            return Err("its `alg` does not fit its `kty` and `crv`".into());
        }
        let fits = |candidate: &&Algorithm| accepted.contains(candidate) && own.is_none_or(|own| own == **candidate);
        let algorithms: SmallVec<_> = possible.iter().filter(fits).copied().collect();
        if algorithms.is_empty() {
            return Err("it is for none of the accepted algorithms".into());
        }
        Ok(Self { id: text(jwk, "kid")?.map(Box::from), algorithms, decoding })
    }
}

/// The key itself and the algorithms that its type and curve allow.
fn public_key(jwk: Value<'_>) -> Result<(DecodingKey, &'static [Algorithm]), String> {
    match text(jwk, "kty")? {
        Some("RSA") => {
            let modulus = number(jwk, "n")?;
            let exponent = number(jwk, "e")?;
            let bits = bits(&modulus);
            if !RSA_BITS.contains(&bits) {
                return Err(format!("expected an RSA key of 2048 to 8192 bits, got {bits}"));
            }
            // An even exponent is none, and 1 makes every text its own signature.
            if exponent.len() > 8 || exponent == [1] || exponent.last().is_none_or(|last| last % 2 == 0) {
                return Err("its RSA exponent is not a plausible one".into());
            }
            Ok((DecodingKey::from_rsa_raw_components(&modulus, &exponent), algorithm::RSA))
        }
        Some("EC") => {
            let (length, algorithms): (_, &[_]) = match text(jwk, "crv")? {
                Some("P-256") => (32, &[Algorithm::ES256]),
                Some("P-384") => (48, &[Algorithm::ES384]),
                other => return Err(format!("expected the curve P-256 or P-384, got {other:?}")),
            };
            let mut point = vec![0x04];
            point.extend(coordinate(jwk, "x", length)?);
            point.extend(coordinate(jwk, "y", length)?);
            Ok((DecodingKey::from_ec_der(&point), algorithms))
        }
        Some("OKP") => {
            if text(jwk, "crv")? != Some("Ed25519") {
                return Err("expected the curve Ed25519".into());
            }
            Ok((DecodingKey::from_ed_der(&coordinate(jwk, "x", 32)?), &[Algorithm::EdDSA]))
        }
        other => Err(format!("expected `kty` RSA, EC or OKP, got {other:?}")),
    }
}

fn text<'a>(jwk: Value<'a>, name: &str) -> Result<Option<&'a str>, String> {
    jwk.get(name).map(|value| value.as_str().ok_or_else(|| format!("expected a string in `{name}`"))).transpose()
}

fn bytes(jwk: Value<'_>, name: &str) -> Result<Vec<u8>, String> {
    let text = text(jwk, name)?.ok_or_else(|| format!("expected a member `{name}`"))?;
    URL_SAFE_NO_PAD.decode(text).map_err(|_| format!("expected unpadded base64url in `{name}`"))
}

/// A big-endian number without leading zeros.
fn number(jwk: Value<'_>, name: &str) -> Result<Vec<u8>, String> {
    Ok(bytes(jwk, name)?.into_iter().skip_while(|byte| *byte == 0).collect())
}

fn bits(number: &[u8]) -> usize {
    let leading = number.first().map_or(0, |first| first.leading_zeros() as usize);
    number.len().saturating_mul(8).saturating_sub(leading)
}

fn coordinate(jwk: Value<'_>, name: &str, length: usize) -> Result<Vec<u8>, String> {
    let bytes = bytes(jwk, name)?;
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(format!("expected {length} bytes in `{name}`, got {}", bytes.len()))
    }
}

#[cfg(test)]
mod tests;
