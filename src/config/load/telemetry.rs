//! `telemetry`, with the file that it names.

use super::Context;
use super::documents::bytes;
use super::report::Report;
use crate::config::model::{AdminPage, AuditStdout, Configuration, Otlp, OtlpProtocol, WhenFull};
use crate::policy::Segment;
use crate::telemetry::log;
use crate::telemetry::otlp;
use crate::telemetry::settings::{self, Settings};
use crate::upstream::http::trusting;

/// What telemetry is told. Faults are told too, and leave out what they are about.
pub(super) fn compile(configuration: &Configuration, context: &Context<'_>, report: &mut Report) -> Settings {
    let telemetry = &configuration.telemetry;
    if let Some(Err(fault)) = telemetry.log.as_deref().map(log::parse) {
        report.fault(context.path, context.root.locate(&at(&["log"])), &fault);
    }
    let admin = configuration.listen.as_ref().and_then(|listen| listen.admin.as_ref());
    Settings {
        otlp: telemetry.otlp.as_ref().map(|otlp| collector(otlp, context, report)),
        stdout: telemetry.audit.stdout == AuditStdout::Json,
        file: telemetry.audit.file.as_ref().map(|file| context.base.join(file)),
        when_full: match telemetry.audit.when_full {
            WhenFull::Drop => settings::WhenFull::Drop,
            WhenFull::Refuse => settings::WhenFull::Refuse,
        },
        log: telemetry.log.clone(),
        recent: admin.is_some_and(|admin| admin.page == AdminPage::On),
    }
}

fn collector(otlp: &Otlp, context: &Context<'_>, report: &mut Report) -> settings::Otlp {
    if otlp::endpoint(&otlp.endpoint).is_none() {
        let message = format!(
            "expected an http or https URL such as http://otel-collector:4317, found `{}`; add the scheme",
            otlp.endpoint
        );
        report.fault(context.path, context.root.locate(&at(&["otlp", "endpoint"])), &message);
    }
    let ca = otlp.ca.as_ref().and_then(|file| {
        let path = context.base.join(file);
        let pem = bytes(&path, report)?;
        if trusting(&pem).is_none() {
            let message = format!("expected PEM certificates in {}, found none; name another file", path.display());
            report.fault(context.path, context.root.locate(&at(&["otlp", "ca"])), &message);
        }
        Some(pem)
    });
    settings::Otlp {
        endpoint: otlp.endpoint.clone(),
        protocol: match otlp.protocol {
            OtlpProtocol::Grpc => settings::Protocol::Grpc,
            OtlpProtocol::HttpProtobuf => settings::Protocol::HttpProtobuf,
        },
        timeout: otlp.timeout.map(crate::config::Period::get),
        ca,
    }
}

fn at(keys: &[&'static str]) -> Vec<Segment> {
    std::iter::once("telemetry").chain(keys.iter().copied()).map(Segment::from).collect()
}
