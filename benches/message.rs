//! The reader, the canonical form, splicing and event framing on messages of usual sizes, with their allocations.

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use portcullis::message::json::{Document, Limits};
use portcullis::message::splice::Edits;
use portcullis::message::{sse, write};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const LIMITS: Limits = Limits { depth: 64, nodes: 1_000_000 };

fn main() {
    divan::main();
}

/// A `tools/call` of about `size` bytes, with the members that the 2026-07-28 revision wants.
fn call(size: usize) -> Vec<u8> {
    let mut text = String::from(concat!(
        r#"{"jsonrpc":"2.0","id":"7f0c","method":"tools/call","params":{"name":"search_cases","_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":"#,
        r#"{"name":"agent","version":"1.4.0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"#,
        r#""arguments":{"query":"open cases \"urgent\" of caf\u00e9","limit":25,"cursor":null,"filters":["#
    ));
    let filter = r#"{"field":"status","op":"in","values":["open","pending"],"weight":1.25,"strict":true},"#;
    while text.len() + filter.len() + 8 < size {
        text.push_str(filter);
    }
    text.push_str("{}]}}}");
    text.into_bytes()
}

/// A `tools/list` answer of `count` tools.
fn listing(count: usize) -> Vec<u8> {
    let tools: Vec<String> = (0..count)
        .map(|n| {
            format!(
                concat!(
                    r#"{{"name":"tool_{n}","description":"Looks up case {n}.\nReturns at most 100.","inputSchema":{{"#,
                    r#""type":"object","properties":{{"query":{{"type":"string","maxLength":200}},"#,
                    r#""limit":{{"type":"integer","minimum":1,"maximum":100}}}},"required":["query"]}}}}"#
                ),
                n = n
            )
        })
        .collect();
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}],"nextCursor":"x"}}}}"#, tools.join(",")).into_bytes()
}

fn document(bytes: Vec<u8>) -> Document {
    Document::read(bytes, LIMITS).expect("a readable document")
}

#[divan::bench(args = [1 << 10, 64 << 10])]
fn read(bencher: Bencher<'_, '_>, size: usize) {
    let bytes = call(size);
    bencher
        .counter(BytesCount::new(bytes.len()))
        .with_inputs(|| bytes.clone())
        .bench_values(|bytes| Document::read(bytes, LIMITS));
}

#[divan::bench(args = [1 << 10, 64 << 10])]
fn canonical(bencher: Bencher<'_, '_>, size: usize) {
    let document = document(call(size));
    let mut out = Vec::with_capacity(size * 2);
    bencher.counter(BytesCount::new(document.text().len())).bench_local(|| {
        out.clear();
        write::canonical(black_box(document.root()), &mut out)
    });
}

/// Every second tool goes.
#[divan::bench(args = [10, 200, 2000])]
fn splice(bencher: Bencher<'_, '_>, count: usize) {
    let document = document(listing(count));
    let tools = document.root().path(&["result", "tools"]).expect("tools");
    bencher.counter(BytesCount::new(document.text().len())).bench_local(|| {
        let mut edits = Edits::new(&document);
        edits.retain_items(black_box(tools), |index, _| index % 2 == 0);
        edits.apply()
    });
}

/// A listing of 200 tools as one event, in chunks of 4 KiB.
#[divan::bench]
fn frame_events(bencher: Bencher<'_, '_>) {
    let mut stream = Vec::new();
    sse::event(&mut stream, &listing(200));
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut framer = sse::Framer::new(1 << 20);
        let mut count = 0;
        for chunk in stream.chunks(4096) {
            framer.push(chunk);
            count += framer.by_ref().count();
        }
        count
    });
}
