use proptest::prelude::*;

use super::TraceContext;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn the_specifications_example_is_read() {
    let context = TraceContext::read(PARENT, Some("rojo=00f067aa0ba902b7")).expect("a context");
    assert_eq!(context.trace_hex(), TRACE);
    assert_eq!(
        (context.span_id, context.sampled, &*context.state),
        (0x00f0_67aa_0ba9_02b7, true, "rojo=00f067aa0ba902b7")
    );
    assert_eq!(context.to_string(), PARENT);
    let unsampled = TraceContext::read(&PARENT.replace("-01", "-00"), None).expect("a context");
    assert!(!unsampled.sampled && unsampled.state.is_empty());
}

#[test]
fn later_versions_are_read_as_far_as_they_are_known() {
    for parent in [PARENT.replacen("00", "cc", 1), format!("{}-more", PARENT.replacen("00", "01", 1))] {
        assert_eq!(TraceContext::read(&parent, None).expect(&parent).trace_hex(), TRACE);
    }
}

#[test]
fn whatever_is_malformed_is_absent() {
    let zero_trace = PARENT.replace(TRACE, &"0".repeat(32));
    let zero_span = PARENT.replace("00f067aa0ba902b7", &"0".repeat(16));
    let parents = [
        "",
        "00",
        &PARENT[..54],
        &format!("{PARENT}0"),
        &format!("{PARENT}-"),
        &format!(" {PARENT}"),
        &PARENT.to_uppercase(),
        &PARENT.replace('-', "_"),
        &PARENT.replacen("00", "ff", 1),
        &PARENT.replacen("4b", "4\u{e9}", 1),
        &zero_trace,
        &zero_span,
        &"0".repeat(100_000),
    ];
    for parent in parents {
        assert_eq!(TraceContext::read(parent, None), None, "{parent}");
    }
}

#[test]
fn a_hostile_state_goes_and_the_parent_stays() {
    for state in ["a".repeat(513), "a=\u{e9}".to_owned(), "a=b\n".to_owned()] {
        assert_eq!(&*TraceContext::read(PARENT, Some(&state)).expect("a context").state, "");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_absent(parent in ".{0,80}", state in proptest::option::of(".{0,80}")) {
        if let Some(context) = TraceContext::read(&parent, state.as_deref()) {
            prop_assert!(context.trace_id != 0 && context.span_id != 0);
        }
    }

    #[test]
    fn what_is_written_is_read(trace_id in 1_u128.., span_id in 1_u64.., sampled: bool) {
        let context = TraceContext { trace_id, span_id, sampled, state: "".into() };
        prop_assert_eq!(TraceContext::read(&context.to_string(), None), Some(context));
    }
}
