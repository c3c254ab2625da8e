use std::cell::{Cell, RefCell};

use proptest::prelude::*;

use super::*;

const EIGHT: [Beginning; 8] = [
    [b"aA", b"bB", b"c"],
    [b"a", b"\xC2\xE1", ANY],
    [b"\t\n ", b"<", b"/"],
    [b"b", b"aB", b"aB"],
    [b"\xE2", b"\x80", b"\x8B\xAA"],
    [b"~", b"~", b"~"],
    [b"/", b"c", b"\t\n "],
    [b"\xFF", b"\xF0", b"\x0F"],
];

static PREFILTER: Prefilter = Prefilter::new(&EIGHT);

/// The levels of this machine's processor, the one that is used among them.
fn levels() -> Vec<Level> {
    let used = Level::new();
    #[cfg(target_arch = "x86_64")]
    let lower = [used.as_sse2().map(Level::Sse2), used.as_sse4_2().map(Level::Sse4_2), used.as_avx2().map(Level::Avx2)];
    #[cfg(not(target_arch = "x86_64"))]
    let lower = [None; 1];
    lower.into_iter().flatten().chain([used]).collect()
}

/// The places that are asked for, in order, which must be the same for all levels.
fn asked(text: &[u8]) -> Vec<usize> {
    let mut of_levels = levels().into_iter().map(|level| {
        let places = RefCell::default();
        let found_at = |at| {
            Vec::push(&mut places.borrow_mut(), at);
            false
        };
        assert!(!dispatch!(level, simd => PREFILTER.search_by(simd, text, &found_at)));
        places.into_inner()
    });
    let first = of_levels.next().unwrap();
    assert!(of_levels.all(|places| places == first), "{:?}", levels());
    first
}

/// Whether one of the eight stands at the front of these, slowly. What is behind the end may be anything.
fn begins(bytes: &[u8]) -> bool {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    EIGHT.iter().any(|one| one.iter().zip(0..).all(|(spellings, at)| spellings.contains(&byte(at))))
}

#[test]
fn each_beginning_is_found_wherever_it_stands() {
    for [first, second, third] in EIGHT {
        for spelled in
            first.iter().flat_map(|a| second.iter().flat_map(move |b| third.iter().map(move |c| [*a, *b, *c])))
        {
            for at in [0, 1, 62, 63, 64, 127, 190] {
                let mut text = vec![b'-'; 193];
                text[at..at + 3].copy_from_slice(&spelled);
                assert!(asked(&text).contains(&at), "{spelled:?}");
                // As the last of the text, too.
                assert!(asked(&text[..at + 3]).contains(&at), "{spelled:?}");
                assert!(third.len() < 256 || asked(&text[..at + 2]).contains(&at), "{spelled:?}");
            }
        }
    }
}

#[test]
fn other_text_is_not_asked_for() {
    let text = "Printer does not answer since Monday; the case is open, see http://example.com/cases/17. ".repeat(40);
    assert!(asked(text.as_bytes()).is_empty());
    assert!(asked(b"").is_empty());
    assert!(asked(&[0; 300]).is_empty());
}

#[test]
fn what_is_found_ends_the_search() {
    let asked = Cell::new(0);
    let third = |_| {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    assert!(PREFILTER.search(&b"Abc-".repeat(100), &third));
    assert_eq!(asked.get(), 3);
}

proptest! {
    #[test]
    fn none_is_missed(text in prop::collection::vec(prop::sample::select(b"aAbBc\xC2\xE1\t <~/\xE2\x80\x8B\xAA\xFF\xF0\x0F\0".to_vec()), 0..200)) {
        let places = asked(&text);
        prop_assert!(places.is_sorted_by(|one, next| one < next));
        for at in 0..text.len() {
            prop_assert!(!begins(&text[at..]) || places.contains(&at), "{at}");
        }
    }
}
