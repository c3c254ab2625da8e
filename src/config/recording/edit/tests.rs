use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Offered, Plan, edited, first};
use crate::config::tree::Node;
use crate::message::testing::document;
use crate::policy::Label;
use crate::record::Digest;

/// A capability whose digest is another one for each `version`.
fn offered(label: &str, version: usize) -> Offered {
    let digest = Digest::of(document(&format!("{{\"v\":{version}}}")).root()).unwrap().0;
    let label: Label = label.parse().unwrap();
    let uri = (label.kind() == crate::policy::Kind::Resource).then(|| format!("cases://{}/{{id}}", label.name()));
    Offered { label, digest, uri }
}

fn digest(version: usize) -> String {
    offered("a", version).digest.to_string()
}

fn plan<'a>(offered: &'a [Offered], unpriced: &'a BTreeSet<Label>) -> Plan<'a> {
    Plan {
        from: "https://v/mcp",
        at: "2026-12-01T00:00:00Z",
        protocol: "2026-07-28",
        offered,
        unpriced,
        changed: false,
    }
}

/// What a recording of `offered` makes of `text`.
fn after(text: &str, offered: &[Offered]) -> Result<String, String> {
    let (root, faults) = Node::parse(text);
    assert!(faults.is_empty(), "{faults:?}");
    edited(text, &root.unwrap(), &plan(offered, &BTreeSet::new())).map_err(|fault| fault.message)
}

fn record(entries: &str) -> String {
    format!(
        "# Reviewed by Ann.\nrecorded: {{from: \"https://v/mcp\", at: 2026-11-30T09:00:00Z, protocol: \"2026-07-28\"}} # first\n\
         definitions: cases.json\ncapabilities:\n{entries}"
    )
}

#[test]
fn what_did_not_change_stays_byte_for_byte() {
    let text = record(&format!("  a: {{digest: '{}', permission: 'read'}}  # why\n\n# end\n", digest(1)));
    assert_eq!(after(&text, &[offered("a", 1)]).unwrap(), text);
}

#[test]
fn prices_comments_and_order_stay() {
    let (old, new) = (digest(1), digest(2));
    let text = record(&format!(
        "  # About b.\n  tool:b:\n    permission: read   # Ann said so\n    digest: \"{old}\"\n\n\
         \x20 a: {{permission: \"wri\\x74e\", digest: {old}}} # flow\n\
         \x20 resource:case:\n    uri: 'cases://{{id}}'\n    permission: read\n    digest: '{old}'\n# the end\n"
    ));
    let edited = after(&text, &[offered("a", 2), offered("b", 2), offered("resource:case", 2), offered("prompt:x", 3)]);
    let want = text
        .replace("2026-11-30T09:00:00Z", "2026-12-01T00:00:00Z")
        .replace(&format!("\"{old}\""), &format!("\"{new}\""))
        .replace(&format!("digest: {old}"), &format!("digest: \"{new}\""))
        .replace(&format!("'{old}'"), &format!("\"{new}\""))
        .replace("'cases://{id}'", "\"cases://case/{id}\"")
        .replace(
            "# the end\n",
            &format!("  prompt:x:\n    permission: TODO\n    digest: \"{}\"\n# the end\n", digest(3)),
        );
    assert_eq!(edited.unwrap(), want);
}

#[test]
fn what_is_gone_becomes_a_comment() {
    let old = digest(1);
    let text = record(&format!(
        "  # About a.\n  a:\n    # inside\n    permission: read\n\n    digest: \"{old}\"\n  # About b.\n  b: {{permission: read, digest: \"{old}\"}}\n"
    ));
    let edited = after(&text, &[offered("b", 1)]).unwrap();
    let gone = format!(
        "  # About a.\n  # No longer offered on 2026-12-01:\n  # a:\n  #   # inside\n  #   permission: read\n\n  #   digest: \"{old}\"\n  # About b.\n"
    );
    assert!(edited.contains(&gone), "{edited}");
    // The last one leaves a mapping that is empty and not absent.
    let edited = after(&edited, &[]).unwrap();
    assert!(edited.contains("capabilities: {}\n") && edited.contains("  # b: {permission: read"), "{edited}");
    assert!(Node::parse(&edited).0.is_some());
    let again = after(&edited, &[offered("c", 1)]).unwrap();
    assert!(again.contains("capabilities:\n  tool:c:\n    permission: TODO\n"), "{again}");
}

#[test]
fn a_price_without_a_digest_gets_one() {
    let text = record("  a: {permission: read}\n  b:\n      permission: read # why\n");
    let edited = after(&text, &[offered("a", 1), offered("b", 1)]).unwrap();
    let digest = digest(1);
    assert!(edited.contains(&format!("  a: {{permission: read, digest: \"{digest}\"}}\n")), "{edited}");
    assert!(edited.contains(&format!("      permission: read # why\n      digest: \"{digest}\"\n")), "{edited}");
}

