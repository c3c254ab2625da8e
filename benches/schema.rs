//! One check of a call's arguments of about 1 KiB against a schema of the same size, what it costs to compile that, and what
//! the most hostile check costs until it ends.

use divan::{AllocProfiler, Bencher, black_box};
use portcullis::message::json::{Document, Limits};
use portcullis::record::schema::{Schema, Violation};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 200},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "cursor": {"type": ["string", "null"]},
        "filters": {"type": "array", "maxItems": 50, "items": {
            "type": "object",
            "properties": {
                "field": {"enum": ["status", "owner", "age"]},
                "op": {"type": "string", "pattern": "^[a-z]{1,8}$"},
                "values": {"type": "array", "items": {"type": "string"}},
                "weight": {"type": "number", "minimum": 0, "multipleOf": 0.05},
                "strict": {"type": "boolean"}
            },
            "required": ["field", "op"],
            "additionalProperties": false
        }}
    },
    "required": ["query"],
    "additionalProperties": false
}"#;

fn main() {
    divan::main();
}

fn document(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), Limits { depth: 64, nodes: 1_000_000 }).expect("a readable document")
}

fn arguments(last: &str) -> Document {
    let filter = r#"{"field":"status","op":"in","values":["open","pending"],"weight":1.25,"strict":true}"#;
    let filters = [filter; 10].join(",");
    document(&format!(r#"{{"query":"open cases","limit":25,"cursor":null,"filters":[{filters},{last}]}}"#))
}

#[divan::bench]
fn compile(bencher: Bencher<'_, '_>) {
    let schema = document(SCHEMA);
    bencher.bench_local(|| Schema::compile(black_box(schema.root())));
}

#[divan::bench]
fn check_fits(bencher: Bencher<'_, '_>) {
    let schema = Schema::compile(document(SCHEMA).root()).expect("compiles");
    let arguments = arguments(r#"{"field":"owner","op":"is"}"#);
    assert!(schema.check(arguments.root()).is_ok());
    bencher.bench_local(|| schema.check(black_box(arguments.root())));
}

#[divan::bench]
fn check_breaks(bencher: Bencher<'_, '_>) {
    let schema = Schema::compile(document(SCHEMA).root()).expect("compiles");
    let arguments = arguments(r#"{"field":"owner","op":"IS"}"#);
    assert!(schema.check(arguments.root()).is_err());
    bencher.bench_local(|| schema.check(black_box(arguments.root())));
}

/// References that double forty times: the check is stopped by its budget.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn check_runs_out(bencher: Bencher<'_, '_>) {
    let double = |n: usize| {
        let inner = n - 1;
        format!(r##""d{n}": {{"allOf": [{{"$ref": "#/$defs/d{inner}"}}, {{"$ref": "#/$defs/d{inner}"}}]}}"##)
    };
    let doubles = (1..40).map(double).collect::<Vec<_>>().join(",");
    let text = format!(r##"{{"$defs": {{"d0": {{"type": "string"}}, {doubles}}}, "$ref": "#/$defs/d39"}}"##);
    let schema = Schema::compile(document(&text).root()).expect("compiles");
    let instance = document("\"x\"");
    assert_eq!(schema.check(instance.root()), Err(Violation::Uncheckable));
    bencher.bench_local(|| schema.check(black_box(instance.root())));
}
