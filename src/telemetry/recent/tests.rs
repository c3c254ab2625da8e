use std::time::{Duration, Instant, SystemTime};

use super::{KEPT, Recent};
use crate::refusal::{Reason, Rung};
use crate::telemetry::record::{Outcome, Record};

fn refusal(id: &str) -> Record {
    let mut record = Record::new(id.to_owned(), Instant::now());
    (record.outcome, record.reason) = (Outcome::Refused, Some(Reason::PolicyUnpriced));
    record.rung = Some(Rung::Permission);
    record.server = Some(("cases".into(), 0));
    (record.principal, record.capability) = ("ana@acme.com".into(), "tool:x".into());
    record
}

#[test]
fn the_last_refusals_are_kept_and_no_more() {
    let recent = Recent::default();
    for count in 0..KEPT + 20 {
        recent.note(&refusal(&count.to_string()), SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    }
    let all = recent.all();
    assert_eq!((all.len(), &*all[0].id, &*all[KEPT - 1].id), (KEPT, "119", "20"));
    assert_eq!((&*all[0].reason, all[0].rung, &*all[0].server), ("policy.unpriced", "permission", "cases"));
    assert_eq!((&*all[0].principal, &*all[0].capability, all[0].enforced), ("ana@acme.com", "tool:x", true));
}

#[test]
fn what_would_have_been_refused_is_kept_as_that_and_the_rest_is_not() {
    let recent = Recent::default();
    let mut allowed = refusal("allowed");
    (allowed.outcome, allowed.reason) = (Outcome::Allowed, None);
    let mut aborted = refusal("aborted");
    aborted.outcome = Outcome::Aborted;
    let mut shadow = refusal("shadow");
    (shadow.outcome, shadow.enforced) = (Outcome::Allowed, false);
    for record in [&allowed, &aborted, &shadow] {
        recent.note(record, SystemTime::UNIX_EPOCH);
    }
    let all = recent.all();
    assert_eq!(all.iter().map(|one| (&*one.id, one.enforced)).collect::<Vec<_>>(), [("shadow", false)]);
}

#[test]
fn a_long_word_of_the_callers_is_cut_between_letters() {
    let recent = Recent::default();
    let mut long = refusal("long");
    long.capability = "é".repeat(10_000).into();
    recent.note(&long, SystemTime::UNIX_EPOCH);
    assert_eq!(recent.all()[0].capability, format!("{}…", "é".repeat(256)));
}
