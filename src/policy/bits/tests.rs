use std::collections::BTreeSet;

use proptest::prelude::*;

use super::Bits;

fn members() -> impl Strategy<Value = BTreeSet<u32>> {
    prop::collection::btree_set(0_u32..300, 0..40)
}

fn bits(members: &BTreeSet<u32>) -> Bits {
    members.iter().copied().collect()
}

proptest! {
    #[test]
    fn behaves_like_a_set(a in members(), b in members(), probe in 0_u32..400) {
        let (left, right) = (bits(&a), bits(&b));
        prop_assert_eq!(left.iter().collect::<BTreeSet<_>>(), a.clone());
        prop_assert_eq!(left.contains(probe), a.contains(&probe));
        prop_assert_eq!(left.is_empty(), a.is_empty());
        prop_assert_eq!(left.difference(&right), bits(&(&a - &b)));
        let mut union = left.clone();
        union.union(&right);
        prop_assert_eq!(union, bits(&(&a | &b)));
    }
}

#[test]
fn members_come_in_ascending_order() {
    let set: Bits = [200, 0, 64, 63, 127, 128].into_iter().collect();
    assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 127, 128, 200]);
}
