//! From the `gates:` block to [`Gates`]: everything that can be wrong is found here, all at once.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::Gates;
use super::breaker::Breaker;
use super::cel::Rule;
use super::config::{
    Challenges, ExtAuthzSource, GateMode, GateSource, GrpcSource, IntentSource, JudgeSource, OnFailure,
};
use super::decide::Decide;
use super::ext_authz::ExtAuthz;
use super::gate::{Gate, Kind};
use super::judge::{Judge, Parts};
use super::peer::Peer;
use crate::policy::{Label, Segment};
use crate::upstream::CredentialSource;

/// Headers that no gate may see: they are what the caller proves itself with.
const SECRET: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-forwarded-client-cert"];

/// What gates need besides their own block.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The folder of the configuration file, for relative paths.
    pub base: &'a Path,
    /// Whether a label has a price; `None` for plain HTTP, which has no capabilities.
    pub priced: Option<&'a dyn Fn(&Label) -> bool>,
    /// What the gates that are enforced may take together.
    pub budget: Duration,
}

/// One thing that is wrong: where, from the block's root (a list), and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Keys and indices, for example 0, `judge`, `url`.
    pub path: Vec<Segment>,
    /// What was expected, what came, how to fix it.
    pub message: String,
}

/// Faults of one gate.
struct Faults {
    index: usize,
    all: Vec<Fault>,
}

impl Faults {
    fn add(&mut self, path: &[&str], message: impl Into<String>) {
        let keys = path.iter().map(|key| Segment::from(*key));
        let path = std::iter::once(Segment::from(self.index)).chain(keys).collect();
        self.all.push(Fault { path, message: message.into() });
    }

    /// `value`, or one more fault.
    fn take<T>(&mut self, path: &[&str], value: Result<T, String>) -> Option<T> {
        value.map_err(|message| self.add(path, message)).ok()
    }
}

impl Gates {
    /// Makes the gates of one server ready. Connects to nothing: a gate that is down must not keep the service down.
    ///
    /// # Errors
    /// All faults of the block.
    pub fn build(sources: &[GateSource], setting: &Setting<'_>) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults { index: 0, all: Vec::new() };
        let mut gates = Vec::new();
        let mut names = HashSet::new();
        for (index, source) in sources.iter().enumerate() {
            faults.index = index;
            name(source, &mut names, &mut faults);
            gates.extend(gate(source, setting, &mut faults));
        }
        budget(&gates, sources, setting.budget, &mut faults);
        if !faults.all.is_empty() {
            return Err(faults.all);
        }
        let mut headers: Vec<Arc<str>> = Vec::new();
        for header in sources.iter().filter_map(|source| intent(source)?.header.as_deref()) {
            if !headers.iter().any(|own| &**own == header) {
                headers.push(header.into());
            }
        }
        Ok(Self { gates, headers })
    }
}

/// The name is the frame's `plugin` and stands in the audit.
fn name<'a>(source: &'a GateSource, names: &mut HashSet<&'a str>, faults: &mut Faults) {
    let name = &source.name;
    let simple = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if name.is_empty() || name.len() > 64 || !simple {
        faults.add(&["name"], format!("expected 1 to 64 letters, digits, `-`, `_` and `.`, found `{name}`; rename it"));
    } else if !names.insert(name) {
        faults
            .add(&["name"], format!("expected a name of its own, found `{name}`, which another gate has; rename one"));
    }
}

/// Gates are asked one after the other, so what they may take adds up; those in shadow mode are asked beside them.
fn budget(gates: &[Gate], sources: &[GateSource], budget: Duration, faults: &mut Faults) {
    if gates.len() != sources.len() {
        return;
    }
    let mut sum = Duration::ZERO;
    for (index, gate) in gates.iter().enumerate() {
        faults.index = index;
        let taken = if gate.shadow { gate.timeout } else { sum.saturating_add(gate.timeout) };
        if taken > budget {
            faults.add(
                &[gate.kind.as_str()],
                format!(
                    "expected the gates up to this one to take at most {budget:?} together (the server's \
                     `gates_budget`, 5s where it is not set), found {taken:?}; lower a `timeout`, or raise \
                     `gates_budget`, which stands beside `gates`"
                ),
            );
        }
        if !gate.shadow {
            sum = taken;
        }
    }
}

fn intent(source: &GateSource) -> Option<&IntentSource> {
    source.judge.as_ref().map(|judge| &judge.intent).or_else(|| source.grpc.as_ref()?.intent.as_ref())
}

