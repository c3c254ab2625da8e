//! What a stream of events loses on the way: to its first event, and to each.
//!
//! The upstream writes into each event when it sent it, on the clock of this process, where the client is too.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::arms::{Arm, Stage};
use crate::setting;
use crate::statistics::{Estimate, difference, median};
use crate::support::fixture;
use crate::support::http1::{chunk, read_request};

/// Events of one stream before its answer, and the pause between two.
const EVENTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Microseconds of each stream, per arm.
#[derive(Default)]
struct Seen {
    /// From the call to its first event.
    first: Vec<f64>,
    /// From the upstream to the client, the median of the stream's events.
    event: Vec<f64>,
}

pub(crate) fn measure(stage: &mut Stage, rounds: usize) {
    stage.send_to(upstream());
    let arms = stage.streaming_arms();
    let mut seen: Vec<Seen> = arms.iter().map(|_| Seen::default()).collect();
    for round in 0..=rounds {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (first, event) = stream(&arms[at]);
            // The first round warms up.
            if round > 0 {
                seen[at].first.push(first);
                seen[at].event.push(event);
            }
        }
    }
    println!("server-sent events, {rounds} streams of {EVENTS} events per arm; medians");
    for (arm, seen) in arms.iter().zip(&seen) {
        let (first, event) = (median(&seen.first), median(&seen.event));
        println!("  {:<24} call to first event {first:>6.0} us, upstream to client {event:>6.0} us", arm.name);
    }
    let [alone, noop, ours] = seen.as_slice() else { return };
    for (name, theirs) in [("envoy alone", alone), ("no-op, screened", noop)] {
        for (what, ours, theirs) in [("first", &ours.first, &theirs.first), ("each event", &ours.event, &theirs.event)]
        {
            let Estimate { median, low, high } = difference(ours, theirs);
            println!("  added to {name:<16} {what:<10} {median:>6.0} us [{low:.0}, {high:.0}]");
        }
    }
}

/// One call that is answered by a stream.
fn stream(arm: &Arm) -> (f64, f64) {
    let request = fixture::post(&setting::call(0, 1024)).bearer(&arm.token);
    let mut socket = TcpStream::connect(("127.0.0.1", arm.port())).expect("Envoy takes connections");
    socket.set_nodelay(true).expect("a socket option");
    socket.set_read_timeout(Some(Duration::from_secs(15))).expect("a socket option");
    let began = micros();
    socket.write_all(&request.bytes()).expect("Envoy reads");
    let (mut text, mut piece) = (Vec::new(), [0; 16 * 1024]);
    let (mut first, mut delays) = (None, Vec::new());
    while delays.len() < EVENTS {
        let read = socket.read(&mut piece).expect("Envoy answers within 15 s");
        let now = micros();
        assert!(read > 0, "{}: expected {EVENTS} events, got {}", arm.name, String::from_utf8_lossy(&text));
        text.extend_from_slice(&piece[..read]);
        while let Some((sent, rest)) = stamp(&text) {
            first.get_or_insert(now - began);
            delays.push(now - sent);
            text.drain(..rest);
        }
    }
    (first.expect("an event came"), median(&delays))
}

/// The first stamp in `text`, `@` to `;`, and where it ends.
fn stamp(text: &[u8]) -> Option<(f64, usize)> {
    let start = text.iter().position(|byte| *byte == b'@')? + 1;
    let end = start + text[start..].iter().position(|byte| *byte == b';')?;
    Some((std::str::from_utf8(&text[start..end]).ok()?.parse().ok()?, end + 1))
}

fn micros() -> f64 {
    EPOCH.elapsed().as_nanos() as f64 / 1000.0
}

/// Answers every call with a stream; returns its port.
fn upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || serve(socket));
        }
    });
    port
}

fn serve(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut rest = Vec::new();
    while read_request(&mut socket, &mut rest).is_some() {
        socket
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
        for n in 0..EVENTS {
            // Words as a server's log has them; the stamp is taken last.
            let words = "looked through the cases of the last month, and went on with those before";
            let head = format!(
                r#"data: {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{n} {words} @"#
            );
            socket.write_all(&chunk(format!("{head}{:.3};\"}}}}\n\n", micros()).as_bytes()))?;
            std::thread::sleep(PAUSE);
        }
        let answer = [b"data: ".as_slice(), &setting::answer(1024), b"\n\n"].concat();
        socket.write_all(&chunk(&answer))?;
        socket.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}
