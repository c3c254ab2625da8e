//! The Python SDK's client.

use serde_json::json;

use super::{Gated, Scene, Story, assert_gated, assert_readers_story, script};
use crate::support::root;

fn run(scene: &Scene, kind: &str) -> serde_json::Value {
    let mut command = std::process::Command::new(root().join(".tools/bin/python"));
    command.arg(root().join("tests/clients/python/story.py"));
    script("python", command, scene, kind)
}

fn reader(json: bool) {
    let scene = Scene::start(json);
    let story: Story = serde_json::from_value(run(&scene, "story")).expect("a story");
    assert_readers_story(&scene, &story);
}

#[test]
fn over_json() {
    reader(true);
}

#[test]
fn over_server_sent_events() {
    reader(false);
}

#[test]
fn a_call_that_a_gate_refused_is_an_error_and_the_next_succeeds() {
    let (gate, scene) = Scene::gated();
    let told: Gated = serde_json::from_value(run(&scene, "gated")).expect("what the client saw");
    assert_gated(&scene, &gate, &told);
}

#[test]
fn an_older_client_learns_what_is_spoken_here() {
    let scene = Scene::start(true);
    let error = run(&scene, "older");
    assert_eq!((&error["code"], &error["data"]["supported"]), (&json!(-32022), &json!(["2026-07-28"])), "{error}");
    assert!(scene.server.reached().is_empty(), "{:?}", scene.server.reached());
}
