use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::{Again, of_answer, of_status};
use crate::telemetry::otlp::testing::{Server, Verdict, block_on};

#[test]
fn statuses_are_tried_again_as_the_specification_has_it() {
    for code in (0..=16).map(Code::from_i32) {
        let later = [
            Code::Cancelled,
            Code::DeadlineExceeded,
            Code::Aborted,
            Code::OutOfRange,
            Code::Unavailable,
            Code::DataLoss,
        ];
        let expected = if later.contains(&code) { Again::Later } else { Again::Never };
        assert_eq!(of_status(&Status::new(code, "")), expected, "{code:?}");
    }
    for code in [Code::ResourceExhausted, Code::Unavailable] {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(7)));
        let status = Status::with_error_details(code, "", details);
        assert_eq!(of_status(&status), Again::After(Duration::from_secs(7)));
    }
}

#[test]
fn answers_are_tried_again_as_the_specification_has_it() {
    let none = HeaderMap::new();
    for status in [429, 502, 503, 504] {
        assert_eq!(of_answer(StatusCode::from_u16(status).unwrap(), &none), Again::Later, "{status}");
    }
    for status in [200, 400, 401, 404, 413, 500, 501] {
        assert_eq!(of_answer(StatusCode::from_u16(status).unwrap(), &none), Again::Never, "{status}");
    }
    let asked = |value| HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
    assert_eq!(of_answer(StatusCode::SERVICE_UNAVAILABLE, &asked("3")), Again::After(Duration::from_secs(3)));
    assert_eq!(of_answer(StatusCode::BAD_GATEWAY, &asked("3")), Again::Later);
    assert_eq!(of_answer(StatusCode::SERVICE_UNAVAILABLE, &asked("Mon, 01 Jan 2035 00:00:00 GMT")), Again::Later);
}

#[test]
fn a_collector_that_is_unavailable_is_asked_again() {
    let server = Server::start(|attempt| if attempt < 2 { Verdict::Unavailable } else { Verdict::Take });
    let partial = block_on(server.client().export(&Server::envelope().wrap(Vec::new()))).expect("the third try");
    assert_eq!((partial.rejected, server.names().len()), (0, 3));
    assert!(server.agents().iter().all(|agent| agent.starts_with("portcullis/")), "{:?}", server.agents());
}

#[test]
fn not_for_ever() {
    let server = Server::start(|_| Verdict::Unavailable);
    let fault = block_on(server.client().export(&Server::envelope().wrap(Vec::new()))).expect_err("nobody takes it");
    assert_eq!(server.names().len(), 4);
    assert!(fault.to_string().contains("The service is currently unavailable"), "{fault}");
}

#[test]
fn what_is_no_use_is_not_tried_again_and_what_was_rejected_is_told() {
    let server = Server::start(|_| Verdict::Invalid);
    assert!(block_on(server.client().export(&Server::envelope().wrap(Vec::new()))).is_err());
    assert_eq!(server.names().len(), 1);
    let server = Server::start(|_| Verdict::Reject(5));
    let partial = block_on(server.client().export(&Server::envelope().wrap(Vec::new()))).expect("it is taken");
    assert_eq!((partial.rejected, partial.message.as_str()), (5, "not these"));
}
