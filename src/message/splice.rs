//! Byte-exact edits of a document: what is not edited stays the bytes that came.
//!
//! A filtered listing must not re-encode the entries that stay (a digest, a big number or an escape would change), so
//! an edit is a cut in the original text. Edits may be registered in any order; they meet only in [`Edits::apply`],
//! which refuses those that contradict each other instead of guessing which was meant.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::json::{Document, Kind, Value};
use super::write;

/// Why a set of edits cannot be applied. Always a fault of the caller, never of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Two edits want the same bytes, such as a value replaced inside a member that is removed.
    #[error("expected edits that do not overlap, but two meet at byte {at}")]
    Overlap {
        /// Where the second begins.
        at: usize,
    },
    /// A value of another document was named.
    #[error("expected a value of the document that is edited")]
    Foreign,
    /// Members were to be edited in something that is not an object, or items in something that is not an array.
    #[error("expected a container of the right kind at byte {at}")]
    Kind {
        /// Where it begins.
        at: usize,
    },
}

/// Edits of one document, collected and then applied in one go.
#[derive(Debug)]
pub struct Edits<'d> {
    document: &'d Document,
    cuts: Vec<Cut>,
    dropped: Vec<Dropped<'d>>,
    appended: Vec<Appended<'d>>,
    inserted: Vec<Inserted<'d>>,
    /// All new bytes, one after the other.
    new: Vec<u8>,
    conflict: Option<Conflict>,
}

/// Bytes of the text that go, and bytes of `Edits::new` that come.
#[derive(Debug)]
struct Cut {
    old: Range<usize>,
    new: Range<usize>,
}

/// An item or member that goes, together with its separator.
#[derive(Debug)]
struct Dropped<'d> {
    container: Value<'d>,
    /// Where the child begins.
    child: usize,
}

/// A member that comes.
#[derive(Debug)]
struct Appended<'d> {
    object: Value<'d>,
    /// `,"key":` in `Edits::new`.
    key: Range<usize>,
    /// The value behind it.
    value: Range<usize>,
}

/// An item that comes in front of all others.
#[derive(Debug)]
struct Inserted<'d> {
    array: Value<'d>,
    /// The item and a `,` in `Edits::new`.
    new: Range<usize>,
}

impl<'d> Edits<'d> {
    /// No edits yet.
    #[must_use]
    pub fn new(document: &'d Document) -> Self {
        Self {
            document,
            cuts: Vec::new(),
            dropped: Vec::new(),
            appended: Vec::new(),
            inserted: Vec::new(),
            new: Vec::new(),
            conflict: None,
        }
    }

