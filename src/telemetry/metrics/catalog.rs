//! Every metric there is, in one table: names, kinds, units. `docs/telemetry.md` explains each; a test holds it to that.

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    UpDown,
    /// The latest value counts.
    Gauge,
    /// Durations by bucket.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The OpenTelemetry name.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// Its unit, in UCUM.
    pub unit: &'static str,
    /// What it tells.
    pub description: &'static str,
}

const fn metric(name: &'static str, kind: Kind, unit: &'static str, description: &'static str) -> Metric {
    Metric { name, kind, unit, description }
}

/// Name of the one metric that is OpenTelemetry's own: its conventions for MCP.
pub const OPERATION_DURATION: &str = "mcp.server.operation.duration";
/// Name of the time up to the verdict, by phase.
pub const DECISION_DURATION: &str = "portcullis.decision.duration";
/// Name of the time that gates took.
pub const GATE_DURATION: &str = "portcullis.gate.duration";
/// Name of the count of opinions.
pub const GATE_CALLS: &str = "portcullis.gate.calls";

/// Every metric, those included that come from a registered source.
pub const CATALOG: [Metric; 18] = [
    metric(OPERATION_DURATION, Kind::Histogram, "s", "From the request's head to the end of the answer"),
    metric(DECISION_DURATION, Kind::Histogram, "s", "From the request's head to the verdict, by phase"),
    metric("portcullis.decisions", Kind::Counter, "{decision}", "Decisions"),
    metric("portcullis.would_deny", Kind::Counter, "{decision}", "Refusals that shadow mode only recorded"),
    metric("portcullis.screened", Kind::Counter, "{answer}", "Answers whose content something was done about"),
    metric("portcullis.listing.entries_hidden", Kind::Counter, "{entry}", "Entries left out of listings"),
    metric("portcullis.definition.listings", Kind::Counter, "{listing}", "Our own listings of a server"),
    metric("portcullis.definition.drifted", Kind::UpDown, "{capability}", "Capabilities that do not match the record"),
    metric(GATE_CALLS, Kind::Counter, "{call}", "Opinions that gates gave, or failed to give"),
    metric(GATE_DURATION, Kind::Histogram, "s", "How long a gate took to answer"),
    metric("portcullis.jwks.refreshes", Kind::Counter, "{refresh}", "Fetches of key sets"),
    metric("portcullis.render.fallbacks", Kind::Counter, "{refusal}", "Frames that could not be written in full"),
    metric("portcullis.audit.dropped", Kind::Counter, "{event}", "Audit events that could not be kept"),
    metric("portcullis.streams.open", Kind::UpDown, "{stream}", "Exchanges open now"),
    metric("portcullis.streams.refused", Kind::Counter, "{stream}", "Exchanges refused as overloaded"),
    metric("portcullis.config.generation", Kind::Gauge, "{generation}", "The configuration that decides now"),
    metric("portcullis.config.reloads", Kind::Counter, "{reload}", "Attempts to load a changed configuration"),
    metric("portcullis.held_answers.bytes", Kind::UpDown, "By", "Bytes of answers that are held to be judged"),
];
