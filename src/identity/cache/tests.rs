use std::sync::Arc;

use super::{Cache, Digest};

fn key(n: usize) -> Digest {
    Digest::of(&n.to_string())
}

#[test]
fn an_entry_lives_until_its_last_second() {
    let cache = Cache::new(10);
    cache.insert(key(1), Arc::new("one"), 100, 0);
    assert_eq!(cache.get(&key(1), 99, 0).as_deref(), Some(&"one"));
    assert!(cache.get(&key(1), 100, 0).is_none());
    assert!(cache.get(&key(2), 99, 0).is_none());
}

#[test]
fn an_entry_in_the_old_half_dies_as_well() {
    let cache = Cache::new(2);
    cache.insert(key(1), Arc::new(()), 100, 0);
    cache.insert(key(2), Arc::new(()), 100, 0);
    assert!(cache.get(&key(1), 100, 0).is_none());
}

#[test]
fn another_key_set_drops_everything() {
    let cache = Cache::new(10);
    cache.insert(key(1), Arc::new("one"), 100, 1);
    assert!(cache.get(&key(1), 0, 2).is_none());
    cache.insert(key(2), Arc::new("two"), 100, 2);
    assert_eq!(cache.len(), 1);
    assert!(cache.get(&key(1), 0, 2).is_none());
    assert!(cache.get(&key(2), 0, 2).is_some());
    // Verified under the old keys, finished after the change.
    cache.insert(key(3), Arc::new("three"), 100, 1);
    assert!(cache.get(&key(3), 0, 2).is_none());
}

#[test]
fn the_bound_holds_and_steady_callers_stay() {
    let cache = Cache::new(100);
    cache.insert(key(0), Arc::new(0), u64::MAX, 0);
    for n in 1..10_000 {
        cache.insert(key(n), Arc::new(n), u64::MAX, 0);
        assert!(cache.len() <= 100, "{}", cache.len());
        assert!(cache.get(&key(0), 0, 0).is_some(), "the steady caller was evicted at {n}");
    }
    assert!(cache.get(&key(1), 0, 0).is_none());
    assert!(cache.get(&key(9_999), 0, 0).is_some());
}

#[test]
fn inserting_the_same_token_again_grows_nothing() {
    let cache = Cache::new(4);
    cache.insert(key(1), Arc::new(1), 10, 0);
    for n in 0..100 {
        cache.insert(key(2), Arc::new(n), 10, 0);
    }
    assert_eq!(cache.len(), 2);
    assert_eq!(cache.get(&key(2), 0, 0).as_deref(), Some(&99));
}
