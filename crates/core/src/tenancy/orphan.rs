//! What is left of a tenant that nothing stands for any more.

use super::names::Tenant;
use std::collections::BTreeSet;

/// Whose orphan something is that was made for the tenant of a ForeignCluster; nothing if it is none, or if Portolan has not
/// made it. `standing` are the ForeignClusters that have a tenant, or keep what a tenant has left until it is removed.
///
/// Somebody has torn the ForeignCluster out, or has taken its finalizer and then its tenant.
#[must_use]
pub fn orphan(
    foreign_cluster: Option<&str>,
    user: Option<&str>,
    standing: &BTreeSet<String>,
) -> Option<Tenant> {
    let foreign_cluster = foreign_cluster?;
    user.and_then(Tenant::of_user).filter(|_| !standing.contains(foreign_cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_foreign_cluster_or_is_not_portolans_is_left_alone() {
        let user = "portolan:tenant:3fa2bc91-1111-2222-3333-444455556666:abcdefgh23";
        let standing = BTreeSet::from(["rome".to_owned()]);
        assert_eq!(orphan(Some("milan"), Some(user), &standing), Tenant::of_user(user));
        assert_eq!(orphan(Some("rome"), Some(user), &standing), None);
        assert_eq!(orphan(Some("milan"), None, &standing), None);
        assert_eq!(orphan(Some("milan"), Some("jane"), &standing), None);
        assert_eq!(orphan(None, Some(user), &standing), None);
    }
}
