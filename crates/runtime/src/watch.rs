//! Lists a kind and watches it from there, for ever.
//!
//! Each object is read by itself: one that cannot be read is left out and named, and the others are there. Every answer
//! is bounded in size and time, so that an API server that stops in the middle costs a wait and no more.

use crate::body::{self, BodyError, Lines};
use crate::json::{elements, members};
use crate::{Backoff, Change, Key, Seed, Unreadable, WatchHealth, chain, foreign_text};
use http::{Response, StatusCode};
use kube::api::{ListParams, Request, VersionMatch, WatchParams};
use kube::client::Body;
use kube::runtime::watcher::{Config, ListSemantic};
use kube::{Api, Client, Resource};
use rand_chacha::rand_core::Rng;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::Instant;

/// How long an API server may take to begin an answer, and to go on with one that is no watch.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How long one page of a list may take in all.
const PAGE_LIMIT: Duration = Duration::from_secs(300);
/// How long a watch is left open by the API server.
const WATCH_TIMEOUT_SECONDS: u32 = 290;
/// API servers send a bookmark about every minute: a watch that tells nothing for longer hangs on a dead connection.
const WATCH_IDLE: Duration = Duration::from_secs(100);
/// What a watch told wrongly, by a mistake in between, stands until a list; so there is one after this long, or up to twice
/// as long, so that not all watches list at the same time.
const LISTED_AGAIN: Duration = Duration::from_secs(3600);
/// A list that fails while there is a watch that works is tried again after this long.
const LIST_PUT_OFF: Duration = Duration::from_secs(300);
/// A watch that ends before this is as good as a failed one, whatever it told.
const WATCH_AT_LEAST: Duration = Duration::from_secs(5);
/// More objects of one kind than any cluster is made for: whoever lists more has no end.
const MOST_OBJECTS: usize = 500_000;
/// The longest name, namespace, uid and version that an API server gives, with room to spare for the last two.
const NAME_LIMIT: usize = 253;
const NAMESPACE_LIMIT: usize = 63;
const UID_LIMIT: usize = 128;
const VERSION_LIMIT: usize = 128;

/// Tells all changes of a kind in a cluster, for ever, and keeps `health` true: a whole list first and whenever the watch
/// had to begin anew.
///
/// `project` keeps of each object what is needed and lets the rest go. What fails is tried again with backoff, which
/// ends only when a watch works. An object that cannot be read is no change: what was known of it stands until a list.
pub async fn follow_with<K, T>(
    api: Api<K>,
    config: Config,
    project: impl FnMut(K) -> T,
    tell: impl FnMut(Change<T>),
    seed: Seed,
    health: WatchHealth,
) where
    K: Resource + DeserializeOwned + Debug + Send + 'static,
{
    let path = api.resource_url().to_owned();
    let (resource, request) = (resource(&path), Request::new(path));
    let source = Source { resource, request, client: api.into_client(), most: MOST_OBJECTS };
    source.follow(config, project, tell, seed, health).await;
}

/// How a list or watch ended.
enum Ended {
    /// As it should; that says nothing of the next one.
    Well,
    /// After it had held for long enough.
    Proven,
    /// As soon as it had begun.
    AtOnce,
    /// What is known may be of the past, and only a list tells what is missing.
    Outdated,
}

/// A list or watch that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {resource}: {problem}")]
struct WatchError {
    verb: &'static str,
    resource: String,
    problem: String,
    code: Option<u16>,
    /// Whether a watch cannot go on from where it was.
    is_outdated: bool,
}

impl WatchError {
    /// Whether the API server knows no such kind.
    fn is_not_served(&self) -> bool {
        self.code == Some(404)
    }

    /// Whether the API server understood, and somebody has to do something about it.
    fn is_refusal(&self) -> bool {
        matches!(self.code, Some(400..=409 | 411..=428 | 430..=499))
    }
}

