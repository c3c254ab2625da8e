use super::Rule;
use crate::gates::opinion::Opinion;
use crate::gates::question::Question;
use crate::gates::tests::{plain, question};
use crate::refusal::GateCode;

/// `allow`, or the code and what the operator reads.
fn decide(rule: &str, question: &Question) -> String {
    match Rule::compile(rule).unwrap_or_else(|fault| panic!("{rule}: {fault}")).ask(question) {
        Opinion::Allow => "allow".into(),
        Opinion::Deny(denial) => {
            let code = denial.code.as_ref().map(GateCode::as_str).unwrap_or_default().to_owned();
            denial.log.map_or(code.clone(), |log| format!("{code}: {log}"))
        }
        other => panic!("{rule}: {other:?}"),
    }
}

fn on(rule: &str, arguments: &str) -> String {
    decide(rule, &question("pay", arguments))
}

const AMOUNT: &str = r#"arguments.amount <= 1000 || "payments:large" in principal.permissions"#;

#[test]
fn rules_decide_over_principal_call_and_arguments() {
    for (rule, arguments, expected) in [
        (AMOUNT, r#"{"amount":1000}"#, "allow"),
        (AMOUNT, r#"{"amount":1001}"#, "cel.denied"),
        (AMOUNT, r#"{"amount":999.5}"#, "allow"),
        (AMOUNT, r#"{"amount":1000.5}"#, "cel.denied"),
        (AMOUNT, r#"{"amount":1e3}"#, "allow"),
        (AMOUNT, r#"{"amount":1e4}"#, "cel.denied"),
        (AMOUNT, r#"{"amount":18446744073709551615}"#, "cel.denied"),
        (r#""cases:read" in principal.permissions"#, "{}", "allow"),
        (r#"principal.email.endsWith("@acme.com")"#, "{}", "allow"),
        (r#"call.capability == "tool:pay" && call.server == "cases""#, "{}", "allow"),
        (
            r#"!has(arguments.to) || arguments.to.all(a, a.endsWith("@acme.com"))"#,
            r#"{"to":["a@acme.com","b@acme.com"]}"#,
            "allow",
        ),
        (
            r#"!has(arguments.to) || arguments.to.all(a, a.endsWith("@acme.com"))"#,
            r#"{"to":["a@acme.com","b@evil.com"]}"#,
            "cel.denied",
        ),
        (r#"!has(arguments.to) || arguments.to.all(a, a.endsWith("@acme.com"))"#, "{}", "allow"),
        (r#"arguments.path.matches("^/srv/[a-z]+$")"#, r#"{"path":"/srv/a"}"#, "allow"),
        ("size(arguments.note) < 5", r#"{"note":"abc"}"#, "allow"),
        (r#"arguments.n["x y"] == null"#, r#"{"n":{"x y":null}}"#, "allow"),
    ] {
        assert_eq!(on(rule, arguments), expected, "{rule} on {arguments}");
    }
    assert_eq!(decide(r#"call.method == "GET" && call.path.startsWith("/v1/")"#, &plain()), "allow");
}

#[test]
fn what_cannot_be_decided_refuses() {
    for (rule, arguments, why) in [
        (AMOUNT, "{}", "no field `amount`"),
        (AMOUNT, r#"{"amount":"1"}"#, "no matching overload"),
        (AMOUNT, r#"{"amount":null}"#, "cel.undecidable"),
        (AMOUNT, r#"{"amount":1000.00000000000000001}"#, "held exactly"),
        (AMOUNT, r#"{"amount":99999999999999999999}"#, "held exactly"),
        (AMOUNT, r#"{"amount":1e400}"#, "held exactly"),
        (AMOUNT, r#"{"amount":1e-400}"#, "held exactly"),
        ("arguments.ok", r#"{"ok":"yes"}"#, "expected true or false"),
        ("arguments.n / arguments.d > 1", r#"{"n":1,"d":0}"#, "division by zero"),
        ("arguments.list[3] == 1", r#"{"list":[1]}"#, "cel.undecidable"),
    ] {
        let told = on(rule, arguments);
        assert!(told.starts_with("cel.undecidable") && told.contains(why), "{rule} on {arguments}: {told}");
    }
    // A caller's words are never in what is logged.
    assert!(!on(AMOUNT, r#"{"amount":"secret-7"}"#).contains("secret"));
}

#[test]
fn hostile_arguments_cost_no_more_than_the_limit() {
    let big = format!(r#"{{"list":[{}]}}"#, vec!["\"aaaaaaaaaaaaaaaa\""; 20_000].join(","));
    let rule = "arguments.list.all(a, arguments.list.exists(b, a == b + 'x'))";
    let told = on(rule, &big);
    assert!(told.contains("steps"), "{told}");
    // What fits under the limit is decided.
    let fits = format!(r#"{{"list":[{}]}}"#, vec!["\"aaaa\""; 1000].join(","));
    assert_eq!(on("arguments.list.all(a, a == 'aaaa')", &fits), "allow");
}

#[test]
fn a_faulty_rule_is_told_with_its_place() {
    for (rule, told) in [
        ("", "expected a CEL expression"),
        ("arguments.amount <=", "character"),
        ("1 + 1", "expected a condition (true or false), found int"),
        (
            "principal.nmae == 'x'",
            "expected a field of principal (issuer, subject, email, roles, permissions), found `nmae`",
        ),
        ("principle.email == 'x'", "found `principle`"),
        ("principal.email", "expected a condition (true or false), found string"),
        ("principal.email == 1", "values of one type"),
        ("principal.roles < 1", "two numbers or two texts"),
        ("'x' in principal.email", "a list or map"),
        ("principal.email && true", "expected conditions"),
        ("arguments.x.frobnicate()", "found `frobnicate`"),
        ("principal.email.size", "expected a map"),
        ("principal.roles.all(r, r.x == 1)", "expected a map"),
        ("principal.email.all(r, true)", "expected a list or a map"),
        ("true ? 1 : 2", "expected a condition"),
    ] {
        let fault = Rule::compile(rule).err().unwrap_or_else(|| panic!("{rule}: expected a fault"));
        assert!(fault.contains(told), "{rule}: {fault}");
    }
    let fault = Rule::compile("true && principal.nmae == 'x'").err().expect("a fault");
    // Of the field that is not there, or what the compiler says of what it cannot read.
    assert!(fault.starts_with("at character 18: "), "{fault}");
    let fault = Rule::compile("true &&\n  arguments.x <=").err().expect("a fault");
    assert!(fault.contains("line 2, character "), "{fault}");
    assert!(Rule::compile(&format!("'{}' == ''", "x".repeat(5000))).err().expect("a fault").contains("4096"));
}
