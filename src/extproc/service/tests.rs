use std::sync::Arc;

use super::{Exchange, caught, guarded, now};
use crate::exchange::{Event, Next, Reply};
use crate::ladder::testing::{World, headers, message, post, world};
use crate::refusal::Reason;

fn exchange(world: &World) -> Exchange {
    Exchange::new(Arc::clone(&world.snapshot), "d1".into(), now())
}

/// Forwarded and its answer awaited.
fn forwarded(world: &World) -> Exchange {
    let mut exchange = exchange(world);
    guarded(&mut exchange, Event::RequestHeaders(post("tools/list", None)), now());
    guarded(&mut exchange, Event::Identity(Ok(world.reader())), now());
    let step = guarded(&mut exchange, Event::RequestBody(message(Some("1"), "tools/list", "").into_bytes()), now());
    assert!(matches!(step.replies.iter().next(), Some(Reply::RequestBody { .. })), "{step:?}");
    exchange
}

#[test]
fn internal_a_step_that_panics_refuses() {
    let world = world(&[]);
    for mut exchange in [exchange(&world), forwarded(&world)] {
        let step = guarded(&mut exchange, Event::Panic, now());
        let Some(Reply::Immediate(immediate)) = step.replies.iter().next() else { panic!("{step:?}") };
        assert_eq!((immediate.status, step.next), (503, Next::Finish));
        let record = exchange.take_record().expect("its record");
        assert_eq!((record.outcome.as_str(), record.reason.map(Reason::as_str)), ("refuse", Some("internal")));
        assert_eq!(guarded(&mut exchange, Event::Deadline, now()).next, Next::Fail);
        assert!(exchange.abandon(now()).is_none(), "a second record");
    }
}

#[test]
fn a_step_that_panics_once_the_answer_has_begun_fails_the_stream() {
    let world = world(&[]);
    let mut exchange = forwarded(&world);
    let head = headers(&[(":status", "200"), ("content-type", "text/event-stream")]);
    guarded(&mut exchange, Event::ResponseHeaders { headers: head, ends: false }, now());
    let step = guarded(&mut exchange, Event::Panic, now());
    assert_eq!((step.replies.iter().count(), step.next), (0, Next::Fail));
    assert_eq!(exchange.take_record().expect("its record").outcome.as_str(), "refuse");
}

#[test]
fn internal_work_that_panics_refuses() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let work = async { std::panic::panic_any("a panic that a test asked for") };
    let fault = runtime.block_on(caught::<()>("a test", work)).expect_err("it panicked");
    let world = world(&[]);
    let mut exchange = exchange(&world);
    guarded(&mut exchange, Event::RequestHeaders(post("tools/list", None)), now());
    let step = guarded(&mut exchange, fault, now());
    let Some(Reply::Immediate(immediate)) = step.replies.iter().next() else { panic!("{step:?}") };
    assert_eq!((immediate.status, step.next), (503, Next::Finish));
}
