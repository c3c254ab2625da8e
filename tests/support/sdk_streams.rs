//! What takes long at the Rust SDK's server ([`super::sdk_server`]): calls that tell of their progress, and subscriptions. Both
//! note when the caller leaves before their end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};

/// The query of a search that takes three steps.
pub(crate) const SLOW: &str = "slow";
/// The query of a search that goes on until its caller leaves.
pub(crate) const ENDLESS: &str = "endless";
/// The resource of which a subscription hears.
pub(crate) const WATCHED: &str = "cases://case/17";

/// Who left before the end: `call`, `subscription`.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<Vec<&'static str>>>);

impl Streams {
    /// Who left so far.
    pub(crate) fn left(&self) -> Vec<&'static str> {
        self.0.lock().expect("no writer panicked").clone()
    }

    fn leaves(&self, who: &'static str) {
        self.0.lock().expect("no reader panicked").push(who);
    }

    /// Takes the steps of a search, and tells of each when the caller wants to hear.
    pub(crate) async fn work(&self, query: &str, context: &RequestContext<RoleServer>) {
        let steps = match query {
            SLOW => 3,
            ENDLESS => u32::MAX,
            _ => 0,
        };
        for step in 1..=steps {
            if let Some(token) = context.meta.get_progress_token() {
                let told = ProgressNotificationParam::new(token, step.into()).with_total(steps.into());
                let _ = context.peer.notify_progress(told).await;
            }
            if tokio::time::timeout(Duration::from_millis(50), context.ct.cancelled()).await.is_ok() {
                return self.leaves("call");
            }
        }
    }

    /// Every subscription hears at once that the tools and [`WATCHED`] changed, as far as it asked for them, and nothing more.
    pub(crate) async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let _ = context.sink().notify_tool_list_changed().await;
        let _ = context.sink().notify_resource_updated(WATCHED).await;
        context.cancelled().await;
        self.leaves("subscription");
        Ok(())
    }
}
