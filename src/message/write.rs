//! Writing JSON: strings with the fewest escapes, and the canonical form that digests are taken of.

#[cfg(test)]
mod tests;

use super::json::scan::plain_prefix;
use super::json::{Items, Kind, Value};
use super::number;

/// A value that has no canonical form, and where: it holds a number that is [`number::Unrepresentable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number whose decimal exponent fits 64 bits at byte {at}")]
pub struct Unrepresentable {
    /// Offset of the number in the text of the document that was read.
    pub at: usize,
}

/// Appends `text` as a JSON string, quotes included.
///
/// Only what RFC 8259 §7 demands is escaped: `"`, `\` and control characters (`\b \t \n \f \r`, else `\u00xx` in lower
/// case), so one text has one spelling.
pub fn string(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len().saturating_add(2));
    out.push(b'"');
    loop {
        let (plain, special) = rest.split_at_checked(plain_prefix(rest)).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((byte, behind)) = special.split_first() else { break };
        escape(out, *byte);
        rest = behind;
    }
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0C => b'f',
        b'\r' => b'r',
        _ => {
            let hex = |digit: u8| if digit < 10 { b'0' + digit } else { b'a' + (digit - 10) };
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 0xF)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends the canonical form of `value`: the same bytes for every spelling of the same value.
///
/// Object keys are sorted by the UTF-8 bytes of the decoded key, arrays keep their order, there is no white space,
/// strings are written by [`string`] and numbers by [`number::canonical`].
///
/// # Errors
/// [`Unrepresentable`]; nothing was appended then.
pub fn canonical(value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Unrepresentable> {
    canonical_without(value, &[], out)
}

/// [`canonical`], leaving out those members of the outermost object whose decoded key is in `names`.
///
/// # Errors
/// As [`canonical`]; what is left out is not looked at.
pub fn canonical_without(value: Value<'_>, names: &[&str], out: &mut Vec<u8>) -> Result<(), Unrepresentable> {
    let before = out.len();
    let mut writer = Writer { out, open: Vec::new(), members: Vec::new() };
    let written = writer.run(value, names);
    if written.is_err() {
        out.truncate(before);
    }
    written
}

/// A container that is being written.
enum Open<'a> {
    Array {
        items: Items<'a>,
        first: bool,
    },
    /// Its members, sorted, are `members[start..]`; `next` of them are written.
    Object {
        start: usize,
        next: usize,
    },
}

/// The walk is iterative: depth costs an entry of `open`, not a stack frame.
struct Writer<'a, 'out> {
    out: &'out mut Vec<u8>,
    open: Vec<Open<'a>>,
    /// Members of all objects that are open, the innermost object's last.
    members: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Writer<'a, '_> {
    fn run(&mut self, value: Value<'a>, names: &[&str]) -> Result<(), Unrepresentable> {
        self.begin(value, names)?;
        while let Some(next) = self.advance() {
            self.begin(next, &[])?;
        }
        Ok(())
    }

    /// Writes a scalar, or opens a container.
    fn begin(&mut self, value: Value<'a>, without: &[&str]) -> Result<(), Unrepresentable> {
        match value.kind() {
            Kind::Null | Kind::Bool => self.out.extend_from_slice(value.raw().as_bytes()),
            Kind::Number => number::write_canonical(self.out, value.raw())
                .map_err(|number::Unrepresentable| Unrepresentable { at: value.span().start })?,
            Kind::String => string(self.out, value.as_str().unwrap_or_default()),
            Kind::Array => {
                self.out.push(b'[');
                self.open.push(Open::Array { items: value.items(), first: true });
            }
            Kind::Object => {
                self.out.push(b'{');
                let start = self.members.len();
                let members = value.entries().map(|(key, value)| (key.as_str().unwrap_or_default(), value));
                self.members.extend(members.filter(|(key, _)| !without.contains(key)));
                if let Some(members) = self.members.get_mut(start..) {
                    members.sort_unstable_by_key(|(key, _)| *key);
                }
                self.open.push(Open::Object { start, next: 0 });
            }
        }
        Ok(())
    }

    /// Closes what is done and returns the next value to write, its separator and key written; `None` at the end.
    fn advance(&mut self) -> Option<Value<'a>> {
        loop {
            match self.open.last_mut()? {
                Open::Array { items, first } => {
                    if let Some(item) = items.next() {
                        if !std::mem::take(first) {
                            self.out.push(b',');
                        }
                        return Some(item);
                    }
                    self.out.push(b']');
                }
                Open::Object { start, next } => {
                    if let Some((key, value)) = self.members.get(start.saturating_add(*next)).copied() {
                        if *next > 0 {
                            self.out.push(b',');
                        }
                        *next = next.saturating_add(1);
                        string(self.out, key);
                        self.out.push(b':');
                        return Some(value);
                    }
                    self.members.truncate(*start);
                    self.out.push(b'}');
                }
            }
            self.open.pop();
        }
    }
}
