//! The freshness book of one server: for each recorded capability, when it last matched its record, or that it does not.
//!
//! Pure: time comes in, log events go out. Three sources write into it, and they are not believed alike:
//!
//! - **Our own listing** is whole, so it decides everything: matched, changed, or no longer offered ([`Book::settle`]).
//! - **A listing that passes** to a caller is one page of someone's view ([`Book::observe`]). It confirms what matched
//!   before, and it condemns; it does not acquit. A server that lists a tool twice, honest on one page and not on the
//!   other, would else be judged by the page that came last. An honest sighting of a condemned capability makes it
//!   [`Verdict::Stale`], so that our own listing decides.
//! - **`list_changed`** makes a kind stale ([`Book::mark_stale`]), also for a listing of ours that is still under way.

#[cfg(test)]
pub(in crate::upstream) mod tests;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::message::json::Value;
use crate::policy::{Kind, Label};
use crate::record::{Entry, Listing, Record, canonical, differ, differences, first_differences};

/// How long "no longer offered" and "could not be listed" are remembered: so often at most can callers of something that
/// is not there make us list the server.
pub const NEGATIVE: Duration = Duration::from_secs(5);
/// Most bytes that are kept of a definition which is not the recorded one: they are for a person to read.
pub const SHOWN: usize = 32 * 1024;

/// Most fields that are told of an entry that passes and differs; what the operator compares and approves is told whole.
const FIELDS: usize = 256;

/// What is known about a capability (ladder.md, rung 15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It matched its record within the interval.
    Fresh,
    /// It differs from its record in these top-level fields, sorted: `definition.changed`.
    Changed(Arc<[String]>),
    /// It is not offered any more: `definition.gone`.
    Gone,
    /// Nothing recent enough is known: the server has to be listed first. Still so after that: `definition.unverified`.
    Stale,
}

/// What one entry of a listing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// As it was approved.
    Matches,
    /// Not as it was approved: not to be shown.
    Changed,
    /// Nothing was approved under this name: not to be shown.
    Unrecorded,
}

/// Something to log: once per capability until it matches again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The capability.
    pub label: Label,
    /// What became of it.
    pub what: What,
}

/// What became of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It differs in these fields.
    Changed(Arc<[String]>),
    /// It is not offered any more.
    Gone,
    /// It matches again.
    Again,
}

/// A capability that does not match its record, for a person to compare.
#[derive(Clone, Debug)]
pub struct Drift {
    /// The capability.
    pub label: Label,
    /// What was approved.
    pub recorded: Arc<Entry>,
    /// What was offered in its place, in canonical form (where it is at most four times [`SHOWN`]) and cut after [`SHOWN`]
    /// bytes; `None` when nothing was.
    pub offered: Option<Arc<str>>,
}

/// How often each kind was marked stale; see [`Book::marks`].
pub type Marks = [u64; 3];

/// The freshness book of one server.
#[derive(Debug)]
pub struct Book {
    interval: Duration,
    /// By kind and name apart, so that an entry of a listing is looked up without a label being made for it.
    slots: [HashMap<Box<str>, Slot>; 3],
    marks: [AtomicU64; 3],
    /// Whether something became known of a kind since it was last marked stale; else there is nothing to forget.
    known: [AtomicBool; 3],
    /// Held while a kind's slots are marked.
    marking: [Mutex<()>; 3],
}

#[derive(Debug)]
struct Slot {
    label: Label,
    entry: Arc<Entry>,
    state: Mutex<State>,
}

