use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::book::tests::{HONEST, MINUTE, label, listing, record};
use super::super::book::{Book, NEGATIVE, Verdict};
use super::super::client::ListingFault;
use super::{Freshness, SPACING, clock};
use crate::policy::Kind;

/// How long a listing takes here.
const TAKES: Duration = Duration::from_millis(200);

/// What the server offers; `None` when it cannot be listed.
type Offer = Arc<Mutex<Option<Vec<(&'static str, &'static str)>>>>;

struct Stage {
    freshness: Arc<Freshness>,
    offer: Offer,
    listings: Arc<AtomicUsize>,
}

fn stage() -> Stage {
    let offer: Offer = Arc::new(Mutex::new(Some(HONEST.to_vec())));
    let listings = Arc::new(AtomicUsize::new(0));
    let (offered, counted) = (Arc::clone(&offer), Arc::clone(&listings));
    let source = Box::new(move |kinds: Vec<Kind>| {
        assert_eq!(kinds, [Kind::Tool, Kind::Prompt], "only what is recorded");
        counted.fetch_add(1, Ordering::SeqCst);
        let offer = Arc::clone(&offered);
        Box::pin(async move {
            let seen = offer.lock().unwrap().clone();
            tokio::time::sleep(TAKES).await;
            seen.map(|entries| listing(&entries)).ok_or(ListingFault::Interrupted)
        }) as futures_util::future::BoxFuture<'static, _>
    });
    let book = Book::new(&record(), MINUTE);
    let freshness = Freshness::from_source("cases".into(), book, source, None, Duration::from_secs(5), None);
    Stage { freshness, offer, listings }
}

impl Stage {
    /// One call of a tool, as the exchange makes it.
    async fn call(&self, name: &str) -> Result<Verdict, String> {
        call(&self.freshness, name).await
    }

    fn listings(&self) -> usize {
        self.listings.load(Ordering::SeqCst)
    }
}

