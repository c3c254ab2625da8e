//! All four parts, wired as they are in production.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::envoy::EDGE;
use super::fixture::{self, Ports};
use super::portcullis::Setting;
use super::{Envoy, Idp, Portcullis, Reply, Request, Upstream, mcp, substitute};

/// Envoy at the edge, Portcullis, an upstream and an identity provider. Dropped in this order.
pub(crate) struct Stack {
    pub(crate) envoy: Envoy,
    pub(crate) portcullis: Portcullis,
    pub(crate) upstream: Upstream,
    pub(crate) idp: Idp,
    pub(crate) dir: TempDir,
}

/// What stands before portcullis.yaml and edge.yaml are written.
pub(crate) struct Parts<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) idp: &'a Idp,
}

impl Stack {
    /// The default configuration on the shipped edge configuration.
    pub(crate) fn start() -> Self {
        Self::with(&[], &[])
    }

    /// As [`Self::start`], with substitutions in portcullis.yaml ([`fixture::configuration`]) and in edge.yaml.
    pub(crate) fn with(config_edits: &[(&str, &str)], envoy_edits: &[(&str, &str)]) -> Self {
        Self::recording(&[], config_edits, envoy_edits)
    }

    /// As [`Self::with`], with further tools in the record.
    pub(crate) fn recording(tools: &[Value], config_edits: &[(&str, &str)], envoy_edits: &[(&str, &str)]) -> Self {
        Self::built(
            Setting::default(),
            None,
            tools,
            |config, _| substitute(&config, config_edits),
            |edge, _| substitute(&edge, envoy_edits),
        )
    }

    /// As [`Self::with`], with these variables in Portcullis's environment.
    pub(crate) fn within(environment: &[(&str, &str)], config_edits: &[(&str, &str)]) -> Self {
        Self::built(Setting::of(environment), None, &[], |config, _| substitute(&config, config_edits), |edge, _| edge)
    }

    /// As [`Self::start`], but Envoy forwards to the server on this port; `upstream` stands idle.
    pub(crate) fn before(port: u16) -> Self {
        Self::made(Some(port), |config, _| config, |edge, _| edge)
    }

    /// Both files as the two functions make them of the default ones, for what depends on where the parts are.
    pub(crate) fn made(
        before: Option<u16>,
        config: impl FnOnce(String, &Parts<'_>) -> String,
        edge: impl FnOnce(String, &Parts<'_>) -> String,
    ) -> Self {
        Self::built(Setting::default(), before, &[], config, edge)
    }

    /// As [`Self::made`], with Portcullis in a setting and further tools in the record.
    pub(crate) fn built(
        setting: Setting,
        before: Option<u16>,
        tools: &[Value],
        config: impl FnOnce(String, &Parts<'_>) -> String,
        edge: impl FnOnce(String, &Parts<'_>) -> String,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (idp, upstream) = (Idp::start(), Upstream::start());
        fixture::write_files(dir.path(), tools);
        let offered = tools.to_vec();
        upstream.script_own(move |seen| mcp::answer_offering(seen, &offered));
        let ports = Ports { idp: idp.port, upstream: upstream.port };
        let known = Parts { dir: dir.path(), idp: &idp };
        let file = dir.path().join("portcullis.yaml");
        fs::write(&file, config(fixture::configuration(dir.path(), &ports), &known)).expect("portcullis.yaml");
        let socket = dir.path().join("ext_proc.sock");
        let portcullis = Portcullis::start_in(setting, &file, &socket);
        let places = edge_edits(&socket, before.unwrap_or(upstream.port));
        let envoy = Envoy::start(&edge(EDGE.into(), &known), &places.each_ref().map(|(from, to)| (*from, to.as_str())));
        Self { envoy, portcullis, upstream, idp, dir }
    }

    /// A token of the reader, `ana@acme.com`.
    pub(crate) fn reader(&self) -> String {
        self.idp.token(&json!({}))
    }

    /// A token of the editor, `bo@acme.com`, who also has the scope `cases:write`.
    pub(crate) fn editor(&self) -> String {
        self.idp.token(
            &json!({"sub": "bo", "email": "bo@acme.com", "groups": ["case-editors"], "scope": "mcp cases:write"}),
        )
    }

    /// The POST that carries `message`, as the reader.
    pub(crate) fn request(&self, message: &Value) -> Request {
        fixture::post(message).bearer(&self.reader())
    }

    /// Sends a request over HTTP/1.1.
    pub(crate) fn send(&self, request: &Request) -> Reply {
        request.send(self.envoy.port)
    }

    /// Sends a request that must be refused for `reason`: the audit says so, with the status that went out, and the upstream
    /// saw nothing of it.
    #[track_caller]
    pub(crate) fn refuses(&self, request: &Request, reason: &str) -> Reply {
        self.refused_by(reason, 0, || self.send(request))
    }

    /// Sends a request whose answer must be refused for `reason`, after the upstream saw it once.
    #[track_caller]
    pub(crate) fn refuses_answer(&self, request: &Request, reason: &str) -> Reply {
        self.refused_by(reason, 1, || self.send(request))
    }

    #[track_caller]
    pub(crate) fn refused_by(&self, reason: &str, reached: usize, send: impl FnOnce() -> Reply) -> Reply {
        let (count, audited) = (self.upstream.count(), self.portcullis.audited());
        let reply = send();
        assert_eq!(self.upstream.count() - count, reached, "requests that reached the upstream; {reply}");
        let record = self.portcullis.audit_of(reason, audited);
        assert_eq!(record["wire_status"], reply.status.to_string(), "{record}");
        reply
    }

    /// Sends a request that must be allowed: the upstream saw it once.
    #[track_caller]
    pub(crate) fn allows(&self, request: &Request) -> Reply {
        let count = self.upstream.count();
        let reply = self.send(request);
        assert_eq!((reply.status, self.upstream.count() - count), (200, 1), "{reply}");
        reply
    }

    /// Sends `message` as the reader.
    pub(crate) fn post(&self, message: &Value) -> Reply {
        self.send(&self.request(message))
    }
}

/// The places in edge.yaml that a stack fills in.
pub(crate) fn edge_edits(socket: &Path, upstream: u16) -> [(&'static str, String); 2] {
    [
        ("/run/portcullis/ext_proc.sock", socket.display().to_string()),
        ("port_value: 8000", format!("port_value: {upstream}")),
    ]
}
