//! Counters in Prometheus' text format (exposition format 0.0.4).

use std::collections::BTreeMap;

use crate::telemetry::counters::Sample;

/// What may go down again.
const GAUGES: [&str; 3] = ["portcullis.streams.open", "portcullis.definition.drifted", "portcullis.config.generation"];

/// The samples, by name, each name with its type.
#[must_use]
pub fn prometheus(samples: &[Sample]) -> String {
    let mut families: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        families.entry(sample.name).or_default().push(sample);
    }
    let mut out = String::new();
    for (name, samples) in families {
        let gauge = GAUGES.contains(&name);
        let (kind, suffix) = if gauge { ("gauge", "") } else { ("counter", "_total") };
        let name = format!("{}{suffix}", plain(name));
        out.push_str(&format!("# TYPE {name} {kind}\n"));
        for sample in samples {
            let labels: Vec<String> =
                sample.labels.iter().map(|(label, value)| format!("{}=\"{}\"", plain(label), escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            out.push_str(&format!("{name}{labels} {}\n", sample.value));
        }
    }
    out
}

fn plain(name: &str) -> String {
    name.replace(['.', '-'], "_")
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}
