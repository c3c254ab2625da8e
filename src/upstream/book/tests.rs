use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Book, Event, NEGATIVE, Sighting, Verdict, What};
use crate::message::json::Document;
use crate::message::testing::document;
use crate::policy::{Kind, Label};
use crate::record::{CapabilitySource, Definitions, Digest, Listed, Listing, Record, RecordSource};

pub(in crate::upstream) const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);

/// A record of the tools `a` and `b` and the prompt `p`.
pub(in crate::upstream) fn record() -> Record {
    let text = r#"{"definitions": {"a": {"name": "a", "max": 1}, "b": {"name": "b"}, "prompt:p": {"name": "p"}}}"#;
    let definitions = Definitions::read(text.as_bytes().to_vec()).unwrap();
    let whole = document(text);
    let capabilities: BTreeMap<String, CapabilitySource> = whole
        .root()
        .get("definitions")
        .unwrap()
        .entries()
        .map(|(label, definition)| {
            let digest = Digest::of(definition).unwrap().0;
            let decided = format!(r#"{{"permission": "read", "digest": "{digest}"}}"#);
            (label.as_str().unwrap().to_owned(), serde_json::from_str(&decided).unwrap())
        })
        .collect();
    let source = RecordSource { recorded: None, definitions: "x.json".into(), capabilities };
    Record::build(&source, &definitions).unwrap().0
}

pub(in crate::upstream) fn label(text: &str) -> Label {
    text.parse().unwrap()
}

pub(in crate::upstream) const HONEST: [(&str, &str); 3] =
    [("a", r#"{"max":1.0,"name":"a","icons":[]}"#), ("b", r#"{"name":"b"}"#), ("prompt:p", r#"{"name":"p"}"#)];
const CHANGED: &str = r#"{"name":"a","max":2,"description":"x"}"#;

pub(in crate::upstream) fn listing(entries: &[(&str, &str)]) -> Listing {
    let entries = entries.iter().map(|(name, text)| Listed { label: label(name), document: document(text) }).collect();
    Listing { instructions: None, kinds: vec![Kind::Tool, Kind::Prompt], entries }
}

struct Shelf {
    book: Book,
    start: Instant,
}

impl Shelf {
    fn new() -> Self {
        Self { book: Book::new(&record(), MINUTE), start: Instant::now() + MINUTE }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + SECOND * u32::try_from(seconds).unwrap()
    }

    fn settle(&self, entries: &[(&str, &str)], seconds: u64) -> Vec<String> {
        let at = self.at(seconds);
        self.book.settle(&listing(entries), at..at, self.book.marks()).iter().map(told).collect()
    }

    fn see(&self, name: &str, text: &str, seconds: u64) -> (Sighting, Option<String>) {
        let entry: Document = document(text);
        let label = label(name);
        let (sighting, event) =
            self.book.observe(label.kind(), label.name(), entry.root(), self.at(seconds), Some(&self.book.marks()));
        (sighting, event.as_ref().map(told))
    }

    fn verdict(&self, name: &str, seconds: u64) -> Verdict {
        self.book.verdict(&label(name), self.at(seconds))
    }
}

fn told(event: &Event) -> String {
    let what = match &event.what {
        What::Changed(fields) => fields.join(" "),
        What::Gone => "gone".into(),
        What::Again => "again".into(),
    };
    format!("{} {what}", event.label)
}

fn changed(fields: &[&str]) -> Verdict {
    Verdict::Changed(fields.iter().map(|field| (*field).to_owned()).collect())
}

#[test]
fn nothing_is_fresh_before_it_was_seen_and_a_match_is_good_for_the_interval() {
    let shelf = Shelf::new();
    assert_eq!(shelf.verdict("a", 0), Verdict::Stale);
    assert_eq!(shelf.settle(&HONEST, 0), [""; 0]);
    assert_eq!(shelf.verdict("a", 59), Verdict::Fresh);
    assert_eq!(shelf.verdict("a", 60), Verdict::Stale);
    // A listing that passes refreshes what it holds, and only that.
    assert_eq!(shelf.see("a", HONEST[0].1, 50), (Sighting::Matches, None));
    assert_eq!((shelf.verdict("a", 109), shelf.verdict("b", 61)), (Verdict::Fresh, Verdict::Stale));
    assert_eq!(shelf.verdict("never_recorded", 0), Verdict::Gone);
    assert_eq!(shelf.see("never_recorded", "{}", 0), (Sighting::Unrecorded, None));
    assert_eq!(shelf.book.kinds(), [Kind::Tool, Kind::Prompt]);
}

#[test]
fn a_change_is_told_once_and_refuses_until_our_own_listing_acquits() {
    let shelf = Shelf::new();
    shelf.settle(&HONEST, 0);
    assert_eq!(shelf.see("a", CHANGED, 1), (Sighting::Changed, Some("tool:a description max".into())));
    assert_eq!(shelf.see("a", CHANGED, 2), (Sighting::Changed, None));
    assert_eq!(shelf.verdict("a", 61), changed(&["description", "max"]));
    assert_eq!(shelf.verdict("a", 62), Verdict::Stale, "and then it is looked at again");
    assert_eq!((shelf.verdict("b", 3), shelf.book.drifted()), (Verdict::Fresh, 1));
    // Honest on another page: not to be believed, but worth a look.
    assert_eq!(shelf.see("a", HONEST[0].1, 3), (Sighting::Matches, None));
    assert_eq!(shelf.verdict("a", 3), Verdict::Stale);
    assert_eq!(shelf.see("a", HONEST[0].1, 4), (Sighting::Matches, None));
    assert_eq!(shelf.verdict("a", 4), Verdict::Stale, "however often");
    assert_eq!(shelf.settle(&HONEST, 5), ["tool:a again"]);
    assert_eq!((shelf.verdict("a", 5), shelf.book.drifted()), (Verdict::Fresh, 0));
}

#[test]
fn a_name_that_is_listed_twice_must_match_both_times() {
    for twice in [[("a", CHANGED), ("a", HONEST[0].1)], [("a", HONEST[0].1), ("a", CHANGED)]] {
        let shelf = Shelf::new();
        assert_eq!(shelf.settle(&[&twice[..], &HONEST[1..]].concat(), 0), ["tool:a description max"]);
        assert_eq!(shelf.verdict("a", 0), changed(&["description", "max"]));
        // The same in passing, page by page.
        let shelf = Shelf::new();
        for (name, text) in twice {
            shelf.see(name, text, 0);
        }
        assert_ne!(shelf.verdict("a", 0), Verdict::Fresh);
    }
    let shelf = Shelf::new();
    assert_eq!(shelf.settle(&[&HONEST[..], &HONEST[..]].concat(), 0), [""; 0]);
    assert_eq!(shelf.verdict("a", 0), Verdict::Fresh);
}

#[test]
fn what_is_gone_is_remembered_for_seconds_only() {
    let shelf = Shelf::new();
    assert_eq!(shelf.settle(&HONEST[1..], 0), ["tool:a gone"]);
    assert_eq!(shelf.verdict("a", 4), Verdict::Gone);
    assert_eq!(shelf.verdict("a", NEGATIVE.as_secs()), Verdict::Stale);
    assert_eq!(shelf.settle(&HONEST[1..], 6), [""; 0], "told once");
    assert_eq!(shelf.settle(&HONEST, 7), ["tool:a again"]);
    // A listing of other kinds says nothing about this one.
    let prompts = Listing { kinds: vec![Kind::Prompt], ..listing(&HONEST[2..]) };
    assert!(shelf.book.settle(&prompts, shelf.at(8)..shelf.at(8), shelf.book.marks()).is_empty());
    assert_eq!(shelf.verdict("a", 8), Verdict::Fresh);
}

#[test]
fn list_changed_makes_its_kind_stale_also_for_a_listing_under_way() {
    let shelf = Shelf::new();
    shelf.settle(&HONEST, 0);
    shelf.book.mark_stale(Kind::Tool);
    assert_eq!((shelf.verdict("a", 1), shelf.verdict("prompt:p", 1)), (Verdict::Stale, Verdict::Fresh));
    let before = shelf.book.marks();
    shelf.book.mark_stale(Kind::Tool);
    shelf.book.settle(&listing(&HONEST), shelf.at(2)..shelf.at(3), before);
    assert_eq!((shelf.verdict("a", 3), shelf.verdict("prompt:p", 61)), (Verdict::Stale, Verdict::Fresh));
    // What it condemns counts all the same.
    shelf.book.settle(&listing(&[("a", CHANGED), HONEST[1]]), shelf.at(2)..shelf.at(3), before);
    assert_eq!(shelf.verdict("a", 4), changed(&["description", "max"]));
    shelf.book.mark_stale(Kind::Tool);
    assert_eq!(shelf.verdict("a", 4), Verdict::Stale);
    shelf.see("a", HONEST[0].1, 5);
    assert_eq!(shelf.verdict("a", 5), Verdict::Stale, "a mark acquits nobody");
}

#[test]
fn every_mark_counts_for_what_was_learned_before_it() {
    let shelf = Shelf::new();
    let learn: [&dyn Fn(u64); 2] =
        [&|seconds| drop(shelf.settle(&HONEST, seconds)), &|seconds| drop(shelf.see("b", HONEST[1].1, seconds))];
    for (seconds, learn) in (0..6).zip(learn.into_iter().cycle()) {
        learn(seconds);
        assert_eq!(shelf.verdict("b", seconds), Verdict::Fresh);
        // The second of two in a row has nothing to do, and is a mark all the same.
        let before = shelf.book.marks();
        shelf.book.mark_stale(Kind::Tool);
        assert_eq!(shelf.verdict("b", seconds), Verdict::Stale);
        shelf.book.mark_stale(Kind::Tool);
        assert_eq!(
            (shelf.verdict("b", seconds), shelf.book.marks()),
            (Verdict::Stale, [before[0] + 2, before[1], before[2]])
        );
    }
    shelf.see("a", CHANGED, 7);
    shelf.book.mark_stale(Kind::Tool);
    assert_eq!(shelf.verdict("a", 7), Verdict::Stale, "a condemnation is learned too");
}

/// The mark comes before, between or behind the slots that the listing settles: each time it counts for all of them.
#[test]
fn a_mark_at_any_moment_of_a_listing_under_way_counts() {
    let shelf = Shelf::new();
    let honest = listing(&HONEST);
    for _ in 0..3000 {
        let (before, both) = (shelf.book.marks(), std::sync::Barrier::new(2));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                both.wait();
                shelf.book.mark_stale(Kind::Tool);
            });
            both.wait();
            shelf.book.settle(&honest, shelf.at(2)..shelf.at(3), before);
        });
        assert_eq!((shelf.verdict("a", 3), shelf.verdict("b", 3)), (Verdict::Stale, Verdict::Stale));
    }
}

