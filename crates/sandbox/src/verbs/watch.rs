//! Watch: a stream of events, each encoded once.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use futures::stream::BoxStream;
use portolan_runtime::Clock;
use serde_json::json;
use tokio::time::Instant;

use super::convert;
use crate::api::Api;
use crate::error::ApiError;
use crate::registry::Resource;
use crate::server::Form;
use crate::store::{Event, EventKind, Past, Selector, Stored};

/// How often a quiet watch is told the present revision.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How many events go into one chunk of the answer at most.
const BATCH: usize = 256;

/// A watch as it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct WatchRequest {
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
    /// None or zero: begin with what there is.
    pub(crate) resource_version: Option<u64>,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: bool,
    pub(crate) timeout: Duration,
    pub(crate) form: Form,
}

/// What a watch needs from its cluster while it lasts.
struct Watcher {
    api: Arc<Mutex<Api>>,
    row: Arc<Resource>,
    request: WatchRequest,
    past: Arc<Past>,
    /// Everything up to this revision has been sent.
    seen: u64,
    initial: VecDeque<Arc<Stored>>,
    mark_initial_end: bool,
    deadline: Instant,
    next_bookmark: Instant,
    over: bool,
    /// The first table of a watch tells its columns.
    headers: bool,
    clock: Clock,
}

