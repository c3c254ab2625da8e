//! Where something that is looked for may begin: places whose three bytes are the first three of one of eight, found a block at
//! a time.
//!
//! Each half of each of the three bytes is looked up in a table of sixteen entries, which is one instruction for as many
//! places as a vector is wide; an entry has a bit for each of the eight, and where a bit is in all six entries, one may
//! begin. (The method is Hyperscan's *Teddy*.) A few more places are found than there are, and none is missed.

use fearless_simd::{Level, Simd, dispatch, u8x16, u8x64};
use fearless_simd::{SimdBase as _, SimdMask as _};

#[cfg(test)]
mod tests;

/// Places that are looked at together.
const BLOCK: usize = 64;
/// Bytes of a block and of what is behind its last place.
const SEEN: usize = BLOCK + 2;

/// What the first three bytes of one of the eight may be.
pub(super) type Beginning = [&'static [u8]; 3];

/// All bytes, for a beginning that is shorter.
#[allow(clippy::indexing_slicing, reason = "computed while compiling, where an index out of bounds is an error")]
pub(super) const ANY: &[u8] = &{
    let mut bytes = [0; 256];
    let mut byte = u8::MAX;
    while byte > 0 {
        bytes[byte as usize] = byte;
        byte -= 1;
    }
    bytes
};

/// Looks for eight beginnings.
#[derive(Debug)]
pub(super) struct Prefilter {
    /// For the first, second and third byte, by its lower and by its upper half: a bit for each of the eight it is part of.
    tables: [[[u8; 16]; 2]; 3],
}

impl Prefilter {
    /// For these eight. Things may share one of them, at the price of places that mix their bytes. The third byte may be
    /// [`ANY`]; the second may not be zero, which is what stands behind the text.
    pub(super) const fn new(beginnings: &[Beginning; 8]) -> Self {
        Self { tables: [tables(beginnings, 0), tables(beginnings, 1), tables(beginnings, 2)] }
    }

    /// Whether `found_at` says so of any place of `text` at which one of the eight may begin. It is asked in order.
    pub(super) fn search(&self, text: &[u8], found_at: &impl Fn(usize) -> bool) -> bool {
        dispatch!(Level::new(), simd => self.search_by(simd, text, found_at))
    }

    /// [`Self::search`] with the vectors of this machine.
    #[allow(clippy::inline_always, reason = "it is compiled for those vectors as a part of its caller only")]
    #[inline(always)]
    fn search_by<S: Simd>(&self, simd: S, text: &[u8], found_at: &impl Fn(usize) -> bool) -> bool {
        let [first, second, third] = &self.tables;
        let tables = [Table::load(simd, first), Table::load(simd, second), Table::load(simd, third)];
        let mut at = 0;
        let mut rest = text;
        while let Some(seen) = rest.first_chunk::<SEEN>() {
            if any(places(simd, &tables, seen), at, found_at) {
                return true;
            }
            at += BLOCK;
            rest = rest.get(BLOCK..).unwrap_or_default();
        }
        // What is left has at most one place more than a block, and that one has a single byte.
        let mut last = [0; SEEN];
        if let Some(front) = last.get_mut(..rest.len()) {
            front.copy_from_slice(rest);
        }
        any(places(simd, &tables, &last), at, found_at)
    }
}

#[allow(clippy::indexing_slicing, reason = "as of `ANY`")]
const fn tables(beginnings: &[Beginning; 8], place: usize) -> [[u8; 16]; 2] {
    let mut tables = [[0; 16]; 2];
    let mut bit = 0;
    while bit < beginnings.len() {
        let mut bytes = beginnings[bit][place];
        while let [byte, rest @ ..] = bytes {
            tables[0][(*byte & 0x0F) as usize] |= 1 << bit;
            tables[1][(*byte >> 4) as usize] |= 1 << bit;
            bytes = rest;
        }
        bit += 1;
    }
    tables
}

/// The two halves of the table of one byte, in vectors.
struct Table<S: Simd> {
    lower: u8x64<S>,
    upper: u8x64<S>,
}

#[allow(clippy::inline_always, reason = "as of `search_by`")]
impl<S: Simd> Table<S> {
    #[inline(always)]
    fn load(simd: S, [lower, upper]: &[[u8; 16]; 2]) -> Self {
        let lower = u8x64::block_splat(u8x16::load_array_ref(simd, lower));
        Self { lower, upper: u8x64::block_splat(u8x16::load_array_ref(simd, upper)) }
    }

    /// For each of these bytes, the bits of both its halves.
    #[inline(always)]
    fn look_up(&self, bytes: u8x64<S>) -> u8x64<S> {
        self.lower.swizzle_dyn_within_blocks(bytes & 0x0F) & self.upper.swizzle_dyn_within_blocks(bytes >> 4)
    }
}

/// The places of a block at which one of the eight may begin, a bit for each.
#[allow(clippy::inline_always, reason = "as of `search_by`")]
#[inline(always)]
fn places<S: Simd>(simd: S, [first, second, third]: &[Table<S>; 3], seen: &[u8; SEEN]) -> u64 {
    let [_, from_second @ ..] = seen;
    let [_, from_third @ ..] = from_second;
    let eight = first.look_up(block(simd, seen))
        & second.look_up(block(simd, from_second))
        & third.look_up(block(simd, from_third));
    !eight.simd_eq(0).to_bitmask()
}

/// The block at the front of these, which are that many.
#[allow(clippy::inline_always, reason = "as of `search_by`")]
#[inline(always)]
fn block<S: Simd>(simd: S, bytes: &[u8]) -> u8x64<S> {
    u8x64::load_array_ref(simd, bytes.first_chunk().unwrap_or(&[0; BLOCK]))
}

/// Whether `found_at` says so of any of these places of the block at `at`.
#[inline]
fn any(mut places: u64, at: usize, found_at: &impl Fn(usize) -> bool) -> bool {
    while places != 0 {
        if found_at(at + places.trailing_zeros() as usize) {
            return true;
        }
        places &= places - 1;
    }
    false
}
