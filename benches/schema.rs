//! One check of a call's arguments of about 1 KiB against a schema of the same size, what it costs to compile that, and what
//! the most hostile check costs until it ends.

#[path = "schema/filters.rs"]
mod filters;

use divan::{AllocProfiler, Bencher, black_box};
use portcullis::record::schema::{Schema, Violation};

use filters::{SCHEMA, arguments, document};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
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