/// What is told of an object, whatever else it holds.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Meta {
    fn of(object: &str) -> Self {
        let parts = members(object).unwrap_or_default();
        let metadata = parts.iter().find(|(name, _)| *name == "metadata");
        let meta: Self = metadata.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default();
        Self {
            uid: meta.uid.filter(|uid| uid.len() <= UID_LIMIT),
            resource_version: meta.resource_version.filter(|version| version.len() <= VERSION_LIMIT),
            ..meta
        }
    }

    fn key(&self) -> Option<Key> {
        let name = self.name.as_deref().filter(|name| !name.is_empty() && name.len() <= NAME_LIMIT)?;
        let namespace = self.namespace.as_deref().unwrap_or_default();
        (namespace.len() <= NAMESPACE_LIMIT).then(|| Key::new(namespace, name))
    }
}

/// An object, if it can be read and its names are no longer than any that an API server gives.
fn read<K: DeserializeOwned + Resource>(text: &str) -> Result<K, String> {
    let object: K = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let meta = object.meta();
    for (what, value, limit) in [
        ("name", &meta.name, NAME_LIMIT),
        ("namespace", &meta.namespace, NAMESPACE_LIMIT),
        ("uid", &meta.uid, UID_LIMIT),
        ("resourceVersion", &meta.resource_version, VERSION_LIMIT),
    ] {
        if value.as_ref().is_some_and(|value| value.len() > limit) {
            return Err(format!("its {what} is longer than {limit} bytes"));
        }
    }
    Ok(object)
}

/// Where a kind is listed and watched.
struct Source {
    client: Client,
    request: Request,
    resource: String,
    /// How many objects are taken.
    most: usize,
}

/// The objects of a list, those that cannot be read as far as they are named, and how many more of these there are.
type Listed<T> = (BTreeMap<Key, T>, BTreeMap<Key, Unreadable>, usize);

impl Source {
    async fn follow<K: DeserializeOwned + Resource, T>(
        &self,
        config: Config,
        mut project: impl FnMut(K) -> T,
        mut tell: impl FnMut(Change<T>),
        seed: Seed,
        health: WatchHealth,
    ) {
        let later = u64::from(seed.child("list").rng().next_u32()) % LISTED_AGAIN.as_secs();
        let again = LISTED_AGAIN + Duration::from_secs(later);
        let mut backoff = Backoff::new(seed);
        let mut version: Option<String> = None;
        let mut list_at = Instant::now();
        // At most so many objects are known: those of the list, and one for each event since then.
        let mut known = 0;
        loop {
            let left = list_at.saturating_duration_since(Instant::now());
            let done = match version.clone().filter(|_| !left.is_zero()) {
                None => match self.list(&config, &mut project).await {
                    Ok(((objects, unreadable, unnamed), at)) => {
                        version = Some(at);
                        list_at = Instant::now() + again;
                        known = objects.len();
                        self.say_listed(&unreadable, &health);
                        health.take_unreadable(unreadable, unnamed, |key| objects.contains_key(key));
                        tell(Change::Listed(objects));
                        health.settle_unreadable();
                        health.listed();
                        Ok(Ended::Well)
                    }
                    // The watch still tells what changes.
                    Err(error) if version.is_some() => {
                        tracing::debug!(error = error.to_string(), "what is watched is not listed again");
                        list_at = Instant::now() + LIST_PUT_OFF;
                        Ok(Ended::Well)
                    }
                    Err(error) => Err(error),
                },
                Some(mut at) => {
                    let told = (&mut at, &mut known);
                    let watched = self.watch(&config, left, told, &mut project, &mut tell, &health).await;
                    version = Some(at);
                    watched
                }
            };
            let wait = match done {
                // A list alone proves little: the watch that follows it may fail each time.
                Ok(Ended::Well) => continue,
                Ok(Ended::Proven) => {
                    backoff.succeeded();
                    continue;
                }
                Ok(Ended::Outdated) => {
                    version = None;
                    continue;
                }
                Ok(Ended::AtOnce) => backoff.failed(),
                Err(error) => {
                    if error.is_outdated {
                        version = None;
                    }
                    let wait = backoff.failed();
                    let told = error.to_string();
                    let news = health.fail(&told, error.is_not_served(), error.code == Some(403));
                    if news && error.is_refusal() {
                        tracing::warn!(error = told, "a watch is refused; it is tried again");
                    } else {
                        tracing::debug!(error = told, ?wait, "a watch failed");
                    }
                    wait
                }
            };
            // Asked to begin anew, it does not wait any longer.
            if tokio::time::timeout(wait, health.until_refresh()).await.is_ok() {
                version = None;
            }
        }
    }

