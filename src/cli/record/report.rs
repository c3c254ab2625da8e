//! What changed, for people and for machines.
//!
//! The old and the new text stand one above the other, so that a person sees where they part. Nothing that a terminal or an
//! eye would swallow is shown as it is: invisible and control characters are written as `\u{200B}`.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use portcullis::message::json::{Document, Limits, Value};
use portcullis::policy::Label;
use portcullis::record::{Changes, Difference, Field, Listing, Side};
use portcullis::screen::config::DetectorsSource;
use portcullis::screen::{Detectors, Found, addressed, invisible};

/// The answer of `--check` for people.
pub(super) fn text(changes: &Changes, listing: &Listing) -> String {
    if changes.is_empty() { unchanged(changes, 0) } else { differences(changes, listing) }
}

/// Nothing to do.
pub(super) fn unchanged(changes: &Changes, undecided: usize) -> String {
    let left = match undecided {
        0 => String::new(),
        undecided => format!("; {undecided} still to be priced (`permission: TODO`)"),
    };
    format!("{} capabilities, unchanged{left}\n", changes.priced.saturating_add(undecided))
}

/// Every difference: `+` never priced, `-` no longer offered, `?` priced without a record, `~` changed.
pub(super) fn differences(changes: &Changes, listing: &Listing) -> String {
    let mut lines: Vec<String> = Vec::new();
    for label in &changes.never_priced {
        lines.push(format!("+ {}  never priced{}", visible(&label.to_string()), flags(of_definition(label, listing))));
    }
    lines.extend(
        changes.no_longer_offered.iter().map(|label| format!("- {}  no longer offered", visible(&label.to_string()))),
    );
    lines.extend(
        changes
            .without_record
            .iter()
            .map(|label| format!("? {}  priced without a record", visible(&label.to_string()))),
    );
    for change in &changes.changed {
        for Field { name, differences, more } in &change.fields {
            for difference in differences {
                let place = format!("{} {}{}", change.label, name, spaced(&difference.pointer));
                lines.push(told(&place, difference));
            }
            if *more > 0 {
                lines.push(format!("~ {}: {more} more differences", visible(&format!("{} {name}", change.label))));
            }
        }
    }
    lines.extend(changes.instructions.iter().map(|difference| told("instructions", difference)));
    lines.into_iter().fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{line}");
        out
    })
}

fn spaced(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" {pointer}") }
}

fn told(place: &str, difference: &Difference) -> String {
    let side = |side: &Option<Side>| match side {
        None => "(none)".to_owned(),
        Some(Side::Text(text)) => format!("\"{}\"", visible(text)),
        Some(Side::Json(text)) => visible(text),
    };
    let flags = flags(of_side(difference.new.as_ref()));
    format!("~ {}\n    old {}\n    new {}{flags}", visible(place), side(&difference.old), side(&difference.new))
}

/// The answer of `--check` for machines.
pub(super) fn json(changes: &Changes, listing: &Listing) -> String {
    let names = |labels: &[Label]| labels.iter().map(ToString::to_string).collect::<Vec<_>>();
    let never_priced = changes.never_priced.iter().map(|label| {
        let Found { invisible, addressed } = of_definition(label, listing);
        json!({"capability": label.to_string(), "invisible": invisible, "addressed_to_model": addressed})
    });
    let altered = changes.changed.iter().map(|change| {
        let field = |Field { name, differences, more }: &Field| {
            let differences: Vec<Json> = differences.iter().map(as_json).collect();
            json!({"field": name, "differences": differences, "more": more})
        };
        let fields: Vec<Json> = change.fields.iter().map(field).collect();
        json!({"capability": change.label.to_string(), "fields": fields})
    });
    let report = json!({
        "unchanged": changes.is_empty(),
        "capabilities": changes.priced,
        "never_priced": never_priced.collect::<Vec<_>>(),
        "no_longer_offered": names(&changes.no_longer_offered),
        "priced_without_record": names(&changes.without_record),
        "changed": altered.collect::<Vec<_>>(),
        "instructions": changes.instructions.as_ref().map(as_json),
    });
    format!("{report:#}\n")
}

fn as_json(difference: &Difference) -> Json {
    // JSON goes as its text: whatever reads this report may round numbers.
    let side = |side: &Option<Side>| match side {
        None => Json::Null,
        Some(Side::Text(text)) => json!({"text": text}),
        Some(Side::Json(text)) => json!({"json": text}),
    };
    let Found { invisible, addressed } = of_side(difference.new.as_ref());
    json!({
        "pointer": difference.pointer, "old": side(&difference.old), "new": side(&difference.new),
        "invisible": invisible, "addressed_to_model": addressed,
    })
}

fn flags(found: Found) -> &'static str {
    match (found.invisible, found.addressed) {
        (false, false) => "",
        (true, false) => "\n    ⚠ invisible characters",
        (false, true) => "\n    ⚠ text addressed to the model",
        (true, true) => "\n    ⚠ invisible characters, text addressed to the model",
    }
}

fn of_side(side: Option<&Side>) -> Found {
    match side {
        None => Found::default(),
        Some(Side::Text(text)) => Found { invisible: invisible::contains(text), addressed: addressed::contains(text) },
        Some(Side::Json(text)) => {
            // Read again, because an escape hides a phrase from whoever looks at the text.
            let limits = Limits { depth: usize::MAX, nodes: usize::MAX };
            Document::read(text.clone().into_bytes(), limits).map_or(Found::default(), |document| scan(document.root()))
        }
    }
}

fn scan(value: Value<'_>) -> Found {
    Detectors::compile(&DetectorsSource::default()).map_or(Found::default(), |detectors| detectors.scan(value))
}

/// What every definition under a label holds.
fn of_definition(label: &Label, listing: &Listing) -> Found {
    let own = listing.entries.iter().filter(|listed| listed.label == *label);
    own.fold(Found::default(), |found, listed| found.and(scan(listed.document.root())))
}

/// A text with everything written out that a reader might not see, or that a terminal would act on.
pub(super) fn visible(text: &str) -> String {
    let invisible: Vec<usize> = invisible::occurrences(text).map(|(at, _)| at).collect();
    text.char_indices().fold(String::with_capacity(text.len()), |mut out, (at, c)| {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || invisible.binary_search(&at).is_ok() => {
                let _ = write!(out, "\\u{{{:X}}}", u32::from(c));
            }
            c => out.push(c),
        }
        out
    })
}
