//! What the most expensive body that we know of costs each rung, beside an honest body of the same size: instructions by
//! valgrind's callgrind, or with `--time` the least of five times. `cargo bench --bench bounds`; ends with an error where one
//! costs more than ten honest ones.

mod bodies;
#[path = "../../fuzz/src/world.rs"]
#[allow(dead_code, reason = "the fuzz targets use the rest of it")]
mod world;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
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
        ["--arm", name] => {
            let arm = bodies::arms().into_iter().find(|arm| arm.name == name).expect("an arm");
            run(&arm);
            ExitCode::SUCCESS
        }
        [] => report("instructions", instructions),
        ["--time"] => report("microseconds", time),
        _ => panic!("expected nothing or --time, got {arguments:?}"),
    }
}

fn report(unit: &str, cost: fn(&Arm) -> f64) -> ExitCode {
    println!("{:<44} {unit:>14} {:>8} honest ones", "a body of 1 MiB", "");
    let (mut honest, mut worst) = (1.0, 0.0);
    for arm in bodies::arms() {
        let cost = cost(&arm);
        if arm.honest {
            println!("{}", arm.rung);
            honest = cost;
        }
        worst = f64::max(worst, cost / honest);
        println!("  {:<42} {cost:>14.0} {:>8.2}", arm.name, cost / honest);
    }
    println!("the worst costs {worst:.2} honest ones; {MOST} may be");
    if worst > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn time(arm: &Arm) -> f64 {
    let least = (0..5).map(|_| run(arm)).min().expect("five runs");
    least.as_secs_f64() * 1e6
}

fn instructions(arm: &Arm) -> f64 {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("callgrind.bounds");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*bounds*measured*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(env::current_exe().expect("this program"))
        .args(["--arm", arm.name])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "expected valgrind to run {}; is it installed?", arm.name);
    let profile = fs::read_to_string(&file).expect("callgrind's profile");
    let totals = profile.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    totals.expect("a line `totals:`")
}

/// Everything but what is measured, then that, once.
fn run(arm: &Arm) -> Duration {
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
    let mut world = World::with(&edits, bodies::RECORDED);
    world.begin(true);
    let now = Now { instant: Instant::now(), unix: NOW };
    let mut exchange = Exchange::new(Arc::clone(&world.snapshot), "measured".to_owned(), now);
    let caller = world.caller(r#""email":"ana@acme.com","email_verified":true,"scope":"mcp""#, NOW + 3600);
    exchange.step(Event::RequestHeaders(head(arm.method, &arm.named)), now);
    exchange.step(Event::Identity(Ok(caller)), now);
    match &arm.measured {
        Measured::Request => {
            let (step, took) = measured(&mut exchange, Event::RequestBody(arm.body.clone()), now);
            arm.expect(&step);
            took
        }
        Measured::Gate(_) => {
            let step = exchange.step(Event::RequestBody(arm.body.clone()), now);
            assert_eq!(step.next, Next::Ask, "{}", arm.name);
            asked(&exchange).1
        }
        Measured::Answer(kind) => {
            let step = exchange.step(Event::RequestBody(arm.request()), now);
            assert_eq!(step.next, Next::Wait, "{}: {step:?}", arm.name);
            let headers = made(&[(":status", "200"), ("content-type", kind)]);
            exchange.step(Event::ResponseHeaders { headers, ends: false }, now);
            let (step, took) =
                measured(&mut exchange, Event::ResponseBody { bytes: arm.body.clone(), ends: true }, now);
            arm.expect(&step);
            took
        }
    }
}

#[inline(never)]
fn measured(exchange: &mut Exchange, event: Event, now: Now) -> (Step, Duration) {
    let started = Instant::now();
    let step = exchange.step(event, now);
    (step, started.elapsed())
}

fn asked(exchange: &Exchange) -> (Ruling, Duration) {
    let (server, question) = exchange.question().expect("a question");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut work = Box::pin(async move { server.gates.ask(&question).await });
    measured_gates(&runtime, &mut work)
}

#[inline(never)]
fn measured_gates(
    runtime: &tokio::runtime::Runtime,
    work: &mut (impl Future<Output = Ruling> + Unpin),
) -> (Ruling, Duration) {
    let started = Instant::now();
    let ruling = runtime.block_on(work);
    (ruling, started.elapsed())
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
