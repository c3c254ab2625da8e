use super::*;

#[test]
fn what_is_held_is_bounded_and_given_back() {
    let bound = Arc::new(HeldAnswers::new(10));
    let (mut one, mut two) = (Share::new(&bound), Share::new(&bound));
    assert_eq!(one.set(6), Ok(()));
    assert_eq!(two.set(5), Err(Exhausted { most: 10 }));
    assert_eq!((two.set(4), bound.held()), (Ok(()), 10));
    // What cannot be had changes nothing; what is there stays.
    assert_eq!((one.set(7), bound.held()), (Err(Exhausted { most: 10 }), 10));
    assert_eq!((one.set(6), one.set(2), bound.held()), (Ok(()), Ok(()), 6));
    assert_eq!(two.set(8), Ok(()));
    drop(two);
    assert_eq!(bound.held(), 2);
    drop(one);
    assert_eq!(bound.held(), 0);
}

#[test]
fn threads_never_hold_more_than_the_bound() {
    let bound = Arc::new(HeldAnswers::new(1000));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let mut share = Share::new(&bound);
                    for bytes in [100, 300, 50, 400] {
                        let _ = share.set(bytes);
                        assert!(bound.held() <= 1000);
                    }
                }
            });
        }
    });
    assert_eq!(bound.held(), 0);
}
