//! Protocol revisions. Support is an allow-list; only "older" compares, and only well-formed dates.

/// The revision this crate speaks.
pub const CURRENT: &str = "2026-07-28";

/// Whether `version` is a date-shaped revision from before [`CURRENT`].
#[must_use]
pub fn is_older(version: &str) -> bool {
    let date = version.len() == CURRENT.len()
        && version.bytes().zip(CURRENT.bytes()).all(
            |(byte, model)| {
                if model == b'-' { byte == b'-' } else { byte.is_ascii_digit() }
            },
        );
    date && version < CURRENT
}
