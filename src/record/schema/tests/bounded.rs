//! Hostile schemas and instances cost little, and nothing is fetched for them. No test looks at a clock: without the bounds
//! these run for hours, or end the process.

use std::net::TcpListener;

use super::super::fuel::{Budget, Exhausted, look, text, within};
use super::super::tape::Instance;
use super::{Failure, Violation, check, compiled, document, failures, uncompilable};

#[test]
fn references_that_double_run_out() {
    let double = |n: u32| {
        let inner = n - 1;
        format!(r##""d{n}": {{"allOf": [{{"$ref": "#/$defs/d{inner}"}}, {{"$ref": "#/$defs/d{inner}"}}]}}"##)
    };
    let doubles: Vec<String> = (1..60).map(double).collect();
    let schema =
        format!(r##"{{"$defs": {{"d0": {{"type": "string"}}, {}}}, "$ref": "#/$defs/d59"}}"##, doubles.join(", "));
    assert_eq!(check(&schema, "\"x\""), Err(Violation::Uncheckable));
    // Not so many that deciding fails, but too many for words: the refusal stands, told in general.
    let schema = schema.replace("d59\"}", "d14\"}");
    assert_eq!(check(&schema, "\"x\""), Ok(()));
    let Failure { rule, text, .. } = &failures(&schema, "1")[0];
    assert!(!rule.is_empty() && !text.is_empty());
}

/// Forty definitions that each name the one before through `link`, on top of `leaf`, in the dialect `uri`.
fn doubling(uri: &str, leaf: &str, link: &str) -> String {
    let definition = |n: u32| {
        let reference = format!(r##"{{"$ref": "#/definitions/d{}"}}"##, n - 1);
        format!(r#""d{n}": {}"#, link.replace('@', &reference))
    };
    let definitions: Vec<String> = (1..40).map(definition).collect();
    format!(
        r##"{{"$schema": "{uri}", "definitions": {{"d0": {leaf}, {}}}, "allOf": [{{"$ref": "#/definitions/d39"}}]}}"##,
        definitions.join(", ")
    )
}

#[test]
fn branches_that_never_look_at_the_instance_run_out_too() {
    let links = [
        r#"{"allOf": [@, @]}"#,
        r#"{"anyOf": [{"not": @}, @]}"#,
        r#"{"oneOf": [@, {"not": @}]}"#,
        r#"{"if": @, "then": @, "else": @}"#,
        r#"{"not": {"anyOf": [{"not": @}, {"not": @}]}}"#,
        r#"{"allOf": [{"title": "t", "allOf": [@]}, {"title": "t", "allOf": [@]}, true]}"#,
    ];
    let leaves =
        ["{}", "true", "false", r#"{"title": "x"}"#, r#"{"not": {}}"#, r#"{"format": "own"}"#, r#"{"then": {}}"#];
    for uri in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        for (link, leaf) in links.iter().flat_map(|link| leaves.iter().map(move |leaf| (link, leaf))) {
            // A verdict is fine where one comes early; what counts is that the check ends. A small budget, because this is
            // about whether looks are taken at all.
            let schema = compiled(&doubling(uri, leaf, link));
            let budget = Budget { looks: 5_000, ..schema.budget(0) };
            let verdicts = ["1", "[]"].map(|text| {
                let instance = document(text);
                within(budget, || schema.validator.is_valid(Instance::Value(instance.root())))
            });
            let early = ["false", r#"{"not": {}}"#].contains(leaf) || link.contains("anyOf");
            assert!(early || verdicts.contains(&Err(Exhausted)), "{leaf} {link} {verdicts:?}");
        }
    }
}

#[test]
fn references_to_what_is_no_schema_do_not_compile() {
    for (rest, reference) in [
        (r#""const": {"a": {}}"#, "#/const/a"),
        (r#""const": {"a": {}}"#, "#/c%6Fnst/a"),
        (r#""enum": [{}]"#, "#/enum/0"),
        (r#""properties": {"if": {}, "then": {}}"#, "#/properties"),
        (r#""properties": {"properties": {"const": {}}}"#, "#/properties/properties/const"),
        (r#""$defs": {"a/b": {}}"#, "#/$defs/a%2Fb"),
        (r#""$defs": {"a": {}}"#, "#/$defs/%zz"),
    ] {
        let schema = format!(r#"{{{rest}, "allOf": [{{"$ref": "{reference}"}}]}}"#);
        let error = uncompilable(&schema);
        assert!(error.message.contains("reference"), "{schema}: {error}");
    }
    for (rest, reference) in [
        (r#""properties": {"const": {"type": "string"}}"#, "#/properties/const"),
        (r#""properties": {"properties": {"type": "string"}}"#, "#/properties/properties"),
        (r#""$defs": {"Page[Item]": {"type": "string"}}"#, "#/$defs/Page%5BItem%5D"),
        (r#""$defs": {"a/b": {"type": "string"}}"#, "#/$defs/a~1b"),
        (r#""$defs": {"a": {"$anchor": "here", "type": "string"}}"#, "#here"),
        (r#""allOf": [{"type": "string"}]"#, "#/allOf/0"),
        (r#""x-own": {"type": "string"}"#, "#/x-own"),
    ] {
        let schema = format!(r#"{{{rest}, "anyOf": [{{"$ref": "{reference}"}}]}}"#);
        assert!(check(&schema, "1").is_err(), "{schema}");
        assert_eq!(check(&schema, "\"x\""), Ok(()), "{schema}");
    }
}

#[test]
fn properties_may_be_named_like_keywords() {
    let schema = r#"{"properties": {
        "not": {"type": "string"}, "if": {"type": "string"}, "const": {"not": {"type": "string"}}, "enum": {"enum": [{"not": 1}]},
        "type": {"type": "integer"}, "$ref": {"type": "integer"}, "$schema": {"const": "x"}, "allOf": true, "default": {"type": "integer"}
    }, "dependentRequired": {"not": ["if"]}, "default": {"not": 1, "$ref": 2}, "additionalProperties": false}"#;
    let good = r#"{"not": "a", "if": "b", "const": 1, "enum": {"not": 1}, "type": 1, "$ref": 2, "$schema": "x", "allOf": 3, "default": 4}"#;
    assert_eq!(check(schema, good), Ok(()));
    for (bad, pointer) in [
        (r#"{"not": 1, "if": ""}"#, "/not"),
        (r#"{"const": ""}"#, "/const"),
        (r#"{"enum": {"not": 1, "type": []}}"#, "/enum"),
        (r#"{"type": []}"#, "/type"),
        (r#"{"$ref": ""}"#, "/$ref"),
        (r#"{"$schema": ""}"#, "/$schema"),
        (r#"{"default": ""}"#, "/default"),
        (r#"{"not": ""}"#, ""),
        (r#"{"other": ""}"#, ""),
    ] {
        assert_eq!(failures(schema, bad)[0].pointer, pointer, "{bad}");
    }
}

#[test]
fn alternatives_that_recur_run_out_or_end() {
    let arms = r##"{"type": "array", "items": {"$ref": "#"}}"##;
    let schema = format!(r#"{{"anyOf": [{arms}, {arms}, {{"type": "string"}}]}}"#);
    let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(60), "]".repeat(60));
    assert_eq!(check(&schema, &nested("\"x\"")), Ok(()));
    let Failure { pointer, rule, .. } = &failures(&schema, &nested("1"))[0];
    assert!(!pointer.contains("//") && !rule.is_empty());
    // Without containers to remember nothing is remembered.
    let wide = format!(r#"{{"unevaluatedProperties": false, "anyOf": [{arms}, {arms}]}}"#);
    assert!(check(&wide, &nested("1")).is_err());
}

#[test]
fn references_in_a_circle_end() {
    assert_eq!(check(r##"{"$ref": "#"}"##, "1"), Ok(()));
    let circle = r##"{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}"##;
    assert_eq!(check(circle, "1"), Ok(()));
}

#[test]
fn patterns_take_linear_time() {
    for pattern in ["^(a+)+$", "^(a|a)*$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
        let schema = format!(r#"{{"pattern": "{pattern}"}}"#);
        assert_eq!(failures(&schema, &format!("\"{}!\"", "a".repeat(100_000)))[0].rule, "pattern", "{pattern}");
    }
}

#[test]
fn costly_patterns_burn_more_for_each_byte() {
    let plain = format!("\"{}\"", "a".repeat((1 << 20) - 2));
    assert_eq!(check(r#"{"pattern": "^[a-z]*$"}"#, &plain), Ok(()));
    let costly = compiled(r#"{"pattern": "(a|b)*a(a|b){1000}$"}"#);
    assert!(costly.text > 1, "{}", costly.text);
    assert_eq!(costly.check(document(&plain).root()), Err(Violation::Uncheckable));
    assert!(matches!(costly.check(document("\"abc\"").root()), Err(Violation::Invalid(_))));
    let names = compiled(r#"{"patternProperties": {"(a|b)*a(a|b){1000}$": {}}, "additionalProperties": {}}"#);
    assert_eq!(names.check(document(&format!("{{{plain}: 1}}")).root()), Err(Violation::Uncheckable));
    let enormous = uncompilable(r#"{"pattern": "((a{1000}){1000}){1000}"}"#);
    assert!(enormous.message.contains("regex"), "{enormous}");
}

#[test]
fn a_deep_schema_does_not_compile() {
    let deep = |levels: usize| format!("{}true{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
    for levels in [128, 1_000, 4_000] {
        let error = uncompilable(&deep(levels));
        assert!(error.message.contains("at most 128 levels"), "{error}");
    }
    assert_eq!(failures(&deep(127), "1")[0].rule, "not", "an odd number of negations");
}

#[test]
fn a_deep_instance_does_not_exhaust_the_stack() {
    let schema = r##"{"type": ["array", "integer"], "items": {"$ref": "#"}}"##;
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(check(schema, &nested(64)), Ok(()));
    assert_eq!(check(schema, &nested(4_000)), Err(Violation::Uncheckable));
}

#[test]
fn a_long_chain_below_every_level_of_a_deep_instance_runs_out() {
    let schema =
        chain(REFERENCES, r#"{"allOf": [@]}"#).replace(r#""type": "string""#, r##""items": {"$ref": "#/$defs/d0"}"##);
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(check(&schema, &nested(2)), Ok(()));
    assert_eq!(check(&schema, &nested(500)), Err(Violation::Uncheckable));
}

/// References of a schema that still compiles.
const REFERENCES: usize = 490;

/// `count` definitions that each refer to the next one through `link`; `@` stands for the reference.
fn chain(count: usize, link: &str) -> String {
    let definition = |n: usize| {
        let reference = format!(r##"{{"$ref": "#/$defs/d{}"}}"##, n + 1);
        format!(r#""d{n}": {}"#, link.replace('@', &reference))
    };
    let definitions: Vec<String> = (0..count).map(definition).collect();
    format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{"d{count}": {{"type": "string"}}, {}}}}}"##, definitions.join(", "))
}

#[test]
fn a_long_chain_of_references_does_not_exhaust_the_stack() {
    for link in ["@", r#"{"allOf": [@]}"#, r#"{"anyOf": [@, {"not": {}}]}"#] {
        let schema = chain(REFERENCES, link);
        let verdict = check(&schema, "1");
        assert!(verdict.is_err(), "{link}");
        let error = uncompilable(&chain(5_000, link));
        assert!(error.message.contains("references"), "{error}");
    }
}

#[test]
fn nothing_is_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let port = listener.local_addr().expect("its address").port();
    let file = std::env::temp_dir().join("schema.json");
    for reference in [
        format!("http://127.0.0.1:{port}/schema.json"),
        format!("http://127.0.0.1:{port}/schema.json#/$defs/a"),
        format!("https://localhost:{port}/schema.json"),
        format!("file://{}", file.display()),
        "other.json".to_owned(),
        "//127.0.0.1/schema".to_owned(),
        "urn:example:other".to_owned(),
        "#/$defs/missing".to_owned(),
        "#missing".to_owned(),
    ] {
        for schema in [
            format!(r#"{{"$ref": "{reference}"}}"#),
            format!(r#"{{"properties": {{"a": {{"$ref": "{reference}"}}}}}}"#),
            format!(r#"{{"$dynamicRef": "{reference}"}}"#),
            format!(r#"{{"$id": "http://127.0.0.1:{port}/root.json", "$ref": "{reference}"}}"#),
        ] {
            uncompilable(&schema);
        }
    }
    for schema in [
        format!(r#"{{"$id": "http://127.0.0.1:{port}/a/b.json", "$ref": "c.json"}}"#),
        r#"{"$id": "tool.json", "$ref": "other.json"}"#.to_owned(),
        format!(r#"{{"$schema": "http://127.0.0.1:{port}/meta.json"}}"#),
    ] {
        uncompilable(&schema);
    }
    assert!(listener.accept().is_err(), "somebody connected");
    // What a schema brings along, it may refer to under any name; meta-schemas are built in.
    let own = format!(
        r#"{{"$id": "http://127.0.0.1:{port}/a.json", "$ref": "b.json", "$defs": {{"b": {{"$id": "b.json", "type": "string"}}}}}}"#
    );
    assert_eq!(failures(&own, "1")[0].rule, "type");
    assert_eq!(
        failures(r#"{"$ref": "https://json-schema.org/draft/2020-12/schema"}"#, r#"{"type": 1}"#)[0].pointer,
        "/type"
    );
    assert!(listener.accept().is_err(), "somebody connected");
}

#[test]
fn a_check_after_one_that_ran_out_is_right() {
    let schema = compiled(r##"{"type": ["array", "integer"], "items": {"$ref": "#"}, "uniqueItems": true}"##);
    let bomb = document(&format!("{}1{}", "[".repeat(1_500), "]".repeat(1_500)));
    for _ in 0..3 {
        assert_eq!(schema.check(bomb.root()), Err(Violation::Uncheckable));
        assert_eq!(schema.check(document("[1, [2]]").root()), Ok(()));
        assert!(matches!(schema.check(document("[1, 1]").root()), Err(Violation::Invalid(_))));
    }
}

#[test]
fn budgets_nest_and_come_back() {
    let budget = |looks| Budget { looks, reading: 9, text: 1, names: 0 };
    let outer = within(budget(10), || {
        look();
        assert_eq!(within(budget(2), || (0..3).for_each(|_| look())), Err(Exhausted));
        (0..8).for_each(|_| look());
        1
    });
    assert_eq!(outer, Ok(1), "nine looks of ten");
    assert_eq!(within(budget(9), || (0..10).for_each(|_| look())), Err(Exhausted));
    assert_eq!(within(budget(99), || (0..2).for_each(|_| text(5))), Err(Exhausted), "ten bytes of nine");
    assert_eq!(within(budget(99), || text(9)), Ok(()));
    let panicked = std::panic::catch_unwind(|| within(budget(9), || std::panic::resume_unwind(Box::new("true panic"))));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"true panic"), "another panic passes through");
}
