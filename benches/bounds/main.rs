//! What the most expensive body that we know of costs each rung, beside an honest body of the same size: instructions by
//! valgrind's callgrind, or with `--time` the least of five times. `cargo bench --bench bounds`; ends with an error where one
//! costs more than ten honest ones.

mod bodies;
#[path = "../callgrind/mod.rs"]
mod callgrind;
mod record;
#[path = "../../fuzz/src/world.rs"]
#[allow(dead_code, reason = "the fuzz targets use the rest of it")]
mod world;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis::exchange::{Event, Exchange, Next, Now, Reply, Step};
use portcullis::gates::Ruling;
use portcullis::ladder::Head;
use portcullis::ladder::head::{Attributes, Modes};
use portcullis::message::headers::{Header, Headers};
use portcullis::protocol::version::CURRENT;

use bodies::{Arm, Measured};
use world::{NOW, World};

/// How many honest bodies a hostile one may cost.
const MOST: f64 = 10.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--arm", rung, name] => {
            let arm = bodies::arms().into_iter().find(|arm| (arm.rung, arm.name) == (rung, name)).expect("an arm");
            run(&arm);
            ExitCode::SUCCESS
        }
        [] => report("instructions", "", instructions),
        ["--rung", part] => report("instructions", part, instructions),
        ["--time"] => report("microseconds", "", time),
        _ => panic!("expected nothing, --rung PART_OF_ITS_NAME or --time, got {arguments:?}"),
    }
}

/// Prints what each arm of the rungs whose names hold `part` costs.
fn report(unit: &str, part: &str, cost: fn(&Arm) -> f64) -> ExitCode {
    let arms: Vec<Arm> = bodies::arms().into_iter().filter(|arm| arm.rung.contains(part)).collect();
    assert!(!arms.is_empty(), "expected a part of a rung's name, got {part:?}");
    println!("{:<46} {unit:>14} honest ones", "a body of 1 MiB");
    let (mut honest, mut worst) = (1.0, 0.0);
    for arm in arms {
        let cost = cost(&arm);
        if arm.honest {
            println!("{}", arm.rung);
            honest = cost;
        }
        worst = f64::max(worst, cost / honest);
        println!("  {:<44} {cost:>14.0} {:>11.2}", arm.name, cost / honest);
    }
    println!("the worst costs {worst:.2} honest ones; {MOST} may be");
    if worst > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn time(arm: &Arm) -> f64 {
    let least = (0..5).map(|_| run(arm)).min().expect("five runs");
    least.as_secs_f64() * 1e6
}

#[allow(clippy::cast_precision_loss, reason = "figures are for people")]
fn instructions(arm: &Arm) -> f64 {
    callgrind::count(&format!("bounds {} {}", arm.rung, arm.name), &["--arm", arm.rung, arm.name]) as f64
}

/// Everything but what is measured, then that, once.
fn run(arm: &Arm) -> Duration {
    let body = (arm.body)();
    let gates = match arm.measured {
        Measured::Gate(rule) => format!("  gates: [{{name: rule, cel: '{rule}'}}]\n  limits:"),
        _ => "  limits:".to_owned(),
    };
    let limits = "{request: 64KiB, listing: 64KiB, answer: 128KiB, depth: 16}";
    let edits = [
        ("  limits:", gates.as_str()),
        (limits, "{request: 2MiB, listing: 2MiB, answer: 2MiB}"),
        ("  capability_scopes: {\"tool:update\": [cases:write]}\n", ""),
    ];
    let mut world = World::with(&edits, record::recorded(arm.tools));
    world.begin(true);
    let now = Now { instant: Instant::now(), unix: NOW };
    let mut exchange = Exchange::new(Arc::clone(&world.snapshot), "measured".to_owned(), now);
    let caller = world.caller(r#""email":"ana@acme.com","email_verified":true,"scope":"mcp""#, NOW + 3600);
    exchange.step(Event::RequestHeaders(head(arm.method, &arm.named)), now);
    exchange.step(Event::Identity(Ok(caller)), now);
    match arm.measured {
        Measured::Claims => {
            let claims = String::from_utf8(body).expect("text");
            let work = || world.server().authenticator.vouched(&claims, NOW);
            let (caller, took) = measured(work);
            assert!(caller.is_ok(), "{}: {caller:?}", arm.name);
            took
        }
        Measured::Request => {
            let (step, took) = measured(|| exchange.step(Event::RequestBody(body), now));
            arm.expect(&step);
            took
        }
        Measured::Gate(_) => {
            let step = exchange.step(Event::RequestBody(body), now);
            assert_eq!(step.next, Next::Ask, "{}", arm.name);
            asked(&exchange).1
        }
        Measured::Answer(kind) => {
            let step = exchange.step(Event::RequestBody(arm.request()), now);
            assert_eq!(step.next, Next::Wait, "{}: {step:?}", arm.name);
            let headers = made(&[(":status", "200"), ("content-type", kind)]);
            exchange.step(Event::ResponseHeaders { headers, ends: false }, now);
            let (step, took) = measured(|| exchange.step(Event::ResponseBody { bytes: body.into(), ends: true }, now));
            arm.expect(&step);
            took
        }
    }
}

fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    callgrind::collected(|| {
        let started = Instant::now();
        let done = work();
        (done, started.elapsed())
    })
}

fn asked(exchange: &Exchange) -> (Ruling, Duration) {
    let (server, question) = exchange.question().expect("a question");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    measured(|| runtime.block_on(server.gates.ask(&question)))
}

impl Arm {
    /// What is measured must be what its name says, and not an early refusal where none is meant.
    fn expect(&self, step: &Step) {
        let refused = step.replies.iter().find_map(|reply| match reply {
            Reply::Immediate(immediate) => Some(immediate.verdict.reason_text().to_owned()),
            _ => None,
        });
        assert_eq!(refused.as_deref(), self.refused, "{}", self.name);
    }
}

fn head(method: &str, name: &str) -> Head {
    let mut pairs = vec![
        (":method", "POST"),
        (":path", "/mcp"),
        (":authority", "mcp.acme.com"),
        (":scheme", "https"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", CURRENT),
        ("mcp-method", method),
    ];
    if !name.is_empty() {
        pairs.push(("mcp-name", name));
    }
    let attributes = Attributes {
        route: Some("cases".into()),
        jwt_payloads: vec![("acme".to_owned(), "{}".to_owned())],
        ..Attributes::default()
    };
    Head { headers: made(&pairs), attributes, ends: false, modes: Modes::Whole }
}

fn made(pairs: &[(&str, &str)]) -> Headers {
    Headers::new(pairs.iter().map(|(name, value)| Header::new(name, value.as_bytes())).collect())
}
