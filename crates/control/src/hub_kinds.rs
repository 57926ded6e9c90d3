//! The kinds of the hub that the controllers rest on, and whether the hub lets them be listed.

use crate::driver::{Context, Controllers};
use crate::{autoscale, reschedule};
use portolan_runtime::WatchHealth;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the hub has to list its own kinds before that is said.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

/// A kind of the hub, and how its watch stands.
#[derive(Clone)]
pub(crate) struct HubKind {
    pub(crate) kind: &'static str,
    pub(crate) health: WatchHealth,
    /// Whether the others go on if the hub does not serve it.
    pub(crate) is_optional: bool,
}

impl HubKind {
    /// Whether there is nothing of it, since the hub does not serve it and need not.
    pub(crate) fn is_left_out(&self) -> bool {
        self.is_optional && self.health.is_not_served()
    }
}

/// The kinds that the controllers of a hub rest on.
pub(crate) fn hub_kinds(
    context: &Context,
    controllers: &Controllers,
    autoscalers: WatchHealth,
) -> Vec<HubKind> {
    let needed = |kind, health: &WatchHealth| HubKind { kind, health: health.clone(), is_optional: false };
    let optional = |kind, health| HubKind { kind, health, is_optional: true };
    let mut kinds = vec![
        needed("ForeignCluster", context.fleet.clusters.health()),
        optional(reschedule::KIND, context.reschedulers.health().clone()),
        optional(autoscale::KIND, autoscalers),
    ];
    kinds.extend(controllers.iter().map(|each| needed(each.kind(), each.health())));
    kinds
}

/// Says loudly which kinds the hub does not let us list: nothing is decided without them.
pub(crate) async fn warn_of_unlisted(kinds: Vec<HubKind>) {
    let mut said: BTreeMap<&str, String> = BTreeMap::new();
    loop {
        tokio::time::sleep(LISTED_WITHIN).await;
        for each in &kinds {
            let (kind, health) = (each.kind, &each.health);
            let problem = health.failure().map(|failure| failure.error).filter(|_| !health.is_listed());
            match problem {
                Some(problem) if said.get(kind) != Some(&problem) => {
                    if each.is_left_out() {
                        tracing::warn!(
                            kind,
                            problem,
                            "the hub does not serve this kind, and there are none of it: `portolan crds | kubectl \
                             apply --server-side -f -` installs the definition"
                        );
                        said.insert(kind, problem);
                        continue;
                    }
                    tracing::error!(
                        kind,
                        problem,
                        "the hub does not list its objects of this kind, and nothing is placed anywhere until it \
                         does: `portolan crds | kubectl apply --server-side -f -` installs the definitions"
                    );
                    said.insert(kind, problem);
                }
                Some(_) => {}
                None => _ = said.remove(kind),
            }
        }
    }
}
