//! PodDisruptionBudgets of members: how many pods may go.

use super::{Member, Needs, Watched, resource};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use portolan_api::selector;
use portolan_runtime::foreign_text;
use std::collections::BTreeMap;

const NEEDS: Needs = Needs(&[resource::<PodDisruptionBudget>()]);

/// What is kept of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BudgetFacts {
    /// The pods that it protects; none without a selector.
    selector: Option<LabelSelector>,
    /// How many of them may go now.
    allowed: u32,
}

impl Watched for PodDisruptionBudget {
    type Facts = BudgetFacts;

    fn facts(self) -> BudgetFacts {
        let status = self.status.unwrap_or_default();
        // Numbers of a former spec allow nothing, as for evictions.
        let current = status.observed_generation >= self.metadata.generation;
        let allowed = status.disruptions_allowed.filter(|_| current).unwrap_or(0);
        BudgetFacts {
            selector: self.spec.and_then(|spec| spec.selector),
            allowed: u32::try_from(allowed).unwrap_or(0),
        }
    }

    fn in_place(client: Client, place: &str, config: Config) -> (Api<Self>, Config) {
        (Api::namespaced(client, place), config)
    }
}

/// The PodDisruptionBudgets of a member are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetsUnknown;

/// The budgets that protect pods with these labels, and how many of them each lets go.
pub(crate) fn budgets_of(
    member: &Member,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, u32>, BudgetsUnknown> {
    if !member.is_known(NEEDS) {
        return Err(BudgetsUnknown);
    }
    let mut found = BTreeMap::new();
    member.index::<PodDisruptionBudget>().for_each_in(namespace, |key, budget| {
        if budget.selector.as_ref().is_some_and(|wanted| selector::matches(wanted, labels)) {
            found.insert(foreign_text(&key.name), budget.allowed);
        }
    });
    Ok(found)
}

/// The budget that lets the fewest pods with these labels go, and how many.
pub(crate) fn tightest_budget(
    member: &Member,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Option<(String, u32)>, BudgetsUnknown> {
    let found = budgets_of(member, namespace, labels)?;
    Ok(found.into_iter().min_by_key(|(_, allowed)| *allowed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_budget_whose_numbers_are_of_a_former_spec_allows_nothing() {
        let budget = |observed: i64| {
            let budget = json!({
                "metadata": {"name": "web", "generation": 2},
                "spec": {"selector": {"matchLabels": {"app": "web"}}},
                "status": {"observedGeneration": observed, "disruptionsAllowed": 3, "currentHealthy": 4,
                    "desiredHealthy": 1, "expectedPods": 4},
            });
            serde_json::from_value::<PodDisruptionBudget>(budget).unwrap().facts()
        };
        assert_eq!((budget(2).allowed, budget(1).allowed), (3, 0));
        let bare = serde_json::from_value::<PodDisruptionBudget>(json!({"metadata": {"name": "new"}}));
        assert_eq!(bare.unwrap().facts(), BudgetFacts::default());
    }
}