#[test]
fn line_ends_and_a_missing_last_one_are_kept() {
    let text = record(&format!("  a: {{permission: read, digest: \"{}\"}}", digest(1))).replace('\n', "\r\n");
    let edited = after(&text, &[offered("a", 1), offered("b", 1)]).unwrap();
    assert!(edited.contains("}\r\n  tool:b:\r\n    permission: TODO\r\n"), "{edited:?}");
}

#[test]
fn where_it_was_recorded_is_added_when_it_stood_nowhere() {
    let text = "definitions: cases.json\ncapabilities:\n";
    let edited = after(text, &[offered("a", 1)]).unwrap();
    assert!(edited.starts_with("recorded: {from: \"https://v/mcp\", at: 2026-12-01T00:00:00Z"), "{edited}");
    assert!(edited.contains("capabilities:\n  tool:a:\n    permission: TODO\n"), "{edited}");
}

#[test]
fn what_a_person_left_without_a_price_gets_no_entry_again() {
    let text = record(&format!("  a: {{permission: read, digest: \"{}\"}}\n", digest(1)));
    let (root, _) = Node::parse(&text);
    let unpriced = BTreeSet::from(["b".parse().unwrap()]);
    let offered = [offered("a", 1), offered("b", 1)];
    assert_eq!(edited(&text, &root.unwrap(), &plan(&offered, &unpriced)).unwrap(), text);
}

#[test]
fn what_cannot_be_edited_in_place_is_refused() {
    let old = digest(1);
    for (entries, words) in [
        (format!("  a: &x {{permission: read, digest: \"{old}\"}}\n  b: *x\n"), "can be edited in place"),
        (
            format!(
                "  {{a: {{permission: read, digest: \"{old}\"}}, gone: {{permission: read, digest: \"{old}\"}}}}\n"
            ),
            "lines of its own",
        ),
        (format!("  {{a: {{permission: read, digest: \"{old}\"}}}}\n"), "lines of its own"),
        ("  a: read\n".to_owned(), "expected `{permission: …, digest: …}`"),
        (format!("  a:\n    permission: read\n    digest: >-\n      {old}\n"), "can be edited in place"),
        (format!("  a: {{digest: \"{old}\"}}\n"), ""),
    ] {
        let outcome = after(&record(&entries), &[offered("a", 2), offered("b", 1)]);
        match words {
            // Without a price there is still a digest to renew; nobody decided anything, and that is what stays.
            "" => assert!(outcome.unwrap().contains(&digest(2))),
            words => assert!(outcome.as_ref().is_err_and(|told| told.contains(words)), "{entries}: {outcome:?}"),
        }
    }
}

#[test]
fn labels_that_yaml_would_misread_are_quoted() {
    for name in [
        "a b",
        "__proto__",
        "x: y",
        "#",
        "é",
        "\u{200B}",
        "\u{1F600}",
        "\"q\"",
        "a'b",
        "yes",
        "-",
        "prompt:x",
        "a\nb",
        "\u{85}",
        "\u{FEFF}",
        "{x}",
    ] {
        let label = Label::new(crate::policy::Kind::Tool, name);
        let offered = [Offered { label, ..offered("a", 1) }];
        let text = first("cases", "cases.json", &plan(&offered, &BTreeSet::new()));
        let (root, faults) = Node::parse(&text);
        assert!(faults.is_empty(), "{faults:?}");
        let keys: Vec<String> =
            root.unwrap().get("capabilities").unwrap().entries().iter().map(|entry| entry.key.clone()).collect();
        assert_eq!(keys, [format!("tool:{name}")], "{text}");
        assert!(text.is_ascii() || name == "é", "{text}");
    }
}

proptest! {
    /// Whatever order and style, a second recording of the same changes nothing, and no price is ever another one.
    #[test]
    fn recording_again_changes_nothing(
        old in prop::collection::vec((0..12_usize, 0..3_usize, any::<bool>(), any::<bool>()), 0..8),
        new in prop::collection::btree_map(0..12_usize, 0..3_usize, 0..12),
    ) {
        let mut seen = BTreeSet::new();
        let mut entries = String::new();
        for (name, version, flow, comment) in old.into_iter().filter(|(name, ..)| seen.insert(*name)) {
            if comment {
                entries.push_str("  # a comment\n\n");
            }
            let digest = digest(version);
            entries.push_str(&if flow {
                format!("  t{name}: {{permission: p{name}, digest: \"{digest}\"}}\n")
            } else {
                format!("  tool:t{name}:\n    permission: p{name}\n    # of it\n    digest: '{digest}'\n")
            });
        }
        let text = if entries.is_empty() { record(&entries).replace("capabilities:", "capabilities: {}") } else { record(&entries) };
        let offered: Vec<_> = new.iter().map(|(name, version)| offered(&format!("t{name}"), *version)).collect();
        let once = after(&text, &offered).unwrap();
        prop_assert_eq!(after(&once, &offered).unwrap(), once.clone());
        for name in new.keys().filter(|name| seen.contains(name)) {
            let permission = format!("permission: p{name}");
            prop_assert!(once.contains(&permission), "{}", once);
        }
        let comments = |text: &str| text.matches("# a comment").count();
        prop_assert_eq!(comments(&once), comments(&text));
    }
}
