use super::*;

const LIMITS: Limits = Limits { depth: 8, nodes: 1000 };

fn fault(text: &str) -> FaultKind {
    Document::read(text.as_bytes().to_vec(), LIMITS).expect_err(text).kind
}

#[test]
fn values_keep_their_bytes() {
    let text = r#" {"a":[1, 2.50 ,-0e1],"\u0062":"x\n\ud83d\ude00","c":{},"d":true,"e":null} "#;
    let document = Document::read(text.as_bytes().to_vec(), LIMITS).unwrap();
    let root = document.root();
    assert_eq!(root.len(), 5);
    let numbers: Vec<_> = root.get("a").unwrap().items().map(|item| item.raw()).collect();
    assert_eq!(numbers, ["1", "2.50", "-0e1"]);
    assert_eq!(root.get("b").unwrap().as_str(), Some("x\n\u{1F600}"));
    assert_eq!(root.get("b").unwrap().raw(), r#""x\n\ud83d\ude00""#);
    assert_eq!(root.get("d").unwrap().as_bool(), Some(true));
    assert!(root.get("e").unwrap().is_null());
    assert!(root.get("c").unwrap().is_empty());
}

#[test]
fn faults_are_told_apart() {
    assert_eq!(fault(r#"{"a":1,"\u0061":2}"#), FaultKind::DuplicateKey);
    assert_eq!(fault("[[[[[[[[[]]]]]]]]]"), FaultKind::Depth);
    assert_eq!(fault("{} {}"), FaultKind::Trailing);
    assert_eq!(fault(""), FaultKind::Incomplete);
    assert_eq!(fault(r#"["\ud800"]"#), FaultKind::Surrogate);
    assert_eq!(fault("[01]"), FaultKind::Syntax);
    assert_eq!(fault("[1.]"), FaultKind::Number);
    assert_eq!(fault("[\"\t\"]"), FaultKind::Control);
}