    /// All objects, and the version of the list.
    async fn list<K: DeserializeOwned + Resource, T>(
        &self,
        config: &Config,
        project: &mut impl FnMut(K) -> T,
    ) -> Result<(Listed<T>, String), WatchError> {
        let mut listed: Listed<T> = (BTreeMap::new(), BTreeMap::new(), 0);
        let mut token: Option<String> = None;
        let mut pages = 0;
        loop {
            let params = list_params(config, token.take());
            let page = tokio::time::timeout(PAGE_LIMIT, self.page(&params)).await;
            let silent = |_| self.error("list", format!("no whole answer within {} s", PAGE_LIMIT.as_secs()));
            let text = page.map_err(silent)??;
            let (version, next) = self.take_page(&text, project, &mut listed)?;
            pages += 1;
            if listed.0.len() + listed.1.len() + listed.2 > self.most || pages > self.most {
                return Err(self.error("list", format!("there are more than {}", self.most)));
            }
            match (next, version) {
                (Some(next), _) => token = Some(next),
                (None, Some(version)) => return Ok((listed, version)),
                (None, None) => return Err(self.error("list", "the list has no version".to_owned())),
            }
        }
    }

    async fn page(&self, params: &ListParams) -> Result<String, WatchError> {
        let request = self.request.list(params).map_err(|error| self.error("list", error.to_string()))?;
        let response = self.send("list", request).await?;
        body::text(response, ANSWER_LIMIT).await.map_err(|error| self.error("list", error.to_string()))
    }

    /// Takes the objects of a page; answers the version of the list, and the token of the next page.
    fn take_page<K: DeserializeOwned + Resource, T>(
        &self,
        text: &str,
        project: &mut impl FnMut(K) -> T,
        (objects, unreadable, unnamed): &mut Listed<T>,
    ) -> Result<(Option<String>, Option<String>), WatchError> {
        let malformed = |_| self.error("list", "the answer is no list".to_owned());
        let parts: BTreeMap<&str, &str> = members(text).map_err(malformed)?.into_iter().collect();
        let items = parts.get("items").copied().filter(|items| *items != "null").unwrap_or("[]");
        for item in elements(items).map_err(malformed)? {
            let item = item.map_err(malformed)?;
            match read::<K>(item) {
                Ok(object) => _ = objects.insert(Key::of(&object), project(object)),
                Err(error) => {
                    let meta = Meta::of(item);
                    match meta.key().filter(|_| Unreadable::is_named(unreadable.len())) {
                        Some(key) => _ = unreadable.insert(key, Unreadable::new(meta.uid, &error)),
                        None => *unnamed += 1,
                    }
                }
            }
        }
        let meta = parts.get("metadata").copied().unwrap_or("{}");
        let meta: ListMeta = serde_json::from_str(meta).map_err(|_| malformed(crate::json::Malformed))?;
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let version = filled(meta.resource_version);
        if version.as_ref().is_some_and(|version| version.len() > VERSION_LIMIT) {
            return Err(self.error("list", format!("its version is longer than {VERSION_LIMIT} bytes")));
        }
        Ok((version, filled(meta.continue_)))
    }

