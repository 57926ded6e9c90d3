//! Whether a request for a certificate is signed.

use super::names::{self, GROUP, Tenant};
use super::request::CertificateRequest;
use jiff::Timestamp;

/// The signer of certificates for clients.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// For how many seconds a certificate of a tenant may be asked for.
pub const SHORTEST_LIFE: i32 = 600;
/// As above, at most: thirty days.
pub const LONGEST_LIFE: i32 = 30 * 24 * 3600;

/// The usages that a certificate of a tenant has.
const USAGES: [&str; 2] = ["client auth", "digital signature"];

/// A request as the API server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Who asks, as the API server has authenticated it.
    pub requester: String,
    /// The signer that is asked.
    pub signer: String,
    /// What the certificate is to be used for.
    pub usages: Vec<String>,
    /// For how many seconds.
    pub seconds: Option<i32>,
    /// Whether it has finalizers or owners, or is being deleted: another one may soon have its name.
    pub is_bound: bool,
    /// What is to be signed.
    pub request: CertificateRequest,
}

/// What an invitation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited<'a> {
    /// Its name.
    pub invitation: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// When it ends.
    pub expires: Timestamp,
    /// The key that was accepted already, if one was.
    pub key_digest: Option<&'a str>,
    /// The identity of the cluster that invites.
    pub provider: &'a str,
}

/// Why a request is not signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Somebody else than the account of the invitation asks.
    #[error("the request is made by {found}, and only {expected} may make it")]
    Requester {
        /// Who may.
        expected: String,
        /// Who did.
        found: String,
    },
    /// Too late.
    #[error("the invitation has expired at {0}")]
    Expired(Timestamp),
    /// Another key was accepted before.
    #[error("the invitation was used already, by another key")]
    OtherKey,
    /// An object that does not go when it is deleted, or with another one.
    #[error("the request has finalizers or owners, or is being deleted")]
    Bound,
    /// The consumer is the provider.
    #[error("a cluster cannot peer with itself (kube-system has uid {0} in both)")]
    Itself(String),
    /// The subject is not the one that is prescribed.
    #[error("the subject is {found}, and must be CN={expected}, O={GROUP}")]
    Subject {
        /// The user that is prescribed.
        expected: String,
        /// What was asked for.
        found: String,
    },
    /// More than a subject.
    #[error("the request asks for more than CN and O, such as alternative names")]
    More,
    /// Another signer.
    #[error("the signer is {0}, and must be {SIGNER}")]
    Signer(String),
    /// Other usages.
    #[error("the usages are {0}, and must be client auth and digital signature")]
    Usages(String),
    /// Too long or too short.
    #[error("the certificate is asked for {0} s, and may be for {SHORTEST_LIFE} to {LONGEST_LIFE} s")]
    Life(i32),
    /// The lifetime was left out, and signers choose a year then.
    #[error("the request does not say for how long; {LONGEST_LIFE} s are the most")]
    NoLife,
}

/// Whether the first request of an invitation is signed, and for whom.
///
/// The same request is judged the same as often as it is asked, also after it was accepted: an interrupted consumer goes on.
///
/// # Errors
/// Why not.
pub fn judge(invited: &Invited<'_>, asked: &Asked, now: Timestamp) -> Result<Tenant, Refusal> {
    let expected = names::account_user(invited.namespace, invited.invitation);
    if asked.requester != expected {
        return Err(Refusal::Requester { expected, found: asked.requester.clone() });
    }
    match invited.key_digest {
        Some(digest) if digest != asked.request.key_digest => return Err(Refusal::OtherKey),
        None if now >= invited.expires => return Err(Refusal::Expired(invited.expires)),
        _ => {}
    }
    let user = asked.request.common_names.first().map(String::as_str).unwrap_or_default();
    let tenant = Tenant::of_user(user).filter(|tenant| tenant.invitation == invited.invitation);
    let Some(tenant) = tenant else {
        let expected = format!("portolan:tenant:CLUSTER-ID:{}", invited.invitation);
        return Err(Refusal::Subject { expected, found: subject(&asked.request) });
    };
    check(asked, &tenant)?;
    if tenant.cluster == invited.provider {
        return Err(Refusal::Itself(tenant.cluster));
    }
    Ok(tenant)
}

/// Whether a tenant's certificate is signed anew: it asks for itself and for nobody else.
///
/// # Errors
/// Why not.
pub fn judge_renewal(tenant: &Tenant, asked: &Asked) -> Result<(), Refusal> {
    if asked.requester != tenant.user() {
        return Err(Refusal::Requester { expected: tenant.user(), found: asked.requester.clone() });
    }
    check(asked, tenant)
}

/// What every certificate of a tenant must be.
fn check(asked: &Asked, tenant: &Tenant) -> Result<(), Refusal> {
    if asked.is_bound {
        return Err(Refusal::Bound);
    }
    let request = &asked.request;
    if request.common_names != [tenant.user()] || request.organizations != [GROUP] {
        return Err(Refusal::Subject { expected: tenant.user(), found: subject(request) });
    }
    if request.has_more {
        return Err(Refusal::More);
    }
    if asked.signer != SIGNER {
        return Err(Refusal::Signer(asked.signer.clone()));
    }
    let mut usages: Vec<&str> = asked.usages.iter().map(String::as_str).collect();
    usages.sort_unstable();
    if usages != USAGES {
        return Err(Refusal::Usages(usages.join(", ")));
    }
    match asked.seconds {
        None => Err(Refusal::NoLife),
        Some(seconds) if !(SHORTEST_LIFE..=LONGEST_LIFE).contains(&seconds) => Err(Refusal::Life(seconds)),
        Some(_) => Ok(()),
    }
}

