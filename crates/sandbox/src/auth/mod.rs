//! Who calls, and what they may do.

mod attributes;
mod bootstrap;
mod rbac;
mod review;
mod token;

pub(crate) use attributes::Attributes;
pub(crate) use bootstrap::bootstrap_roles;

/// A caller, as authentication tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, such as `jane` or `system:serviceaccount:default:robot`.
    pub name: String,
    /// The groups, such as `system:authenticated`.
    pub groups: Vec<String>,
}

impl User {
    /// A user of that name, in `system:authenticated` only.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: vec!["system:authenticated".to_owned()] }
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

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Somebody who has not said who they are.
    pub(crate) fn anonymous() -> Self {
        Self { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()] }
    }

    /// True for those whom no rule binds.
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}