    /// Watches from a version on, which goes along with what is told, as does the number of objects that are known.
    async fn watch<K: DeserializeOwned + Resource, T>(
        &self,
        config: &Config,
        at_most: Duration,
        (version, known): (&mut String, &mut usize),
        project: &mut impl FnMut(K) -> T,
        tell: &mut impl FnMut(Change<T>),
        health: &WatchHealth,
    ) -> Result<Ended, WatchError> {
        let began = Instant::now();
        let request = self.request.watch(&watch_params(config, at_most), version);
        let request = request.map_err(|error| self.error("watch", error.to_string()))?;
        let mut lines = Lines::of(self.send("watch", request).await?);
        // That a watch opens says nothing of what has changed meanwhile, and a quiet kind may never tell.
        if health.age().is_none_or(|age| age >= WATCH_IDLE) {
            return Ok(Ended::Outdated);
        }
        loop {
            let line = tokio::select! {
                biased;
                () = health.until_refresh() => return Ok(Ended::Outdated),
                line = lines.next(WATCH_IDLE) => line,
            };
            let line = match line {
                Ok(Some(line)) => line,
                Ok(None) if began.elapsed() >= WATCH_AT_LEAST => return Ok(Ended::Proven),
                Ok(None) => return Ok(Ended::AtOnce),
                // The connection may be dead, the API server is not known to be.
                Err(BodyError::Silent(_)) => return Ok(Ended::Outdated),
                Err(error) => return Err(self.error("watch", error.to_string())),
            };
            // Whether an event is of a new object would take all keys to know; a list tells as well.
            *known += 1;
            if *known > 2 * self.most {
                let many = format!("more than {} events since the last list", self.most);
                return Err(WatchError { is_outdated: true, ..self.error("watch", many) });
            }
            let taken = self.take_event(&line, version, project, tell, health);
            taken.map_err(|error| WatchError { is_outdated: true, ..error })?;
            health.confirm();
        }
    }

