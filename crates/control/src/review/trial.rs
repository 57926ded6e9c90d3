//! Copies tried in members by a dry run: what each member would say, and whether its pods would be replaced.

use super::cluster::as_it_is;
use crate::copies::{Kind, insert};
use crate::driver::PreparedCopy;
use crate::fleet::Member;
use crate::names::{FIELD_MANAGER, HUB_LABEL, WORKLOAD_LABEL};
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::Reason;
use portolan_api::placementreview::{ObjectReview, ReviewError, ReviewResult};
use portolan_core::placement::Refusal;
use portolan_runtime::{CallError, Key, chain, foreign_text};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::time::{Instant, timeout_at};

/// A template that so many members refuse is taken for invalid, however many others there are: the controller does the same.
const CONVINCING: usize = 8;

/// A version that no object has: what is applied with it is made where there is none.
const NONE_HAS: &str = "1";

/// What a member would say to a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    /// Nothing would be applied: the member holds it so already.
    Held,
    /// It would take it; `replaces` tells whether running pods would be replaced.
    Accepted {
        /// Whether running pods would be replaced.
        replaces: bool,
    },
    /// It finds the object itself invalid.
    Invalid(String),
    /// It refuses it for another reason: a word and a sentence.
    Refused(Reason, String),
    /// It could not be asked.
    Unknown(String),
}

impl Trial {
    /// Why the member does not take the copy, if so.
    fn refusal(&self) -> Option<Refusal> {
        let (reason, message) = match self {
            Self::Invalid(message) => (Reason::Refused, message),
            Self::Refused(reason, message) => (*reason, message),
            Self::Held | Self::Accepted { .. } | Self::Unknown(_) => return None,
        };
        Some(Refusal { reason, message: message.clone() })
    }

    /// What is told of a cluster that does not take the copy, with a word for an object that is itself invalid.
    pub(super) fn error(&self, cluster: &str, invalid: Reason) -> Option<ReviewError> {
        let refusal = self.refusal()?;
        let reason = if matches!(self, Self::Invalid(_)) { invalid } else { refusal.reason };
        let (cluster, message) = (Some(cluster.to_owned()), refusal.message);
        Some(ReviewError { cluster, reason: reason.into(), message })
    }
}

/// What members say to the copies of one object, by cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Trials(BTreeMap<String, Trial>);

