use super::{DEFAULT, parse};

#[test]
fn filters_are_read_as_rust_log_has_them() {
    for good in ["debug", "info,portcullis::gates=debug", "off", DEFAULT] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in ["", " ", "portcullis=loud", "a=b=c"] {
        let fault = parse(bad).expect_err(bad);
        assert!(fault.starts_with("expected a level or directives"), "{fault}");
    }
}
