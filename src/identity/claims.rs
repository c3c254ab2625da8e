//! What the claims of a verified token must say, whoever verified it (RFC 7519 §4.1, RFC 9068 §4, RFC 7662 §2.2).
//!
//! One rule above all: a claim of the wrong type refuses. It is never taken for an absent one, because absent often
//! means "no limit".

use std::sync::Arc;

use super::{IdentityFault, config::ClaimsSource, fault::shown};
use crate::{
    message::json::{Document, Kind, Value},
    policy::{Claims, Email},
};

/// The rules of one server.
pub(super) struct ClaimRules {
    issuer: Arc<str>,
    /// Introspection answers need not repeat who gives them.
    issuer_may_lack: bool,
    audiences: Vec<Box<str>>,
    require_email: bool,
    require_email_verified: bool,
    email_claim: Box<str>,
    email_verified_claim: Box<str>,
    allowed_domain: Option<Box<str>>,
    leeway: u64,
}

/// Claims that hold all rules.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) claims: Claims,
    /// The second from which on they are expired, leeway included.
    pub(super) expires_at: u64,
}

const WRONG_TYPE: &str = "a claim of the access token has the wrong type";
const INCOMPLETE: &str = "the access token lacks a required claim";

impl ClaimRules {
    /// `resource` is an accepted audience; for a resource that is an origin, with and without its slash.
    pub(super) fn new(issuer: &str, issuer_may_lack: bool, resource: &str, source: ClaimsSource<'_>) -> Self {
        let mut audiences: Vec<Box<str>> = vec![resource.into()];
        // Clients and authorization servers disagree about the slash of an empty path, and only there does it mean
        // nothing (RFC 3986 §6.2.3).
        let after_scheme = resource.split_once("://").map_or(resource, |(_, rest)| rest);
        match after_scheme.split_once('/') {
            None => audiences.push(format!("{resource}/").into()),
            Some((_, "")) => audiences.push(resource.trim_end_matches('/').into()),
            Some(_) => {}
        }
        audiences.extend(source.audiences.iter().map(|audience| audience.as_str().into()));
        Self {
            issuer: issuer.into(),
            issuer_may_lack,
            audiences,
            require_email: source.require_email,
            require_email_verified: source.require_email_verified,
            email_claim: source.email_claim.into(),
            email_verified_claim: source.email_verified_claim.into(),
            allowed_domain: source.allowed_domain.map(Box::from),
            leeway: source.leeway_seconds,
        }
    }

    /// Checks the claims at `now` (unix seconds). Expiry comes last: an expired token is one that would else be good.
    ///
    /// # Errors
    /// [`IdentityFault::Invalid`] or [`IdentityFault::Expired`].
    pub(super) fn check(&self, document: Document, now: u64) -> Result<Checked, IdentityFault> {
        let root = document.root();
        self.check_issuer(root)?;
        self.check_audience(root)?;
        let subject = text(root, "sub")?.filter(|subject| !subject.is_empty());
        let subject =
            subject.ok_or_else(|| IdentityFault::invalid(INCOMPLETE, "expected a `sub` that is not empty"))?;
        let subject = Arc::from(subject);
        let email = self.email(root)?;
        let hosted_domain = self.hosted_domain(root)?;
        let client = (text(root, "client_id")?, text(root, "azp")?);
        let client_id = client.0.or(client.1).map(Arc::from);
        for name in SCOPE_CLAIMS {
            check_scopes(root, name)?;
        }
        let expires_at = self.check_times(root, now)?;
        let claims = Claims {
            issuer: Arc::clone(&self.issuer),
            subject,
            email,
            hosted_domain,
            client_id,
            document: Arc::new(document),
        };
        Ok(Checked { claims, expires_at })
    }

    /// The issuer, and the audience that is always accepted: the resource itself.
    pub(super) fn expects(&self) -> (&str, &str) {
        (&self.issuer, self.audiences.first().map_or("", |audience| audience))
    }

    fn check_issuer(&self, root: Value<'_>) -> Result<(), IdentityFault> {
        match text(root, "iss")? {
            Some(issuer) if *issuer == *self.issuer => Ok(()),
            None if self.issuer_may_lack => Ok(()),
            other => {
                let detail = format!("expected `iss` {:?}, got {}", self.issuer, other.map_or("none".into(), shown));
                Err(IdentityFault::invalid("the access token is from another issuer", detail))
            }
        }
    }

    fn check_audience(&self, root: Value<'_>) -> Result<(), IdentityFault> {
        let audience = root.get("aud");
        let mut accepted = false;
        if let Some(audience) = audience {
            for audience in strings(audience, "aud")? {
                accepted |= self.audiences.iter().any(|own| **own == *audience);
            }
        }
        if accepted {
            return Ok(());
        }
        let got = audience.map_or("none".into(), |audience| shown(audience.raw()));
        let detail = format!("expected `aud` to be or to include one of {:?}, got {got}", self.audiences);
        Err(IdentityFault::invalid("the access token was not issued for this resource", detail))
    }

