//! What a call reaches: the capabilities that are named in its body (ladder.md §4).

use crate::message::json::{Kind, Value};

use super::Method;

/// The things whose permission a call needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target<'a> {
    /// Nothing of its own; every caller with any permission may.
    #[default]
    Baseline,
    /// The tool of this name.
    Tool(&'a str),
    /// The prompt of this name.
    Prompt(&'a str),
    /// These resources, each read as it stands.
    Resources(Vec<&'a str>),
    /// Something that can never have a price, with what it is.
    Priceless(&'static str),
    /// Nothing that can be decided, with what was expected.
    Unnamed(&'static str),
}

/// A [`Target`] that outlives the message that named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedTarget {
    /// [`Target::Tool`].
    Tool(Box<str>),
    /// [`Target::Prompt`].
    Prompt(Box<str>),
    /// [`Target::Resources`].
    Resources(Box<[Box<str>]>),
    /// [`Target::Priceless`].
    Priceless(&'static str),
    /// [`Target::Unnamed`].
    Unnamed(&'static str),
}

impl OwnedTarget {
    /// The same, owned; `None` for [`Target::Baseline`], which costs nothing to keep.
    #[must_use]
    pub fn of(target: &Target<'_>) -> Option<Self> {
        Some(match target {
            Target::Baseline => return None,
            Target::Tool(name) => Self::Tool((*name).into()),
            Target::Prompt(name) => Self::Prompt((*name).into()),
            Target::Resources(uris) => Self::Resources(uris.iter().map(|uri| Box::from(*uri)).collect()),
            Target::Priceless(what) => Self::Priceless(what),
            Target::Unnamed(what) => Self::Unnamed(what),
        })
    }

    /// The same, borrowed.
    #[must_use]
    pub fn borrow(&self) -> Target<'_> {
        match self {
            Self::Tool(name) => Target::Tool(name),
            Self::Prompt(name) => Target::Prompt(name),
            Self::Resources(uris) => Target::Resources(uris.iter().map(|uri| &**uri).collect()),
            Self::Priceless(what) => Target::Priceless(what),
            Self::Unnamed(what) => Target::Unnamed(what),
        }
    }
}

/// Finds what `method` with these `params` reaches.
#[must_use]
pub fn of(method: Method, params: Option<Value<'_>>) -> Target<'_> {
    match method {
        Method::ToolsCall => {
            named(params, "name").map_or(Target::Unnamed("params.name: expected a string"), Target::Tool)
        }
        Method::PromptsGet => {
            named(params, "name").map_or(Target::Unnamed("params.name: expected a string"), Target::Prompt)
        }
        Method::ResourcesRead => named(params, "uri")
            .map_or(Target::Unnamed("params.uri: expected a string"), |uri| Target::Resources(vec![uri])),
        Method::Complete => completion(params),
        Method::Listen => subscription(params),
        _ => Target::Baseline,
    }
}

fn named<'a>(params: Option<Value<'a>>, member: &str) -> Option<&'a str> {
    params?.get(member)?.as_str().filter(|name| !name.is_empty())
}

fn completion(params: Option<Value<'_>>) -> Target<'_> {
    let reference = params.and_then(|params| params.get("ref"));
    match reference.and_then(|reference| reference.get("type")).and_then(|kind| kind.as_str()) {
        Some("ref/prompt") => {
            named(reference, "name").map_or(Target::Unnamed("params.ref.name: expected a string"), Target::Prompt)
        }
        Some("ref/resource") => named(reference, "uri")
            .map_or(Target::Unnamed("params.ref.uri: expected a string"), |uri| Target::Resources(vec![uri])),
        _ => Target::Unnamed("params.ref.type: expected \"ref/prompt\" or \"ref/resource\""),
    }
}

/// Task ids belong to the tasks extension, which has no prices; a list that is not one of strings names nothing.
fn subscription(params: Option<Value<'_>>) -> Target<'_> {
    let wanted = params.and_then(|params| params.get("notifications"));
    if wanted.is_some_and(|wanted| wanted.kind() != Kind::Object) {
        return Target::Unnamed("params.notifications: expected an object");
    }
    let member = |name: &str| wanted.and_then(|wanted| wanted.get(name));
    if member("taskIds").is_some() {
        return Target::Priceless("tasks");
    }
    let Some(uris) = member("resourceSubscriptions") else { return Target::Baseline };
    let list: Option<Vec<&str>> = uris.items().map(|uri| uri.as_str()).collect();
    match list {
        Some(list) if uris.kind() == Kind::Array && list.is_empty() => Target::Baseline,
        Some(list) if uris.kind() == Kind::Array => Target::Resources(list),
        _ => Target::Unnamed("params.notifications.resourceSubscriptions: expected a list of strings"),
    }
}
