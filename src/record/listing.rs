//! What a server offers now, as it says itself.

use crate::message::json::Document;
use crate::policy::{Kind, Label};

/// Everything that one walk over a server's lists brought.
#[derive(Debug, Default)]
pub struct Listing {
    /// The instructions of `server/discover`; `None` when it gave none, or was not asked.
    pub instructions: Option<String>,
    /// The kinds that were listed: what is missing among them is not offered.
    pub kinds: Vec<Kind>,
    /// The capabilities in the order in which they were listed. A name may stand there more than once.
    pub entries: Vec<Listed>,
}

/// One entry of a list.
#[derive(Debug)]
pub struct Listed {
    /// What it is and what the server calls it. A resource template is a resource.
    pub label: Label,
    /// The definition exactly as it was served, down to the last digit.
    pub document: Document,
}
