//! What the fuzzers hold Portcullis to, as ordinary tests: the corpus, random bytes, and the corpus with random edits.
//! `make fuzz` looks longer.

#[path = "../fuzz/src/lib.rs"]
mod oracles;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

type Check = fn(&[u8]);

/// The files of a target's corpus.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("expected the corpus in {}: {error}", folder.display()));
    let files: Vec<_> = entries.map(|entry| fs::read(entry.expect("an entry").path()).expect("a file")).collect();
    assert!(files.len() > 3, "expected a corpus in {}", folder.display());
    files
}

/// A file of the corpus with up to four places in which something else stands.
fn edited(files: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<Index>(), 0..5u8, any::<u8>(), any::<Index>());
    (prop::sample::select(files), prop::collection::vec(edit, 0..5)).prop_map(|(mut bytes, edits)| {
        for (at, how, byte, to) in edits {
            if bytes.is_empty() {
                bytes.push(byte);
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                3 => bytes.truncate(at),
                // A piece of it once more, somewhere.
                _ => {
                    let to = to.index(bytes.len());
                    let piece = bytes[at.min(to)..at.max(to)].to_vec();
                    let tail = bytes.split_off(at);
                    bytes.extend(piece.into_iter().chain(tail));
                }
            }
        }
        bytes
    })
}

fn holds(target: &str, check: Check, cases: u32) {
    let files = corpus(target);
    for file in &files {
        check(file);
    }
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let bytes = prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..200), 4 => edited(files)];
    let done = runner.run(&bytes, |bytes| {
        check(&bytes);
        Ok(())
    });
    done.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn no_accepted_body_is_read_differently_by_any_reader() {
    holds("reader", oracles::reader::check, 4000);
}

#[test]
fn any_stream_is_framed_as_the_standard_says_in_any_pieces() {
    holds("sse", oracles::sse::check, 4000);
}

#[test]
fn templates_cover_what_the_slow_matcher_says() {
    holds("template", oracles::template::check, 2000);
}

#[test]
fn any_order_of_events_has_one_terminal_answer() {
    holds("exchange", oracles::exchange::check, 4000);
}

#[test]
fn any_record_file_loads_or_says_why_not() {
    holds("record", oracles::record::check, 1000);
}

#[test]
fn any_configuration_loads_or_says_where_not() {
    holds("configuration", oracles::configuration::check, 300);
}

#[test]
fn any_bytes_at_the_door_are_answered_or_the_stream_fails() {
    holds("door", oracles::door::check, 1000);
}

/// No exchange hears what is another's: neither its answers, nor its ids, nor its refusals.
#[test]
fn exchanges_side_by_side_say_what_each_says_alone() {
    let names = [
        "call_answered",
        "call_answered_in_events",
        "subscription_until_token_expires",
        "server_request_in_stream",
        "refused_tool_then_body_again",
        "no_token",
        "no_body_in_time",
        "fault_after_head",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/exchange");
    let files: Vec<Vec<u8>> = names.iter().map(|name| fs::read(folder.join(name)).expect(name)).collect();
    let inputs: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let together = oracles::exchange::side_by_side(&inputs);
    for (at, name) in names.iter().enumerate() {
        // In its own place, so that it has the same id, among inputs that say nothing.
        let mut alone: Vec<&[u8]> = vec![&[0, 1]; names.len()];
        alone[at] = inputs[at];
        let alone = oracles::exchange::side_by_side(&alone).swap_remove(at);
        assert!(
            alone.len() > usize::from(*name != "no_token" && *name != "refused_tool_then_body_again"),
            "{name}: {alone:?}"
        );
        assert_eq!(together[at], alone, "{name}");
        let foreign = (0..names.len())
            .filter(|other| *other != at)
            .any(|other| together[at].concat().contains(&format!("fuzzed-{other}")));
        assert!(!foreign, "{name} tells another's decision: {:?}", together[at]);
    }
}

/// What Envoy sees of the files of the corpus that go where their names say.
#[test]
fn the_corpus_gets_everywhere() {
    let seen = |target: &str, name: &str| {
        let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target).join(name));
        let run = if target == "door" { oracles::door::run } else { oracles::exchange::run };
        let seen = run(&bytes.expect(name));
        (seen.decided, seen.immediate, seen.head, seen.last_byte)
    };
    for (target, name, expected) in [
        ("door", "call_answered", (1, 0, 1, 1)),
        ("door", "call_refused", (0, 1, 0, 0)),
        ("door", "listing", (1, 0, 1, 1)),
        ("door", "events", (1, 0, 1, 1)),
        ("door", "plain_http", (1, 0, 0, 0)),
        ("door", "metadata", (0, 1, 0, 0)),
        ("door", "no_claims", (0, 1, 0, 0)),
        ("exchange", "call_answered", (1, 0, 1, 1)),
        ("exchange", "call_answered_in_events", (1, 0, 1, 1)),
        ("exchange", "subscription_until_token_expires", (1, 0, 1, 1)),
        ("exchange", "refused_tool_then_body_again", (0, 1, 0, 0)),
        ("exchange", "unlisted_server", (0, 1, 0, 0)),
        ("exchange", "listed_server_then_answer", (1, 0, 1, 1)),
        ("exchange", "answer_unread", (1, 0, 0, 0)),
        ("exchange", "gate_denies", (0, 1, 0, 0)),
        ("exchange", "gate_answers", (0, 1, 0, 0)),
        ("exchange", "gate_allows", (1, 0, 1, 1)),
        ("exchange", "shadowed_refusal", (1, 0, 1, 1)),
        ("exchange", "overloaded", (0, 1, 0, 0)),
        ("exchange", "scope_without_permission", (0, 1, 0, 0)),
        ("exchange", "unknown_notification_is_dropped", (1, 0, 1, 1)),
        ("exchange", "json_that_is_no_event", (1, 0, 1, 0)),
        ("exchange", "reload_takes_the_server", (1, 0, 1, 1)),
        ("exchange", "reload_asks_for_another_scope", (1, 0, 1, 1)),
        ("exchange", "reload_of_another_issuer", (1, 0, 1, 1)),
        ("exchange", "drain_ends_subscription", (1, 0, 1, 1)),
        ("exchange", "drain_leaves_a_call", (1, 0, 1, 1)),
        ("exchange", "stop_in_a_stream", (1, 0, 1, 1)),
        ("exchange", "stop_before_the_body", (0, 1, 0, 0)),
        ("exchange", "metadata_of_the_resource", (0, 1, 0, 0)),
    ] {
        assert_eq!(seen(target, name), expected, "decided, immediate, head, last byte of {target}/{name}");
    }
}
