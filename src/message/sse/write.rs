//! Writing events: a new one, or an old one with other data.

use super::{BYTE_ORDER_MARK, Event, data_value, line_end};

/// Appends one event that a receiver reads as `data`, ended by its blank line.
///
/// Line ends in `data` (CR, LF, CRLF) become several `data` lines, which the receiver joins by LF.
pub fn event(out: &mut Vec<u8>, data: &[u8]) {
    data_lines(out, data, b"\n");
    out.push(b'\n');
}

impl Event {
    /// The bytes of this event with `data` in the place of its own: every other line and all line ends as they came,
    /// byte order marks in front left out.
    #[must_use]
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.raw.len().saturating_add(data.len()));
        let mut rest = self.raw.as_slice();
        // Marks go, all of them: one that stayed could be skipped by a receiver and uncover a line that is not ours.
        while let Some(unmarked) = rest.strip_prefix(BYTE_ORDER_MARK) {
            rest = unmarked;
        }
        let mut written = false;
        while let Some((line, end, behind)) = split_line(rest) {
            rest = behind;
            if data_value(line).is_none() {
                if line.is_empty() && end == b"\n" && out.ends_with(b"\r") {
                    // A line between the two went, and CR LF would be one line end.
                    out.push(b'\n');
                }
                out.extend_from_slice(line);
                out.extend_from_slice(end);
            } else if !std::mem::replace(&mut written, true) {
                data_lines(&mut out, data, end);
            }
        }
        out
    }
}

fn data_lines(out: &mut Vec<u8>, mut data: &[u8], end: &[u8]) {
    out.reserve(data.len().saturating_add(8));
    loop {
        let split = split_line(data);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(split.map_or(data, |(line, _, _)| line));
        out.extend_from_slice(end);
        match split {
            Some((_, _, behind)) => data = behind,
            None => return,
        }
    }
}

/// The first line, its end (CR, LF or CRLF), and what is behind; `None` when no line ends.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (line, rest) = bytes.split_at_checked(line_end(bytes)?)?;
    let width = if rest.starts_with(b"\r\n") { 2 } else { 1 };
    let (end, behind) = rest.split_at_checked(width)?;
    Some((line, end, behind))
}
