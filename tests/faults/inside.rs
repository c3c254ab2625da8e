//! What happens to Portcullis from within and around: its callers, its files, its clock.

use std::cell::RefCell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::json;
use tempfile::TempDir;

use super::load::{Kind, request};
use super::{Fault, Metric, World};
use crate::support::client::Connection;
use crate::support::portcullis::Setting;
use crate::support::{Answer, mcp, root};

/// Clients that ask for five megabytes and read nothing.
const UNREAD: u64 = 100;

pub(crate) fn unread_clients() -> Fault {
    // Small buffers towards the callers: the answers stand still between Portcullis and Envoy, not in the kernel.
    let listener = "    address: {socket_address: {address: 0.0.0.0, port_value: 8080}}\n";
    let small = format!(
        "{listener}    per_connection_buffer_limit_bytes: 32768\n    socket_options: [{{level: 1, name: 7, int_value: 8192, state: STATE_PREBIND}}]\n"
    );
    let world = World::with(&[], &[(listener, &small)]);
    let comment = format!(": {}\n\n", "x".repeat(20_000));
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [], "structuredContent": {"count": 1}}});
    let events = (0..255).fold(Answer::sse(), |answer, _| answer.piece(&comment));
    let events = events.piece(format!("data: {result}\n\n")).end(&[]);
    world
        .stack
        .upstream
        .script(move |seen| if seen.header("x-big").is_empty() { mcp::answer(seen) } else { events.clone() });
    let callers = Rc::new(RefCell::new(Vec::new()));
    let of_lift = Rc::clone(&callers);
    let inject = move |world: &mut World| {
        let token = world.stack.reader();
        let open = |number: u64| {
            let mut caller = Connection::open_narrow(world.stack.envoy.port).expect("a connection");
            // Numbers that no other call has.
            let greedy = request((1 << 40) + number * 4, &token).add("x-big", "1");
            caller.stream.write_all(&greedy.bytes()).expect("it is sent");
            caller
        };
        assert_eq!(Kind::of(1 << 40), Kind::Allowed);
        callers.borrow_mut().extend((0..UNREAD).map(open));
    };
    let lift = move |_: &mut World| of_lift.borrow_mut().clear();
    Fault::new(
        "a hundred clients that never read",
        Metric::Envoy("http.edge.downstream_cx_active"),
        world,
        inject,
        lift,
    )
    .harmless()
    .once()
}

pub(crate) fn reloaded() -> Fault {
    let inject = |world: &mut World| {
        let policy = world.dir().join("policy.yaml");
        let good = fs::read_to_string(&policy).expect("policy.yaml");
        // A fault, which is not taken; then the same rules in other words, which are.
        for text in [format!("{good}rules: ["), format!("{good}# again\n")] {
            replace(&policy, &text);
            world.stack.portcullis.signal(Signal::SIGHUP);
            world.load().more(100, std::time::Duration::from_secs(2));
        }
    };
    let metric = Metric::Portcullis("portcullis_config_reloads_total", &["result=\"ok\""]);
    Fault::new("reloaded, and with a broken file", metric, World::with(&[], &[]), inject, |_| ()).harmless()
}

/// Replaces a file in one step.
pub(super) fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("next");
    fs::write(&beside, text).expect("written");
    fs::rename(beside, path).expect("renamed");
}

/// Refused for its token, though not as one that expired.
const NOT_YET: Metric = Metric::Portcullis("portcullis_decisions_total", &["reason=\"token.invalid\""]);
const EXPIRED: Metric = Metric::Portcullis("portcullis_decisions_total", &["reason=\"token.expired\""]);

/// The clock of the system jumps ahead, past the end of every token, and back again.
pub(crate) fn clock_ahead() -> Fault {
    let (world, clock) = with_clock();
    let of_lift = clock.clone();
    Fault::new(
        "clock jumps two hours ahead, and back",
        EXPIRED,
        world,
        move |_| clock.set("+7200"),
        move |_| {
            of_lift.set("+0");
        },
    )
}

/// The clock of the system jumps back, ahead of the time from which new tokens are valid; callers that are known stay so.
pub(crate) fn clock_back() -> Fault {
    let (world, clock) = with_clock();
    let (of_lift, mut number) = (clock.clone(), 1 << 40);
    let inject = move |world: &mut World| {
        clock.set("-7200");
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs();
        for jti in 0..20 {
            let token = world.stack.idp.token(&json!({"nbf": since, "jti": format!("{number}-{jti}")}));
            number += 4;
            let reply = request(number, &token).send(world.stack.envoy.port);
            assert_eq!(reply.status, 401, "a token that is not valid yet: {reply}");
        }
    };
    Fault::new("clock jumps two hours back, and ahead", NOT_YET, world, inject, move |_| of_lift.set("+0")).harmless()
}

/// The clock of a Portcullis, as a file says how far it is off.
#[derive(Clone)]
struct Clock(Rc<TempDir>);

impl Clock {
    fn file(&self) -> PathBuf {
        self.0.path().join("time")
    }

    fn set(&self, off: &str) {
        replace(&self.file(), off);
    }
}

/// A world in which the clock of Portcullis can be set; that of deadlines, which is monotonic, goes on as ever.
fn with_clock() -> (World, Clock) {
    let library = std::env::var_os("PORTCULLIS_LIBFAKETIME")
        .map_or_else(|| root().join(".tools/libfaketime.so.1"), PathBuf::from);
    assert!(
        library.exists(),
        "expected libfaketime at {}, found nothing there: run `make tools`, or name a libfaketime.so.1 in PORTCULLIS_LIBFAKETIME",
        library.display()
    );
    let clock = Clock(Rc::new(tempfile::tempdir().expect("a temporary directory")));
    clock.set("+0");
    let world = World::made(
        Setting::of(&[
            ("LD_PRELOAD", &library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", &clock.file().display().to_string()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]),
        |config, _| config,
        |edge, _| edge,
    );
    (world, clock)
}
