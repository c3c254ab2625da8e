use proptest::prelude::*;

use super::*;

#[test]
fn what_people_write_is_honest() {
    for text in [
        "",
        "plain text, \t\r\n included",
        "Grüße, 打印机, Привет",
        // A family (ZWJ), a heart (VS16), a text-style sun (VS15), a flag, a skin tone, a keycap.
        "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}",
        "\u{2764}\u{FE0F} \u{2600}\u{FE0E} \u{1F1E9}\u{1F1EA} \u{1F44B}\u{1F3FD} 1\u{FE0F}\u{20E3}",
        // Persian "I want" and "houses", Arabic with a vowel sign in front of the non-joiner.
        "می\u{200C}خواهم خانه\u{200C}ها",
        "بِ\u{200C}ب",
        // Devanagari and Sinhala behind a virama, Bengali "RAB" in front of one, Malayalam, Khmer, Gurmukhi with a nukta.
        "क्\u{200C}ष",
        "ක්\u{200C}ෂ",
        "র\u{200C}্যাব",
        "ന്\u{200C}മ",
        "ក\u{200C}ខ",
        "ਸ਼\u{200C}ਸ",
        "non\u{A0}breaking, \u{3000}wide and \u{2009}thin spaces, \u{2028}lines",
    ] {
        assert!(!contains(text), "{}", text.escape_unicode());
    }
}

#[test]
fn what_people_do_not_see_is_found() {
    for text in [
        "soft\u{AD}hyphen",
        "zero\u{200B}width",
        "left\u{200E}to right\u{200F}",
        "\u{202E}turned round\u{202C}",
        "word\u{2060}joiner, \u{2063}, \u{2066}isolate\u{2069}",
        "\u{FEFF}mark",
        // "Hi" in tag characters, and a variation selector of the supplement.
        "\u{E0048}\u{E0069}",
        "a\u{E0100}",
        "filler \u{3164}\u{115F}\u{1160}\u{FFA0} \u{34F}\u{61C}\u{180E}\u{FFF9}\u{FFFB}",
        // A non-joiner anywhere but inside a word of a script that has it.
        "ig\u{200C}nore",
        "می\u{200C}",
        "\u{200C}می",
        "می\u{200C}\u{200C}خ",
        "می\u{200C} خ",
        "می\u{200C}क",
        "می\u{200C}x",
        "۱\u{200C}۲",
        "打\u{200C}印",
    ] {
        assert!(contains(text), "{}", text.escape_unicode());
    }
}

#[test]
fn every_character_of_the_list_and_none_beside_it() {
    let ranges = [
        (0xAD, 0xAD),
        (0x34F, 0x34F),
        (0x61C, 0x61C),
        (0x115F, 0x1160),
        (0x180E, 0x180E),
        (0x200B, 0x200C),
        (0x200E, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x2064),
        (0x2066, 0x206F),
        (0x3164, 0x3164),
        (0xFEFF, 0xFEFF),
        (0xFFA0, 0xFFA0),
        (0xFFF9, 0xFFFB),
        (0xE0000, 0xE007F),
        (0xE0100, 0xE01EF),
    ];
    for c in '\0'..=char::MAX {
        let listed = ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)));
        assert_eq!(is_invisible(c), listed, "{}", c.escape_unicode());
        assert_eq!(contains(c.encode_utf8(&mut [0; 4])), listed, "{}", c.escape_unicode());
    }
}

proptest! {
    #[test]
    fn found_wherever_it_stands(before in ".{0,40}", behind in ".{0,40}") {
        let text = format!("{before}\u{E0041}{behind}");
        let tag = '\u{E0041}';
        prop_assert!(occurrences(&text).any(|found| found == (before.len(), tag)));
        prop_assert!(contains(&text));
    }
}

#[test]
fn the_table_of_letters_says_what_unicode_says() {
    for c in (0..=0x1_FFFF).filter_map(char::from_u32) {
        assert_eq!(LETTERS.has(c), script(c).is_some() && is_letter(c), "U+{:04X}", u32::from(c));
    }
}