    fn email(&self, root: Value<'_>) -> Result<Option<Email>, IdentityFault> {
        let address = text(root, &self.email_claim)?;
        let verified = match root.get(&self.email_verified_claim) {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| wrong_type(&self.email_verified_claim, "a boolean", value))?,
        };
        let Some(address) = address.filter(|address| !address.is_empty()) else {
            if self.require_email {
                let detail = format!("expected an email address in the claim {:?}", self.email_claim);
                return Err(IdentityFault::invalid("the access token names no email address", detail));
            }
            return Ok(None);
        };
        if self.require_email_verified && !verified {
            let detail = format!("expected `true` in the claim {:?}", self.email_verified_claim);
            return Err(IdentityFault::invalid("the email address in the access token is not verified", detail));
        }
        Ok(Some(Email { address: address.into(), verified }))
    }

    fn hosted_domain(&self, root: Value<'_>) -> Result<Option<Arc<str>>, IdentityFault> {
        let domain = text(root, "hd")?;
        if let Some(allowed) = &self.allowed_domain
            && !domain.is_some_and(|domain| domain.eq_ignore_ascii_case(allowed))
        {
            let detail = format!("expected `hd` {allowed:?}, got {}", domain.map_or("none".into(), shown));
            return Err(IdentityFault::invalid("the access token is for an account of another domain", detail));
        }
        Ok(domain.map(Arc::from))
    }

    /// `iat` may lie in the future (clocks differ, and it limits nothing), but must be a time.
    fn check_times(&self, root: Value<'_>, now: u64) -> Result<u64, IdentityFault> {
        numeric_date(root, "iat")?;
        if let Some(date) = numeric_date(root, "nbf")? {
            let first = date.seconds.saturating_add(u64::from(date.fraction));
            if now.saturating_add(self.leeway) < first {
                let detail = format!("expected `nbf` up to {now} (now, leeway {} s), got {first}", self.leeway);
                return Err(IdentityFault::invalid("the access token is not valid yet", detail));
            }
        }
        let expiry =
            numeric_date(root, "exp")?.ok_or_else(|| IdentityFault::invalid(INCOMPLETE, "expected an `exp`"))?.seconds;
        let expires_at = expiry.saturating_add(self.leeway);
        if now < expires_at {
            return Ok(expires_at);
        }
        Err(IdentityFault::Expired { detail: format!("`exp` {expiry}, now {now}, leeway {} s", self.leeway).into() })
    }
}

/// `scope` is OAuth's (RFC 8693 §4.2, RFC 7662), `scp` what some large identity providers write instead.
const SCOPE_CLAIMS: [&str; 2] = ["scope", "scp"];

/// The scopes that checked claims carry: each claim a space-separated string or an array of strings.
pub(super) fn scopes(document: &Document) -> impl Iterator<Item = &str> {
    let root = document.root();
    SCOPE_CLAIMS.into_iter().filter_map(move |name| root.get(name)).flat_map(|claim| {
        let words = claim.as_str().into_iter().chain(claim.items().filter_map(|item| item.as_str()));
        words.flat_map(|words| words.split(' ')).filter(|scope| !scope.is_empty())
    })
}

fn check_scopes(root: Value<'_>, name: &str) -> Result<(), IdentityFault> {
    root.get(name).map_or(Ok(()), |claim| strings(claim, name).map(|_| ()))
}

/// The one string, or the strings of an array that holds nothing else.
fn strings<'a>(claim: Value<'a>, name: &str) -> Result<impl Iterator<Item = &'a str>, IdentityFault> {
    let only_strings = claim.kind() == Kind::Array && claim.items().all(|item| item.kind() == Kind::String);
    if claim.kind() != Kind::String && !only_strings {
        return Err(wrong_type(name, "a string or an array of strings", claim));
    }
    Ok(claim.as_str().into_iter().chain(claim.items().filter_map(|item| item.as_str())))
}

fn text<'a>(root: Value<'a>, name: &str) -> Result<Option<&'a str>, IdentityFault> {
    root.get(name).map(|value| value.as_str().ok_or_else(|| wrong_type(name, "a string", value))).transpose()
}

fn wrong_type(name: &str, expected: &str, got: Value<'_>) -> IdentityFault {
    IdentityFault::invalid(WRONG_TYPE, format!("expected {expected} in the claim {name:?}, got {:?}", got.kind()))
}

/// RFC 7519 §2, `NumericDate`: seconds since 1970, possibly with a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumericDate {
    seconds: u64,
    fraction: bool,
}

fn numeric_date(root: Value<'_>, name: &str) -> Result<Option<NumericDate>, IdentityFault> {
    let Some(claim) = root.get(name) else { return Ok(None) };
    let number = claim.as_number().ok_or_else(|| wrong_type(name, "a number", claim))?;
    let date = parse_date(number).ok_or_else(|| {
        IdentityFault::invalid(
            WRONG_TYPE,
            format!("expected seconds since 1970 in the claim {name:?}, got {}", shown(number)),
        )
    })?;
    Ok(Some(date))
}

/// Exact, without a float: Envoy hands numbers on as doubles, so `1.79e9` is as good as `1790000000`.
fn parse_date(number: &str) -> Option<NumericDate> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let mut seconds: u128 = 0;
    for digit in whole.chars().chain(fraction.chars()) {
        seconds = seconds.checked_mul(10)?.checked_add(u128::from(digit.to_digit(10)?))?;
    }
    let scale = 10_u128.checked_pow(shift.unsigned_abs());
    let (seconds, rest) = match scale {
        Some(scale) if shift < 0 => (seconds.checked_div(scale)?, seconds.checked_rem(scale)?),
        Some(scale) => (seconds.checked_mul(scale)?, 0),
        None => return None,
    };
    Some(NumericDate { seconds: u64::try_from(seconds).ok()?, fraction: rest != 0 })
}

#[cfg(test)]
mod tests;