    fn take_event<K: DeserializeOwned + Resource, T>(
        &self,
        line: &str,
        version: &mut String,
        project: &mut impl FnMut(K) -> T,
        tell: &mut impl FnMut(Change<T>),
        health: &WatchHealth,
    ) -> Result<(), WatchError> {
        let malformed = || self.error("watch", "the answer is no event of a watch".to_owned());
        let parts: BTreeMap<&str, &str> = members(line).map_err(|_| malformed())?.into_iter().collect();
        let (Some(type_), Some(object)) = (parts.get("type"), parts.get("object")) else {
            return Err(malformed());
        };
        if *type_ == "\"ERROR\"" {
            let status = Status::of(object);
            return Err(WatchError { code: status.code, ..self.error("watch", status.told()) });
        }
        let deleted = match *type_ {
            "\"ADDED\"" | "\"MODIFIED\"" => false,
            "\"DELETED\"" => true,
            "\"BOOKMARK\"" => {
                let at = Meta::of(object).resource_version.filter(|at| !at.is_empty());
                *version = at.ok_or_else(malformed)?;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if deleted {
            let meta = Meta::of(object);
            let key = meta.key().ok_or_else(malformed)?;
            health.forget_unreadable(&key);
            tell(Change::Gone(key));
            return self.advance(version, meta.resource_version);
        }
        match read::<K>(object) {
            Ok(object) => {
                let (key, at) = (Key::of(&object), object.meta().resource_version.clone());
                tell(Change::Set(key.clone(), project(object)));
                // Not before: what is neither known nor unreadable is gone.
                health.forget_unreadable(&key);
                self.advance(version, at)
            }
            Err(error) => {
                let meta = Meta::of(object);
                if let Some(key) = meta.key() {
                    let unreadable = Unreadable::new(meta.uid, &error);
                    if health.add_unreadable(key.clone(), unreadable.clone()) {
                        self.say_unreadable(&key, &unreadable, health);
                    }
                }
                // Without a version of its own it leaves the watch where it was.
                self.advance(version, meta.resource_version.or_else(|| Some(version.clone())))
            }
        }
    }

    fn advance(&self, version: &mut String, to: Option<String>) -> Result<(), WatchError> {
        *version = to
            .filter(|to| !to.is_empty())
            .ok_or_else(|| self.error("watch", "an object has no version".to_owned()))?;
        Ok(())
    }

    fn say_listed(&self, unreadable: &BTreeMap<Key, Unreadable>, health: &WatchHealth) {
        for (key, each) in unreadable {
            if health.unreadable(key).as_ref() != Some(each) {
                self.say_unreadable(key, each, health);
            }
        }
    }

    fn say_unreadable(&self, key: &Key, unreadable: &Unreadable, health: &WatchHealth) {
        let Some(untold) = health.may_say_unreadable() else { return };
        let (object, problem) = (foreign_text(&key.to_string()), &unreadable.problem);
        tracing::warn!(
            resource = self.resource,
            object,
            problem,
            untold,
            "an object cannot be read: it is left out"
        );
    }

    /// Sends a request; answers when the API server does, if it does not refuse.
    async fn send(
        &self,
        verb: &'static str,
        request: http::Request<Vec<u8>>,
    ) -> Result<Response<Body>, WatchError> {
        let sent = self.client.send(request.map(Body::from));
        let response = match tokio::time::timeout(ANSWER_LIMIT, sent).await {
            Ok(response) => response.map_err(|error| self.error(verb, chain(&error)))?,
            Err(_) => {
                return Err(self.error(verb, format!("no answer within {} s", ANSWER_LIMIT.as_secs())));
            }
        };
        let code = response.status();
        if code == StatusCode::OK {
            return Ok(response);
        }
        let mut status = Status::of(&body::refusal(response, ANSWER_LIMIT).await);
        status.code = Some(code.as_u16());
        let is_outdated = code == StatusCode::GONE;
        Err(WatchError { code: status.code, is_outdated, ..self.error(verb, status.told()) })
    }

    fn error(&self, verb: &'static str, problem: String) -> WatchError {
        WatchError {
            verb,
            resource: self.resource.clone(),
            problem: foreign_text(&problem),
            code: None,
            is_outdated: false,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_: Option<String>,
}

/// What an API server says of a failure.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    code: Option<u16>,
    message: Option<String>,
    reason: Option<String>,
}

impl Status {
    fn of(text: &str) -> Self {
        serde_json::from_str(text)
            .unwrap_or_else(|_| Self { message: Some(text.trim().to_owned()), ..Self::default() })
    }

    fn told(&self) -> String {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let said =
            filled(&self.message).or_else(|| filled(&self.reason)).unwrap_or_else(|| "refused".to_owned());
        match self.code {
            Some(code) => format!("{said} ({code})"),
            None => said,
        }
    }
}

fn list_params(config: &Config, token: Option<String>) -> ListParams {
    let any = config.list_semantic == ListSemantic::Any;
    ListParams {
        label_selector: config.label_selector.clone(),
        field_selector: config.field_selector.clone(),
        limit: config.page_size,
        // A token says by itself which version it goes on with.
        version_match: (any && token.is_none()).then_some(VersionMatch::NotOlderThan),
        resource_version: (any && token.is_none()).then(|| "0".to_owned()),
        continue_token: token,
        ..ListParams::default()
    }
}

fn watch_params(config: &Config, at_most: Duration) -> WatchParams {
    // One that is shorter would be as good as failed.
    let at_most =
        u32::try_from(at_most.as_secs()).unwrap_or(u32::MAX).max(2 * WATCH_AT_LEAST.as_secs() as u32);
    WatchParams {
        label_selector: config.label_selector.clone(),
        field_selector: config.field_selector.clone(),
        timeout: Some(config.timeout.unwrap_or(WATCH_TIMEOUT_SECONDS).min(at_most)),
        bookmarks: config.bookmarks,
        send_initial_events: false,
    }
}

/// What a path lists, as people say it.
fn resource(path: &str) -> String {
    let (before, resource) = path.rsplit_once('/').unwrap_or_default();
    match before.rsplit_once("/namespaces/") {
        Some((_, namespace)) => format!("{resource} in namespace {namespace}"),
        None => resource.to_owned(),
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
