//! Whether the hub still has its rights where it holds copies. A right that was taken away would show otherwise only when
//! a copy is to be changed.

use super::MemberEvent;
use super::watched::EventSink;
use k8s_openapi::api::authorization::v1::{
    ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client};
use portolan_runtime::foreign_text;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often to look which namespaces are to be asked about.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often to ask about one namespace.
const ASK_EVERY: Duration = Duration::from_secs(300);

/// How many namespaces are asked about at a look.
const ASKED_AT_MOST: usize = 20;

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How many missing rights are named.
const NAMED_AT_MOST: usize = 8;

/// Something that the hub does with a resource in namespaces that are open to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeededRight {
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) verbs: &'static [&'static str],
}

/// The rights that the hub lacks in a member; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissingRights(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

impl MissingRights {
    /// What is missing, in words; nothing if nothing is known to be.
    pub(super) fn text(&self) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named: Vec<String> = all
            .iter()
            .flat_map(|(namespace, missing)| {
                missing.iter().map(move |right| format!("{right} in namespace {namespace}"))
            })
            .collect();
        let more = named.len().saturating_sub(NAMED_AT_MOST);
        named.truncate(NAMED_AT_MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!named.is_empty()).then(|| {
            format!(
                "the hub holds copies there and lost rights on them: {}{more}. The copies stay as they are; run `portolan \
                 peer` again, which grants the rights",
                named.join(", ")
            )
        })
    }

    /// Takes what was found of a namespace; answers whether that is news.
    fn set(&self, namespace: &str, missing: Vec<String>) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if missing.is_empty() {
            all.remove(namespace)
        } else {
            all.insert(namespace.to_owned(), missing)
        };
        all.get(namespace) != before.as_ref()
    }

    /// Forgets all other namespaces; answers whether that is news.
    fn keep_only(&self, namespaces: &BTreeSet<String>) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.retain(|namespace, _| namespaces.contains(namespace));
        all.len() != before
    }
}

/// Asks the member for ever which rights the hub has in the namespaces that hold copies.
pub(super) async fn check(
    client: Client,
    needed: Vec<NeededRight>,
    namespaces: impl Fn() -> BTreeSet<String>,
    missing: MissingRights,
    sink: EventSink,
) {
    let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let there = namespaces();
        asked.retain(|namespace, _| there.contains(namespace));
        let mut news = missing.keep_only(&there);
        let due = due(&there, &asked);
        for namespace in due {
            asked.insert(namespace.clone(), Instant::now());
            let Some(rules) = rules(&client, &namespace).await else { continue };
            if let Some(lacking) = lacking(&rules, &needed) {
                news |= missing.set(&namespace, lacking);
            }
        }
        if news {
            sink(MemberEvent::Health);
        }
    }
}

/// The namespaces to be asked about now: those that were not asked about for the longest time.
fn due(there: &BTreeSet<String>, asked: &BTreeMap<String, Instant>) -> Vec<String> {
    let is_due = |name: &&String| asked.get(*name).is_none_or(|at| at.elapsed() >= ASK_EVERY);
    let mut due: Vec<&String> = there.iter().filter(is_due).collect();
    due.sort_by_key(|name| asked.get(*name));
    due.into_iter().take(ASKED_AT_MOST).cloned().collect()
}

/// The rights in a namespace. A member that does not answer says nothing of them.
async fn rules(client: &Client, namespace: &str) -> Option<SubjectRulesReviewStatus> {
    let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) };
    let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let api: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let params = PostParams::default();
    match tokio::time::timeout(ANSWER_LIMIT, api.create(&params, &review)).await.ok()? {
        Ok(review) => review.status,
        Err(error) => {
            let error = foreign_text(&portolan_runtime::chain(&error));
            tracing::debug!(namespace, error, "a member does not say which rights the hub has");
            None
        }
    }
}

/// What is needed and not granted; nothing if that cannot be told, because an authorizer does not list its rules.
fn lacking(rules: &SubjectRulesReviewStatus, needed: &[NeededRight]) -> Option<Vec<String>> {
    let granted = |right: &NeededRight, verb: &str| {
        rules.resource_rules.iter().any(|rule| grants(rule, right.group, right.resource, verb))
    };
    let missing = needed.iter().filter_map(|right| {
        let verbs: Vec<&str> = right.verbs.iter().copied().filter(|verb| !granted(right, verb)).collect();
        let group = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
        (!verbs.is_empty()).then(|| format!("{} {}{group}", verbs.join("/"), right.resource))
    });
    let missing: Vec<String> = missing.collect();
    (missing.is_empty() || !rules.incomplete).then_some(missing)
}

pub(crate) fn grants(rule: &ResourceRule, group: &str, resource: &str, verb: &str) -> bool {
    let has = |list: &[String], name: &str| list.iter().any(|each| each == "*" || each == name);
    has(&rule.verbs, verb)
        && has(rule.api_groups.as_deref().unwrap_or_default(), group)
        && has(rule.resources.as_deref().unwrap_or_default(), resource)
        && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NEEDED: &[NeededRight] = &[
        NeededRight { group: "apps", resource: "deployments", verbs: &["patch", "delete"] },
        NeededRight { group: "", resource: "services", verbs: &["patch"] },
    ];

    fn status(rules: serde_json::Value, incomplete: bool) -> SubjectRulesReviewStatus {
        let status = json!({"resourceRules": rules, "nonResourceRules": [], "incomplete": incomplete});
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn what_no_rule_grants_is_missing_unless_rules_may_be_untold() {
        let rules = json!([
            {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["deployments"]},
            {"verbs": ["delete"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]},
        ]);
        let missing = lacking(&status(rules.clone(), false), NEEDED);
        assert_eq!(missing, Some(vec!["delete deployments.apps".to_owned(), "patch services".to_owned()]));
        assert_eq!(lacking(&status(rules, true), NEEDED), None);
        let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        assert_eq!(lacking(&status(all, true), NEEDED), Some(Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn every_namespace_is_asked_about_however_many_there_are() {
        let there: BTreeSet<String> = (0..1000).map(|number| format!("n{number:04}")).collect();
        let mut asked = BTreeMap::new();
        for _ in 0..1000_usize.div_ceil(ASKED_AT_MOST) {
            tokio::time::sleep(LOOK_EVERY).await;
            asked.extend(due(&there, &asked).into_iter().map(|name| (name, Instant::now())));
        }
        assert_eq!(asked.len(), there.len());
    }

    #[test]
    fn what_is_missing_is_told_by_namespace_once_and_forgotten_with_it() {
        let missing = MissingRights::default();
        assert!(!missing.set("shop", Vec::new()));
        assert!(missing.set("shop", vec!["patch services".to_owned()]));
        assert!(!missing.set("shop", vec!["patch services".to_owned()]));
        assert!(missing.text().is_some_and(|text| text.contains("patch services in namespace shop.")));
        assert!(missing.keep_only(&BTreeSet::new()));
        assert_eq!(missing.text(), None);
    }
}
