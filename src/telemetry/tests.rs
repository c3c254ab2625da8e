use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::counters::Counters;
use super::record::{Outcome, Screened};
use super::testing::{record, value};
use crate::refusal::frame::Tier;

#[test]
fn decisions_are_counted_under_closed_labels() {
    let counters = Counters::new(vec!["cases".into(), "other".into()]);
    counters.decided(&record());
    counters.decided(&record());
    let mut unlisted = record();
    (unlisted.listed, unlisted.server, unlisted.tier) = (None, None, Tier::Minimal);
    unlisted.method = "made/up".into();
    counters.decided(&unlisted);
    let mut allowed = record();
    (allowed.reason, allowed.outcome, allowed.server) = (None, Outcome::Allowed, Some(("other".into(), 1)));
    allowed.entries_hidden = 3;
    counters.decided(&allowed);
    let samples = counters.samples();
    let decisions = |labels: &[&str]| value(&samples, "portcullis.decisions", labels);
    assert_eq!(decisions(&["cases", "tools/call", "refuse", "policy.unpriced"]), Some(2));
    assert_eq!(decisions(&["_none", "_other", "refuse", "policy.unpriced"]), Some(1));
    assert_eq!(decisions(&["other", "tools/call", "allow"]), Some(1));
    assert_eq!(decisions(&["made/up"]), None);
    assert_eq!(value(&samples, "portcullis.listing.entries_hidden", &["other", "tools/call"]), Some(3));
    assert_eq!(value(&samples, "portcullis.render.fallbacks", &["minimal"]), Some(1));
    assert_eq!(value(&samples, "portcullis.render.fallbacks", &["constant"]), Some(0));
}

#[test]
fn streams_are_bounded_and_what_is_beyond_is_counted() {
    let counters = Counters::new(Vec::new());
    assert!(counters.stream_opened(1));
    assert!(!counters.stream_opened(1));
    counters.stream_closed();
    assert!(counters.stream_opened(1));
    let samples = counters.samples();
    assert_eq!(value(&samples, "portcullis.streams.open", &[]), Some(1));
    assert_eq!(value(&samples, "portcullis.streams.refused", &[]), Some(1));
}

#[test]
fn only_recorded_capabilities_become_labels() {
    let counters = Counters::new(vec!["cases".into()]);
    for name in 0..10_000 {
        let mut made_up = record();
        made_up.capability = format!("tool:made-up-{name}").into();
        made_up.method = format!("made/up/{name}").into();
        made_up.listed = None;
        counters.decided(&made_up);
    }
    let mut recorded = record();
    (recorded.capability, recorded.recorded) = ("tool:search".into(), true);
    counters.decided(&recorded);
    let samples = counters.samples_of("portcullis.decisions");
    assert_eq!(samples.len(), 2, "{samples:?}");
    assert_eq!(value(&samples, "portcullis.decisions", &["_other", "refuse"]), Some(10_000));
    assert_eq!(value(&samples, "portcullis.decisions", &["tool:search"]), Some(1));
}

#[test]
fn counters_go_on_across_reloads_and_let_go_of_what_is_gone() {
    let counters = Counters::new(vec!["cases".into(), "old".into()]);
    for (server, label) in [("cases", "tool:kept"), ("cases", "tool:gone"), ("old", "tool:kept")] {
        let mut one = record();
        (one.server, one.capability, one.recorded) = (Some((server.into(), 0)), label.into(), true);
        counters.decided(&one);
    }
    let known: HashMap<Arc<str>, HashSet<Arc<str>>> =
        HashMap::from([("cases".into(), HashSet::from(["tool:kept".into()])), ("new".into(), HashSet::new())]);
    counters.follow(&known);
    let samples = counters.samples_of("portcullis.decisions");
    assert_eq!(samples.len(), 1, "{samples:?}");
    assert_eq!(value(&samples, "portcullis.decisions", &["cases", "tool:kept"]), Some(1));
    assert_eq!(value(&counters.samples(), "portcullis.screened", &[Screened::Notice.as_str()]), None);
}