/// What a stranger calls itself, cut short.
fn subject(request: &CertificateRequest) -> String {
    let cut = |texts: &[String]| -> String {
        texts.join("+").chars().filter(|c| !c.is_control()).take(100).collect()
    };
    format!("CN={}, O={}", cut(&request.common_names), cut(&request.organizations))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROVIDER: &str = "00000000-1111-2222-3333-444455556666";
    const CONSUMER: &str = "3fa2bc91-1111-2222-3333-444455556666";
    const ID: &str = "abcdefgh23";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn tenant() -> Tenant {
        Tenant { cluster: CONSUMER.to_owned(), invitation: ID.to_owned() }
    }

    fn invited(key_digest: Option<&str>) -> Invited<'_> {
        Invited { invitation: ID, namespace: "portolan", expires: at(1000), key_digest, provider: PROVIDER }
    }

    fn asked() -> Asked {
        Asked {
            is_bound: false,
            requester: format!("system:serviceaccount:portolan:invitation-{ID}"),
            signer: SIGNER.to_owned(),
            usages: vec!["digital signature".to_owned(), "client auth".to_owned()],
            seconds: Some(3600),
            request: CertificateRequest {
                common_names: vec![tenant().user()],
                organizations: vec![GROUP.to_owned()],
                has_more: false,
                key_digest: "k1".to_owned(),
            },
        }
    }

    type Edit = fn(&mut Asked);
    const WRONG: [Edit; 14] = [
        |asked| asked.is_bound = true,
        |asked| asked.requester = "system:serviceaccount:portolan:invitation-other".to_owned(),
        |asked| asked.signer = "kubernetes.io/kubelet-serving".to_owned(),
        |asked| asked.usages.push("server auth".to_owned()),
        |asked| asked.usages.truncate(1),
        |asked| asked.seconds = None,
        |asked| asked.seconds = Some(599),
        |asked| asked.seconds = Some(LONGEST_LIFE + 1),
        |asked| asked.request.common_names = vec!["kubernetes-admin".to_owned()],
        |asked| asked.request.common_names.push("kubernetes-admin".to_owned()),
        |asked| asked.request.organizations = vec!["system:masters".to_owned()],
        |asked| asked.request.organizations.push("system:nodes".to_owned()),
        |asked| asked.request.organizations.clear(),
        |asked| asked.request.has_more = true,
    ];

    #[test]
    fn what_is_prescribed_is_signed_and_every_deviation_is_refused() {
        assert_eq!(judge(&invited(None), &asked(), at(999)), Ok(tenant()));
        for (number, edit) in WRONG.iter().enumerate() {
            let mut wrong = asked();
            edit(&mut wrong);
            assert!(judge(&invited(None), &wrong, at(1)).is_err(), "{number}: {wrong:?}");
            let mut renewal = Asked { requester: tenant().user(), ..asked() };
            assert_eq!(judge_renewal(&tenant(), &renewal), Ok(()));
            edit(&mut renewal);
            assert!(judge_renewal(&tenant(), &renewal).is_err(), "{number}: {renewal:?}");
        }
    }

    #[test]
    fn an_invitation_is_for_one_key_one_cluster_and_a_while() {
        assert_eq!(judge(&invited(None), &asked(), at(1000)), Err(Refusal::Expired(at(1000))));
        assert_eq!(judge(&invited(Some("k1")), &asked(), at(2000)), Ok(tenant()), "an accepted one goes on");
        assert_eq!(judge(&invited(Some("k2")), &asked(), at(1)), Err(Refusal::OtherKey));
        let own = Tenant { cluster: PROVIDER.to_owned(), ..tenant() };
        let mut itself = asked();
        itself.request.common_names = vec![own.user()];
        assert_eq!(judge(&invited(None), &itself, at(1)), Err(Refusal::Itself(PROVIDER.to_owned())));
        let other = Tenant { invitation: "zzzzzzzz22".to_owned(), ..tenant() };
        let mut stranger = asked();
        stranger.request.common_names = vec![other.user()];
        assert!(matches!(judge(&invited(None), &stranger, at(1)), Err(Refusal::Subject { .. })));
    }

    proptest! {
        /// Whatever is asked for, what is signed is one user of this invitation in one group.
        #[test]
        fn nobody_else_is_ever_signed(
            names in proptest::collection::vec("(portolan:tenant:|system:)?[a-f0-9-]{0,36}(:[a-z2-8]{0,10})?", 0..3),
            groups in proptest::collection::vec("portolan:tenants|system:masters|[a-z:]{0,8}", 0..3),
            own in any::<bool>(),
        ) {
            let mut wild = asked();
            wild.request.common_names = if own { vec![tenant().user()] } else { names };
            wild.request.organizations = groups;
            if let Ok(signed) = judge(&invited(None), &wild, at(1)) {
                prop_assert_eq!(&signed.invitation, ID);
                prop_assert_eq!(wild.request.common_names, vec![signed.user()]);
                prop_assert_eq!(wild.request.organizations, vec![GROUP.to_owned()]);
            }
        }
    }
}
