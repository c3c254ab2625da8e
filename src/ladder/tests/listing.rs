//! Rungs 19 and 20: what a caller is shown.

use std::time::Instant;

use super::reason;
use crate::identity::Caller;
use crate::ladder::testing::{INSTRUCTIONS, World, document, world};
use crate::ladder::{discover, listing};
use crate::protocol::Method;

/// The filtered listing of these entries, and how many were left out.
fn filtered(world: &World, caller: &Caller, method: Method, result: &str) -> (String, usize) {
    let document = document(&format!(r#"{{"result":{result}}}"#));
    let result = document.root().get("result").expect("a result");
    let found = listing::filter(world.server(), &caller.principal, method, &document, result, Instant::now(), None)
        .expect("a listing");
    let text = String::from_utf8(found.bytes).expect("UTF-8");
    (
        text.strip_prefix(r#"{"result":"#).and_then(|text| text.strip_suffix('}')).expect("the frame stays").to_owned(),
        found.hidden,
    )
}

#[test]
fn entries_stay_byte_for_byte_or_go() {
    let world = world(&[]);
    let search = r#"{ "name":"s\u0065arch","_meta":{"n":1.0,"big":9007199254740993} }"#;
    let update = r#"{"name":"update"}"#;
    let all = format!(
        r#"{{"nextCursor":"","tools":[ {update} , {search},{search},{{"name":"other"}}],"cacheScope":"public","x":[ 1 ]}}"#
    );
    let (reader, editor) = (world.reader(), world.editor());
    assert_eq!(
        filtered(&world, &reader, Method::ToolsList, &all),
        (format!(r#"{{"nextCursor":"","tools":[ {search},{search}],"cacheScope":"private","x":[ 1 ]}}"#), 2)
    );
    assert_eq!(
        filtered(&world, &editor, Method::ToolsList, &all),
        (format!(r#"{{"nextCursor":"","tools":[ {update} , {search},{search}],"cacheScope":"private","x":[ 1 ]}}"#), 1)
    );
    let nobody = world.caller("{}", &["mcp"], None);
    assert_eq!(
        filtered(&world, &nobody, Method::ToolsList, r#"{"tools":[{"name":"search"}]}"#),
        (r#"{"tools":[],"cacheScope":"private"}"#.into(), 1)
    );
    assert_eq!(
        filtered(&world, &reader, Method::ToolsList, r#"{"tools":[],"cacheScope":7}"#).0,
        r#"{"tools":[],"cacheScope":"private"}"#
    );
    // A missing scope does not hide.
    let narrow = world.caller(r#"{"groups":"editors"}"#, &["mcp"], None);
    assert_eq!(filtered(&world, &narrow, Method::ToolsList, &format!(r#"{{"tools":[{update}]}}"#)).1, 0);
}

#[test]
fn entries_that_cannot_be_recognised_go() {
    let world = world(&[]);
    for entry in [
        "7",
        "null",
        "[]",
        "{}",
        r#"{"name":1}"#,
        r#"{"Name":"search"}"#,
        r#"{"name":"search","NAME":"update"}"#,
        r#"{"name":"Search"}"#,
        r#"{"name":"triage"}"#,
        r#"{"title":"search"}"#,
    ] {
        let result = format!(r#"{{"tools":[{entry}]}}"#);
        assert_eq!(filtered(&world, &world.editor(), Method::ToolsList, &result).1, 1, "{entry}");
    }
}

#[test]
fn a_resource_stands_under_its_label_at_its_uri_and_every_cover_is_held() {
    let world = world(&[]);
    let (reader, editor) = (world.reader(), world.editor());
    let rows = [
        (Method::ResourcesList, r#"{"name":"index","uri":"cases://index"}"#, true, true),
        // Covered by the broad template as well, and by an entry of its own.
        (Method::ResourcesList, r#"{"name":"secret","uri":"cases://case/7"}"#, false, true),
        (Method::ResourcesList, r#"{"name":"index","uri":"cases://case/7"}"#, false, false),
        (Method::ResourcesList, r#"{"name":"index"}"#, false, false),
        (Method::ResourcesList, r#"{"name":"case","uri":"cases://case/1"}"#, false, false),
        (Method::ResourcesList, r#"{"name":"other","uri":"cases://index"}"#, false, false),
        (Method::TemplatesList, r#"{"name":"case","uriTemplate":"cases://case/{id}"}"#, true, true),
        (Method::TemplatesList, r#"{"name":"case","uriTemplate":"cases://{+id}"}"#, false, false),
        (Method::TemplatesList, r#"{"name":"case","uri":"cases://case/{id}"}"#, false, false),
    ];
    for (method, entry, of_reader, of_editor) in rows {
        let result = format!(r#"{{"{}":[{entry}]}}"#, method.listed_member().expect("a listing"));
        for (caller, seen) in [(&reader, of_reader), (&editor, of_editor)] {
            assert_eq!(filtered(&world, caller, method, &result).1 == 0, seen, "{entry} by {}", caller.principal);
        }
    }
}

#[test]
fn a_listing_without_its_list_is_unreadable() {
    let world = world(&[]);
    for result in ["{}", r#"{"tools":{}}"#, r#"{"tools":null}"#, r#"{"prompts":[]}"#, r#"{"tools":"search"}"#] {
        let document = document(result);
        let outcome = listing::filter(
            world.server(),
            &world.reader().principal,
            Method::ToolsList,
            &document,
            document.root(),
            Instant::now(),
            None,
        );
        assert_eq!(reason(&outcome), "answer.unreadable", "{result}");
    }
}

#[test]
fn discovery_is_held_to_the_record_and_to_what_is_spoken() {
    let world = world(&[]);
    let held = |result: &str| {
        let document = document(result);
        discover::hold(world.server(), &document, document.root())
            .map(|bytes| bytes.map(|bytes| String::from_utf8(bytes).expect("UTF-8")))
    };
    let good =
        format!(r#"{{"instructions":"{INSTRUCTIONS}","supportedVersions":["2026-07-28"],"cacheScope":"public"}}"#);
    assert_eq!(held(&good).expect("readable"), None);
    assert_eq!(held("{}").expect("readable"), None);
    for (result, expected) in [
        (r#"{"instructions":"Obey.","a":1}"#, r#"{"a":1,"cacheScope":"private"}"#),
        (r#"{"instructions":7}"#, r#"{"cacheScope":"private"}"#),
        (r#"{"instructions":null,"cacheScope":"public"}"#, r#"{"cacheScope":"private"}"#),
        (
            r#"{"supportedVersions":["2025-11-25", "2026-07-28"],"cacheScope":"private"}"#,
            r#"{"supportedVersions":["2026-07-28"],"cacheScope":"private"}"#,
        ),
        (r#"{"supportedVersions":["2099-01-01"]}"#, r#"{"supportedVersions":[],"cacheScope":"private"}"#),
    ] {
        assert_eq!(held(result).expect("readable").as_deref(), Some(expected), "{result}");
    }
    for result in
        [r#"{"supportedVersions":"2026-07-28"}"#, r#"{"supportedVersions":[1]}"#, r#"{"supportedVersions":null}"#]
    {
        assert_eq!(reason(&held(result)), "answer.unreadable", "{result}");
    }
}
