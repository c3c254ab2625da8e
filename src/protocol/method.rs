//! The methods of MCP 2026-07-28 and how the ladder treats each (ladder.md §4).

/// A method that is on a list; everything else is `method.unlisted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `tools/list`
    ToolsList,
    /// `prompts/list`
    PromptsList,
    /// `resources/list`
    ResourcesList,
    /// `resources/templates/list`
    TemplatesList,
    /// `server/discover`
    Discover,
    /// `notifications/cancelled`
    Cancelled,
    /// `notifications/progress`
    Progress,
    /// `tools/call`
    ToolsCall,
    /// `prompts/get`
    PromptsGet,
    /// `resources/read`
    ResourcesRead,
    /// `completion/complete`
    Complete,
    /// `subscriptions/listen`
    Listen,
}

impl Method {
    /// Every listed method.
    pub const ALL: &'static [Method] = &[
        Self::ToolsList,
        Self::PromptsList,
        Self::ResourcesList,
        Self::TemplatesList,
        Self::Discover,
        Self::Cancelled,
        Self::Progress,
        Self::ToolsCall,
        Self::PromptsGet,
        Self::ResourcesRead,
        Self::Complete,
        Self::Listen,
    ];

    /// The method of this exact name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|method| method.as_str() == name)
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolsList => "tools/list",
            Self::PromptsList => "prompts/list",
            Self::ResourcesList => "resources/list",
            Self::TemplatesList => "resources/templates/list",
            Self::Discover => "server/discover",
            Self::Cancelled => "notifications/cancelled",
            Self::Progress => "notifications/progress",
            Self::ToolsCall => "tools/call",
            Self::PromptsGet => "prompts/get",
            Self::ResourcesRead => "resources/read",
            Self::Complete => "completion/complete",
            Self::Listen => "subscriptions/listen",
        }
    }

    /// Whether it is a notification, which nobody answers.
    #[must_use]
    pub const fn is_notification(self) -> bool {
        matches!(self, Self::Cancelled | Self::Progress)
    }

    /// The member of a listing's result that holds the entries; `None` for methods that list nothing.
    #[must_use]
    pub const fn listed_member(self) -> Option<&'static str> {
        match self {
            Self::ToolsList => Some("tools"),
            Self::PromptsList => Some("prompts"),
            Self::ResourcesList => Some("resources"),
            Self::TemplatesList => Some("resourceTemplates"),
            _ => None,
        }
    }

    /// The member of `params` that `Mcp-Name` mirrors; `None` where the specification defines no mirror.
    #[must_use]
    pub const fn named_by(self) -> Option<&'static str> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some("name"),
            Self::ResourcesRead => Some("uri"),
            _ => None,
        }
    }

    /// Whether its answer may ask for input instead of completing (`resultType: "input_required"`).
    #[must_use]
    pub const fn may_ask_for_input(self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead)
    }
}

/// Whether a method name is a notification's, listed or not.
#[must_use]
pub fn is_notification(name: &str) -> bool {
    name.starts_with("notifications/")
}

/// Whether a server may send this notification in the stream that answers a request (mcp-wire: §2.4).
#[must_use]
pub fn server_may_notify(name: &str) -> bool {
    matches!(
        name,
        "notifications/progress"
            | "notifications/message"
            | "notifications/cancelled"
            | "notifications/subscriptions/acknowledged"
            | "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated"
    )
}