async fn call(freshness: &Arc<Freshness>, name: &str) -> Result<Verdict, String> {
    let now = clock();
    match freshness.verdict(&label(name), now) {
        Verdict::Stale => {
            freshness.refresh(now).await.map_err(|fault| fault.to_string())?;
            Ok(freshness.verdict(&label(name), clock()))
        }
        known => Ok(known),
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn many_first_calls_are_one_listing_and_the_interval_needs_none() {
    let stage = stage();
    let calls = (0..1000).map(|n| stage.call(if n % 2 == 0 { "a" } else { "b" }));
    let verdicts = futures_util::future::join_all(calls).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Ok(Verdict::Fresh)));
    assert_eq!(stage.listings(), 1);
    pass(59).await;
    assert_eq!((stage.call("prompt:p").await, stage.listings()), (Ok(Verdict::Fresh), 1));
    pass(1).await;
    assert_eq!((stage.call("a").await, stage.listings()), (Ok(Verdict::Fresh), 2));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_callers_of_a_vanished_tool_are_one_listing_in_a_while() {
    let stage = stage();
    *stage.offer.lock().unwrap() = Some(HONEST[1..].to_vec());
    let start = clock();
    for _ in 0..40 {
        let calls = (0..25).map(|_| stage.call("a"));
        for verdict in futures_util::future::join_all(calls).await {
            assert_eq!(verdict, Ok(Verdict::Gone));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let while_it_lasted = clock() - start;
    let most = while_it_lasted.as_secs() / NEGATIVE.as_secs() + 1;
    assert!(
        (2..=usize::try_from(most).unwrap()).contains(&stage.listings()),
        "{} in {while_it_lasted:?}",
        stage.listings()
    );
    // The honest tool of the same server runs, and needs no listing of its own.
    let before = stage.listings();
    assert_eq!((stage.call("b").await, stage.listings()), (Ok(Verdict::Fresh), before));
}

#[tokio::test(start_paused = true)]
async fn a_failed_listing_is_remembered_and_then_tried_again() {
    let stage = stage();
    *stage.offer.lock().unwrap() = None;
    for _ in 0..100 {
        assert!(stage.call("a").await.is_err());
    }
    assert_eq!(stage.listings(), 1);
    *stage.offer.lock().unwrap() = Some(HONEST.to_vec());
    assert!(stage.call("a").await.is_err(), "still remembered");
    pass(NEGATIVE.as_secs()).await;
    assert_eq!((stage.call("a").await, stage.listings()), (Ok(Verdict::Fresh), 2));
}

#[tokio::test(start_paused = true)]
async fn a_failed_listing_leaves_fresh_what_is_fresh() {
    let stage = stage();
    stage.call("a").await.unwrap();
    *stage.offer.lock().unwrap() = None;
    pass(50).await;
    assert!(stage.freshness.refresh(clock()).await.is_err());
    assert_eq!(stage.call("a").await, Ok(Verdict::Fresh));
}

#[tokio::test(start_paused = true)]
async fn a_known_change_is_refused_without_another_listing() {
    let stage = stage();
    *stage.offer.lock().unwrap() = Some(vec![("a", r#"{"name":"a","max":2}"#), HONEST[1], HONEST[2]]);
    for _ in 0..50 {
        assert_eq!(stage.call("a").await, Ok(Verdict::Changed(["max".to_owned()].into())));
        pass(1).await;
    }
    assert_eq!(stage.listings(), 1);
}

#[tokio::test(start_paused = true)]
async fn list_changed_makes_the_next_call_list_but_not_without_end() {
    let stage = stage();
    stage.call("a").await.unwrap();
    let start = clock();
    for _ in 0..20 {
        stage.freshness.mark_stale(Kind::Tool);
        assert_eq!(stage.call("a").await, Ok(Verdict::Fresh));
    }
    assert_eq!(stage.listings(), 21);
    assert!(clock() - start >= SPACING * 20, "one listing a second, however often it is cried");
}

/// The listing that was under way when the list changed does not count.
#[tokio::test(start_paused = true)]
async fn a_change_during_a_listing_lists_again() {
    let stage = stage();
    let marker = Arc::clone(&stage.freshness);
    let offer = Arc::clone(&stage.offer);
    let changer = tokio::spawn(async move {
        tokio::time::sleep(TAKES / 2).await;
        *offer.lock().unwrap() = Some(vec![HONEST[1], HONEST[2]]);
        marker.mark_stale(Kind::Tool);
    });
    assert_eq!((stage.call("a").await, stage.listings()), (Ok(Verdict::Gone), 2));
    changer.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_does_not_take_the_listing_along() {
    let stage = stage();
    let freshness = Arc::clone(&stage.freshness);
    let leaver = tokio::spawn(async move { call(&freshness, "a").await });
    tokio::time::sleep(TAKES / 4).await;
    leaver.abort();
    assert_eq!((stage.call("b").await, stage.listings()), (Ok(Verdict::Fresh), 1));
}

#[tokio::test(start_paused = true)]
async fn a_steady_caller_never_waits_and_an_idle_server_is_left_alone() {
    let stage = stage();
    let keeping = tokio::spawn(stage.freshness.keep());
    pass(600).await;
    assert_eq!(stage.listings(), 0, "nobody called");
    stage.call("a").await.unwrap();
    for _ in 0..600 {
        pass(1).await;
        assert_eq!(stage.freshness.verdict(&label("a"), clock()), Verdict::Fresh, "without waiting");
    }
    assert!((12..=15).contains(&stage.listings()), "{} in ten minutes", stage.listings());
    let listings = stage.listings();
    pass(3600).await;
    assert!(stage.listings() <= listings + 1, "idle");
    assert_eq!(stage.freshness.samples().iter().map(|sample| sample.value).sum::<u64>(), stage.listings() as u64);
    drop(stage);
    keeping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_no_longer_than_for_one_page() {
    let stage = stage();
    let flight = stage.freshness.flight.clone().lock_owned().await;
    let start = clock();
    assert!(stage.call("a").await.unwrap_err().contains("within 5s"));
    assert_eq!((clock() - start).as_secs(), 5);
    drop(flight);
    assert_eq!(stage.call("a").await, Ok(Verdict::Fresh));
}

/// A reload copies what is known and takes force later; what the server says in between, and on streams that have not gone on
/// to the new one yet, is not lost.
#[tokio::test(start_paused = true)]
async fn what_changed_while_a_configuration_was_loaded_is_stale_in_it() {
    let stage = stage();
    let verdicts = |freshness: &Arc<Freshness>| ["a", "prompt:p"].map(|name| freshness.verdict(&label(name), clock()));
    assert_eq!(stage.call("a").await, Ok(Verdict::Fresh));
    let reloaded = || {
        let mut book = Book::new(&record(), MINUTE);
        book.take_over(&stage.freshness.book);
        let source = Box::new(|_| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(std::future::ready(Err(ListingFault::Interrupted)))
        });
        let patience = Duration::from_secs(5);
        Freshness::from_source("cases".into(), book, source, None, patience, Some(&stage.freshness))
    };
    let refused = reloaded();
    let next = reloaded();
    assert_eq!(verdicts(&next), [Verdict::Fresh, Verdict::Fresh]);
    let between = stage.freshness.marks();
    stage.freshness.mark_stale(Kind::Tool);
    assert_eq!(verdicts(&next), [Verdict::Fresh, Verdict::Fresh], "nobody decides by it yet");
    next.succeed(&stage.freshness);
    assert_eq!(verdicts(&next), [Verdict::Stale, Verdict::Fresh]);
    assert!(next.marks()[0] > stage.freshness.marks()[0] && next.marks()[0] > between[0]);
    stage.freshness.mark_stale(Kind::Prompt);
    assert_eq!(verdicts(&next), [Verdict::Stale, Verdict::Stale]);
    // A configuration that was not taken is told nothing.
    assert_eq!(verdicts(&refused), [Verdict::Fresh, Verdict::Fresh]);
}
