//! The reader, the canonical form, splicing, event framing and screening on messages of usual sizes, with their allocations.
//!
//! Beside the reader stands another that also looks at every byte and unescapes every text, but keeps nothing.

#[path = "message/strict.rs"]
mod strict;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use portcullis::message::json::{Document, Limits};
use portcullis::message::splice::Edits;
use portcullis::message::{sse, write};
use portcullis::screen::addressed;
use portcullis::screen::config::DetectorsSource;
use portcullis::screen::{Detectors, Found};

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

/// `read`'s budget is twice this: sonic-rs on the same bytes, which it checks to be UTF-8, with a visitor of all values.
#[divan::bench(args = [1 << 10, 64 << 10])]
fn read_by_sonic(bencher: Bencher<'_, '_>, size: usize) {
    let bytes = call(size);
    assert!(strict::sonic(&bytes) > 0);
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| strict::sonic(black_box(&bytes)));
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

/// A log of small events, one in each chunk as a server writes them, or in chunks of 16 KiB as a busy one's arrive.
#[divan::bench(args = [1, 16 << 10])]
fn frame_small_events(bencher: Bencher<'_, '_>, chunk: usize) {
    const EVENT: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"looked through the cases of the last month"}}"#;
    let mut one = Vec::new();
    sse::event(&mut one, EVENT);
    let (stream, chunk) = (one.repeat(1000), chunk.max(one.len()));
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut framer = sse::Framer::new(1 << 20);
        let mut count = 0;
        for chunk in stream.chunks(chunk) {
            framer.push(chunk);
            count += framer.by_ref().count();
        }
        assert_eq!(count, 1000);
    });
}

/// An answer of 256 KiB whose text is `sentence` again and again.
fn answered(sentence: &str) -> Document {
    let text = sentence.repeat((256 << 10) / sentence.len());
    document(format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#).into_bytes())
}

/// Screening of an answer in which nothing is to be found: plain ASCII (budget 1 GB/s), the same with escapes, and text in
/// other scripts (budget 300 MB/s).
#[divan::bench(args = [
    "Printer does not answer since Monday; the case is open, see http://example.com/cases/17. ",
    r#"Printer does not answer\nsince \"Monday\"; the case is open. "#,
    "Der Drucker antwortet nicht, Größe überprüfen, Übergabe heute. ",
    "プリンターが月曜日から応答しません。",
])]
fn screen_clean(bencher: Bencher<'_, '_>, sentence: &str) {
    screen(bencher, sentence);
}

/// Text made to be looked at twice: beginnings of phrases without their ends, and an invisible character that a language
/// needs at every second place.
#[divan::bench(args = [
    "<important ",
    "ignore all previous ",
    "do not tell the ",
    "می\u{200c}خواهم ",
])]
fn screen_hostile(bencher: Bencher<'_, '_>, sentence: &str) {
    screen(bencher, sentence);
}

fn screen(bencher: Bencher<'_, '_>, sentence: &str) {
    let (detectors, answer) =
        (Detectors::compile(&DetectorsSource::default()).expect("no patterns"), answered(sentence));
    assert_eq!(detectors.scan(answer.root()), Found::default());
    bencher
        .counter(BytesCount::new(answer.text().len()))
        .bench_local(|| black_box(&detectors).scan(black_box(answer.root())));
}

/// The first look alone, which tells whether single strings need one.
#[divan::bench(args = ["Printer does not answer since Monday. ", "<important "])]
fn screen_first_look(bencher: Bencher<'_, '_>, sentence: &str) {
    let text = sentence.repeat((256 << 10) / sentence.len());
    bencher.counter(BytesCount::new(text.len())).bench_local(|| addressed::may_contain(black_box(&text)));
}
