//! Names of a kubeconfig and of a cluster, within bounds. What cannot be read has no names.

use super::quoting::is_plain;
use crate::cli::ClusterArgs;
use crate::connection;
use crate::kind::Kind;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::ApiResource;
use portolan_api::{Invitation, SharingClass};
use portolan_control::peering::NAMESPACE;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How long the API server may take to answer, all pages together.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// How many pages are read. Of more objects, those that come first are offered.
const PAGES: usize = 10;

/// What names are listed of.
pub(super) enum Source {
    Namespaces,
    SharingClasses,
    Invitations,
    /// A kind of the hub; if it is in namespaces and not all of them are asked for, in which one: none is that of the
    /// context.
    Objects(Kind, Option<Option<String>>),
}

impl Source {
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        let client = client.clone();
        match self {
            Self::Namespaces => Api::all_with(client, &ApiResource::erase::<Namespace>(&())),
            Self::SharingClasses => Api::all_with(client, &ApiResource::erase::<SharingClass>(&())),
            Self::Invitations => {
                Api::namespaced_with(client, NAMESPACE, &ApiResource::erase::<Invitation>(&()))
            }
            Self::Objects(kind, namespace) => {
                let namespace =
                    namespace.as_ref().and_then(|given| kind.namespace(&client, given.as_deref()));
                kind.api(&client, namespace.as_deref())
            }
        }
    }
}

/// The contexts of a kubeconfig.
pub(super) fn contexts(file: Option<&Path>) -> BTreeSet<String> {
    connection::context_names(file).into_iter().filter(|name| is_plain(name)).collect()
}

/// The names in a cluster that begin so.
pub(super) fn list(cluster: &ClusterArgs, source: &Source, begin: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return names;
    };
    runtime.block_on(async {
        let Ok(mut config) = connection::config(cluster).await else { return };
        config.connect_timeout = Some(ANSWERED_WITHIN);
        let Ok(client) = connection::client_of(config) else { return };
        let api = source.api(&client);
        let read = read(&api, begin, &mut names);
        // Pages that came in time are worth having.
        let _ = tokio::time::timeout(ANSWERED_WITHIN, read).await;
    });
    // The name of an API server may still be looked up.
    runtime.shutdown_background();
    names
}

async fn read(api: &Api<DynamicObject>, begin: &str, names: &mut BTreeSet<String>) {
    let mut params = ListParams::default().limit(PAGE);
    for _ in 0..PAGES {
        let Ok(page) = api.list_metadata(&params).await else { return };
        let found = page.items.into_iter().filter_map(|object| object.metadata.name);
        names.extend(found.filter(|name| name.starts_with(begin) && is_plain(name)));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return,
        }
    }
}
