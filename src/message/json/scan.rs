//! Looking for the bytes of a JSON string that need a second look: eight at a time, in long strings more.

use fearless_simd::{Level, Simd, dispatch, u8x64};
use fearless_simd::{SimdBase as _, SimdMask as _};

/// Bytes that are looked at together in a string that has shown to be long.
const BLOCK: usize = 64;
/// Bytes after which a string is long: most keys and values end before.
const LONG: usize = 32;

/// How many bytes at the front of `bytes` stand for themselves in a JSON string: no quote, backslash or control
/// character.
#[inline]
pub(in crate::message) fn plain_prefix(bytes: &[u8]) -> usize {
    let (front, behind) = bytes.split_at(LONG.min(bytes.len()));
    let plain = by_words(front);
    if plain < front.len() { plain } else { plain + long_prefix(behind) }
}

/// [`plain_prefix`] of what is behind the front of a long string.
#[inline(never)]
fn long_prefix(bytes: &[u8]) -> usize {
    dispatch!(Level::new(), simd => by_blocks(simd, bytes))
}

/// [`long_prefix`] with the vectors of this machine.
#[allow(clippy::inline_always, reason = "it is compiled for those vectors as a part of its caller only")]
#[inline(always)]
fn by_blocks<S: Simd>(simd: S, bytes: &[u8]) -> usize {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut plain = 0;
    for block in blocks {
        let block = u8x64::load_array_ref(simd, block);
        let special = block.simd_eq(b'"') | block.simd_eq(b'\\') | block.simd_lt(0x20);
        if special.any_true() {
            return plain + special.to_bitmask().trailing_zeros() as usize;
        }
        plain += BLOCK;
    }
    plain + by_words(rest)
}

/// [`plain_prefix`], a word at a time.
#[inline]
fn by_words(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let special = special_bytes(*word);
        if special != 0 {
            return bytes.len() - rest.len() + (special.trailing_zeros() / 8) as usize;
        }
        rest = behind;
    }
    let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1F)).unwrap_or(rest.len());
    bytes.len() - rest.len() + plain
}

/// The high bit of each byte of `word` that is a quote, a backslash or a control character. The lowest one set is
/// exact; higher ones may be false alarms of the borrow, which is why only the lowest is used.
#[inline]
fn special_bytes(word: [u8; 8]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(word);
    let equal = |byte: u8| {
        let differs = word ^ (ONES * u64::from(byte));
        differs.wrapping_sub(ONES) & !differs & HIGH
    };
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    equal(b'"') | equal(b'\\') | control
}
