//! The forms in which a configuration comes, and what is none.

use serde_json::{Value, json};

use super::{EDGE, Path, SIDECAR, found, guarded, parsed, read};
use crate::doctor::{Check, examine};

#[test]
fn the_shipped_configurations_have_no_finding() {
    let mut guarded = guarded();
    assert_eq!(found(&parsed(EDGE), Some(&guarded)), []);
    guarded.passes = true;
    assert_eq!(found(&parsed(SIDECAR), Some(&guarded)), []);
}

#[test]
fn without_a_configuration_of_ours_the_locks_say_what_is_guarded() {
    assert_eq!(found(&parsed(EDGE), None), [("input.no_configuration", "--config".to_owned())]);
    let retried = EDGE.replace(
        "idle_timeout: 0s}\n                request_body",
        "idle_timeout: 0s, retry_policy: {}}\n                request_body",
    );
    assert!(found(&parsed(&retried), None).iter().any(|(id, _)| *id == "route.retry"));
}

/// `edge.yaml` as a dump has it, with `state` around its listener and its routes by RDS.
fn dump(edge: &str, state: &str) -> Value {
    let mut root = parsed(edge);
    let manager = root.pointer_mut("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config").expect("it");
    let routes = manager.as_object_mut().and_then(|own| own.remove("route_config")).expect("routes");
    manager["rds"] = json!({"route_config_name": "edge", "config_source": {"ads": {}}});
    let listener = root["static_resources"]["listeners"][0].take();
    let clusters: Vec<Value> = root["static_resources"]["clusters"]
        .as_array()
        .expect("clusters")
        .iter()
        .map(|own| json!({"cluster": own}))
        .collect();
    let of = |name: &str| format!("type.googleapis.com/envoy.admin.v3.{name}ConfigDump");
    let text = json!({"configs": [
        {"@type": of("Bootstrap"), "bootstrap": {"admin": root["admin"]}},
        {"@type": of("Clusters"), "dynamic_active_clusters": clusters},
        {"@type": of("Listeners"), "dynamic_listeners": [{"name": "edge", state: {"listener": listener}}]},
        {"@type": of("Routes"), "dynamic_route_configs": [{"route_config": routes}]},
    ]});
    parsed(&text.to_string())
}

#[test]
fn a_dump_with_everything_by_xds_reads_the_same() {
    for state in ["active_state", "warming_state"] {
        assert_eq!(found(&dump(EDGE, state), Some(&guarded())), []);
        let open = dump(&EDGE.replace("failure_mode_allow: false", "failure_mode_allow: true"), state);
        let findings = found(&open, Some(&guarded()));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].0, "ext_proc.failure_mode_allow");
        assert!(findings[0].1.starts_with("dynamic_listeners[edge].filter_chains[0]"), "{findings:?}");
        let retried =
            dump(&EDGE.replace("cluster: cases, timeout: 0s", "cluster: cases, retry_policy: {}, timeout: 0s"), state);
        assert!(found(&retried, Some(&guarded())).iter().all(|(id, place)| {
            *id == "route.retry" && place.starts_with("dynamic_route_configs[edge].virtual_hosts[edge].routes[cases")
        }));
    }
}

#[test]
fn other_spellings_of_the_same_fault_are_found() {
    for spelling in
        ["failure_mode_allow: yes", "failure_mode_allow: ON", "failureModeAllow: true", "failure_mode_allow: \"true\""]
    {
        let findings = found(&parsed(&EDGE.replace("failure_mode_allow: false", spelling)), Some(&guarded()));
        assert_eq!(findings.len(), 1, "{spelling}: {findings:?}");
        assert_eq!(findings[0].0, "ext_proc.failure_mode_allow", "{spelling}");
    }
    // As the number of the enum's value: BUFFERED_PARTIAL.
    let numbered = EDGE.replace("request_body_mode: BUFFERED", "request_body_mode: 3");
    assert!(found(&parsed(&numbered), Some(&guarded())).iter().any(|(id, _)| *id == "ext_proc.request_mode"));
    let right = EDGE.replace("request_body_mode: BUFFERED", "requestBodyMode: 2");
    assert_eq!(found(&parsed(&right), Some(&guarded())), []);
}

#[test]
fn a_typed_struct_is_what_it_carries() {
    let mut root = parsed(EDGE);
    let filter = root
        .pointer_mut("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/1/typed_config")
        .expect("it");
    filter["failure_mode_allow"] = true.into();
    let mut carried = filter.take();
    let kind = carried.as_object_mut().and_then(|own| own.remove("@type")).expect("a type");
    *filter = json!({"@type": "type.googleapis.com/xds.type.v3.TypedStruct", "type_url": kind, "value": carried});
    let findings = found(&parsed(&root.to_string()), Some(&guarded()));
    assert_eq!(findings.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["ext_proc.failure_mode_allow"]);
}

#[test]
fn each_of_two_listeners_and_two_chains_is_looked_at() {
    let mut root = parsed(EDGE);
    let second = parsed(&EDGE.replace("failure_mode_allow: false", "failure_mode_allow: true"));
    let mut listener = second["static_resources"]["listeners"][0].clone();
    listener["name"] = "second".into();
    let chain = listener["filter_chains"][0].clone();
    listener["default_filter_chain"] = chain;
    root["static_resources"]["listeners"].as_array_mut().expect("a list").push(listener);
    let places: Vec<String> = found(&root, Some(&guarded())).into_iter().map(|(_, place)| place).collect();
    assert_eq!(places.len(), 2, "{places:?}");
    assert!(
        places[0].contains("listeners[second].filter_chains[0]")
            && places[1].contains("listeners[second].default_filter_chain"),
        "{places:?}"
    );
}

