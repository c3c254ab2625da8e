//! The protobuf wire format (<https://protobuf.dev/programming-guides/encoding>), as far as the front door and OTLP need it: messages that
//! are read where they stand and written without being built as objects first.
//!
//! What is written has numbers of fields below 16, so that a key is one byte.

use std::ops::Range;

use bytes::BufMut;

#[cfg(test)]
mod tests;

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const DELIMITED: u8 = 2;
const FIXED32: u8 = 5;

/// Bytes that are no message, or not one as it is written: a field of another wire type than the contract's, or one that may be
/// there once and comes again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What a field holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A varint.
    Number(u64),
    /// Text, bytes or a message: where it stands.
    Bytes(Range<usize>),
    /// Four or eight bytes.
    Fixed,
}

impl Value {
    /// Where the bytes of the field stand.
    pub(crate) fn bytes(self) -> Result<Range<usize>, Malformed> {
        if let Self::Bytes(place) = self { Ok(place) } else { Err(Malformed) }
    }

    fn number(self) -> Result<u64, Malformed> {
        if let Self::Number(number) = self { Ok(number) } else { Err(Malformed) }
    }
}

/// Where the bytes of a field stand that may be absent: nowhere then, which is protobuf's default.
pub(crate) fn bytes_of(field: Option<Value>) -> Result<Range<usize>, Malformed> {
    field.map_or(Ok(0..0), Value::bytes)
}

/// The number in a field that may be absent.
pub(crate) fn number_of(field: Option<Value>) -> Result<u64, Malformed> {
    field.map_or(Ok(0), Value::number)
}

/// The truth value in a field that may be absent.
pub(crate) fn flag_of(field: Option<Value>) -> Result<bool, Malformed> {
    Ok(number_of(field)? != 0)
}

/// The fields of a message, in order, with their numbers.
pub(crate) struct Fields<'a> {
    /// Everything that was received, so that places of parts of it can be kept.
    all: &'a [u8],
    left: Range<usize>,
}

impl<'a> Fields<'a> {
    /// The fields of the message that stands at `place` in `all`.
    pub(crate) fn within(all: &'a [u8], place: Range<usize>) -> Self {
        Self { all, left: place }
    }

    /// The next field.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Value)>, Malformed> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key.to_le_bytes()[0] & 7 {
            VARINT => Value::Number(self.varint()?),
            FIXED64 => self.skip(8).map(|_| Value::Fixed)?,
            DELIMITED => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Value::Bytes(self.skip(length)?)
            }
            FIXED32 => self.skip(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed),
        };
        Ok(Some((key >> 3, value)))
    }

    /// The fields of these numbers, each of which may be there once. Others are passed over.
    #[inline]
    pub(crate) fn pick<const N: usize>(mut self, numbers: [u64; N]) -> Result<[Option<Value>; N], Malformed> {
        let mut picked = [const { None }; N];
        while let Some((number, value)) = self.next()? {
            let place = numbers.iter().position(|own| *own == number).and_then(|at| picked.get_mut(at));
            place.map_or(Ok(()), |place| once(place, value))?;
        }
        Ok(picked)
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
pub(crate) fn once<T>(field: &mut Option<T>, value: T) -> Result<(), Malformed> {
    if field.replace(value).is_some() { Err(Malformed) } else { Ok(()) }
}

/// How many bytes a varint takes.
pub(crate) const fn varint_len(number: u64) -> usize {
    // One for each seven bits that are begun; zero takes one too.
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// How many bytes a field of `inner` bytes takes with its key and its length.
pub(crate) const fn field_len(inner: usize) -> usize {
    1 + varint_len(inner as u64) + inner
}

/// How many bytes [`number`] writes.
pub(crate) const fn number_len(number: u64) -> usize {
    1 + varint_len(number)
}

/// The first byte of a field of bytes, text or a message.
pub(crate) const fn delimited(field: u8) -> u8 {
    field << 3 | DELIMITED
}

/// The key and the length of a field of `inner` bytes, which are to follow.
pub(crate) fn begin(out: &mut impl BufMut, field: u8, inner: usize) {
    out.put_u8(delimited(field));
    varint(out, inner as u64);
}

/// A field of bytes or text, or of a message that is encoded already.
pub(crate) fn bytes(out: &mut impl BufMut, field: u8, bytes: &[u8]) {
    begin(out, field, bytes.len());
    out.put_slice(bytes);
}

/// A field that holds a number, a truth value or one of an enumeration.
pub(crate) fn number(out: &mut impl BufMut, field: u8, number: u64) {
    out.put_u8(field << 3 | VARINT);
    varint(out, number);
}

/// A field that takes eight bytes.
pub(crate) fn fixed64(out: &mut impl BufMut, field: u8, number: u64) {
    out.put_u8(field << 3 | FIXED64);
    out.put_u64_le(number);
}

/// A field that takes four bytes.
pub(crate) fn fixed32(out: &mut impl BufMut, field: u8, number: u32) {
    out.put_u8(field << 3 | FIXED32);
    out.put_u32_le(number);
}

/// A message of what `fill` appends. Its length is known afterwards: what takes more than one byte of it is moved up.
pub(crate) fn message(out: &mut Vec<u8>, field: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[delimited(field), 0]);
    let start = out.len();
    fill(out);
    let (end, filled) = (out.len(), out.len().saturating_sub(start) as u64);
    let more = varint_len(filled) - 1;
    if more > 0 {
        out.resize(end.saturating_add(more), 0);
        out.copy_within(start..end, start.saturating_add(more));
    }
    let mut place = out.get_mut(start.saturating_sub(1)..start.saturating_add(more)).unwrap_or_default();
    varint(&mut place, filled);
}

/// A number in as few bytes as it needs, seven bits in each.
fn varint(out: &mut impl BufMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.put_u8(number.to_le_bytes()[0]);
}
