//! Rung 2: the metadata documents of RFC 9728 and RFC 8414, answered here and without a token.

use super::{Head, Server};

/// A complete HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers in order.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The methods of the documents, as `Allow` lists them.
pub const METHODS: &str = "GET, HEAD, OPTIONS";

/// Answers a request for one of the server's metadata documents; `None` when its path is none of theirs, and when it
/// wants something else than to read (rung 3 refuses that).
#[must_use]
pub fn answer(server: &Server, head: &Head) -> Option<Answer> {
    let document = server.metadata.document(head.path()).filter(|_| !head.has_body())?;
    let mut headers = vec![("access-control-allow-origin", "*".to_owned())];
    let (status, body) = match head.method() {
        "GET" | "HEAD" => {
            headers.push(("content-type", "application/json".into()));
            headers.push(("cache-control", "public, max-age=300".into()));
            (200, if head.method() == "GET" { document.to_vec() } else { Vec::new() })
        }
        "OPTIONS" => {
            headers.push(("access-control-allow-methods", METHODS.into()));
            headers.push(("access-control-allow-headers", "*".into()));
            headers.push(("access-control-max-age", "86400".into()));
            (204, Vec::new())
        }
        _ => return None,
    };
    Some(Answer { status, headers, body })
}
