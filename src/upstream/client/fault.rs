//! Why a server's listing could not be had.

use std::time::Duration;

use crate::message::json;

/// Why there is no listing. Nothing of a walk that failed is kept.
#[derive(Debug, thiserror::Error)]
pub enum ListingFault {
    /// A page could not be had.
    #[error("{method}, page {page}: {problem}")]
    Page {
        /// The method that was asked.
        method: &'static str,
        /// The page of its list, from 1.
        page: usize,
        /// What was expected and what came.
        problem: Problem,
    },
    /// The walk as a whole took too long.
    #[error("expected the whole listing within {0:?}, it was still going on; raise the timeout or look at the server")]
    Slow(Duration),
    /// Our own side ended first.
    #[error("the listing was interrupted on our side")]
    Interrupted,
}

/// What was wrong with one answer. The texts say what was expected, what came and, where it helps, what to do.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// No whole answer in time.
    #[error("expected a whole answer within {0:?}, got none; raise the timeout or look at the server")]
    Timeout(Duration),
    /// No connection, or no HTTP on it.
    #[error("cannot connect or talk to the server: {0}")]
    Transport(String),
    /// A redirect: our own calls go to the configured address only.
    #[error("expected an answer, got a redirect (HTTP {0}), which is not followed; configure the final URL")]
    Redirect(u16),
    /// Our credential was refused.
    #[error("expected an answer, got HTTP {0}: the server refuses our credential; correct it")]
    Unauthorized(u16),
    /// Another status, without a JSON-RPC error.
    #[error("expected HTTP 200 with a JSON-RPC answer, got HTTP {0}")]
    Status(u16),
    /// `Content-Encoding` although identity was asked for.
    #[error("expected an answer that is not encoded, got content-encoding {0}")]
    Encoded(String),
    /// Another media type.
    #[error("expected application/json or text/event-stream, got content-type {0}")]
    ContentType(String),
    /// More bytes than one page may have.
    #[error("expected at most {0} bytes in one page, got more; raise limits.listing or have the server page its list")]
    TooLarge(usize),
    /// The answer broke off.
    #[error("expected a whole answer, but it ended half-way{0}")]
    Cut(String),
    /// Not acceptable JSON.
    #[error("expected acceptable JSON: {0}")]
    Json(json::Fault),
    /// A key that some other reader would take for one of the protocol's.
    #[error("expected the protocol's keys as they are spelled, got {0}, which differs only by case")]
    CaseVariant(String),
    /// No JSON-RPC answer.
    #[error("expected {expected}, got {got}")]
    Message {
        /// What the protocol has there.
        expected: &'static str,
        /// What came.
        got: String,
    },
    /// The answer to something else.
    #[error("expected the answer to id {expected}, got one to {got}")]
    OtherId {
        /// Our id.
        expected: u64,
        /// The id that came, as it was written, or that there was none.
        got: String,
    },
    /// The server's own error.
    #[error("expected a result, got the server's error {code}: {message}")]
    Refused {
        /// The JSON-RPC code, as it was written.
        code: String,
        /// Its message, quoted and cut.
        message: String,
    },
    /// It does not speak the revision.
    #[error("expected a server that speaks {expected}, this one says {got}", expected = crate::protocol::version::CURRENT)]
    Version {
        /// Its `supportedVersions`.
        got: String,
    },
    /// An entry that cannot be recognised.
    #[error("entry {index}: {problem}")]
    Entry {
        /// Its place in the page, from 0.
        index: usize,
        /// What was expected and what came.
        problem: String,
    },
    /// A cursor that was given before: the walk would never end.
    #[error(
        "expected a new nextCursor on each page, got {0} a second time; the server's pagination goes round in circles"
    )]
    RepeatedCursor(String),
    /// A page that was sent before.
    #[error("expected other entries on each page, got those of an earlier page again; the server ignores the cursor")]
    RepeatedPage,
    /// More pages than any list should have.
    #[error("expected at most {0} pages, the server has more")]
    TooManyPages(usize),
}

impl Problem {
    pub(super) fn message(expected: &'static str, got: impl Into<String>) -> Self {
        Self::Message { expected, got: got.into() }
    }

    /// The server does not know the method.
    pub(super) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "-32601")
    }

    pub(super) fn at(self, method: crate::protocol::Method, page: usize) -> ListingFault {
        ListingFault::Page { method: method.as_str(), page, problem: self }
    }
}

/// A foreign text for a log or terminal: quoted, escaped and short.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let short: String = text.chars().take(LONGEST).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}
