use proptest::prelude::*;

use super::*;

#[test]
fn canonical_forms() {
    for (text, want) in [
        ("0", "0"),
        ("-0", "0"),
        ("0.000", "0"),
        ("-0.0e-17", "0"),
        ("0e99999999999999999999999999999999999999999", "0"),
        ("7", "7"),
        ("-7", "-7"),
        ("100", "1e2"),
        ("1.50", "15e-1"),
        ("1.0", "1"),
        ("10.10", "101e-1"),
        ("0.0050", "5e-3"),
        ("1E+2", "1e2"),
        ("120e-1", "12"),
        ("9007199254740993e0", "9007199254740993"),
        ("90071992547409930e-1", "9007199254740993"),
        ("1e0000000000000000000000000000000000000000000000002", "1e2"),
        ("1e9223372036854775807", "1e9223372036854775807"),
        ("1e-9223372036854775808", "1e-9223372036854775808"),
        ("0.1e9223372036854775808", "1e9223372036854775807"),
    ] {
        assert_eq!(canonical(text).as_deref(), Some(want), "{text}");
    }
}

#[test]
fn no_canonical_form() {
    let huge = format!("1e{}", "9".repeat(100));
    for text in ["1e9223372036854775808", "10e9223372036854775807", "0.1e-9223372036854775808", &huge] {
        assert_eq!(canonical(text), None, "{text}");
    }
    for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "1 ", " 1", "0x1", "1_0", "NaN", "--1", "1e1.5", "１"] {
        assert_eq!(canonical(text), None, "{text:?}");
        assert!(!equal(text, text), "{text:?}");
        assert!(!is_integer(text), "{text:?}");
    }
}

#[test]
fn a_refused_number_writes_nothing() {
    let mut out = b"before".to_vec();
    assert_eq!(write_canonical(&mut out, "-1e9223372036854775808"), Err(Unrepresentable));
    assert_eq!(out, b"before");
}

#[test]
fn equality_is_by_value() {
    for (a, b) in [
        ("1", "1.0"),
        ("1e3", "1000.00"),
        ("0", "-0.0e5"),
        ("123.456", "123456e-3"),
        ("0.00012", "1.2E-4"),
        ("1e99999999999999999999", "10e99999999999999999998"),
    ] {
        assert!(equal(a, b) && equal(b, a), "{a} = {b}");
    }
    for (a, b) in [
        ("1", "-1"),
        ("9007199254740993", "9007199254740992"),
        ("1", "1.0000000000000001"),
        ("1e400", "1e401"),
        ("12", "21"),
        ("1e-99999999999999999999999999999999999999", "0"),
        ("1e99999999999999999999999999999999999999", "1e99999999999999999999999999999999999998"),
        ("1e99999999999999999999999999999999999999", "1"),
    ] {
        assert!(!equal(a, b) && !equal(b, a), "{a} ≠ {b}");
    }
    let huge = "1e99999999999999999999999999999999999999";
    assert!(equal(huge, huge));
}

#[test]
fn integers_by_value() {
    for text in ["0", "-0.0", "1", "1.0", "1e3", "1.5e1", "120e-1", "0e-5", "0.1e99999999999999999999999999999999"] {
        assert!(is_integer(text), "{text}");
    }
    for text in ["1.5", "1e-3", "12e-1", "-0.1", "1000e-99999999999999999999999999999999999"] {
        assert!(!is_integer(text), "{text}");
    }
}

#[test]
fn work_does_not_follow_the_exponent() {
    let long = format!("{}.{}e-5", "9".repeat(1 << 20), "0".repeat(1 << 20));
    assert!(is_integer(&format!("1{}e-5", "0".repeat(1 << 20))));
    assert!(equal(&long, &format!("{}e-5", "9".repeat(1 << 20))));
    assert_eq!(canonical("1e1000000000000").as_deref(), Some("1e1000000000000"));
}