/// What is known of one capability and since when.
#[derive(Clone, Debug)]
struct State {
    /// When the listing behind `standing` was read; `None` before the first.
    at: Option<Instant>,
    standing: Standing,
    /// Whether it was logged that it does not match.
    told: bool,
    /// What was offered in the record's place when it was last condemned.
    offered: Option<Arc<str>>,
    /// The text of the entry that last passed and matched: servers list the same bytes again and again, and equal bytes
    /// need no second comparison. Not kept when it is much longer than what was recorded ([`Slot::keeps`]).
    passed: Option<Box<str>>,
    /// When a listing that passes condemned it last, and the fields it differed in. A listing may hold a name a hundred
    /// thousand times: what is told about it is taken from the first entry that differs.
    condemned: Option<(Instant, Arc<[String]>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// Nothing, or nothing that still counts.
    Unknown,
    /// It was condemned and then seen honest in passing: only our own listing acquits.
    Suspect,
    Matched,
    Changed(Arc<[String]>),
    Gone,
}

impl Book {
    /// The book of what was recorded; nothing in it has matched yet. A match is good for `interval`.
    #[must_use]
    pub fn new(record: &Record, interval: Duration) -> Self {
        let mut slots: [HashMap<Box<str>, Slot>; 3] = Default::default();
        for (label, entry) in record.entries() {
            let state = State {
                at: None,
                standing: Standing::Unknown,
                told: false,
                offered: None,
                passed: None,
                condemned: None,
            };
            let slot = Slot { label: label.clone(), entry: Arc::clone(entry), state: Mutex::new(state) };
            if let Some(of_kind) = slots.get_mut(index(label.kind())) {
                of_kind.insert(label.name().into(), slot);
            }
        }
        let known = [(); 3].map(|()| AtomicBool::new(true));
        Self { interval, slots, marks: Default::default(), known, marking: Default::default() }
    }

    fn slot(&self, kind: Kind, name: &str) -> Option<&Slot> {
        self.slots.get(index(kind))?.get(name)
    }

