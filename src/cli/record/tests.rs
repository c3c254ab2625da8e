use super::report::visible;

#[test]
fn nothing_that_an_eye_or_a_terminal_would_swallow_is_shown_as_it_is() {
    for (text, shown) in [
        (
            "plain \u{e9} \u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
            "plain \u{e9} \u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
        ),
        ("a\u{200B}b\u{E0041}", "a\\u{200B}b\\u{E0041}"),
        ("a\nb\tc\u{1b}[31m\u{85}\u{2028}", "a\\nb\\tc\\u{1B}[31m\\u{85}\\u{2028}"),
        ("\u{202E}evil", "\\u{202E}evil"),
    ] {
        assert_eq!(visible(text), shown);
    }
}