/// Beyond 64 tens only the digits tell, however many more there are.
#[test]
fn multiples_with_long_exponents() {
    let two_63 = "9223372036854775808";
    for (value, divisor, multiple) in [
        ("1e62", two_63, false),
        ("1e63", two_63, true),
        ("1e64", two_63, true),
        ("1e65", two_63, true),
        ("3e999999999999999999999999999999", two_63, true),
        ("3e999999999999999999999999999999", "3", true),
        ("1e999999999999999999999999999999", "3", false),
        ("7e66", "21", false),
        ("21e66", "21", true),
        ("1e66", "1.25e-40", true),
        ("1e66", "7450580596923828125", true),
        ("1e26", "7450580596923828125", false),
        ("1e27", "7450580596923828125", true),
    ] {
        assert_eq!(is_multiple_of(value, divisor), Some(multiple), "{value} {divisor}");
    }
}

/// Short integers have a way of their own.
#[test]
fn short_and_long_integers_compare_alike() {
    let numbers =
        ["-1000000000000000000", "-999999999999999999", "-1", "0", "1", "999999999999999999", "1000000000000000000"];
    for (n, one) in numbers.iter().enumerate() {
        for (m, other) in numbers.iter().enumerate() {
            assert_eq!(compare(one, other), Some(n.cmp(&m)), "{one} {other}");
            assert_eq!(equal(one, other), n == m, "{one} {other}");
            assert_eq!(compare(&format!("{one}.0"), other), Some(n.cmp(&m)), "{one} {other}");
        }
    }
    for wrong in ["", "-", "01", "-01", "1x", "+1"] {
        assert_eq!((compare(wrong, "1"), equal(wrong, wrong), is_integer(wrong)), (None, false, false), "{wrong}");
    }
    assert!(equal("-0", "0"));
}

/// mantissa × 10^exponent, written in one of many ways.
fn spelling(mantissa: i64, exponent: i16, zeros: usize, point: usize) -> String {
    let digits = format!("{}{}", mantissa.unsigned_abs(), "0".repeat(zeros));
    let point = point % (digits.len() + 1);
    let (whole, fraction) = digits.split_at(digits.len() - point);
    let whole = if whole.is_empty() { "0" } else { whole };
    let dot = if fraction.is_empty() { "" } else { "." };
    let exponent = i64::from(exponent) - i64::try_from(zeros).unwrap() + i64::try_from(point).unwrap();
    format!("{}{whole}{dot}{fraction}e{exponent:+}", if mantissa < 0 { "-" } else { "" })
}

fn value(mantissa: i64, exponent: i16) -> (i64, i16) {
    if mantissa == 0 {
        return (0, 0);
    }
    let (mut mantissa, mut exponent) = (mantissa, exponent);
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    (mantissa, exponent)
}

proptest! {
    #[test]
    fn every_spelling_has_one_form(
        m: i64,
        e in -1000_i16..1000,
        zeros in 0_usize..8,
        a in 0_usize..30,
        b in 0_usize..30,
    ) {
        let (one, other) = (spelling(m, e, zeros, a), spelling(m, e, 0, b));
        let (mantissa, exponent) = value(m, e);
        let want = if exponent == 0 { mantissa.to_string() } else { format!("{mantissa}e{exponent}") };
        prop_assert_eq!(canonical(&one), Some(want.clone()));
        prop_assert_eq!(canonical(&other), Some(want.clone()));
        prop_assert_eq!(canonical(&want), Some(want));
        prop_assert!(equal(&one, &other));
        prop_assert_eq!(is_integer(&one), exponent >= 0);
    }

    #[test]
    fn equality_and_canonical_form_agree(
        m in -30_i64..30,
        e in -3_i16..3,
        n in -30_i64..30,
        f in -3_i16..3,
        p in 0_usize..4,
    ) {
        let (one, other) = (spelling(m, e, p, p), spelling(n, f, 0, p));
        prop_assert_eq!(equal(&one, &other), value(m, e) == value(n, f));
        prop_assert_eq!(equal(&one, &other), canonical(&one) == canonical(&other));
    }

    #[test]
    fn any_text_is_a_number_exactly_when_json_says_so(text in "[-+0-9.eE]{0,8}") {
        prop_assert_eq!(canonical(&text).is_some(), serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
    }
}
