//! What a request is about, as authorisation sees it.

use crate::error::{About, ApiError};

/// A verb on a resource, or on a path that is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Set for what is no resource.
    pub(crate) path: Option<String>,
}

impl Attributes {
    /// `pods` or `pods/status`, as roles name it.
    pub(crate) fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The refusal, in the words of the API server.
    pub(crate) fn forbidden(&self, user: &str) -> ApiError {
        if let Some(path) = &self.path {
            let mut out = ApiError::forbidden(About { group: "", resource: "", name: "" }, "");
            out.message = format!("forbidden: User {user:?} cannot {} path {path:?}", self.verb);
            out.details = None;
            return out;
        }
        let place = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let why = format!(
            "User {user:?} cannot {} resource {:?} in API group {:?} {place}",
            self.verb,
            self.full_resource(),
            self.group
        );
        let about = About { group: &self.group, resource: &self.resource, name: &self.name };
        let mut out = ApiError::forbidden(about, &why);
        if self.name.is_empty() {
            let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
            out.message = format!("{}{group} is forbidden: {why}", self.resource);
        }
        out
    }
}
