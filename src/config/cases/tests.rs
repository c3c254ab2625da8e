use std::fs;

use super::{Cases, Expect};

/// The faults of a file of cases, without its folder.
fn faults(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cases.yaml");
    fs::write(&file, text).expect("the file");
    let faults = Cases::read(&file).expect_err("faults");
    faults.iter().map(|fault| fault.to_string().replace(&format!("{}/", folder.path().display()), "")).collect()
}

#[test]
fn every_form_of_expectation_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cases.yaml");
    let text = "\
principals: {ana: {sub: ana, groups: [a, 1, true], exp: null}}
cases:
- {name: one, principal: ana, method: tools/call, capability: 'tool:x', arguments: {n: 1.5}, expect: allow}
- {name: two, expect: {refuse: token.missing}}
- {name: three, claims: {sub: bo}, expect: {would_refuse: policy.unpriced}}
- {name: four, expect: {visible: [x, 'prompt:y']}}
- {name: five, expect: {hidden: [x]}}
";
    fs::write(&file, text).expect("the file");
    let cases = Cases::read(&file).expect("no faults").source;
    let ana = serde_json::to_string(&cases.principals["ana"]).expect("JSON");
    assert_eq!(ana, r#"{"exp":null,"groups":["a",1,true],"sub":"ana"}"#);
    let expected: Vec<_> = cases.cases.iter().map(|case| case.expect.clone()).collect();
    let text = |text: &str| text.to_owned();
    let forms = [
        Expect::Allow,
        Expect::Refuse(text("token.missing")),
        Expect::WouldRefuse(text("policy.unpriced")),
        Expect::Visible(vec![text("x"), text("prompt:y")]),
        Expect::Hidden(vec![text("x")]),
    ];
    assert_eq!(expected, forms);
    assert_eq!(cases.cases[0].arguments.as_ref().map(ToString::to_string).as_deref(), Some(r#"{"n":1.5}"#));
}

#[test]
fn every_fault_is_told_with_its_place() {
    let told = faults(
        "cases:\n- name: one\n  expect: {refuze: x}\n- {nam: two, expect: allow}\n- expect: perhaps\n  name: x\n",
    );
    assert!(told.iter().any(|fault| fault.starts_with("cases.yaml:3:12: cases[0].expect")), "{told:#?}");
    assert!(told.iter().any(|fault| fault.starts_with("cases.yaml:4:4: ") && fault.contains("nam")), "{told:#?}");
    assert!(told.iter().any(|fault| fault.starts_with("cases.yaml:5:11: cases[2].expect")), "{told:#?}");
    let told =
        faults("principals: {ana: {sub: ana}}\ncases:\n- {name: one, principal: bo, claims: {}, expect: allow}\n");
    assert_eq!(
        told,
        [
            "cases.yaml:3:38: cases[0].claims: expected a principal or claims, found both; remove one of the two",
            "cases.yaml:3:26: cases[0].principal: expected a name of `principals`, found `bo`; there are `ana`",
        ]
    );
    assert_eq!(faults("cases: []\n"), ["cases.yaml:1:8: cases: expected at least one case, found none; add one"]);
    assert_eq!(faults("cases: [\n").len(), 1);
}