#[test]
fn a_verdict_by_address_guards_the_routes_that_may_take_it() {
    let mut guarded = guarded();
    let cases =
        crate::ladder::server::Matcher::Authority { authorities: vec!["mcp.example.com".into()], path: "/mcp".into() };
    guarded.servers[0].matcher = cases;
    assert_eq!(found(&parsed(EDGE), Some(&guarded)), []);
    let unlocked = EDGE.replace("string_match: {exact: cases}", "string_match: {exact: others}");
    assert!(found(&parsed(&unlocked), Some(&guarded)).iter().all(|(id, _)| *id == "route.lock_server"));
}

#[test]
fn what_cannot_be_read_says_where() {
    let told = |name: &str, text: &str| {
        let faults = read(Path::new(name), text).expect_err("a fault");
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let syntax = told("envoy.yaml", "static_resources:\n  listeners: [\n");
    assert!(syntax.starts_with("envoy.yaml:") && syntax.contains("expected YAML"), "{syntax}");
    let json = told("envoy.json", "{\"static_resources\":\n  {]}");
    assert!(json.starts_with("envoy.json:2:4: expected JSON"), "{json}");
    let twice = told("envoy.json", r#"{"admin": {}, "admin": {}}"#);
    assert!(twice.contains("each key once"), "{twice}");
    let twice = told(
        "envoy.yaml",
        &EDGE.replace("failure_mode_allow: false", "failure_mode_allow: true\n              failure_mode_allow: false"),
    );
    assert!(twice.contains("each key once"), "{twice}");
    let other = told("portcullis.yaml", "listen: {}\nservers: []\n");
    assert!(other.contains("expected an Envoy bootstrap") && other.contains("`listen`, `servers`"), "{other}");
    for nothing in ["", "[]", "null", "text", "{}"] {
        assert!(told("x.yaml", nothing).contains("expected an Envoy bootstrap"), "{nothing}");
    }
}

#[test]
fn hostile_inputs_end_soon_and_find_no_good_in_nothing() {
    let mut bomb = String::from("static_resources:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("  a{level}: &a{level} [{below}]\n"));
    }
    let faults = read(Path::new("bomb.yaml"), &bomb).expect_err("a bomb");
    assert!(faults[0].message.contains("aliases"), "{faults:?}");
    let cyclic = read(Path::new("cycle.yaml"), "static_resources: &a\n  listeners: *a\n").expect_err("a cycle");
    assert!(cyclic[0].message.contains("inside its own anchor"), "{cyclic:?}");
    let deep = format!("{}{}", "{\"configs\":".repeat(5000), "1");
    assert!(read(Path::new("deep.json"), &deep).is_err());
    let long = " ".repeat(super::super::MAX_BYTES + 1);
    assert!(read(Path::new("long.yaml"), &long).expect_err("too long")[0].message.contains("at most"));
    // Wrong shapes everywhere: nothing panics, and an Envoy that serves nothing is told.
    for shape in
        ["1", "\"x\"", "[[1]]", "[{}]", "{\"name\": [1]}", "[{\"name\": \"x\", \"filter_chains\": {\"filters\": 3}}]"]
    {
        let text = format!("{{\"static_resources\": {{\"listeners\": {shape}, \"clusters\": {shape}}}}}");
        let findings = found(&parsed(&text), Some(&guarded()));
        assert!(findings.iter().any(|(id, _)| *id == "input.no_listener"), "{shape}: {findings:?}");
    }
}

#[test]
fn any_wrong_shape_of_any_field_is_looked_at_without_a_panic() {
    let root = parsed(EDGE);
    let mut pointers = Vec::new();
    every(&root, String::new(), &mut pointers);
    assert!(pointers.len() > 300, "{}", pointers.len());
    let wrong = [json!(null), json!(-1), json!("x"), json!([]), json!({"x": [{}]})];
    for (pointer, wrong) in pointers.iter().zip(wrong.iter().cycle()) {
        let mut bent = root.clone();
        *bent.pointer_mut(pointer).expect("it is there") = wrong.clone();
        let _ = examine(&bent, Some(&guarded()), Some(&bent));
    }
}

fn every(value: &Value, pointer: String, all: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| every(item, format!("{pointer}/{at}"), all));
        }
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            every(item, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), all);
        }),
        _ => {}
    }
    all.push(pointer);
}

#[test]
fn ids_are_unique() {
    let ids: std::collections::HashSet<&str> = Check::ALL.iter().map(|check| check.id()).collect();
    assert_eq!(ids.len(), Check::ALL.len());
}

#[test]
fn another_processor_on_another_listener_is_not_taken_for_ours() {
    let mut root = parsed(EDGE);
    let other = r#"{"name": "side", "filter_chains": [{"filters": [{"name": "http", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "http_filters": [{"name": "theirs", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
            "grpc_service": {"envoy_grpc": {"cluster_name": "theirs"}}, "failure_mode_allow": true}}]}}]}]}"#;
    let listeners = root["static_resources"]["listeners"].as_array_mut().expect("a list");
    listeners.push(serde_json::from_str(other).expect("JSON"));
    assert_eq!(found(&root, Some(&guarded())), []);
}
