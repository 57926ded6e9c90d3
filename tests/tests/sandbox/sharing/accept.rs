//! The consumer accepts an offer, or not, and places within it.

use super::*;
use crate::stage::{contend, deployments, pass, patch, ready, replicas, status};
use portolan_tests::simulation::Contender;

#[tokio::test(start_paused = true)]
async fn a_hub_places_within_the_offer_and_all_of_it_can_be_used() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let _hub = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &web(9, "500m")).await;
    pass(180).await;
    let told = status(&fleet, "web").await;
    assert_eq!((told.replicas, told.pending_replicas), (8, 1), "the nodes have room for 16");
    let message = told.pending[0].message.clone().unwrap_or_default();
    assert!(message.contains("0 is left of the 4 that the cluster offers"), "{message}");
    assert_eq!(
        ready(&fleet, "web").await,
        8,
        "the quota went to where pods wait: {:?}",
        quotas(&fleet).await
    );
    assert!(admitted(&fleet).await <= 4000);
    share(&fleet, json!({"percentage": 75})).await;
    pass(120).await;
    assert_eq!(ready(&fleet, "web").await, 9, "{:?}", quotas(&fleet).await);
}

#[tokio::test(start_paused = true)]
async fn an_offer_waits_for_a_user_and_for_its_minimum() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let user = fleet.hub.client("user");
    spec_of(&user, "milan", json!({"outgoing": {"acceptance": "Manual"}})).await;
    let _hub = contend(&fleet, Contender::alone());
    apply(&user, &web(2, "500m")).await;
    pass(60).await;
    assert_eq!(accepted(&fleet).await.0, "OfferAwaitsAcceptance");
    let told = status(&fleet, "web").await;
    assert_eq!(told.pending_replicas, 2);
    let message = told.pending[0].message.clone().unwrap_or_default();
    assert!(message.contains("accept-offer"), "{message}");
    let uid = offer(&fleet).await.metadata.uid;
    spec_of(&user, "milan", json!({"outgoing": {"acceptedOffer": uid}})).await;
    pass(60).await;
    assert_eq!((accepted(&fleet).await.0.as_str(), ready(&fleet, "web").await), ("OfferAccepted", 2));
    spec_of(&user, "milan", json!({"outgoing": {"minimum": {"cpu": "5"}}})).await;
    patch(&fleet, "web", json!({"replicas": 3})).await;
    pass(60).await;
    let (reason, message) = accepted(&fleet).await;
    assert_eq!(reason, "OfferBelowMinimum");
    assert!(message.contains("cpu 4 of at least 5"), "{message}");
    assert_eq!((ready(&fleet, "web").await, status(&fleet, "web").await.pending_replicas), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn an_offer_that_is_not_renewed_expires_and_what_runs_goes_on() {
    let (fleet, providing) = peers(json!({"percentage": 50})).await;
    let _hub = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &web(2, "500m")).await;
    pass(3600).await;
    assert_eq!(accepted(&fleet).await.0, "OfferAccepted", "it is renewed");
    providing.abort();
    pass(1860).await;
    assert_eq!(accepted(&fleet).await.0, "OfferExpired");
    patch(&fleet, "web", json!({"replicas": 3})).await;
    pass(60).await;
    assert_eq!((ready(&fleet, "web").await, status(&fleet, "web").await.pending_replicas), (2, 1));
    let _providing = begin(&fleet);
    pass(60).await;
    assert_eq!((accepted(&fleet).await.0.as_str(), ready(&fleet, "web").await), ("OfferAccepted", 3));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_starts_anew_keeps_within_what_is_on_record() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let hub = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &web(9, "500m")).await;
    pass(180).await;
    hub.abort();
    let _hub = contend(&fleet, Contender::alone());
    for _ in 0..60 {
        pass(1).await;
        assert!(replicas(&fleet, 0, "web").await.is_some_and(|replicas| replicas <= 8));
    }
    assert_eq!(ready(&fleet, "web").await, 8);
    deployments(&fleet, 0).get("web").await.unwrap();
}
