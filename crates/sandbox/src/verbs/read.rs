//! Get and list.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::Api;
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{ObjectKey, Selector, Stored};

/// A list as it was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListRequest {
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
    pub(crate) limit: Option<usize>,
    pub(crate) from: Option<String>,
    pub(crate) resource_version: Option<u64>,
    /// The revision is meant exactly.
    pub(crate) exact: bool,
}

/// Where the next page of a list begins.
#[derive(Serialize, Deserialize)]
struct Continue {
    v: String,
    rv: u64,
    start: String,
}

/// A page of a list.
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Stored>>,
    pub(crate) revision: u64,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl Api {
    /// One page of objects, as of one revision.
    pub(crate) fn list(&self, row: &Resource, request: &ListRequest) -> Result<Page, ApiError> {
        let current = self.store.revision();
        let mut revision = current;
        let mut after = None;
        if let Some(token) = &request.from {
            let token = read_token(token)?;
            revision = token.rv;
            after = Some(match token.start.split_once('/') {
                Some((namespace, name)) => ObjectKey::new(namespace, name),
                None => ObjectKey::new("", &token.start),
            });
        } else if let Some(asked) = request.resource_version.filter(|asked| *asked > 0) {
            if asked > current {
                return Err(ApiError::too_new(asked, current));
            }
            if request.exact {
                revision = asked;
            }
        }
        let namespace = request.namespace.as_deref().filter(|_| row.namespaced);
        let selector = &request.selector;
        let limit = request.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        if revision == current {
            let mut found =
                self.store.scan(&row.table, namespace, after.as_ref()).filter(|o| selector.matches(o));
            let items: Vec<_> = found.by_ref().take(limit).cloned().collect();
            let rest = if items.len() == limit { found.count() } else { 0 };
            // Whether what follows is selected is not looked at: another page may turn out to be empty.
            let last = items.last().filter(|_| items.len() == limit).map(|last| last.key.clone());
            let more =
                last.is_some_and(|last| self.store.scan(&row.table, namespace, Some(&last)).next().is_some());
            return Ok(page(items, revision, rest, more, selector));
        }
        self.list_past(row, namespace, after.as_ref(), selector, limit, revision)
    }

    /// A page as of an earlier revision: the present, with every later change undone.
    fn list_past(
        &self,
        row: &Resource,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
        selector: &Selector,
        limit: usize,
        revision: u64,
    ) -> Result<Page, ApiError> {
        let undone = self.store.undo_to(&row.table, revision).map_err(|_| ApiError::continue_expired())?;
        let unchanged =
            self.store.scan(&row.table, namespace, after).filter(|o| !undone.contains_key(&o.key));
        let before = undone
            .iter()
            .filter(|(key, _)| namespace.is_none_or(|namespace| *key.namespace == *namespace))
            .filter(|(key, _)| after.is_none_or(|after| *key > after))
            .filter_map(|(_, object)| object.as_ref());
        let mut all: Vec<Arc<Stored>> =
            unchanged.chain(before).filter(|o| selector.matches(o)).cloned().collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        let rest = all.len().saturating_sub(limit);
        all.truncate(limit);
        Ok(page(all, revision, rest, rest > 0, selector))
    }
}

fn page(items: Vec<Arc<Stored>>, revision: u64, rest: usize, more: bool, selector: &Selector) -> Page {
    let next = more.then(|| items.last().map(|last| write_token(revision, &last.key))).flatten();
    // The count of a selection is not told, as the API server cannot know it cheaply.
    let remaining = (rest > 0 && selector.is_everything()).then_some(rest);
    Page { items, revision, next, remaining }
}

fn write_token(revision: u64, last: &ObjectKey) -> String {
    let token = Continue {
        v: "meta.k8s.io/v1".to_owned(),
        rv: revision,
        start: format!("{}/{}", last.namespace, last.name),
    };
    let text = serde_json::to_string(&token).unwrap_or_default();
    // Base64 as Kubernetes has it, by way of the type that knows how.
    match json!(k8s_openapi::ByteString(text.into_bytes())) {
        serde_json::Value::String(encoded) => encoded,
        _ => String::new(),
    }
}

fn read_token(token: &str) -> Result<Continue, ApiError> {
    let bad = |_| ApiError::bad_request("continue key is not valid: the token was not made by this server");
    let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(token)).map_err(bad)?;
    serde_json::from_slice(&bytes.0).map_err(bad)
}
