//! What the caller and the account of the controller may do in the hub.

use super::report::{Sheet, unasked};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use portolan_control::peering::{CONTROLLER, NAMESPACE, Need, PeerError, hub_needs, missing, of_hub};
use portolan_core::doctor::{Check, Evidence, Rights};
use portolan_runtime::{CallError, call, chain, foreign_text};

/// How many questions are asked at the same time.
const AT_ONCE: usize = 8;

/// Whether the caller may make members; others need not.
pub(super) async fn of_caller(sheet: &Sheet, hub: &Client) {
    let needs = of_hub();
    let whose = caller(hub).await;
    let evidence = match missing(hub, &needs).await {
        Ok(missing) => Evidence::Rights(Rights {
            whose,
            asked: needs.len(),
            missing,
            grant:
                "these rights are for `portolan peer`: ask an administrator of the hub to run it, or for them"
                    .to_owned(),
            optional: true,
        }),
        Err(error) => of_peer_error(&error, "create selfsubjectaccessreviews.authorization.k8s.io"),
    };
    sheet.add(Check::CallerRights, "", &evidence);
}

/// Who asks, as the hub sees it.
async fn caller(hub: &Client) -> String {
    let api: Api<SelfSubjectReview> = Api::all(hub.clone());
    let answer =
        call("ask who asks", api.create(&PostParams::default(), &SelfSubjectReview::default())).await;
    let name = answer.ok().and_then(|review| review.status?.user_info?.username);
    name.map_or("the user of this kubeconfig".to_owned(), |name| foreign_text(&name))
}

/// What could not be asked about rights.
pub(super) fn of_peer_error(error: &PeerError, right: &str) -> Evidence {
    match error {
        PeerError::Call(error) => unasked(error, right),
        other => Evidence::NotAsked { why: foreign_text(&chain(other)), advice: String::new() },
    }
}

/// Whether the account of the controller has its rights, verb by verb.
pub(super) async fn of_controller(sheet: &Sheet, hub: &Client) {
    let target = format!("ServiceAccount {NAMESPACE}/{CONTROLLER}");
    let accounts: Api<ServiceAccount> = Api::namespaced(hub.clone(), NAMESPACE);
    let evidence = match call(format!("read {target}"), accounts.get_metadata(CONTROLLER)).await {
        Ok(_) => match lacking(hub).await {
            Ok((asked, missing)) => Evidence::Rights(Rights {
                whose: target.clone(),
                asked,
                missing,
                grant: "`portolan upgrade` or `helm upgrade` grants them where it was installed by that, and otherwise \
                        `portolan crds --roles | kubectl apply --server-side -f -`"
                    .to_owned(),
                optional: false,
            }),
            Err(error) => unasked(&error, "create subjectaccessreviews.authorization.k8s.io"),
        },
        Err(error) if error.is_not_found() => Evidence::NotAsked {
            why: format!(
                "{target} does not exist: the controller works with other credentials, which are not here"
            ),
            advice: "`portolan crds --roles` prints an account with the rights that it needs".to_owned(),
        },
        Err(error) => unasked(&error, &format!("get serviceaccounts in namespace {NAMESPACE}")),
    };
    sheet.add(Check::ControllerRights, &target, &evidence);
}

/// How many rights were asked for, and those that are missing.
async fn lacking(hub: &Client) -> Result<(usize, Vec<String>), CallError> {
    let needs = hub_needs();
    let asked = needs.len();
    let api: Api<SubjectAccessReview> = Api::all(hub.clone());
    let ask = |need: Need| {
        let api = api.clone();
        async move {
            let groups = [
                "serviceaccounts".to_owned(),
                format!("serviceaccounts:{NAMESPACE}"),
                "authenticated".to_owned(),
            ];
            let spec = SubjectAccessReviewSpec {
                user: Some(format!("system:serviceaccount:{NAMESPACE}:{CONTROLLER}")),
                groups: Some(groups.map(|group| format!("system:{group}")).to_vec()),
                resource_attributes: Some(need.attributes()),
                ..SubjectAccessReviewSpec::default()
            };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            let what = format!("ask whether the controller may {}", need.text());
            let answer = call(what, api.create(&PostParams::default(), &review)).await?;
            Ok::<_, CallError>(answer.status.is_none_or(|status| !status.allowed).then(|| need.text()))
        }
    };
    let answers: Vec<Option<String>> =
        futures::stream::iter(needs.into_iter().map(ask)).buffered(AT_ONCE).try_collect().await?;
    Ok((asked, answers.into_iter().flatten().collect()))
}