impl Trials {
    pub(super) fn get(&self, cluster: &str) -> Option<&Trial> {
        self.0.get(cluster)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes what members said; answers whether one of them does not take its copy.
    pub(super) fn extend(&mut self, answers: BTreeMap<String, Trial>) -> bool {
        let refused = answers.values().any(|trial| trial.refusal().is_some());
        self.0.extend(answers);
        refused
    }

    /// The clusters that do not take the copy, and why.
    pub(super) fn refusing(&self) -> BTreeMap<String, Refusal> {
        let refusal = |(cluster, trial): (&String, &Trial)| Some((cluster.clone(), trial.refusal()?));
        self.0.iter().filter_map(refusal).collect()
    }

    /// Whether no member that was asked takes the template.
    pub(super) fn is_invalid(&self) -> bool {
        let mut asked = self.0.values().filter(|trial| !matches!(trial, Trial::Unknown(_))).peekable();
        asked.peek().is_some() && asked.all(|trial| matches!(trial, Trial::Invalid(_)))
    }

    /// Whether nobody else need be asked.
    pub(super) fn is_convincing(&self) -> bool {
        self.len() >= CONVINCING && self.is_invalid()
    }

    /// What is told of an object that no member takes: everything stays as it is.
    pub(super) fn invalid(&self, reason: Reason, held: &BTreeMap<String, u32>) -> ObjectReview {
        let invalid = self.0.iter().filter(|(_, trial)| matches!(trial, Trial::Invalid(_)));
        ObjectReview {
            result: ReviewResult::Invalid,
            errors: invalid.filter_map(|(cluster, trial)| trial.error(cluster, reason)).collect(),
            clusters: as_it_is(held),
            ..ObjectReview::default()
        }
    }
}

/// Tries copies, each under its own name, in the place of the one that is there, until some time.
pub(super) async fn try_copies<K: Kind + Serialize>(
    key: &Key,
    copies: Vec<(String, PreparedCopy)>,
    until: Instant,
) -> BTreeMap<String, Trial> {
    let tries = copies.into_iter().map(|(cluster, copy)| async move {
        let trial = match copy {
            PreparedCopy::Unreachable => Trial::Unknown("it does not answer".to_owned()),
            PreparedCopy::Held => Trial::Held,
            PreparedCopy::ToApply { member, object, owned } => {
                match timeout_at(until, attempt::<K>(&member, key, object, owned)).await {
                    Ok(Ok(trial)) => trial,
                    Ok(Err(error)) => judged(&error, &key.namespace),
                    Err(_) => {
                        Trial::Unknown("the time for this review was over before it answered".to_owned())
                    }
                }
            }
        };
        (cluster, trial)
    });
    futures::future::join_all(tries).await.into_iter().collect()
}

async fn attempt<K: Kind + Serialize>(
    member: &Member,
    key: &Key,
    mut object: Value,
    owned: bool,
) -> Result<Trial, CallError> {
    let (api, kind): (Api<K>, _) =
        (Api::namespaced(member.client.clone(), &key.namespace), K::kind(&()).into_owned());
    let look = format!("look for {kind} {key} in {}", member.name);
    let live = member.gate.ask(look, api.get_opt(&key.name)).await?;
    let version = match &live {
        Some(live) => {
            let label = |name: &str| live.meta().labels.as_ref().and_then(|labels| labels.get(name).cloned());
            let ours = |name: &str| label(name).as_deref() == object["metadata"]["labels"][name].as_str();
            let ours = owned || (ours(HUB_LABEL) && ours(WORKLOAD_LABEL));
            if !ours {
                let message =
                    format!("{kind} {key} exists there already and is not ours: rename one of the two");
                return Ok(Trial::Refused(Reason::NameTaken, message));
            }
            json!(live.meta().resource_version)
        }
        None => json!(NONE_HAS),
    };
    insert(&mut object, &["metadata"], "resourceVersion", version);
    if live.as_ref().is_some_and(|live| turns_to_recreate(live, &object)) {
        // The controller sets the strategy before it applies the rest: what is applied cannot take away the numbers for rolling
        // updates that the API server filled in, and with them this strategy is refused.
        object["spec"].as_object_mut().map(|spec| spec.remove("strategy"));
    }
    let params = PatchParams { dry_run: true, force: live.is_some(), ..PatchParams::apply(FIELD_MANAGER) };
    let what = format!("try {kind} {key} in {}", member.name);
    let applied = member.gate.ask(what, api.patch(&key.name, &params, &Patch::Apply(&object))).await?;
    Ok(Trial::Accepted { replaces: live.is_some_and(|live| template(&live) != template(&applied)) })
}

/// The template of the pods of an object, if its kind has one.
fn template<K: Serialize>(object: &K) -> Option<Value> {
    serde_json::to_value(object).ok()?.pointer("/spec/template").cloned()
}

/// Whether a Deployment is to end all pods before new ones start, and does not yet.
fn turns_to_recreate<K: Serialize>(live: &K, object: &Value) -> bool {
    let recreates =
        |object: &Value| object.pointer("/spec/strategy/type").is_some_and(|type_| type_ == "Recreate");
    recreates(object) && !serde_json::to_value(live).is_ok_and(|live| recreates(&live))
}

fn judged(error: &CallError, namespace: &str) -> Trial {
    let message = match error {
        CallError::Refused { source, .. } => match source.as_ref() {
            kube::Error::Api(status) => status.message.clone(),
            _ => chain(error),
        },
        _ => chain(error),
    };
    // A field that the schema does not have is an internal error to the API server.
    let untyped = message.contains("failed to create typed patch object");
    let text = foreign_text(&message);
    match error.code() {
        Some(400 | 422) => Trial::Invalid(text),
        _ if untyped => Trial::Invalid(text),
        Some(403) => Trial::Refused(
            Reason::Forbidden,
            format!("{text}; `portolan peer --namespace {namespace}` opens it to the hub"),
        ),
        Some(404) => Trial::Refused(Reason::NamespaceNotFound, text),
        Some(_) if error.is_final() => Trial::Refused(Reason::Refused, text),
        _ => Trial::Unknown(text),
    }
}
