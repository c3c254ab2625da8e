//! The protobuf wire format (<https://protobuf.dev/programming-guides/encoding>), as far as the front door needs it.

use std::ops::Range;

use bytes::BufMut;

#[cfg(test)]
mod tests;

/// Bytes that are no message, or not one that Envoy writes: a field of another wire type than the contract's, or one that may
/// be there once and comes again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// What a field holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A varint.
    Number(u64),
    /// Text, bytes or a message: where it stands.
    Bytes(Range<usize>),
    /// Four or eight bytes.
    Fixed,
}

impl Value {
    /// Where the bytes of the field stand.
    pub(super) fn bytes(self) -> Result<Range<usize>, Malformed> {
        if let Self::Bytes(place) = self { Ok(place) } else { Err(Malformed) }
    }

    /// The field as a truth value.
    pub(super) fn flag(self) -> Result<bool, Malformed> {
        if let Self::Number(number) = self { Ok(number != 0) } else { Err(Malformed) }
    }
}

/// The fields of a message, in order, with their numbers.
pub(super) struct Fields<'a> {
    /// Everything that was received, so that places of parts of it can be kept.
    all: &'a [u8],
    left: Range<usize>,
}

impl<'a> Fields<'a> {
    /// The fields of the message that stands at `place` in `all`.
    pub(super) fn within(all: &'a [u8], place: Range<usize>) -> Self {
        Self { all, left: place }
    }

    /// The next field.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value)>, Malformed> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.skip(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Value::Bytes(self.skip(length)?)
            }
            5 => self.skip(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed),
        };
        Ok(Some((key >> 3, value)))
    }

    /// Nearly every number here is of one byte: keys, and the lengths of short texts.
    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        match self.all.get(self.left.start) {
            Some(byte) if *byte < 0x80 && !self.left.is_empty() => {
                self.left.start += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        let bytes = self.all.get(self.left.clone()).ok_or(Malformed)?;
        for (at, byte) in bytes.iter().take(10).enumerate() {
            // The tenth byte has room for one bit.
            if at == 9 && *byte > 1 {
                return Err(Malformed);
            }
            number |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                self.left.start += at + 1;
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    fn skip(&mut self, length: usize) -> Result<Range<usize>, Malformed> {
        let (start, end) = (self.left.start, self.left.start.checked_add(length).ok_or(Malformed)?);
        if end > self.left.end {
            return Err(Malformed);
        }
        self.left.start = end;
        Ok(start..end)
    }
}

/// Takes the value of a field that may be there once.
pub(super) fn once<T>(field: &mut Option<T>, value: T) -> Result<(), Malformed> {
    if field.replace(value).is_some() { Err(Malformed) } else { Ok(()) }
}

/// How many bytes a varint takes.
pub(super) const fn varint_len(number: u64) -> usize {
    // One for each seven bits that are begun; zero takes one too.
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// How many bytes a field of `inner` bytes takes with its key and its length. Numbers of fields are below 16 here, so that a key
/// is one byte.
pub(super) const fn field_len(inner: usize) -> usize {
    1 + varint_len(inner as u64) + inner
}

/// The key and the length of a field of `inner` bytes, which are to follow.
pub(super) fn begin(out: &mut impl BufMut, field: u8, inner: usize) {
    out.put_u8(field << 3 | 2);
    varint(out, inner as u64);
}

/// A field of bytes or text.
pub(super) fn bytes(out: &mut impl BufMut, field: u8, bytes: &[u8]) {
    begin(out, field, bytes.len());
    out.put_slice(bytes);
}

/// A field that holds a number.
pub(super) fn number(out: &mut impl BufMut, field: u8, number: u64) {
    out.put_u8(field << 3);
    varint(out, number);
}

/// How many bytes [`number`] writes.
pub(super) const fn number_len(number: u64) -> usize {
    1 + varint_len(number)
}

fn varint(out: &mut impl BufMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    out.put_u8(u8::try_from(number).unwrap_or_default());
}
