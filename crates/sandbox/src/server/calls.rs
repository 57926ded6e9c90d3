//! What is really called: verbs and resources, with counts. It shows what the sandbox needs to serve, and what not.

use std::collections::BTreeMap;

use super::Request;
use super::path::{self, Path};
use super::query::Query;
use super::route::verb;

/// A verb on a resource, and how often it was called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Called {
    /// The resource with its group and part (`deployments.apps/scale`), or a path that is none (`/version`).
    pub resource: String,
    /// The verb, as roles name it.
    pub verb: String,
    /// How often.
    pub count: u64,
    /// How often of these there was nothing to serve it: no such resource, or not this verb on it.
    pub unserved: u64,
}

/// The calls of one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(BTreeMap<(String, &'static str), (u64, u64)>);

impl Calls {
    /// Counts a call.
    pub(super) fn add(&mut self, request: &Request, served: bool) {
        let counts = self.0.entry(key(request)).or_default();
        counts.0 += 1;
        counts.1 += u64::from(!served);
    }

    /// Adds the calls of another cluster.
    pub(crate) fn merge(&mut self, other: &Calls) {
        for (key, (count, unserved)) in &other.0 {
            let counts = self.0.entry(key.clone()).or_default();
            counts.0 += count;
            counts.1 += unserved;
        }
    }

    pub(crate) fn list(&self) -> Vec<Called> {
        let called = |((resource, verb), (count, unserved)): (&(String, &'static str), &(u64, u64))| Called {
            resource: resource.clone(),
            verb: (*verb).to_owned(),
            count: *count,
            unserved: *unserved,
        };
        self.0.iter().map(called).collect()
    }
}

/// The resource and the verb of a request.
pub(crate) fn key(request: &Request) -> (String, &'static str) {
    let Ok(Path::Resource(target)) = path::parse(request.uri.path()) else {
        return (outline(request.uri.path()), plain(request));
    };
    let query = Query::parse(request.uri.query());
    let mut resource = target.resource.clone();
    if !target.group.is_empty() {
        resource = format!("{resource}.{}", target.group);
    }
    if let Some(part) = &target.subresource {
        resource = format!("{resource}/{part}");
    }
    (resource, verb(request, &target, &query).unwrap_or_else(|_| plain(request)))
}

/// A path that is no resource, without what differs from group to group.
fn outline(path: &str) -> String {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (Some("openapi"), Some("v3")) if parts.next().is_some() => "/openapi/v3/*".to_owned(),
        (Some(first @ ("api" | "apis" | "readyz" | "livez" | "healthz")), Some(_)) => format!("/{first}/*"),
        (Some("openapi"), Some("v3")) => "/openapi/v3".to_owned(),
        (Some(first @ ("api" | "apis" | "version" | "readyz" | "livez" | "healthz")), None) => {
            format!("/{first}")
        }
        _ => "other paths".to_owned(),
    }
}

fn plain(request: &Request) -> &'static str {
    match request.method.as_str() {
        "GET" | "HEAD" => "get",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "other",
    }
}
