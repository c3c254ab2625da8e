//! A caller who makes names up makes no labels.

use serde_json::json;

use super::told;
use crate::support::client::Connection;
use crate::support::collector::Collector;
use crate::support::fixture;

#[test]
fn ten_thousand_made_up_names_add_no_label() {
    const NAMES: usize = 10_000;
    let collector = Collector::start();
    let stack = told(&collector);
    let token = stack.reader();
    let mut connection = Connection::open(stack.envoy.port).expect("a connection");
    for number in 0..NAMES {
        let message = if number % 2 == 0 {
            fixture::call(&format!("made_up_{number}"), json!({}))
        } else {
            fixture::rpc(&format!("made/up_{number}"), json!({}))
        };
        let request = fixture::post(&message).bearer(&token);
        let sent = connection.send(&request);
        if sent.is_none() {
            connection = Connection::open(stack.envoy.port).expect("a connection");
            connection.send(&request).expect("a reply");
        }
    }
    let half = i64::try_from(NAMES / 2).expect("a small number");
    collector.wait("all of them, under two label sets", |got| {
        let decisions = got.numbers("portcullis.decisions");
        let tools = [("mcp.method.name", "tools/call"), ("capability", "_other"), ("reason", "policy.unpriced")];
        let methods = [("mcp.method.name", "_other"), ("reason", "method.unlisted")];
        let counted = [got.sum("portcullis.decisions", &tools), got.sum("portcullis.decisions", &methods)];
        (counted == [half, half]).then(|| assert_eq!(decisions.len(), 2, "{decisions:?}"))
    });
    let everything = collector.wait("everything", |got| {
        let operations = got.histogram("mcp.server.operation.duration");
        let total: u64 = operations.iter().map(|(_, point)| point.count).sum();
        (total == NAMES as u64).then(|| {
            assert_eq!(operations.len(), 2, "{operations:?}");
            let metrics = got.units().into_iter().map(|(name, _)| format!("{:?}", got.metric(&name)));
            metrics.collect::<String>()
        })
    });
    assert!(!everything.contains("made"), "a caller's word is in a metric");
    assert!(!everything.contains("ana@acme.com"), "a principal is in a metric");
}
