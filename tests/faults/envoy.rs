//! What happens between Envoy and Portcullis.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::account::Losses;
use super::{Fault, Metric, World};
use crate::gates::servers::{Gate, Say};
use crate::support::portcullis::Setting;

/// What a stack replaces in the edge's configuration must be in it.
const PLACE: &str = "\n# /run/portcullis/ext_proc.sock\n";

pub(crate) fn cluster_removed() -> Fault {
    let world = World::made(
        Setting::default(),
        |config, _| config,
        |edge, parts| {
            let (rest, cluster) = edge.split_once("  - name: portcullis\n").expect("the cluster");
            let cluster = cluster.replace("\n  ", "\n").replacen("    ", "  ", 1);
            let socket = parts.dir.join("ext_proc.sock").display().to_string();
            let cluster = cluster.replace("/run/portcullis/ext_proc.sock", &socket);
            let file = format!(
                "resources:\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: portcullis\n{cluster}"
            );
            let dir = parts.dir.join("clusters");
            fs::create_dir(&dir).expect("a directory");
            fs::write(dir.join("with.yaml"), &file).expect("written");
            fs::write(dir.join("without.yaml"), "resources: []\n").expect("written");
            fs::write(dir.join("cds.yaml"), file).expect("written");
            let dir = dir.display();
            format!(
                "node: {{id: edge, cluster: edge}}\ndynamic_resources: {{cds_config: {{path_config_source: {{path: {dir}/cds.yaml, watched_directory: {{path: {dir}}}}}}}}}\n{rest}{PLACE}"
            )
        },
    );
    let put = |name: &'static str| {
        move |world: &mut World| {
            let dir = world.dir().join("clusters");
            fs::copy(dir.join(name), dir.join("next")).expect("copied");
            fs::rename(dir.join("next"), dir.join("cds.yaml")).expect("renamed");
        }
    };
    Fault::new(
        "cluster removed by configuration",
        Metric::Envoy("cluster_manager.cluster_removed"),
        world,
        put("without.yaml"),
        put("with.yaml"),
    )
}

pub(crate) fn message_timeout() -> Fault {
    let gate = Gate::start(Say::Allow);
    // Longer than Envoy waits, of which it is told nothing here: such a file is a fault of its own.
    let gates = format!(
        "  gates: [{{name: acme, grpc: {{address: '{}', timeout: 4s}}, breaker: {{failures: 1000}}}}]\n  limits: {{request",
        gate.address()
    );
    let world = World::with(&[("  limits: {request", &gates)], &[("message_timeout: 10s ", "message_timeout: 2s ")]);
    let gate = Arc::new(gate);
    let of_lift = Arc::clone(&gate);
    Fault::new(
        "message timeout",
        Metric::Envoy("http.edge.ext_proc.portcullis.message_timeouts"),
        world,
        move |_| gate.say(Say::Hang),
        move |_| of_lift.say(Say::Allow),
    )
}

pub(crate) fn reset_mid_body() -> Fault {
    let cutting = Arc::new(AtomicBool::new(false));
    let (of_world, of_lift) = (Arc::clone(&cutting), Arc::clone(&cutting));
    let world = World::made(
        Setting::default(),
        |config, _| config,
        |edge, parts| {
            let path = parts.dir.join("cut.sock");
            cut(&path, &parts.dir.join("ext_proc.sock"), of_world);
            edge.replace("/run/portcullis/ext_proc.sock", &path.display().to_string()) + PLACE
        },
    );
    Fault::new(
        "gRPC reset mid-body",
        Metric::Envoy("cluster.portcullis.upstream_cx_destroy_remote_with_active_rq"),
        world,
        move |_| cutting.store(true, Ordering::SeqCst),
        move |_| of_lift.store(false, Ordering::SeqCst),
    )
    .losing(Losses { retried: true, ..Losses::default() })
}

/// Passes on what comes on the socket at `here` to the one at `there`; while `cutting`, each connection ends after some bytes
/// of it, wherever in a message that is.
fn cut(here: &Path, there: &Path, cutting: Arc<AtomicBool>) {
    let (listener, there) = (UnixListener::bind(here).expect("a socket"), there.to_owned());
    let length = AtomicU64::new(7);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Ok(onward) = UnixStream::connect(&there) else { continue };
            // 8 KiB to 264 KiB; a fixed sequence.
            let bytes = 8_192 + length.fetch_add(9_973, Ordering::SeqCst) * 31 % 262_144;
            for (from, to) in [(&stream, &onward), (&onward, &stream)] {
                let (from, to) = (from.try_clone().expect("a handle"), to.try_clone().expect("a handle"));
                let cutting = Arc::clone(&cutting);
                std::thread::spawn(move || pass(from, to, bytes, &cutting));
            }
        }
    });
}

fn pass(mut from: UnixStream, mut to: UnixStream, mut left: u64, cutting: &AtomicBool) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        let mut take = read;
        if cutting.load(Ordering::SeqCst) {
            take = take.min(usize::try_from(left).unwrap_or(take));
            left -= take as u64;
        }
        if to.write_all(&piece[..take]).is_err() || take < read {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
