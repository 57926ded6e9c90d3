//! Who calls, and what they may do.

mod attributes;
mod bootstrap;
mod impersonation;
mod rbac;
mod review;
mod token;

pub(crate) use attributes::Attributes;
pub(crate) use bootstrap::bootstrap_roles;
pub(crate) use impersonation::impersonated;
pub(crate) use rbac::KnownRules;

use std::collections::BTreeMap;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// A caller, as authentication tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, such as `jane` or `system:serviceaccount:default:robot`.
    pub name: String,
    /// The groups, such as `system:authenticated`.
    pub groups: Vec<String>,
    /// What tells the user from others of the same name; often empty.
    pub uid: String,
    /// What else authentication tells.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of that name, in `system:authenticated` only.
    pub fn named(name: impl Into<String>) -> Self {
        let groups = vec![AUTHENTICATED.to_owned()];
        Self { name: name.into(), groups, uid: String::new(), extra: BTreeMap::new() }
    }

    /// The user who may do everything.
    #[must_use]
    pub fn admin() -> Self {
        Self::named("kubernetes-admin").group("system:masters")
    }

    /// A service account.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::named(format!("system:serviceaccount:{namespace}:{name}"))
            .group("system:serviceaccounts")
            .group(format!("system:serviceaccounts:{namespace}"))
    }

    /// Adds a group; `system:authenticated` stays the last.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        let end =
            self.groups.len() - usize::from(self.groups.last().is_some_and(|last| last == AUTHENTICATED));
        self.groups.insert(end, group.into());
        self
    }

    /// Somebody who has not said who they are.
    pub(crate) fn anonymous() -> Self {
        Self { groups: vec![UNAUTHENTICATED.to_owned()], ..Self::named(ANONYMOUS) }
    }

    /// True for those whom no rule binds.
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}
