use super::Tally;

const LINES: &str = r#"{"schema":"portcullis.audit.v1","time":"2026-11-30T10:00:02Z","decision":"allow","reason":"policy.not_permitted","server":"cases","principal":"ana@acme.com","method":"tools/call","capability":"tool:update_case","would_refuse":["policy.not_permitted","ibac.blocked"],"enforced":false,"decision_us":1}
{"schema":"portcullis.audit.v1","time":"2026-11-30T10:00:01Z","decision":"allow","reason":"policy.not_permitted","server":"cases","principal":"ana@acme.com","method":"tools/call","capability":"tool:update_case","would_refuse":["policy.not_permitted"],"enforced":false,"decision_us":1}
{"level":"INFO","message":"serving"}

not json
{"schema":"portcullis.audit.v1","time":"2026-11-30T10:00:03Z","decision":"refuse","reason":"token.missing","server":"cases","enforced":true,"decision_us":1}
{"schema":"portcullis.audit.v1","time":"2026-11-30T10:00:04Z","decision":"allow","server":"cases","principal":"ana@acme.com","method":"tools/list","enforced":false,"entries_hidden":2,"decision_us":1}
{"schema":"portcullis.audit.v1","time":"2026-11-30T10:00:05Z","decision":"allow","reason":"payments.limit","server":"other","principal":"x\u001b[2J","method":"tools/call","capability":"tool:pay","gate":"acme","would_refuse":["payments.limit"],"enforced":false,"decision_us":1}
"#;

fn tally() -> Tally {
    let mut tally = Tally::default();
    tally.read(LINES.as_bytes()).expect("memory can be read");
    tally
}

#[test]
fn it_says_what_for_whom_how_often_since_when() {
    let text = tally().text().expect("text");
    assert_eq!(
        text,
        "server cases: 4 times since 2026-11-30T10:00:01Z
        1  ibac.blocked  tool:update_case  ana@acme.com  2026-11-30T10:00:02Z to 2026-11-30T10:00:02Z
        1  listing  tools/list  ana@acme.com  2026-11-30T10:00:04Z to 2026-11-30T10:00:04Z
        2  policy.not_permitted  tool:update_case  ana@acme.com  2026-11-30T10:00:01Z to 2026-11-30T10:00:02Z
server other: 1 times since 2026-11-30T10:00:05Z
        1  payments.limit (gate acme)  tool:pay  x\u{fffd}[2J  2026-11-30T10:00:05Z to 2026-11-30T10:00:05Z
5 audit records read, 2 other lines skipped
"
    );
}

#[test]
fn the_same_as_json() {
    let whole: serde_json::Value = serde_json::from_str(&tally().json().expect("JSON")).expect("JSON");
    assert_eq!((&whole["records"], &whole["skipped"]), (&5.into(), &2.into()));
    let rows = whole["would_refuse"].as_array().expect("a list");
    assert_eq!(rows.len(), 4);
    assert_eq!((&rows[2]["reason"], &rows[2]["times"]), (&"policy.not_permitted".into(), &2.into()));
    assert_eq!((&rows[3]["gate"], rows[2].get("gate")), (&"acme".into(), None));
}

#[test]
fn nothing_found_is_said() {
    let mut tally = Tally::default();
    tally.read(&b"\n"[..]).expect("memory can be read");
    assert_eq!(
        tally.text().expect("text"),
        "enforcing would have changed nothing\n0 audit records read, 0 other lines skipped\n"
    );
}