    /// A slot about to become known.
    fn learn<'s>(&self, slot: &'s Slot) -> MutexGuard<'s, State> {
        let state = slot.lock();
        // Under the lock: a mark that has passed this slot already has taken the flag down before.
        if let Some(known) = self.known.get(index(slot.label.kind())) {
            known.store(true, Ordering::SeqCst);
        }
        state
    }

    /// Whether a kind was not marked since, to be asked of a slot that [`Book::learn`] gave and that is still locked: a mark that
    /// comes later forgets the slot. Who learns says so and then looks for a mark, who marks does so and then looks whether
    /// anything was learnt; all four in one order, or each could miss the other.
    fn unmarked(&self, kind: Kind, since: &Marks) -> bool {
        let mark = self.marks.get(index(kind)).map(|mark| mark.load(Ordering::SeqCst));
        mark == since.get(index(kind)).copied()
    }

    fn all(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flat_map(HashMap::values)
    }

    /// Takes over what another book knows of every capability whose definition is the same here. What only this one has
    /// stays unknown.
    pub fn take_over(&mut self, before: &Self) {
        for (own, other) in self.marks.iter_mut().zip(before.marks()) {
            *own.get_mut() = other;
        }
        for slot in self.slots.iter_mut().flat_map(HashMap::values_mut) {
            let Some(known) = before.slot(slot.label.kind(), slot.label.name()) else { continue };
            if known.entry.canonical() == slot.entry.canonical() {
                *slot.state.get_mut().unwrap_or_else(PoisonError::into_inner) = known.lock().clone();
            }
        }
    }

    /// What `before` was told after [`Book::take_over`] counts here too: each kind that it marked stale since is stale.
    pub fn catch_up(&self, before: &Self) {
        let theirs = before.marks();
        for kind in Kind::ALL {
            let (Some(own), Some(theirs)) = (self.marks.get(index(kind)), theirs.get(index(kind))) else { continue };
            // Beyond theirs: a listing that was asked for between two of their marks is confirmed by neither book.
            if own.fetch_max(*theirs, Ordering::SeqCst) < *theirs {
                self.mark_stale(kind);
            }
        }
    }

    /// Whether this is the book of exactly this record.
    #[must_use]
    pub fn is_about(&self, record: &Record) -> bool {
        let same = |label: &Label, entry: &Entry| {
            let own = self.slot(label.kind(), label.name());
            own.is_some_and(|slot| slot.entry.canonical() == entry.canonical())
        };
        record.len() == self.all().count() && record.entries().all(|(label, entry)| same(label, entry))
    }

    /// How long a match is good.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The kinds of which something was recorded: nothing else need be listed.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| self.all().any(|slot| slot.label.kind() == *kind)).collect()
    }

    /// What is known about a capability. One hash look-up and an uncontended lock; allocates nothing.
    ///
    /// What was never recorded is [`Verdict::Gone`]: nobody approved it, and no listing would change that.
    #[must_use]
    pub fn verdict(&self, label: &Label, now: Instant) -> Verdict {
        let Some(slot) = self.slot(label.kind(), label.name()) else { return Verdict::Gone };
        let state = slot.lock();
        let within = |bound: Duration| state.at.is_some_and(|at| now.saturating_duration_since(at) < bound);
        match &state.standing {
            Standing::Matched if within(self.interval) => Verdict::Fresh,
            Standing::Changed(fields) if within(self.interval) => Verdict::Changed(Arc::clone(fields)),
            Standing::Gone if within(NEGATIVE) => Verdict::Gone,
            _ => Verdict::Stale,
        }
    }

    /// Judges an entry of a listing that passes under this name, whether or not the caller may see it, and takes note.
    ///
    /// `since`: the marks when the listing was asked for; `None` when nobody knows. What was marked since then is not confirmed
    /// by it: the listing may have been on its way when the server said that something changed.
    ///
    /// An entry of the same bytes as the last one that matched is not compared again; it allocates nothing.
    pub fn observe(
        &self,
        kind: Kind,
        name: &str,
        entry: Value<'_>,
        now: Instant,
        since: Option<&Marks>,
    ) -> (Sighting, Option<Event>) {
        let Some(slot) = self.slot(kind, name) else { return (Sighting::Unrecorded, None) };
        let text = entry.raw();
        let (again, condemned) = {
            let state = slot.lock();
            (state.passed.as_deref() == Some(text), state.condemned_at(now))
        };
        // Outside the lock, for it may take long.
        let recorded = slot.entry.document().root();
        let changed = match condemned {
            _ if again => None,
            Some((fields, offered)) => differ(recorded, entry).then_some((fields, offered)),
            None => {
                let fields = first_differences(recorded, entry, FIELDS);
                (!fields.is_empty()).then(|| (fields.into(), shown(entry)))
            }
        };
        let mut state = self.learn(slot);
        if let Some((fields, offered)) = changed {
            state.condemned = Some((now, Arc::clone(&fields)));
            let event = state.condemn(Standing::Changed(fields), Some(offered), now, &slot.label);
            return (Sighting::Changed, event);
        }
        if !again && slot.keeps(text) {
            state.passed = Some(text.into());
        }
        let confirms = since.is_some_and(|since| self.unmarked(kind, since));
        match state.standing {
            Standing::Unknown | Standing::Matched if !confirms => {}
            Standing::Unknown | Standing::Matched => {
                state.standing = Standing::Matched;
                state.at = state.at.max(Some(now));
            }
            Standing::Changed(_) | Standing::Gone => state.standing = Standing::Suspect,
            Standing::Suspect => {}
        }
        (Sighting::Matches, None)
    }

    /// Takes in our own whole listing of `listing.kinds`, which was read in the time `read`; the kinds had been marked stale
    /// `before` times when that began. A name that is listed twice must match both times.
    ///
    /// A match counts from the beginning, a refusal from the end: each the careful way.
    pub fn settle(&self, listing: &Listing, read: Range<Instant>, before: Marks) -> Vec<Event> {
        let mut found: HashMap<&Label, (Vec<String>, Value<'_>)> = HashMap::new();
        for listed in &listing.entries {
            let Some(slot) = self.slot(listed.label.kind(), listed.label.name()) else { continue };
            let offered = listed.document.root();
            let fields = differences(slot.entry.document().root(), offered);
            let (all, differing) = found.entry(&listed.label).or_insert((Vec::new(), offered));
            if !fields.is_empty() {
                *differing = offered;
            }
            all.extend(fields);
            all.sort_unstable();
            all.dedup();
        }
        let mut events = Vec::new();
        for slot in self.all().filter(|slot| listing.kinds.contains(&slot.label.kind())) {
            let label = &slot.label;
            let mut state = self.learn(slot);
            events.extend(match found.get(label) {
                None => state.condemn(Standing::Gone, None, read.end, label),
                Some((fields, offered)) if !fields.is_empty() => {
                    state.condemn(Standing::Changed(fields.as_slice().into()), Some(shown(*offered)), read.end, label)
                }
                // What was marked or seen changed since this listing began is not acquitted by it.
                Some(_) if self.unmarked(label.kind(), &before) => state.acquit(read.start, label),
                Some(_) => None,
            });
        }
        // In one order, so that two logs of the same drift read alike.
        events.sort_by(|one, other| one.label.cmp(&other.label));
        events
    }

    /// The server said that what it offers of this kind has changed: nothing known about the kind counts any more.
    pub fn mark_stale(&self, kind: Kind) {
        if let Some(mark) = self.marks.get(index(kind)) {
            mark.fetch_add(1, Ordering::SeqCst);
        }
        // A server may cry so in every event, and a mark walks all of a kind: only what was learned since is forgotten. Who
        // finds nothing to do waits for the mark that does it.
        let _marking = self.marking.get(index(kind)).map(|own| own.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.known.get(index(kind)).is_some_and(|known| known.swap(false, Ordering::SeqCst)) {
            return;
        }
        for slot in self.slots.get(index(kind)).into_iter().flat_map(HashMap::values) {
            let mut state = slot.lock();
            state.standing = match state.standing {
                Standing::Unknown | Standing::Matched => Standing::Unknown,
                Standing::Suspect | Standing::Changed(_) | Standing::Gone => Standing::Suspect,
            };
        }
    }

    /// How often each kind was marked stale so far.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.marks.each_ref().map(|mark| mark.load(Ordering::Acquire))
    }

    /// The capabilities that do not match at the moment, as far as is known, sorted.
    #[must_use]
    pub fn drift(&self) -> Vec<String> {
        let drifted = self.all().filter(|slot| slot.lock().told);
        let mut labels: Vec<String> = drifted.map(|slot| slot.label.to_string()).collect();
        labels.sort_unstable();
        labels
    }

    /// What the capabilities of [`Book::drift`] are recorded as and were offered as, sorted by label.
    #[must_use]
    pub fn drifts(&self) -> Vec<Drift> {
        let drift = |slot: &Slot| {
            let state = slot.lock();
            let drift = || Drift {
                label: slot.label.clone(),
                recorded: Arc::clone(&slot.entry),
                offered: state.offered.clone(),
            };
            state.told.then(drift)
        };
        let mut drifts: Vec<Drift> = self.all().filter_map(drift).collect();
        drifts.sort_unstable_by(|one, other| one.label.cmp(&other.label));
        drifts
    }

    /// How many capabilities do not match at the moment, as far as is known.
    #[must_use]
    pub fn drifted(&self) -> usize {
        self.all().filter(|slot| slot.lock().told).count()
    }
}

