//! A changed configuration is taken whole or not at all, and no call fails over it.

mod many;
mod streams;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::Connection;
use crate::support::{Stack, fixture, wait_for};

/// Generous: the files are looked at 250 ms after they changed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Readers may search, and see it.
pub(super) const SEARCHERS: &str = "roles: {reader: [cases:read], editor: [cases:read, cases:write]}\nrules:\n- {match: {domain: acme.com}, role: reader}\n- {match: {claim: {groups: case-editors}}, role: editor}\n";
/// The same people may update and do not see the search.
pub(super) const UPDATERS: &str = "roles: {reader: [cases:write], searcher: [cases:read]}\nrules:\n- {match: {domain: acme.com}, role: reader}\n- {match: {sub: nobody}, role: searcher}\n";

/// Waits until the log says this so many times.
#[track_caller]
pub(super) fn told(stack: &Stack, what: &str, times: usize) {
    let log = || fs::read_to_string(stack.dir.path().join("portcullis.log")).unwrap_or_default();
    let said = wait_for(PATIENCE, || (log().matches(what).count() >= times).then_some(()));
    assert!(said.is_some(), "expected {what:?} {times} times in the log:\n{}", log());
}

/// Waits until the generation of this number is in force.
#[track_caller]
pub(super) fn in_force(stack: &Stack, generation: u64) {
    told(stack, &format!("\"generation\":{generation},"), 1);
}

/// Replaces a file in one step, as whoever means it atomically does.
pub(super) fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).expect("written");
    fs::rename(beside, path).expect("renamed");
}

