use super::*;

fn pattern(text: &str) -> Result<PatternSource, String> {
    PatternSource::try_from(text.to_owned())
}

#[test]
fn patterns_are_linear_small_and_match_something() {
    for good in ["secret-[0-9]+", "(?i)system prompt", r"\bBEGIN\b", "^x$", "\u{1F600}"] {
        assert!(pattern(good).is_ok(), "{good}");
    }
    for (wrong, told) in [
        ("(", "expected a regular expression, found `(`: unclosed group"),
        (r"(a)\1", "backreferences are not supported"),
        ("(?=a)", "look-around"),
        (r"\w{1000}", "expected a pattern of at most 1048576 bytes"),
        ("", "does not match the empty text"),
        ("a*", "does not match the empty text"),
    ] {
        let fault = pattern(wrong).expect_err(wrong);
        assert!(fault.contains(told), "{wrong}: {fault}");
    }
}

#[test]
fn many_large_patterns_are_too_large_together() {
    let one = pattern(r"\w{8}x").expect("small enough");
    let many = |count| DetectorsSource { patterns: vec![one.clone(); count], ..DetectorsSource::default() };
    assert!(many(1).compiled_patterns().is_ok_and(|patterns| patterns.is_some()));
    assert_eq!(many(60).compiled_patterns().map(|_| ()), Err(TooLarge));
    assert!(many(0).compiled_patterns().is_ok_and(|patterns| patterns.is_none()));
}