impl Slot {
    /// Whether a text that matched is worth its memory: `_meta` and `icons` are not recorded and may be of any length.
    fn keeps(&self, text: &str) -> bool {
        text.len() <= self.entry.document().text().len().saturating_mul(2).saturating_add(1024)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What it was condemned for by an entry that passed at `now`, and what is told to be offered.
    fn condemned_at(&self, now: Instant) -> Option<(Arc<[String]>, Arc<str>)> {
        let (_, fields) = self.condemned.as_ref().filter(|(at, _)| *at == now)?;
        Some((Arc::clone(fields), Arc::clone(self.offered.as_ref()?)))
    }

    /// It does not match. Believed whenever it comes, also late.
    fn condemn(&mut self, standing: Standing, offered: Option<Arc<str>>, at: Instant, label: &Label) -> Option<Event> {
        let what = match &standing {
            Standing::Changed(fields) => What::Changed(Arc::clone(fields)),
            _ => What::Gone,
        };
        self.standing = standing;
        self.offered = offered;
        self.at = self.at.max(Some(at));
        let first = !std::mem::replace(&mut self.told, true);
        first.then(|| Event { label: label.clone(), what })
    }

    /// It matched in our own listing that began at `at`; nothing when something is known that is newer than that.
    fn acquit(&mut self, at: Instant, label: &Label) -> Option<Event> {
        if self.at.is_some_and(|seen| seen > at) {
            return None;
        }
        self.standing = Standing::Matched;
        self.offered = None;
        self.at = Some(at);
        std::mem::take(&mut self.told).then(|| Event { label: label.clone(), what: What::Again })
    }
}

/// What is kept of a definition that is not the recorded one. One that is much longer than what is kept stays as it is spelled:
/// its order costs more than it tells.
fn shown(definition: Value<'_>) -> Arc<str> {
    if definition.raw().len() > SHOWN.saturating_mul(4) {
        let text = definition.raw();
        return text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default().into();
    }
    let canonical = canonical(definition).ok().and_then(|canonical| String::from_utf8(canonical).ok());
    let text = canonical.as_deref().unwrap_or_else(|| definition.raw());
    text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default().into()
}

fn index(kind: Kind) -> usize {
    match kind {
        Kind::Tool => 0,
        Kind::Prompt => 1,
        Kind::Resource => 2,
    }
}