/// The tools that a listing shows.
fn listed(reply: &Value) -> Vec<String> {
    let tools = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("expected a listing, got {reply}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Which generation an answer is of, by everything that it shows of it.
fn generation_of(number: usize, reply: &crate::support::Reply) -> usize {
    assert_eq!((reply.status, reply.cut), (200, false), "{reply}");
    let answer = reply.json();
    match number % 2 {
        0 => match listed(&answer).join(" ").as_str() {
            "search_cases" => 1,
            "update_case" => 2,
            other => panic!("a listing of no generation: {other}"),
        },
        _ if answer["result"]["structuredContent"]["count"] == 1 => 1,
        _ if answer["error"]["data"]["error"] == "policy.not_permitted" => 2,
        _ => panic!("an answer of no generation: {answer}"),
    }
}

#[test]
fn ten_thousand_requests_a_flip_and_a_broken_file() {
    const CALLERS: usize = 8;
    const EACH: usize = 1_250;
    let stack = Stack::start();
    let policy = stack.dir.path().join("policy.yaml");
    replace(&policy, SEARCHERS);
    in_force(&stack, 2);
    let token = stack.reader();
    let done = AtomicUsize::new(0);
    let requests = [
        fixture::post(&fixture::rpc("tools/list", json!({}))).bearer(&token),
        fixture::post(&fixture::search()).bearer(&token),
    ];
    let call = || {
        let mut connection = Connection::open(stack.envoy.port).expect("a connection");
        let mut seen = Vec::with_capacity(EACH);
        for number in 0..EACH {
            let reply = connection.send(&requests[number % 2]).expect("a reply to every request");
            seen.push(generation_of(number, &reply));
            done.fetch_add(1, Ordering::SeqCst);
        }
        seen
    };
    let seen: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        let at = |part: usize| {
            while done.load(Ordering::SeqCst) < CALLERS * EACH * part / 4 && callers.iter().any(|c| !c.is_finished()) {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        at(1);
        replace(&policy, UPDATERS);
        in_force(&stack, 3);
        at(3);
        // Half a file: nothing of it counts, and it says where it is wrong.
        replace(&policy, "roles: {reader: [cases:read]}\nrules:\n- {match: {domain: acme.com}, rol: reader}\n");
        told(&stack, "what was in force stays in force", 1);
        callers.into_iter().map(|caller| caller.join().expect("a caller")).collect()
    });
    for one in &seen {
        assert!(one.is_sorted(), "whoever saw the new generation never sees the old one again");
    }
    let all: Vec<usize> = seen.into_iter().flatten().collect();
    let old = all.iter().filter(|generation| **generation == 1).count();
    assert_eq!(all.len(), CALLERS * EACH);
    assert!(old > 1_000 && old < 9_000, "both generations answered under load: {old} of the old one");
    told(&stack, "policy.yaml:3:31", 1);
    // The server was never listed more often than the interval asks for, reloads or not.
    assert!(stack.upstream.own_count("tools/list") <= 4, "{}", stack.upstream.own_count("tools/list"));
    assert_eq!(stack.idp.fetches(), 1, "no reload fetches keys that are there");
    // What is repaired is taken.
    replace(&policy, SEARCHERS);
    in_force(&stack, 4);
    stack.allows(&requests[1]);
}

#[test]
fn a_configmap_that_swaps_its_symlink_is_taken_each_time() {
    let stack = Stack::start();
    let at = |name: &str| stack.dir.path().join(name);
    // The volume as Kubernetes lays it out: names that lead through `..data`.
    for (version, policy) in [("..v1", SEARCHERS), ("..v2", UPDATERS), ("..v3", SEARCHERS), ("..v4", UPDATERS)] {
        fs::create_dir(at(version)).expect("a folder");
        fs::write(at(version).join("policy.yaml"), policy).expect("a policy");
    }
    let swap = |version: &str| {
        symlink(version, at("..data_tmp")).expect("a symlink");
        fs::rename(at("..data_tmp"), at("..data")).expect("renamed");
    };
    swap("..v1");
    symlink("..data/policy.yaml", at("policy.link")).expect("a symlink");
    fs::rename(at("policy.link"), at("policy.yaml")).expect("renamed");
    in_force(&stack, 2);
    let search = stack.request(&fixture::search());
    stack.allows(&search);
    for (generation, version) in [(3, "..v2"), (4, "..v3"), (5, "..v4")] {
        swap(version);
        in_force(&stack, generation);
        if generation == 4 { drop(stack.allows(&search)) } else { drop(stack.refuses(&search, "policy.not_permitted")) }
    }
}

#[test]
fn sighup_reloads_and_what_needs_a_restart_is_refused_whole() {
    let stack = Stack::start();
    let file = stack.dir.path().join("portcullis.yaml");
    let text = fs::read_to_string(&file).expect("the configuration");
    stack.portcullis.signal(Signal::SIGHUP);
    in_force(&stack, 2);
    // Another listener, and in the same file a server that is gone: neither counts.
    let socket = stack.dir.path().join("ext_proc.sock").display().to_string();
    let moved = text.replace(&socket, "/nonexistent/other.sock").replace("mode: enforce", "mode: shadow");
    replace(&file, &moved);
    told(&stack, "restart to listen there", 1);
    stack.refuses(&stack.request(&fixture::call("update_case", json!({"id": "7"}))), "policy.not_permitted");
    // What is merely sized at the start is told, the rest is in force.
    let sized =
        text.replace("unmatched: deny", "unmatched: deny\nworker_threads: 3").replace("mode: enforce", "mode: shadow");
    replace(&file, &sized);
    in_force(&stack, 3);
    told(&stack, "worker_threads was changed, which takes a restart", 1);
    stack.allows(&stack.request(&fixture::call("update_case", json!({"id": "7"}))));
    // Servers come and go; each is counted under its own name.
    let renamed = text.replace("- name: cases", "- name: tickets");
    replace(&file, &renamed);
    in_force(&stack, 4);
    let before = stack.portcullis.audited();
    stack.send(&stack.request(&fixture::call("export_cases", json!({}))));
    assert_eq!(stack.portcullis.audit_of("policy.unpriced", before)["server"], "tickets");
}

#[test]
fn a_record_that_grows_is_served_without_a_refused_call() {
    let stack = Stack::start();
    let search = stack.request(&fixture::search());
    stack.allows(&search);
    let listings = stack.upstream.own_count("tools/list");
    // A tool more: what is known of the others goes on, and the new one is listed when it is first called.
    let tool = json!({"name": "count_cases", "description": "Counts.", "inputSchema": {"type": "object"}});
    let offered = tool.clone();
    stack.upstream.script_own(move |seen| crate::support::mcp::answer_offering(seen, std::slice::from_ref(&offered)));
    fixture::write_files(stack.dir.path(), &[tool]);
    in_force(&stack, 2);
    stack.allows(&search);
    assert_eq!(stack.upstream.own_count("tools/list"), listings, "what was known was not listed again");
    stack.allows(&stack.request(&fixture::call("count_cases", json!({}))));
    assert_eq!(stack.upstream.own_count("tools/list"), listings + 1);
}
