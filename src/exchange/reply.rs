//! What an exchange tells Envoy, in words that are not yet protobuf.

use std::time::Duration;

use smallvec::SmallVec;

use crate::ladder::forward::HeaderEdits;

use super::Verdict;

/// One reply for Envoy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To the request's headers.
    RequestHeaders {
        /// Changes to them.
        edits: HeaderEdits,
        /// What is known now; `decided` only when nothing more is awaited.
        verdict: Verdict,
    },
    /// To the request's body: the call is forwarded.
    RequestBody {
        /// Changes to the request's headers, which Envoy still holds.
        edits: HeaderEdits,
        /// The verdict.
        verdict: Verdict,
    },
    /// To the answer's headers.
    ResponseHeaders {
        /// Changes to them.
        edits: HeaderEdits,
    },
    /// A piece of the answer's body; there may be any number of these.
    ResponseBody {
        /// The bytes to send down.
        bytes: Vec<u8>,
        /// Whether the body ends with them.
        ends: bool,
    },
    /// To the answer's trailers.
    ResponseTrailers,
    /// No reply yet, and how long Envoy shall go on waiting for one. It decides nothing.
    MoreTime(Duration),
    /// An answer in the server's place.
    Immediate(Immediate),
}

/// An answer in the server's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Immediate {
    /// HTTP status.
    pub status: u16,
    /// Headers in order.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Envoy's response-code details, for its access log.
    pub details: String,
    /// The verdict, for its access log too.
    pub verdict: Verdict,
}

/// Replies in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replies(SmallVec<[Reply; 1]>);

impl Replies {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One.
    #[must_use]
    pub fn one(reply: Reply) -> Self {
        let mut replies = Self::new();
        replies.push(reply);
        replies
    }

    /// One more.
    pub fn push(&mut self, reply: Reply) {
        self.0.push(reply);
    }

    /// Looks at them.
    pub fn iter(&self) -> impl Iterator<Item = &Reply> {
        self.0.iter()
    }
}

impl IntoIterator for Replies {
    type Item = Reply;
    type IntoIter = smallvec::IntoIter<[Reply; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
