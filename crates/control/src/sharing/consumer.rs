//! The consumer's side: what an offer makes of the room of a member.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::foreigncluster::{OfferAcceptance, OutgoingPeering, OutgoingStatus};
use portolan_api::resourceoffer::OFFER_NAME;
use portolan_api::{API_VERSION, ForeignCluster, Reason, ResourceOffer};
use portolan_core::capacity::{Amounts, Quota};
use portolan_core::sharing::{Acceptance, Conditions, OfferView, accept};
use portolan_runtime::{Clock, Index, Key, call, chain};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who writes in the provider that an offer is accepted.
const CONSUMER: &str = "portolan-consumer";

/// What became of an offer.
pub(crate) struct Judged {
    /// What is told of it on the ForeignCluster.
    pub(crate) finding: Finding,
    /// Its numbers; nothing if those that were told before stand.
    pub(crate) status: Option<OutgoingStatus>,
    /// What may be used of the member; nothing if what was before stands.
    pub(crate) quota: Option<Quota>,
    /// The offer, and what is to be told of it to the provider.
    offer: Option<Arc<ResourceOffer>>,
}

/// What may be used of a member by what its ForeignCluster says, as long as its offer has not been read.
pub(crate) fn recorded_quota(cluster: &ForeignCluster) -> Option<Quota> {
    cluster.spec.outgoing.as_ref()?;
    let status = cluster.status.clone().unwrap_or_default();
    let accepted = conditions::is_true(&status.conditions, ConditionType::OfferAccepted);
    let outgoing = status.outgoing.filter(|_| accepted);
    let Some(outgoing) = outgoing else { return Some(closed("its offer is not known yet")) };
    let hard = Amounts::parse(&outgoing.offered).unwrap_or_default();
    Some(Quota { hard, namespaces: outgoing.namespaces.into_iter().collect(), closed: None })
}

fn closed(why: &str) -> Quota {
    Quota { closed: Some(why.to_owned()), ..Quota::default() }
}

/// Decides about the offer of a member, as far as it is known. Nothing is decided about it before it was listed.
pub(crate) fn judge(
    outgoing: &OutgoingPeering,
    offers: &Index<ResourceOffer>,
    clock: &Clock,
) -> Option<Judged> {
    let namespace = &outgoing.tenant_namespace;
    if !offers.synced() {
        let failure = offers.health().failure()?;
        let message = format!(
            "ResourceOffer {namespace}/{OFFER_NAME} of the cluster cannot be read, and the last one that was read counts: {}",
            failure.error
        );
        let finding = Finding::new(
            ConditionType::OfferAccepted,
            ConditionStatus::Unknown,
            Reason::OfferUnreadable,
            message,
        );
        return Some(Judged { finding, status: None, quota: None, offer: None });
    }
    let offer = offers.get(&Key::new(namespace, OFFER_NAME));
    let view = match offer.as_deref().map(view).transpose() {
        Ok(view) => view,
        Err(problem) => {
            let message = format!("ResourceOffer {namespace}/{OFFER_NAME} of the cluster: {problem}");
            let finding =
                Finding::new(ConditionType::OfferAccepted, false, Reason::OfferUnreadable, message.clone());
            return Some(Judged { finding, status: None, quota: Some(closed(&message)), offer: None });
        }
    };
    let acceptance = match minimum(outgoing) {
        Ok(asked) => accept(&asked, view.as_ref(), clock.now()),
        Err(message) => {
            let finding =
                Finding::new(ConditionType::OfferAccepted, false, Reason::InvalidSpec, message.clone());
            return Some(Judged { finding, status: None, quota: Some(closed(&message)), offer: None });
        }
    };
    let mut message = acceptance.message();
    if acceptance == Acceptance::Awaiting {
        message.push_str(": `portolan accept-offer CLUSTER`");
    }
    let quota = match (&acceptance, &view, &offer) {
        (Acceptance::Accepted, Some(view), Some(offer)) => {
            Quota { hard: view.resources.clone(), namespaces: namespaces(offer, namespace), closed: None }
        }
        _ => closed(&message),
    };
    let holds = acceptance == Acceptance::Accepted;
    let finding = Finding::new(ConditionType::OfferAccepted, holds, reason(&acceptance), message);
    let status = offer.as_deref().map(|offer| status(offer, namespace)).unwrap_or_default();
    Some(Judged { finding, status: Some(status), quota: Some(quota), offer })
}

