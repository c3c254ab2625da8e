//! What a caller may get of an exchange, worked out without the code that decides it.

use super::sse::dispatched;

/// What is known of an exchange without asking it.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Known {
    /// What the first body asks for, where it is one that was made well.
    pub(crate) asked: Option<(&'static str, Option<&'static str>)>,
    /// Whether the caller may write, and when their token ends.
    pub(crate) caller: Option<(bool, u64)>,
    /// Whether the server's definitions have been seen.
    pub(crate) fresh: bool,
    pub(crate) shadow: bool,
    /// Whether anything came that is not ignored at the beginning.
    pub(crate) begun: bool,
    /// Whether the metadata were asked for, which is nobody's call.
    pub(crate) metadata: bool,
    /// Whether the answer is one that is judged: with this status, behind a verdict.
    pub(crate) judged: bool,
    /// Whether the answer says that it is events: a client reads the whole as JSON only where it does not.
    pub(crate) events: bool,
    /// Every byte that went down.
    pub(crate) down: Vec<u8>,
}

impl Known {
    /// Whether what was asked may never be forwarded.
    pub(crate) fn forbidden(&self) -> bool {
        let Some((method, name)) = self.asked else { return false };
        let writes = name == Some("update") && self.caller.is_some_and(|(editor, _)| !editor);
        let reaches = name.is_some() || method == "subscriptions/listen";
        !self.shadow && (writes || (reaches && !self.fresh))
    }

    /// What a client reads of a judged answer: nothing it may not see, and one answer.
    pub(crate) fn read(&self) {
        if !self.judged || self.shadow {
            return;
        }
        let mut heard = dispatched(&self.down);
        if !self.events {
            heard.push(self.down.clone());
        }
        let read = |bytes: &Vec<u8>| serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let heard: Vec<_> = heard.iter().filter_map(read).collect();
        let answers = heard.iter().filter(|said| said.get("method").is_none() && said["id"] == 1).count();
        assert!(answers <= 1, "{answers} answers to one call");
        let listing = self.asked.is_some_and(|(method, _)| method == "tools/list");
        if self.caller.is_some_and(|(editor, _)| !editor) {
            for said in &heard {
                let tools = said["result"]["tools"].as_array().filter(|_| listing);
                assert!(!tools.into_iter().flatten().any(|tool| tool["name"] == "update"), "a hidden tool is shown");
                let update = said["method"] == "notifications/resources/updated";
                assert!(!(update && said["params"]["uri"] == "cases://case/7"), "a hidden resource is told of");
            }
        }
        for said in &heard {
            assert!(said["method"] != "notifications/made_up", "a notification that nobody knows passes");
            assert!(said.get("method").is_none() || said.get("id").is_none(), "a request by the server passes");
        }
    }
}
