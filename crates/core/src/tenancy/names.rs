//! What everything about an invitation is called, so that nobody has to search.

/// The organization of every certificate of a tenant, and so the group that all tenants are in.
pub const GROUP: &str = "portolan:tenants";

/// What the names of tenants' users begin with.
const USER: &str = "portolan:tenant:";

/// The longest name that a certificate can hold.
const LONGEST_USER: usize = 64;

/// How many characters the name of an invitation has.
pub const INVITATION_LENGTH: usize = 10;

/// The letters and digits of which it is made: none that is mistaken for another one.
pub const INVITATION_LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";

/// What the names of tenants' namespaces begin with.
const NAMESPACE: &str = "portolan-tenant-";

/// The longest name of a ForeignCluster that can have a tenant: the namespace of the tenant is named after it.
pub const LONGEST_FOREIGN_CLUSTER: usize = 63 - NAMESPACE.len();

/// The Lease in the namespace of a tenant by which the consumer says that it has its credential.
pub const LEASE: &str = "consumer";

/// The service account in the namespace of a tenant whose token its consumer has where nobody signs certificates.
pub const TENANT_ACCOUNT: &str = "portolan-consumer";

/// Whether a text can be the name of an invitation.
#[must_use]
pub fn is_invitation(name: &str) -> bool {
    name.len() == INVITATION_LENGTH && name.bytes().all(|byte| INVITATION_LETTERS.contains(&byte))
}

/// Whether a text has the form of a cluster's identity: 32 hexadecimal digits in five groups.
#[must_use]
pub fn is_cluster_id(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let digit = |byte: u8| byte == b'-' || byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(digit)
}

/// Whether a text can be the name of a cluster or a namespace.
#[must_use]
pub fn is_label(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte != b'-');
    name.len() <= 63 && name.bytes().all(fine) && edge(name.bytes().next()) && edge(name.bytes().last())
}

/// Who a certificate is for: a consumer, by one invitation. Another invitation makes another user, so that a certificate of
/// an earlier peering is never worth anything again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    /// The identity of the consumer's cluster.
    pub cluster: String,
    /// The invitation that it came by.
    pub invitation: String,
}

impl Tenant {
    /// The user that the API server takes it for: the common name of its certificate.
    #[must_use]
    pub fn user(&self) -> String {
        format!("{USER}{}:{}", self.cluster, self.invitation)
    }

    /// Who a user is, if it is a tenant.
    #[must_use]
    pub fn of_user(user: &str) -> Option<Self> {
        let (cluster, invitation) = user.strip_prefix(USER)?.split_once(':')?;
        let fine = user.len() <= LONGEST_USER && is_cluster_id(cluster) && is_invitation(invitation);
        fine.then(|| Self { cluster: cluster.to_owned(), invitation: invitation.to_owned() })
    }

    /// The name of the requests by which it renews its certificate.
    #[must_use]
    pub fn renewal(&self) -> String {
        renewal(&self.invitation)
    }
}

/// The name of the requests for a new certificate of a tenant that came by an invitation.
#[must_use]
pub fn renewal(invitation: &str) -> String {
    format!("portolan-renewal-{invitation}")
}

/// The name of the only request for a certificate that an invitation allows.
#[must_use]
pub fn request(invitation: &str) -> String {
    format!("portolan-invitation-{invitation}")
}

/// The service account whose token is in the line.
#[must_use]
pub fn account(invitation: &str) -> String {
    format!("invitation-{invitation}")
}

/// The user that the API server takes that account for.
#[must_use]
pub fn account_user(namespace: &str, invitation: &str) -> String {
    format!("system:serviceaccount:{namespace}:{}", account(invitation))
}

/// The user that the API server takes the service account of a tenant for, by the namespace of the tenant.
#[must_use]
pub fn tenant_account_user(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:{TENANT_ACCOUNT}")
}

/// What the users of all service accounts in namespaces of tenants begin with.
#[must_use]
pub fn tenant_account_users() -> String {
    format!("system:serviceaccount:{NAMESPACE}")
}

/// The namespace of a tenant, by the name of its ForeignCluster.
#[must_use]
pub fn tenant_namespace(foreign_cluster: &str) -> String {
    format!("{NAMESPACE}{foreign_cluster}")
}

/// The name of the ForeignCluster of a consumer: what it is to be called, and a part of its identity if others are called that.
#[must_use]
pub fn foreign_cluster(wish: &str, cluster: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let cut = |text: &str, most: usize| text.get(..most).unwrap_or(text).trim_end_matches('-').to_owned();
    let plain = cut(wish, LONGEST_FOREIGN_CLUSTER);
    let with = |digits: usize| {
        let part = cut(cluster, digits);
        format!("{}-{part}", cut(&plain, LONGEST_FOREIGN_CLUSTER - part.len() - 1))
    };
    let longer = [8, 13, 18, 23].map(with).into_iter().find(|name| !is_taken(name));
    if is_taken(&plain) { longer.unwrap_or_else(|| with(36)) } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "3fa2bc91-1111-2222-3333-444455556666";

    #[test]
    fn a_foreign_cluster_is_called_as_wished_and_its_namespace_has_a_name() {
        let named = |wish: &str, taken: &[&str]| foreign_cluster(wish, CLUSTER, |name| taken.contains(&name));
        assert_eq!(named("rome", &["milan"]), "rome");
        assert_eq!(named("rome", &["rome"]), "rome-3fa2bc91");
        assert_eq!(named("rome", &["rome", "rome-3fa2bc91"]), "rome-3fa2bc91-1111");
        for length in 1..64 {
            let long = "a-".repeat(32)[..length].trim_end_matches('-').to_owned();
            for name in [
                named(&long, &[]),
                named(&long, &[&named(&long, &[])]),
                foreign_cluster(&long, CLUSTER, |_| true),
            ] {
                assert!(is_label(&tenant_namespace(&name)), "{name}");
            }
        }
    }

    #[test]
    fn the_account_of_a_tenant_is_among_those_that_the_policy_is_about_and_is_no_tenant_by_certificate() {
        let user = tenant_account_user(&tenant_namespace("rome"));
        assert_eq!(user, "system:serviceaccount:portolan-tenant-rome:portolan-consumer");
        assert!(user.starts_with(&tenant_account_users()));
        assert!(!account_user("portolan", "abcdefgh23").starts_with(&tenant_account_users()));
        assert_eq!(Tenant::of_user(&user), None);
    }

    #[test]
    fn a_user_is_read_back_and_fits_into_a_certificate() {
        let tenant = Tenant { cluster: CLUSTER.to_owned(), invitation: "abcdefgh23".to_owned() };
        assert!(tenant.user().len() <= LONGEST_USER, "{}", tenant.user());
        assert_eq!(Tenant::of_user(&tenant.user()), Some(tenant));
        let others = [
            "portolan:tenant:paris:abcdefgh23",
            "portolan:tenant:3fa2bc91-1111-2222-3333-444455556666:short",
            "portolan:tenant:3FA2BC91-1111-2222-3333-444455556666:abcdefgh23",
            "system:serviceaccount:portolan:invitation-abcdefgh23",
            "system:masters",
        ];
        assert!(others.iter().all(|user| Tenant::of_user(user).is_none()));
    }
}
