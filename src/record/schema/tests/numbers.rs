//! Numbers are the decimals that were written.

use proptest::prelude::*;

use super::{Violation, check, failures, uncompilable};

#[track_caller]
fn accepts(schema: &str, instance: &str) {
    assert_eq!(check(schema, instance), Ok(()), "{instance} against {schema}");
}

#[track_caller]
fn refuses(schema: &str, instance: &str, rule: &str) {
    assert_eq!(failures(schema, instance)[0].rule, rule, "{instance} against {schema}");
}

#[test]
fn no_bound_is_met_by_rounding() {
    let schema = r#"{"maximum": 9007199254740992}"#;
    for above in [
        "9007199254740993",
        "9007199254740993e0",
        "90071992547409930e-1",
        "9007199254740992.0000000001",
        "1e1000000000",
    ] {
        refuses(schema, above, "maximum");
    }
    for within in ["9007199254740992", "9007199254740992.0", "-1e1000000000", "0", "-0.0", "1e-1000000000"] {
        accepts(schema, within);
    }
    refuses(r#"{"maximum": 1}"#, "1.0000000000000001", "maximum");
    accepts(r#"{"exclusiveMinimum": 1}"#, "1.0000000000000001");
    // Where 64-bit floats are two and four apart.
    refuses(r#"{"exclusiveMaximum": 9007199254740993}"#, "9007199254740993.0", "exclusiveMaximum");
    refuses(r#"{"maximum": 18014398509481985}"#, "18014398509481985.5", "maximum");
    refuses(r#"{"exclusiveMinimum": 9007199254740995}"#, "9007199254740995.0", "exclusiveMinimum");
    refuses(r#"{"maximum": 18446744073709551617}"#, "18446744073709551617.5", "maximum");
    refuses(r#"{"minimum": 0.1}"#, "0.09999999999999999999", "minimum");
    accepts(r#"{"minimum": 0.1}"#, "0.1");
    accepts(r#"{"minimum": 1e308}"#, "1e400");
    refuses(r#"{"maximum": 1e-400}"#, "2e-400", "maximum");
    refuses(r#"{"maximum": 5}"#, "1e1000000000", "maximum");
    refuses(r#"{"minimum": -3}"#, "-3.0000000000000000001", "minimum");
}

#[test]
fn an_integer_is_one_however_it_is_written() {
    let schema = r#"{"type": "integer"}"#;
    for integer in ["1e3", "1.0", "-0", "1.50e1", "90071992547409930e-1", "1e400", "10000000000000000000000", "0e-9"] {
        accepts(schema, integer);
    }
    for other in ["1.5", "1.0000000000000001", "1e-1", "1E-400", "9007199254740992.5", "9007199254740993.00000001"] {
        refuses(schema, other, "type");
    }
    accepts(r#"{"type": "number"}"#, "1.5");
    refuses(r#"{"type": "number"}"#, "\"1.5\"", "type");
}

#[test]
fn equality_is_exact() {
    for (schema, instance) in [
        ("1", "1.0000000000000001"),
        ("9007199254740992", "9007199254740993e0"),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ("1e400", "1e401"),
        ("1", "true"),
        ("0", "1e-1000"),
    ] {
        refuses(&format!(r#"{{"const": {schema}}}"#), instance, "const");
        refuses(&format!(r#"{{"enum": [{schema}, "other"]}}"#), instance, "enum");
        refuses(&format!(r#"{{"enum": [[{schema}]]}}"#), &format!("[{instance}]"), "enum");
        accepts(r#"{"uniqueItems": true}"#, &format!("[{schema}, {instance}]"));
    }
    for (schema, instance) in [
        ("9007199254740993", "9007199254740993.0"),
        ("0", "-0"),
        ("1000", "1e3"),
        ("0.5", "5e-1"),
        ("1e400", "10e399"),
        ("12345678901234567890123", "1.2345678901234567890123e22"),
    ] {
        accepts(&format!(r#"{{"const": {schema}}}"#), instance);
        accepts(&format!(r#"{{"enum": [{schema}]}}"#), instance);
        refuses(r#"{"uniqueItems": true}"#, &format!("[{schema}, {instance}]"), "uniqueItems");
    }
}

#[test]
fn multiples_are_exact() {
    for (divisor, instance) in [
        ("0.01", "4.35"),
        ("0.01", "1070468.14"),
        ("2", "18446744073709551618"),
        ("3", "9e1000000"),
        ("1e-400", "1"),
        ("1e400", "3e401"),
        ("1e3", "5000"),
        ("7", "0"),
        ("0.1", "-0.3"),
        ("99999999999999999", "199999999999999998"),
    ] {
        accepts(&format!(r#"{{"multipleOf": {divisor}}}"#), instance);
    }
    for (divisor, instance) in [
        ("2", "18446744073709551617"),
        ("3", "1e1000000"),
        ("1", "1.00000000000000001"),
        ("1", "9007199254740993.5"),
        ("0.01", "4.355"),
        ("1e400", "1e399"),
        ("1e3", "5500"),
    ] {
        refuses(&format!(r#"{{"multipleOf": {divisor}}}"#), instance, "multipleOf");
    }
}

#[test]
fn lengths_and_counts_may_be_written_any_way() {
    refuses(r#"{"maxLength": 2.0}"#, "\"abc\"", "maxLength");
    refuses(r#"{"minItems": 1e1}"#, "[1]", "minItems");
    accepts(r#"{"maxLength": 18446744073709551616}"#, "\"abc\"");
}

#[test]
fn what_cannot_be_held_exactly_is_uncheckable() {
    let huge = format!("1e{}", "9".repeat(40));
    for schema in [r#"{"maximum": 1}"#, r#"{"not": {"const": 1}}"#, r#"{"multipleOf": 2}"#, r#"{"not": {"enum": [1]}}"#]
    {
        assert_eq!(check(schema, &huge), Err(Violation::Uncheckable), "{schema}");
    }
    assert_eq!(check(r#"{"uniqueItems": true}"#, &format!("[{huge}, 1]")), Err(Violation::Uncheckable));
    accepts(r#"{"type": "integer"}"#, &huge);
    for schema in [format!(r#"{{"maximum": {huge}}}"#), r#"{"multipleOf": 123456789012345678901}"#.to_owned()] {
        let error = uncompilable(&schema);
        assert!(error.message.contains("digits"), "{error}");
    }
}

/// A decimal and its value in thousandths.
fn decimal() -> impl Strategy<Value = (String, i64)> {
    let spelled = |(thousandths, form): (i64, u8)| {
        let sign = if thousandths < 0 { "-" } else { "" };
        let (whole, rest) = (thousandths.unsigned_abs() / 1000, thousandths.unsigned_abs() % 1000);
        let text = match form {
            0 => format!("{thousandths}e-3"),
            1 => format!("{sign}{}E-4", thousandths.unsigned_abs() * 10),
            2 => format!("{sign}{whole}.{rest:03}"),
            _ => format!("{sign}{whole}.{rest:03}000e+0"),
        };
        (text, thousandths)
    };
    prop_oneof![-5000_i64..5000, -9_007_199_254_741_000..9_007_199_254_741_000_i64, Just(0)]
        .prop_flat_map(|number| (Just(number), 0_u8..4))
        .prop_map(spelled)
}

proptest! {
    #[test]
    fn bounds_agree_with_integers((a, left) in decimal(), (b, right) in decimal()) {
        let holds = |keyword: &str| check(&format!(r#"{{"{keyword}": {b}}}"#), &a).is_ok();
        prop_assert_eq!(holds("minimum"), left >= right);
        prop_assert_eq!(holds("maximum"), left <= right);
        prop_assert_eq!(holds("exclusiveMinimum"), left > right);
        prop_assert_eq!(holds("exclusiveMaximum"), left < right);
        prop_assert_eq!(holds("const"), left == right);
        if right > 0 {
            prop_assert_eq!(holds("multipleOf"), left % right == 0);
        }
    }
}
