//! What a call that climbed the whole ladder looks like to the server: our credential, and no trace of the caller's.

use std::borrow::Cow;

use crate::message::headers::Headers;
use crate::upstream::Credential;

use super::headers::dashed;

/// Changes to the headers of a message; everything not named stays byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEdits {
    /// Headers to set, replacing what is there.
    pub set: Vec<(&'static str, Vec<u8>)>,
    /// Headers to remove.
    pub remove: Vec<Cow<'static, str>>,
}

/// Removed from every forwarded call: the caller's session with us, hop-by-hop headers (RFC 9110 §7.6.1) and headers
/// by which a server would read another method than the one that was judged.
const REMOVED: &[&str] = &[
    "cookie",
    "proxy-authorization",
    "proxy-connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "connection",
    "x-method-override",
];
const METHOD_OVERRIDES: &[u8] = b"x-http-method";
/// Headers of this name are ours alone.
const OWNED: &[u8] = b"x-portcullis-";

/// The edits for a call whose answer will be read (`read`) or not.
#[must_use]
pub fn request(headers: &Headers, credential: &Credential, read: bool) -> HeaderEdits {
    let mut edits = HeaderEdits::default();
    match credential {
        Credential::Passthrough => {}
        Credential::None => edits.remove.push("authorization".into()),
        Credential::Bearer(_) => match credential.header_value() {
            Some(value) => edits.set.push(("authorization", value.as_bytes().to_vec())),
            None => edits.remove.push("authorization".into()),
        },
    }
    if read {
        edits.set.push(("accept-encoding", b"identity".to_vec()));
    }
    for header in headers.iter() {
        let name = header.name;
        if let Some(known) = REMOVED.iter().find(|known| known.as_bytes() == name) {
            edits.remove.push((*known).into());
        } else if removed(name) || name.contains(&b'_') && removed(&dashed(name)) {
            edits.remove.push(header.name().to_owned().into());
        }
        if name == b"connection" {
            named_by_connection(header.value, &mut edits);
        }
    }
    edits
}

fn removed(name: &[u8]) -> bool {
    REMOVED.iter().any(|known| known.as_bytes() == name)
        || name.starts_with(METHOD_OVERRIDES)
        || name.starts_with(OWNED)
}

/// Headers that `Connection` names are hop-by-hop too, unless it names one that the decision or the protocol needs.
fn named_by_connection(value: &[u8], edits: &mut HeaderEdits) {
    let names = std::str::from_utf8(value).unwrap_or_default();
    for name in names.split(',').map(|name| name.trim_matches([' ', '\t']).to_ascii_lowercase()) {
        let needed = name.starts_with(':')
            || name.starts_with("mcp-")
            || edits.set.iter().any(|(set, _)| *set == name)
            || matches!(
                name.as_str(),
                "" | "host" | "content-type" | "content-length" | "authorization" | "accept" | "close"
            );
        if !needed {
            edits.remove.push(name.into());
        }
    }
}

/// The edits for an answer that was rewritten for this caller: nobody may cache it for another.
#[must_use]
pub fn private_answer() -> HeaderEdits {
    HeaderEdits {
        set: vec![("cache-control", b"private, no-store".to_vec())],
        remove: ["etag", "last-modified", "expires", "content-length"].map(Cow::Borrowed).to_vec(),
    }
}
