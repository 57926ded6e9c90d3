//! Admission webhooks that keep the API server from storing what Portolan writes.

use super::Finding;
use super::words::{count, listed};

/// What a webhook is asked about.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// API groups; `*` is all.
    pub groups: Vec<String>,
    /// Resources; `*` is all without subresources, `*/*` all.
    pub resources: Vec<String>,
}

impl Rule {
    /// Whether the rule is about the resource of this group.
    #[must_use]
    pub fn covers(&self, group: &str, resource: &str) -> bool {
        let group = self.groups.iter().any(|each| each == "*" || each == group);
        let names = |each: &String| {
            let base = each.split('/').next().unwrap_or_default();
            (base == "*" || base == resource) && matches!(each.split('/').nth(1), None | Some("*"))
        };
        group && self.resources.iter().any(names)
    }
}

/// What answers for a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A Service, with so many ready endpoints.
    Ready(usize),
    /// There is no such Service.
    NoService,
    /// A URL, which is not asked.
    Url(String),
    /// It could not be looked at, for want of this right.
    Unknown(String),
}

/// A webhook.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Its configuration and name, such as `ValidatingWebhookConfiguration policy, webhook a.example`.
    pub called: String,
    /// Whether requests fail when it does not answer.
    pub fails: bool,
    /// What it is asked about.
    pub rules: Vec<Rule>,
    /// Namespace, name and port of its Service, or its URL.
    pub target: String,
    /// What answers.
    pub backend: Backend,
}

/// The webhooks of a cluster, and what Portolan writes there.
#[derive(Clone, Debug, Default)]
pub struct Webhooks {
    /// All of them.
    pub all: Vec<Webhook>,
    /// Group and resource of what is written.
    pub written: Vec<(String, String)>,
}

impl Webhooks {
    pub(super) fn judge(&self) -> Finding {
        let covers = |webhook: &&Webhook| {
            webhook
                .rules
                .iter()
                .any(|rule| self.written.iter().any(|(group, resource)| rule.covers(group, resource)))
        };
        let relevant: Vec<&Webhook> = self.all.iter().filter(|each| each.fails).filter(covers).collect();
        let told = |webhook: &&&Webhook| {
            let Webhook { called, target, .. } = webhook;
            match &webhook.backend {
                Backend::NoService => Some(format!("{called}: Service {target} does not exist")),
                Backend::Ready(0) => Some(format!("{called}: Service {target} has no ready endpoint")),
                _ => None,
            }
        };
        let broken: Vec<String> = relevant.iter().filter_map(|each| told(&each)).collect();
        if !broken.is_empty() {
            return Finding::problem(
                format!(
                    "requests of Portolan are refused by webhooks that do not answer: {}",
                    listed(&broken)
                ),
                "start the pods behind the Service, or delete the configuration, or set its failurePolicy to Ignore",
            );
        }
        let unasked = |webhook: &&&Webhook| match &webhook.backend {
            Backend::Url(url) => Some(format!("{} is at {url}, which is not asked", webhook.called)),
            Backend::Unknown(right) => Some(format!("{}: you may not {right}", webhook.called)),
            Backend::Ready(_) | Backend::NoService => None,
        };
        let unasked: Vec<String> = relevant.iter().filter_map(|each| unasked(&each)).collect();
        if !unasked.is_empty() {
            return Finding::unknown(listed(&unasked), "look whether they answer");
        }
        if relevant.is_empty() {
            let all = count(self.all.len(), "webhook");
            return Finding::healthy(format!(
                "{all}: none makes requests of Portolan fail when it does not answer"
            ));
        }
        Finding::healthy(format!(
            "{}; {} refuse what Portolan writes when they do not answer, and all of them have endpoints",
            count(self.all.len(), "webhook"),
            relevant.len()
        ))
    }
}