    /// Whether [`Edits::apply`] would return the document as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cuts.is_empty()
            && self.dropped.is_empty()
            && self.appended.is_empty()
            && self.inserted.is_empty()
            && self.conflict.is_none()
    }

    /// Puts `json` in the place of `value`. White space around it stays.
    pub fn replace(&mut self, value: Value<'d>, json: &[u8]) {
        if self.owns(value) {
            let new = self.keep(json);
            self.cuts.push(Cut { old: value.span(), new });
        }
    }

    /// Removes the member `key` (compared after unescaping) with its separator; says whether there was one.
    pub fn remove_member(&mut self, object: Value<'d>, key: &str) -> bool {
        if !self.owns_a(Kind::Object, object) {
            return false;
        }
        let Some((name, _)) = object.entries().find(|(name, _)| name.as_str() == Some(key)) else { return false };
        self.dropped.push(Dropped { container: object, child: name.span().start });
        true
    }

    /// Gives the member `key` the value `json`: in its place when the object has it, else as the last member.
    pub fn set_member(&mut self, object: Value<'d>, key: &str, json: &[u8]) {
        if !self.owns_a(Kind::Object, object) {
            return;
        }
        if let Some(value) = object.get(key) {
            return self.replace(value, json);
        }
        let start = self.new.len();
        self.new.push(b',');
        write::string(&mut self.new, key);
        self.new.push(b':');
        let key = start..self.new.len();
        let value = self.keep(json);
        self.appended.push(Appended { object, key, value });
    }

    /// Keeps those items of `array` for which `keep` says so; returns how many go.
    ///
    /// An item that goes takes the separator in front of it along (the first kept item loses the one it had), with the
    /// white space around the comma. What stands behind `[` and in front of `]` stays.
    pub fn retain_items(&mut self, array: Value<'d>, mut keep: impl FnMut(usize, Value<'d>) -> bool) -> usize {
        if !self.owns_a(Kind::Array, array) {
            return 0;
        }
        let before = self.dropped.len();
        for (index, item) in array.items().enumerate() {
            if !keep(index, item) {
                if self.dropped.capacity() == 0 {
                    // Room for a long listing at once; a hostile one grows it.
                    self.dropped.reserve(array.len().min(4096));
                }
                self.dropped.push(Dropped { container: array, child: item.span().start });
            }
        }
        self.dropped.len().saturating_sub(before)
    }

    /// Puts the item `json` in front of all items of `array`, directly behind its `[`.
    pub fn insert_first(&mut self, array: Value<'d>, json: &[u8]) {
        if !self.owns_a(Kind::Array, array) {
            return;
        }
        let mut new = self.keep(json);
        self.new.push(b',');
        new.end = self.new.len();
        self.inserted.push(Inserted { array, new });
    }

    /// The edited text, in one allocation of its exact size.
    ///
    /// # Errors
    /// [`Conflict`], the first that was registered or else the first in the order of the text. Removing the same thing
    /// twice is no conflict; setting the same member twice is, and so are two first items of one array.
    pub fn apply(mut self) -> Result<Vec<u8>, Conflict> {
        if let Some(conflict) = self.conflict {
            return Err(conflict);
        }
        self.dropped.sort_unstable_by_key(|dropped| (dropped.container.span().start, dropped.child));
        self.dropped.dedup_by_key(|dropped| (dropped.container.span().start, dropped.child));
        self.cut_dropped();
        self.cut_appended()?;
        self.cut_inserted()?;
        // An insertion is an empty cut and stands before a removal that begins where it does. The order in `new` is the
        // order of registration.
        self.cuts.sort_unstable_by_key(|cut| (cut.old.start, cut.old.end, cut.new.start));
        self.write()
    }

    fn write(&self) -> Result<Vec<u8>, Conflict> {
        let text = self.document.text().as_bytes();
        let size = self
            .cuts
            .iter()
            .fold(text.len(), |size, cut| size.saturating_add(cut.new.len()).saturating_sub(cut.old.len()));
        let mut out = Vec::with_capacity(size);
        let mut at = 0;
        for cut in &self.cuts {
            let overlap = Conflict::Overlap { at: cut.old.start };
            out.extend_from_slice(text.get(at..cut.old.start).ok_or(overlap)?);
            out.extend_from_slice(self.new.get(cut.new.clone()).unwrap_or_default());
            at = cut.old.end;
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        Ok(out)
    }

    /// One cut for each run of neighbours that go.
    fn cut_dropped(&mut self) {
        self.cuts.reserve(self.dropped.len());
        for group in self.dropped.chunk_by(|a, b| a.container.span().start == b.container.span().start) {
            let Some(first) = group.first() else { continue };
            let mut gone = group.iter().map(|dropped| dropped.child).peekable();
            // Where the last kept child ended, and the run that is going on.
            let mut kept = None;
            let mut run: Option<Range<usize>> = None;
            for child in children(first.container) {
                if gone.next_if_eq(&child.start).is_some() {
                    let start = kept.unwrap_or(child.start);
                    run = Some(run.map_or(start, |run| run.start)..child.end);
                    continue;
                }
                if let Some(run) = run.take() {
                    let end = if kept.is_some() { run.end } else { child.start };
                    self.cuts.push(Cut { old: run.start..end, new: 0..0 });
                }
                kept = Some(child.end);
            }
            if let Some(run) = run {
                self.cuts.push(Cut { old: run, new: 0..0 });
            }
        }
    }

    /// An insertion behind the last member that stays, or where the first member stood, or between the braces.
    fn cut_appended(&mut self) -> Result<(), Conflict> {
        for (index, member) in self.appended.iter().enumerate() {
            let start = member.object.span().start;
            let mut earlier = self.appended.iter().take(index).filter(|other| other.object.span().start == start);
            let key = self.new.get(member.key.clone());
            let followed = earlier.clone().next().is_some();
            if earlier.any(|other| self.new.get(other.key.clone()) == key) {
                return Err(Conflict::Overlap { at: member.object.span().end.saturating_sub(1) });
            }
            let kept = self.last_kept(member.object);
            let first = children(member.object).next().map_or(start.saturating_add(1), |child| child.start);
            let at = kept.unwrap_or(first);
            let comma = usize::from(kept.is_none() && !followed);
            let new = member.key.start.saturating_add(comma)..member.value.end;
            self.cuts.push(Cut { old: at..at, new });
        }
        Ok(())
    }

    /// An insertion behind the bracket; the comma comes along where an item follows.
    fn cut_inserted(&mut self) -> Result<(), Conflict> {
        for (index, item) in self.inserted.iter().enumerate() {
            let at = item.array.span().start.saturating_add(1);
            if self.inserted.iter().take(index).any(|other| other.array.span() == item.array.span()) {
                return Err(Conflict::Overlap { at });
            }
            let alone = usize::from(self.last_kept(item.array).is_none());
            let new = item.new.start..item.new.end.saturating_sub(alone);
            self.cuts.push(Cut { old: at..at, new });
        }
        Ok(())
    }

    /// Where the last item or member of `container` that stays ends.
    fn last_kept(&self, container: Value<'d>) -> Option<usize> {
        let start = container.span().start;
        let goes = |child: usize| {
            self.dropped.binary_search_by_key(&(start, child), |gone| (gone.container.span().start, gone.child)).is_ok()
        };
        children(container).filter(|child| !goes(child.start)).last().map(|child| child.end)
    }

    fn keep(&mut self, json: &[u8]) -> Range<usize> {
        let start = self.new.len();
        self.new.extend_from_slice(json);
        start..self.new.len()
    }

    fn owns(&mut self, value: Value<'d>) -> bool {
        let owned = std::ptr::eq(value.document(), self.document);
        if !owned {
            self.conflict.get_or_insert(Conflict::Foreign);
        }
        owned
    }

    fn owns_a(&mut self, kind: Kind, value: Value<'d>) -> bool {
        if !self.owns(value) {
            return false;
        }
        let right = value.kind() == kind;
        if !right {
            self.conflict.get_or_insert(Conflict::Kind { at: value.span().start });
        }
        right
    }
}

/// The spans of the items or members of a container; a member reaches from its key to the end of its value.
fn children(container: Value<'_>) -> impl Iterator<Item = Range<usize>> {
    let members = container.entries().map(|(key, value)| key.span().start..value.span().end);
    container.items().map(|item| item.span()).chain(members)
}
