use super::{DEFAULT, parse, start};

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

#[test]
fn what_is_logged_changes_while_the_process_runs() {
    let handle = start();
    handle.set("warn").expect("a filter");
    assert!(!tracing::enabled!(tracing::Level::INFO));
    handle.set("debug").expect("a filter");
    assert!(tracing::enabled!(tracing::Level::DEBUG));
    handle.set("portcullis=loud").expect_err("no filter");
    assert!(tracing::enabled!(tracing::Level::DEBUG), "nothing has changed");
}