/// The body of a watch's answer.
pub(crate) struct WatchBody(BoxStream<'static, Bytes>);

impl Stream for WatchBody {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl WatchBody {
    /// Begins a watch.
    pub(crate) fn open(
        api: &Arc<Mutex<Api>>,
        row: &Arc<Resource>,
        request: WatchRequest,
    ) -> Result<Self, ApiError> {
        let mut state = api.lock().unwrap_or_else(PoisonError::into_inner);
        let current = state.store.revision();
        let from = request.resource_version.unwrap_or(0);
        if from > current {
            return Err(ApiError::too_new(from, current));
        }
        let with_state = from == 0 || request.send_initial_events;
        let namespace = request.namespace.as_deref().filter(|_| row.namespaced);
        let initial = if with_state {
            state
                .store
                .scan(&row.table, namespace, None)
                .filter(|object| request.selector.matches(object))
                .cloned()
                .collect()
        } else {
            VecDeque::new()
        };
        let past = state.store.follow(&row.table);
        let clock = state.clock.clone();
        drop(state);
        let now = Instant::now();
        let watcher = Watcher {
            api: api.clone(),
            row: row.clone(),
            past,
            seen: if with_state { current } else { from },
            initial,
            mark_initial_end: request.send_initial_events && request.bookmarks,
            deadline: now + request.timeout,
            next_bookmark: now + BOOKMARK_EVERY,
            over: false,
            headers: true,
            clock,
            request,
        };
        let stream = futures::stream::unfold(watcher, |mut watcher| async move {
            let chunk = watcher.next().await?;
            Some((chunk, watcher))
        });
        Ok(Self(Box::pin(stream)))
    }
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.over {
                return None;
            }
            let past = self.past.clone();
            let ring = past.changed();
            tokio::pin!(ring);
            // Registered before looking, so that no change between the two is missed.
            ring.as_mut().enable();
            if let Some(chunk) = self.ready() {
                return Some(chunk);
            }
            let wake =
                if self.request.bookmarks { self.next_bookmark.min(self.deadline) } else { self.deadline };
            tokio::select! {
                biased;
                () = &mut ring => {}
                () = tokio::time::sleep_until(wake) => {
                    if let Some(chunk) = self.on_time() {
                        return Some(chunk);
                    }
                }
            }
        }
    }

    /// What can be sent at once.
    fn ready(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        for _ in 0..BATCH {
            match self.initial.pop_front() {
                Some(object) => {
                    let shown = self.shown(&object);
                    put(&mut out, "ADDED", &shown);
                }
                None => break,
            }
        }
        if self.initial.is_empty() && std::mem::take(&mut self.mark_initial_end) {
            put(&mut out, "BOOKMARK", &self.bookmark(true));
        }
        if !out.is_empty() {
            return Some(out.freeze());
        }
        loop {
            let events = match self.past.since(self.seen, BATCH) {
                Ok(events) => events,
                Err(expired) => {
                    self.over = true;
                    let status = ApiError::too_old(self.seen, expired.oldest).status();
                    put(&mut out, "ERROR", &serde_json::to_vec(&status).unwrap_or_default().into());
                    return Some(out.freeze());
                }
            };
            self.seen = events.last()?.revision;
            events.iter().for_each(|event| self.send(event, &mut out));
            // What is not selected by this watch is passed over.
            if !out.is_empty() {
                return Some(out.freeze());
            }
        }
    }

    /// An event as this watch sees it: an object can come into a selection, and leave it.
    fn send(&mut self, event: &Event, out: &mut BytesMut) {
        let request = &self.request;
        let here = |object: &Stored| {
            request
                .namespace
                .as_deref()
                .is_none_or(|namespace| !self.row.namespaced || *object.key.namespace == *namespace)
                && request.selector.matches(object)
        };
        let before = event.previous.as_ref().is_some_and(|previous| here(previous));
        let now = event.kind != EventKind::Deleted && here(&event.object);
        match (before, now) {
            (false, true) => put(out, "ADDED", &self.shown(&event.object)),
            (true, true) => put(out, "MODIFIED", &self.shown(&event.object)),
            (true, false) if event.kind == EventKind::Deleted => {
                put(out, "DELETED", &self.shown(&event.object));
            }
            (true, false) => {
                // It left the selection: the last version that was in it, at the revision of its leaving.
                let last = event.previous.as_ref().map(|previous| convert::shown(&self.row, previous));
                let mut last = last.map(Arc::unwrap_or_clone).unwrap_or_default();
                last["metadata"]["resourceVersion"] = json!(event.revision.to_string());
                let headers = std::mem::take(&mut self.headers);
                put(out, "DELETED", &self.request.form.value(&self.row, last, headers, self.clock.now()));
            }
            (false, false) => {}
        }
    }

    fn shown(&mut self, object: &Stored) -> Bytes {
        let headers = std::mem::take(&mut self.headers);
        self.request.form.one(&self.row, object, headers, self.clock.now())
    }

    /// What the time brings: the end, or a bookmark.
    fn on_time(&mut self) -> Option<Bytes> {
        let now = Instant::now();
        let ended = now >= self.deadline;
        self.over |= ended;
        if now >= self.next_bookmark {
            self.next_bookmark = now + BOOKMARK_EVERY;
        }
        if !self.request.bookmarks {
            return None;
        }
        let state = self.api.lock().unwrap_or_else(PoisonError::into_inner);
        let current = state.store.revision();
        let pending = self.past.since(self.seen, 1).map_or(true, |events| !events.is_empty());
        drop(state);
        if pending {
            return None;
        }
        // Nothing of this resource is pending, so all of it is known up to the present revision. It is told also if that
        // is the same as before: so clients know that the watch lives.
        self.seen = current;
        let mut out = BytesMut::new();
        put(&mut out, "BOOKMARK", &self.bookmark(false));
        Some(out.freeze())
    }

    fn bookmark(&self, initial_end: bool) -> Bytes {
        let mut object = json!({
            "kind": self.row.kind,
            "apiVersion": self.row.api_version(),
            "metadata": {"resourceVersion": self.seen.to_string()},
        });
        if initial_end {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        // The typed client wants a spec where its type has one; an empty object stands for the zero value.
        for field in ["spec", "status"] {
            if self.row.node.field(field).1 {
                object[field] = json!({});
            }
        }
        serde_json::to_vec(&object).unwrap_or_default().into()
    }
}

fn put(out: &mut BytesMut, kind: &str, object: &Bytes) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}
