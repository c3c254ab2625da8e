//! Finding an issuer's key set: RFC 8414 and `OpenID` Connect Discovery.

use url::Url;

use super::fetch::{Fetcher, is_loopback, requestable};
use crate::message::json::{Document, Limits};

const LIMITS: Limits = Limits { depth: 32, nodes: 50_000 };

/// Where the metadata of `issuer` may stand, in the order of trying: RFC 8414 §3.1 (the well-known part inserted before
/// the issuer's path), `OpenID` Connect Discovery §4 (appended), and the insertion with `OpenID`'s name.
pub(super) fn locations(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("{path}/.well-known/openid-configuration"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    paths.dedup();
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_query(None);
        url.set_path(&path);
        url
    };
    paths.into_iter().map(at).collect()
}

/// The `jwks_uri` in the first metadata document that is the issuer's own.
///
/// # Errors
/// What went wrong at each location.
pub(super) async fn jwks_uri(fetcher: &Fetcher, issuer: &str) -> Result<Url, String> {
    let base = requestable(issuer)?;
    let mut faults = Vec::new();
    for location in locations(&base) {
        let found = match fetcher.get(&location).await {
            Ok(answer) => read(answer.body.to_vec(), issuer, &base),
            Err(fault) => Err(fault.to_string()),
        };
        match found {
            Ok(uri) => return Ok(uri),
            Err(fault) => faults.push(format!("{location}: {fault}")),
        }
    }
    Err(format!("no metadata of the issuer names its key set; {}", faults.join("; ")))
}

/// RFC 8414 §3.3: the `issuer` in the document must be the one that was asked for, byte for byte; else whoever can
/// serve a file under some path of the host could speak for another issuer there.
fn read(body: Vec<u8>, issuer: &str, base: &Url) -> Result<Url, String> {
    let document = Document::read(body, LIMITS).map_err(|fault| format!("expected JSON metadata: {fault}"))?;
    let text = |name| document.root().get(name).and_then(|value| value.as_str());
    if text("issuer") != Some(issuer) {
        return Err(format!("expected the issuer {issuer:?}, got {:?}", text("issuer")));
    }
    let uri = requestable(text("jwks_uri").ok_or("expected a `jwks_uri`")?)?;
    // A remote issuer has no business sending us to this machine.
    if is_loopback(&uri) && !is_loopback(base) {
        return Err(format!("expected a `jwks_uri` that is not on loopback, got {uri}"));
    }
    Ok(uri)
}
