use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::{Limits, Losses, Outbox, Queue, Waiting};
use crate::telemetry::otlp::testing::{Server, Verdict};

const NEVER: Duration = Duration::from_hours(1);

fn queue(queue: usize, batch: usize, delay: Duration) -> Queue {
    Queue { waiting: Mutex::<Waiting>::default(), more: Condvar::new(), limits: Limits { queue, batch, delay } }
}

fn taken(queue: &Queue) -> Option<(Vec<u8>, usize)> {
    queue.take().map(|batch| (batch.items, batch.count))
}

#[test]
fn items_are_taken_in_order_in_full_batches_and_the_rest_at_the_end() {
    let queue = queue(100, 2, NEVER);
    for item in 0..5_u8 {
        assert!(queue.put(&[item, item], 1));
    }
    assert_eq!(taken(&queue), Some((vec![0, 0, 1, 1], 2)));
    assert_eq!(taken(&queue), Some((vec![2, 2, 3, 3], 2)));
    queue.close();
    assert!(!queue.put(&[9], 1), "nothing is taken after the end");
    assert_eq!(taken(&queue), Some((vec![4, 4], 1)));
    assert_eq!(taken(&queue), None);
}

#[test]
fn what_does_not_fit_behind_a_batch_begins_the_next() {
    let queue = queue(100, 4, NEVER);
    assert!(queue.put(&[1], 3) && queue.put(&[2], 3));
    assert_eq!(taken(&queue), Some((vec![1], 3)));
    assert!(queue.put(&[3], 9), "more than a batch stays together");
    assert_eq!(taken(&queue), Some((vec![2], 3)));
    assert_eq!(taken(&queue), Some((vec![3], 9)));
}

#[test]
fn it_is_bounded_and_has_room_again_once_a_batch_is_taken() {
    let queue = queue(3, 2, NEVER);
    assert!(queue.put(&[1], 1) && queue.put(&[2], 1) && queue.put(&[3], 1));
    assert!(!queue.put(&[4], 1));
    assert_eq!(taken(&queue), Some((vec![1, 2], 2)));
    assert!(!queue.put(&[5], 3), "all or nothing");
    assert!(queue.put(&[6], 2));
}

#[test]
fn a_batch_that_is_not_full_waits_no_longer_than_the_delay() {
    let queue = queue(100, 50, Duration::from_millis(1));
    assert!(queue.put(&[1], 1));
    assert_eq!(taken(&queue), Some((vec![1], 1)));
}

/// An outbox to this server, and how many items it gave up.
fn outbox(server: &Server, limits: Limits, keep: bool) -> (Outbox, Arc<AtomicU64>) {
    let lost = Arc::<AtomicU64>::default();
    let count = Arc::clone(&lost);
    let count = Box::new(move |items| {
        count.fetch_add(items, Ordering::Relaxed);
    });
    let losses = Losses { what: "things", keep, count };
    let outbox = Outbox::start("outbox", server.client(), Server::envelope(), Server::runtime(), limits, losses);
    (outbox.expect("a thread"), lost)
}

fn span(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    crate::message::protobuf::message(&mut out, 2, |out| super::super::encode::text(out, 5, name));
    out
}

#[test]
fn what_waits_is_exported_at_the_end() {
    let server = Server::start(|_| Verdict::Take);
    let (outbox, lost) = outbox(&server, Limits { queue: 10, batch: 2, delay: NEVER }, false);
    for name in ["a", "b", "c"] {
        assert!(outbox.put(&span(name), 1));
    }
    outbox.close();
    outbox.join();
    assert_eq!(server.names(), [vec!["a", "b"], vec!["c"]]);
    assert_eq!(lost.load(Ordering::Relaxed), 0);
}

#[test]
fn what_is_refused_for_good_and_what_is_rejected_is_counted() {
    let server = Server::start(|attempt| if attempt == 0 { Verdict::Invalid } else { Verdict::Reject(1) });
    let (outbox, lost) = outbox(&server, Limits { queue: 10, batch: 2, delay: NEVER }, false);
    for name in ["a", "b", "c", "d"] {
        assert!(outbox.put(&span(name), 1));
    }
    outbox.close();
    outbox.join();
    assert_eq!(server.names(), [vec!["a", "b"], vec!["c", "d"]], "neither is sent again");
    assert_eq!(lost.load(Ordering::Relaxed), 3, "two of the first, one of the second");
}

#[test]
fn what_must_be_kept_is_tried_until_it_is_taken() {
    let server = Server::start(|attempt| if attempt < 2 { Verdict::Invalid } else { Verdict::Take });
    let (outbox, lost) = outbox(&server, Limits { queue: 10, batch: 1, delay: NEVER }, true);
    assert!(outbox.put(&span("kept"), 1));
    server.wait(3);
    outbox.close();
    outbox.join();
    assert_eq!(server.names(), vec![vec!["kept"]; 3]);
    assert_eq!(lost.load(Ordering::Relaxed), 0);
}

#[test]
fn nothing_is_kept_for_ever_when_the_process_stops() {
    let server = Server::start(|_| Verdict::Invalid);
    let (outbox, lost) = outbox(&server, Limits { queue: 10, batch: 1, delay: NEVER }, true);
    assert!(outbox.put(&span("kept"), 1) && outbox.put(&span("waiting"), 1));
    server.wait(1);
    outbox.close();
    outbox.join();
    assert_eq!(lost.load(Ordering::Relaxed), 2);
}
