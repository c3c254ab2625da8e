//! From the words of the file to the words of the ladder.

use url::Url;

use crate::config::model::{Denials, Disclose, Kind, Limits, Match, StepUp, Timeouts};
use crate::ladder;
use crate::ladder::head::normal_authority;
use crate::ladder::origin::normal;
use crate::ladder::server::{Matcher, Resource};
use crate::refusal;

pub(super) fn kind(kind: Kind) -> ladder::Kind {
    match kind {
        Kind::Mcp => ladder::Kind::Mcp,
        Kind::Http => ladder::Kind::Http,
    }
}

/// `None` for a matcher that is not exactly one form, which was told.
pub(super) fn matcher(matcher: &Match) -> Option<Matcher> {
    match (&matcher.route, &matcher.cluster, &matcher.authority) {
        (Some(names), None, None) => Some(Matcher::Route(names.0.clone())),
        (None, Some(names), None) => Some(Matcher::Cluster(names.0.clone())),
        (None, None, Some(names)) => {
            Some(Matcher::Authority { authorities: names.0.clone(), path: matcher.path.clone()? })
        }
        _ => None,
    }
}

/// `None` for what is no URL, which was told.
pub(super) fn resource(text: &str) -> Option<Resource> {
    let url = Url::parse(text).ok()?;
    let scheme = url.scheme().to_owned();
    let authority = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str()?),
        None => url.host_str()?.to_owned(),
    };
    Some(Resource {
        url: text.to_owned(),
        origin: normal(&format!("{scheme}://{authority}")),
        authority: normal_authority(&authority, &scheme),
        scheme,
    })
}

pub(super) fn limits(limits: &Limits, timeouts: &Timeouts) -> ladder::server::Limits {
    let millis = |period: crate::config::model::Period| u64::try_from(period.get().as_millis()).unwrap_or(u64::MAX);
    ladder::server::Limits {
        request: limits.request.bytes(),
        listing: limits.listing.bytes(),
        answer: limits.answer.bytes(),
        depth: limits.depth.get(),
        body_time: millis(timeouts.body),
        wait_time: millis(timeouts.wait),
        answer_time: millis(timeouts.answer),
    }
}

pub(super) fn denials(denials: &Denials) -> refusal::Denials {
    refusal::Denials {
        policy_status: denials.policy_status.get(),
        disclose: match denials.disclose {
            Disclose::Explicit => refusal::Disclose::Explicit,
            Disclose::Hidden => refusal::Disclose::Hidden,
        },
        step_up: match denials.step_up {
            StepUp::Challenge => refusal::StepUp::Challenge,
            StepUp::Frame => refusal::StepUp::Frame,
        },
        code: denials.code.get(),
        unlisted_method_status: denials.unlisted_method_status.get(),
        upstream_status: denials.upstream_status.get(),
    }
}
