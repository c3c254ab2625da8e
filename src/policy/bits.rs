//! A set of small numbers. Up to 128 of them live inline, so the sets of a usual configuration never touch the heap.

use smallvec::SmallVec;

/// A growable set of `u32`, sized by its greatest member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bits {
    /// 64 members a word; the last word is never 0, so that equal sets are equal words.
    words: SmallVec<[u64; 2]>,
}

/// Where a member stands: word index and mask.
fn place(member: u32) -> (usize, u64) {
    // A u32 shifted right fits every usize this crate builds for (16-bit targets have no std).
    ((member >> 6) as usize, 1 << (member & 63))
}

impl Bits {
    /// Adds a member.
    pub(super) fn insert(&mut self, member: u32) {
        let (word, mask) = place(member);
        if self.words.len() <= word {
            self.words.resize(word.saturating_add(1), 0);
        }
        if let Some(bits) = self.words.get_mut(word) {
            *bits |= mask;
        }
    }

    /// Whether `member` is in the set; one load.
    pub(super) fn contains(&self, member: u32) -> bool {
        let (word, mask) = place(member);
        self.words.get(word).is_some_and(|bits| bits & mask != 0)
    }

    /// Whether there is no member.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds all members of `other`.
    pub(super) fn union(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// The members that `other` does not have.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let theirs = other.words.iter().copied().chain(std::iter::repeat(0));
        let mut words: SmallVec<[u64; 2]> =
            self.words.iter().zip(theirs).map(|(mine, theirs)| mine & !theirs).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        Self { words }
    }

    /// The members in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).step_by(64).zip(&self.words).flat_map(|(base, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest.wrapping_sub(1);
                Some(base.saturating_add(bit))
            })
        })
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(members: I) -> Self {
        let mut set = Self::default();
        members.into_iter().for_each(|member| set.insert(member));
        set
    }
}

#[cfg(test)]
mod tests;