fn gate(source: &GateSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<Gate> {
    let capabilities = capabilities(source, setting, faults);
    let (kind, timeout) = kind(source, setting, faults)?;
    Some(Gate {
        name: source.name.as_str().into(),
        kind,
        shadow: source.mode == GateMode::Shadow,
        allow_on_failure: source.on_failure == OnFailure::Allow,
        capabilities,
        timeout,
        breaker: Breaker::new(source.breaker.failures.get(), source.breaker.open.get()),
        slots: Semaphore::new(usize::try_from(source.concurrency.get()).unwrap_or(usize::MAX)),
    })
}

/// The labels that the gate is for, in canonical form; `None` for all, and when one is faulty.
fn capabilities(source: &GateSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<HashSet<Arc<str>>> {
    let labels = source.capabilities.as_ref()?;
    let Some(priced) = setting.priced else {
        faults.add(&["capabilities"], "expected `capabilities` on servers of `kind: mcp` only; remove it");
        return None;
    };
    if labels.is_empty() {
        faults.add(&["capabilities"], "expected at least one capability, found none; leave the key out for all");
        return None;
    }
    let before = faults.all.len();
    let mut all = HashSet::new();
    for (index, text) in labels.iter().enumerate() {
        match text.parse::<Label>() {
            Ok(label) if priced(&label) => {
                all.insert(label.to_string().into());
            }
            Ok(label) => {
                faults.add(
                    &["capabilities"],
                    format!(
                        "expected a capability of the record, found `{label}`, which has no price; correct or remove it"
                    ),
                );
            }
            Err(error) => faults.add(&["capabilities"], format!("{error}; correct it")),
        }
        if let Some(fault) = faults.all.get_mut(before..).and_then(<[Fault]>::last_mut)
            && fault.path.len() == 2
        {
            fault.path.push(Segment::from(index));
        }
    }
    Some(all)
}

fn kind(source: &GateSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<(Kind, Duration)> {
    match (&source.ext_authz, &source.grpc, &source.judge, &source.cel) {
        (Some(own), None, None, None) => {
            ext_authz(own, setting, faults).map(|gate| (Kind::ExtAuthz(gate), own.timeout.get()))
        }
        (None, Some(own), None, None) => grpc(own, setting, faults).map(|gate| (Kind::Grpc(gate), own.timeout.get())),
        (None, None, Some(own), None) => {
            judge(own, setting, faults).map(|gate| (Kind::Judge(Box::new(gate)), own.timeout.get()))
        }
        (None, None, None, Some(own)) => {
            if source.on_failure == OnFailure::Allow {
                let message =
                    "expected no `on_failure: allow` beside `cel`: a rule that cannot be decided refuses; remove it";
                faults.add(&["on_failure"], message);
            }
            let rule = faults.take(&["cel"], Rule::compile(own));
            rule.map(|rule| (Kind::Cel(rule), Duration::ZERO))
        }
        _ => {
            faults
                .add(&[], "expected exactly one of `ext_authz`, `grpc`, `judge` and `cel`; name how the gate is asked");
            None
        }
    }
}

fn ext_authz(source: &ExtAuthzSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<ExtAuthz> {
    let peer = peer("ext_authz", &source.address, source.ca.as_deref(), setting, faults)?;
    let pass_challenges = source.challenges == Challenges::Pass;
    Some(ExtAuthz { peer, arguments: source.arguments.bytes(), pass_challenges })
}

fn grpc(source: &GrpcSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<Decide> {
    let peer = peer("grpc", &source.address, source.ca.as_deref(), setting, faults);
    let intent = match &source.intent {
        Some(intent) => Some(checked("grpc", intent, faults)?),
        None => None,
    };
    Some(Decide { peer: peer?, arguments: source.arguments.bytes(), intent })
}

fn peer(kind: &str, address: &str, ca: Option<&Path>, setting: &Setting<'_>, faults: &mut Faults) -> Option<Peer> {
    let pem = match ca.map(|file| setting.base.join(file)) {
        None => None,
        Some(path) => {
            let read = std::fs::read(&path).map_err(|error| {
                format!("expected a PEM file that can be read, but {}: {error}; check the path", path.display())
            });
            Some(faults.take(&[kind, "ca"], read)?)
        }
    };
    faults.take(&[kind, "address"], Peer::new(address, pem.as_deref()))
}

fn judge(source: &JudgeSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<Judge> {
    let intent = checked("judge", &source.intent, faults);
    let url = faults.take(&["judge", "url"], endpoint(&source.url));
    if source.model.is_empty() {
        faults.add(&["judge", "model"], "expected the model's name, found an empty text; name it");
    }
    let credential = source.bearer.clone().map_or(CredentialSource::None, CredentialSource::Bearer);
    let credential = credential.load(setting.base).map_err(|error| error.to_string());
    let credential = faults.take(&["judge", "bearer"], credential);
    Some(Judge::new(Parts {
        url: url?,
        model: source.model.clone(),
        credential: credential?,
        intent: intent?,
        allow_without_intent: source.no_intent == OnFailure::Allow,
        disclose_reason: source.disclose_reason,
        arguments: source.arguments.bytes(),
        cache: source.cache.map(super::config::Span::get),
    }))
}

fn endpoint(text: &str) -> Result<http::Uri, String> {
    let url = url::Url::parse(text).ok().filter(|url| {
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        plain && matches!(url.scheme(), "http" | "https") && url.has_host()
    });
    url.and_then(|url| url.as_str().parse().ok()).ok_or_else(|| {
        format!("expected an absolute http or https URL without user and fragment, found `{text}`; correct it")
    })
}

/// An intent source that names exactly one place, and none that holds the caller's proof of identity.
fn checked(kind: &str, source: &IntentSource, faults: &mut Faults) -> Option<IntentSource> {
    let named = [&source.header, &source.meta, &source.claim].into_iter().flatten().count();
    if named != 1 {
        faults.add(
            &[kind, "intent"],
            format!("expected exactly one of `header`, `meta` and `claim`, found {named}; name one"),
        );
        return None;
    }
    let Some(header) = &source.header else { return Some(source.clone()) };
    let lower = http::HeaderName::from_bytes(header.as_bytes()).is_ok_and(|name| name.as_str() == header);
    if !lower {
        faults.add(
            &[kind, "intent", "header"],
            format!("expected a header name in lower case, found `{header}`; correct it"),
        );
    } else if SECRET.contains(&header.as_str()) {
        faults.add(
            &[kind, "intent", "header"],
            format!("expected a header that is no credential, found `{header}`, which no gate may see; name another"),
        );
    } else {
        return Some(source.clone());
    }
    None
}
