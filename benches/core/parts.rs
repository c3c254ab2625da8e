//! The parts of the core, each with what it works on made beforehand: what is counted, and in which allocations are.

use portcullis::ladder::{answer, envelope, listing, message};
use portcullis::message::json::{Document, Limits};
use portcullis::protocol::Method;
use serde_json::Value;

use crate::setting::{self, Size, USUAL, call};
use crate::world::{Events, World};

pub(crate) const KIB: usize = 1024;
pub(crate) const LIMITS: Limits = Limits { depth: 64, nodes: 1 << 18 };

/// Rungs 9 and 10 on a body of 1 KiB that was read.
pub(crate) fn envelope() -> impl FnMut() {
    let world = World::of(USUAL);
    let sent = call(0, KIB);
    let head = world.events(&sent, b"").head;
    let document = Document::read(sent.to_string().into_bytes(), LIMITS).expect("good JSON");
    move || {
        let message = message::message(&document).expect("a request");
        envelope::check(world.server(), &head, &message).expect("a good envelope");
    }
}

/// A call of a tool that the caller may use (0) or may not (1), and its answer, each of 1 KiB.
pub(crate) fn events(world: &World, tool: usize) -> impl FnMut() -> Events {
    let (sent, answer): (Value, Vec<u8>) = (call(tool, KIB), setting::answer(KIB));
    move || world.events(&sent, &answer)
}

/// Listings of so many tools, for [`filter`]: the same bytes again and again, or spelled otherwise than the last each time,
/// so that every definition is compared.
pub(crate) fn listings(tools: usize, respelled: bool) -> impl FnMut() -> Vec<u8> {
    let bytes = setting::listing(tools);
    let text = String::from_utf8(bytes.clone()).expect("text");
    let other = text.replace(r#""inputSchema":"#, r#""inputSchema": "#).into_bytes();
    let mut turn = [bytes.clone(), if respelled { other } else { bytes }].into_iter().cycle();
    move || turn.next().expect("it goes round")
}

/// Rungs 18 and 19 on a listing of which every second entry goes: read, filtered, spliced.
pub(crate) fn filter(tools: usize) -> impl FnMut(Vec<u8>) -> Vec<u8> {
    let world = World::of(Size { tools, ..USUAL });
    let caller = world.cached(&world.authorization);
    move |bytes| {
        let document = answer::read(world.server(), bytes).expect("good JSON");
        let result = document.root().get("result").expect("a result");
        let now = world.now.instant;
        let filtered =
            listing::filter(world.server(), &caller.principal, Method::ToolsList, &document, result, now, None);
        let filtered = filtered.expect("a listing");
        assert_eq!(filtered.hidden, tools / 2);
        filtered.bytes
    }
}