#[test]
fn a_name_again_and_again_in_one_listing_is_told_by_its_first_change() {
    let shelf = Shelf::new();
    assert_eq!(shelf.see("a", CHANGED, 1).0, Sighting::Changed);
    assert_eq!(shelf.see("a", r#"{"name":"a","max":3}"#, 1), (Sighting::Changed, None));
    assert_eq!(shelf.verdict("a", 1), changed(&["description", "max"]));
    // One that matches between them does not hide the next.
    assert_eq!(shelf.see("a", HONEST[0].1, 1).0, Sighting::Matches);
    assert_eq!(shelf.verdict("a", 1), Verdict::Stale);
    assert_eq!(shelf.see("a", r#"{"name":"a","max":3}"#, 1), (Sighting::Changed, None));
    assert_eq!(shelf.verdict("a", 1), changed(&["description", "max"]));
    // The next listing is told by its own.
    assert_eq!(shelf.see("a", r#"{"name":"a","max":3}"#, 2), (Sighting::Changed, None));
    assert_eq!(shelf.verdict("a", 2), changed(&["max"]));
    assert_eq!(shelf.book.drifts()[0].offered.as_deref(), Some(r#"{"max":3,"name":"a"}"#));
}

#[test]
fn the_newer_word_counts() {
    let shelf = Shelf::new();
    shelf.see("a", CHANGED, 5);
    // This listing began before the change was seen.
    shelf.book.settle(&listing(&HONEST), shelf.at(3)..shelf.at(6), shelf.book.marks());
    assert_eq!(shelf.verdict("a", 6), changed(&["description", "max"]));
    // A match counts from the beginning of its listing.
    assert_eq!((shelf.verdict("b", 62), shelf.verdict("b", 63)), (Verdict::Fresh, Verdict::Stale));
}

#[test]
fn what_was_offered_in_the_place_of_the_record_is_kept_until_it_matches_again() {
    let shelf = Shelf::new();
    let drifts = || {
        let drifts = shelf.book.drifts().into_iter();
        drifts.map(|drift| (drift.label.to_string(), drift.offered.as_deref().map(str::to_owned))).collect::<Vec<_>>()
    };
    shelf.settle(&HONEST, 0);
    assert_eq!(drifts(), []);
    shelf.see("a", CHANGED, 1);
    let changed = ("tool:a".to_owned(), Some(r#"{"description":"x","max":2,"name":"a"}"#.to_owned()));
    assert_eq!(drifts(), std::slice::from_ref(&changed));
    // Listed twice, and once as recorded: what differs is what is shown. The prompt is gone.
    shelf.settle(&[HONEST[0], ("a", CHANGED), HONEST[0], HONEST[1]], 2);
    assert_eq!(drifts(), [changed.clone(), ("prompt:p".to_owned(), None)]);
    // An honest sighting acquits nobody, so it is still to be seen.
    shelf.see("a", HONEST[0].1, 3);
    shelf.book.mark_stale(Kind::Tool);
    assert_eq!(drifts()[0], changed);
    shelf.settle(&HONEST, 4);
    assert_eq!(drifts(), []);
}

#[test]
fn the_same_bytes_again_match_without_hiding_a_change_between() {
    let shelf = Shelf::new();
    let kept = |name: &str| shelf.book.slot(Kind::Tool, name).unwrap().lock().passed.as_deref().map(str::to_owned);
    for seconds in 0..2 {
        assert_eq!(shelf.see("a", HONEST[0].1, seconds), (Sighting::Matches, None));
        assert_eq!(kept("a").as_deref(), Some(HONEST[0].1));
    }
    let told = Some("tool:a description max".into());
    assert_eq!(shelf.see("a", CHANGED, 2), (Sighting::Changed, told), "other bytes are compared");
    assert_eq!(kept("a").as_deref(), Some(HONEST[0].1), "what differs is never kept");
    assert_eq!(shelf.see("a", HONEST[0].1, 3), (Sighting::Matches, None));
    assert_eq!(shelf.verdict("a", 3), Verdict::Stale, "and known bytes acquit no more than others");
    // The bytes of one name say nothing of another.
    assert_eq!(shelf.see("b", HONEST[0].1, 4).0, Sighting::Changed);
    // What a server may make as long as it likes is not remembered.
    let long = format!(r#"{{"name":"b","_meta":{{"x":"{}"}}}}"#, "x".repeat(1 << 20));
    assert_eq!((shelf.see("b", &long, 5).0, kept("b")), (Sighting::Matches, None));
}