fn reason(acceptance: &Acceptance) -> Reason {
    match acceptance {
        Acceptance::Accepted => Reason::OfferAccepted,
        Acceptance::NotFound => Reason::OfferNotFound,
        Acceptance::Expired(_) => Reason::OfferExpired,
        Acceptance::BelowMinimum(_) => Reason::OfferBelowMinimum,
        Acceptance::Awaiting => Reason::OfferAwaitsAcceptance,
    }
}

fn minimum(outgoing: &OutgoingPeering) -> Result<Conditions, String> {
    let minimum = Amounts::parse(&outgoing.minimum)
        .map_err(|(name, error)| format!("spec.outgoing.minimum[{name}] cannot be read: {error}"))?;
    let by_hand = (outgoing.acceptance == OfferAcceptance::Manual).then(|| outgoing.accepted_offer.clone());
    Ok(Conditions { by_hand, minimum })
}

fn view(offer: &ResourceOffer) -> Result<OfferView, String> {
    let resources = Amounts::parse(&offer.spec.resources)
        .map_err(|(name, error)| format!("spec.resources[{name}] cannot be read: {error}"))?;
    Ok(OfferView {
        uid: offer.metadata.uid.clone().unwrap_or_default(),
        resources,
        expires_at: offer.spec.expires_at.as_ref().map(|time| time.0),
    })
}

/// The namespaces whose pods use an offer.
fn namespaces(offer: &ResourceOffer, home: &str) -> BTreeSet<String> {
    let told = offer.status.iter().flat_map(|status| &status.namespaces);
    told.map(|namespace| namespace.name.clone()).chain([home.to_owned()]).collect()
}

fn status(offer: &ResourceOffer, home: &str) -> OutgoingStatus {
    let told = offer.status.clone().unwrap_or_default();
    OutgoingStatus {
        offer: offer.metadata.uid.clone(),
        offered: offer.spec.resources.clone(),
        used: told.used,
        namespaces: namespaces(offer, home).into_iter().collect(),
        storage_classes: offer.spec.storage_classes.iter().map(|class| class.name.clone()).collect(),
        expires_at: offer.spec.expires_at.clone(),
    }
}

/// Tells the provider what became of its offer, unless it knows. It is asked for nothing else, so a failure does no harm.
pub(crate) async fn tell_provider(client: &Client, judged: &Judged, clock: &Clock) {
    let Some(offer) = &judged.offer else { return };
    let told = offer.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let mut conditions: Vec<Condition> = told;
    let finding = Finding { type_: ConditionType::Accepted, ..judged.finding.clone() };
    if !conditions::set(&mut conditions, finding, offer.metadata.generation, clock.now()) {
        return;
    }
    conditions.retain(|condition| condition.type_ == ConditionType::Accepted.as_str());
    let namespace = offer.metadata.namespace.clone().unwrap_or_default();
    let object = json!({
        "apiVersion": API_VERSION, "kind": "ResourceOffer",
        "metadata": { "name": OFFER_NAME, "namespace": namespace }, "status": { "conditions": conditions },
    });
    let api: Api<ResourceOffer> = Api::namespaced(client.clone(), &namespace);
    let params = PatchParams::apply(CONSUMER).force();
    let what = format!("tell that ResourceOffer {namespace}/{OFFER_NAME} is accepted or not");
    if let Err(error) = call(what, api.patch_status(OFFER_NAME, &params, &Patch::Apply(&object))).await {
        tracing::debug!(error = %chain(&error), "the provider does not know whether its offer is accepted");
    }
}
