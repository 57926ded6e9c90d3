//! The store of one cluster: one revision for all objects, compare-and-swap, a bounded ring of events.

mod past;
mod selector;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Notify;

pub(crate) use past::{Expired, Past};
pub(crate) use selector::{FieldSelector, LabelSelector, Selector, SelectorError};

/// A namespace (empty for what is cluster-wide) and a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl ObjectKey {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// One version of an object, encoded once for everybody who reads it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: ObjectKey,
    pub(crate) revision: u64,
    pub(crate) bytes: Bytes,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the resource's selectable fields, in the resource's order.
    pub(crate) fields: Box<[Box<str>]>,
    /// Whether it is on its way out.
    pub(crate) deleting: bool,
    decoded: Mutex<Decoded>,
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// An object as a value: kept for those who read it next, or there as long as somebody has it.
#[derive(Debug, Default)]
struct Decoded {
    kept: Option<Arc<Value>>,
    lent: Weak<Value>,
}

impl Stored {
    /// The object as a value: decoded, unless somebody has it still.
    pub(crate) fn value(&self) -> Arc<Value> {
        let mut decoded = self.decoded();
        decoded.lent.upgrade().unwrap_or_else(|| {
            // The bytes were written by `encode`, from a value.
            let value = Arc::new(serde_json::from_slice(&self.bytes).unwrap_or_default());
            decoded.lent = Arc::downgrade(&value);
            value
        })
    }

    /// What is made of this version of the object, once for all who ask: they all must make the same of it.
    pub(crate) fn derived<T: Any + Send + Sync>(&self, make: impl Fn(&Value) -> T) -> Arc<T> {
        let kept = self.derived.get_or_init(|| Arc::new(make(&self.value())));
        Arc::clone(kept).downcast().unwrap_or_else(|_| Arc::new(make(&self.value())))
    }

    fn keep(&self, value: Value) {
        let (value, mut decoded) = (Arc::new(value), self.decoded());
        decoded.lent = Arc::downgrade(&value);
        decoded.kept = Some(value);
    }

    /// Lets go of the value, which nobody reads soon.
    pub(crate) fn forget(&self) {
        self.decoded().kept = None;
    }

    fn decoded(&self) -> MutexGuard<'_, Decoded> {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One change of the store.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) revision: u64,
    /// The object after the change; what it last was, if it was deleted.
    pub(crate) object: Arc<Stored>,
    pub(crate) previous: Option<Arc<Stored>>,
}

/// Why a write did not happen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    Exists,
    Missing,
    /// The object is at another revision than the writer believes.
    Stale,
}

/// A change in some table, for those who follow all of them.
pub(crate) type Change = (Arc<str>, Arc<Event>);

/// Of so many last writes, the objects are kept as values: who wrote them, and who acts on it, reads them next.
const RECENT: usize = 4096;

/// Which fields of a resource can be selected by, and how each is found.
pub(crate) type Selectable = [(String, String)];

#[derive(Default)]
struct Table {
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    past: Arc<Past>,
    /// The revision of the last change.
    changed: u64,
}

/// All objects of a cluster.
pub(crate) struct Store {
    revision: u64,
    ring_size: usize,
    tables: BTreeMap<Arc<str>, Table>,
    journal: VecDeque<Change>,
    journal_changed: Arc<Notify>,
    recent: VecDeque<Arc<Stored>>,
}

impl Store {
    /// An empty store which remembers `ring_size` events of each resource.
    pub(crate) fn new(ring_size: usize) -> Self {
        Self {
            revision: 1,
            ring_size,
            tables: BTreeMap::new(),
            journal: VecDeque::new(),
            journal_changed: Arc::new(Notify::new()),
            recent: VecDeque::new(),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, table: &str, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.tables.get(table)?.objects.get(key).cloned()
    }

    /// Objects in order, of one namespace or of all, after `after`.
    pub(crate) fn scan(
        &self,
        table: &str,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &Arc<Stored>> {
        let start = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(ObjectKey::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let namespace: Option<Arc<str>> = namespace.map(Into::into);
        let objects = self.tables.get(table).map(|table| &table.objects);
        objects
            .into_iter()
            .flat_map(move |objects| objects.range((start.clone(), Bound::Unbounded)))
            .take_while(move |(key, _)| {
                namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            })
            .map(|(_, object)| object)
    }

    /// How many objects a resource has.
    pub(crate) fn count(&self, table: &str) -> usize {
        self.tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// The revision of the last change of a table; zero if it has never changed.
    pub(crate) fn changed(&self, table: &str) -> u64 {
        self.tables.get(table).map_or(0, |table| table.changed)
    }

    /// The names of all tables that hold anything.
    pub(crate) fn tables(&self) -> Vec<Arc<str>> {
        self.tables
            .iter()
            .filter(|(_, table)| !table.objects.is_empty())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The objects as they were at `revision`: every key that has changed since, with what it was.
    pub(crate) fn undo_to(
        &self,
        table: &str,
        revision: u64,
    ) -> Result<BTreeMap<ObjectKey, Option<Arc<Stored>>>, Expired> {
        let mut overlay = BTreeMap::new();
        for event in self.past(table).since(revision, usize::MAX)? {
            overlay.entry(event.object.key.clone()).or_insert_with(|| event.previous.clone());
        }
        Ok(overlay)
    }

    /// What has happened to the objects of a table.
    pub(crate) fn past(&self, table: &str) -> Arc<Past> {
        self.tables.get(table).map(|table| table.past.clone()).unwrap_or_default()
    }

    /// What has happened and will happen to the objects of a table.
    pub(crate) fn follow(&mut self, table: &Arc<str>) -> Arc<Past> {
        self.tables.entry(table.clone()).or_default().past.clone()
    }

    /// Rings when anything changes.
    pub(crate) fn journal_changed(&self) -> Arc<Notify> {
        self.journal_changed.clone()
    }

    /// The next change that the cluster's own controllers have not seen.
    pub(crate) fn next_change(&mut self) -> Option<Change> {
        self.journal.pop_front()
    }

    /// Whether objects are kept as values that [`Store::rest`] would let go.
    pub(crate) fn is_awake(&self) -> bool {
        !self.recent.is_empty()
    }

    /// Keeps nothing twice: whoever reads an object next decodes it.
    pub(crate) fn rest(&mut self) {
        std::mem::take(&mut self.recent).iter().for_each(|object| object.forget());
    }

    /// Forgets all past events: whoever watches from an older revision must list again.
    pub(crate) fn compact(&mut self) {
        self.tables.values().for_each(|table| table.past.forget());
    }

    /// Adds an object that must not exist.
    pub(crate) fn create(
        &mut self,
        table: &Arc<str>,
        key: ObjectKey,
        value: Value,
        selectable: &Selectable,
    ) -> Result<Arc<Event>, WriteError> {
        if self.get(table, &key).is_some() {
            return Err(WriteError::Exists);
        }
        Ok(self.commit(table, EventKind::Added, key, value, selectable, None))
    }

    /// Replaces an object that must be at `expected`.
    pub(crate) fn replace(
        &mut self,
        table: &Arc<str>,
        key: ObjectKey,
        value: Value,
        selectable: &Selectable,
        expected: u64,
    ) -> Result<Arc<Event>, WriteError> {
        let previous = self.get(table, &key).ok_or(WriteError::Missing)?;
        if previous.revision != expected {
            return Err(WriteError::Stale);
        }
        Ok(self.commit(table, EventKind::Modified, key, value, selectable, Some(previous)))
    }

    /// Removes an object; `value` is what its last event shows.
    pub(crate) fn remove(
        &mut self,
        table: &Arc<str>,
        key: ObjectKey,
        value: Value,
        selectable: &Selectable,
    ) -> Result<Arc<Event>, WriteError> {
        let previous = self.get(table, &key).ok_or(WriteError::Missing)?;
        Ok(self.commit(table, EventKind::Deleted, key, value, selectable, Some(previous)))
    }

    fn commit(
        &mut self,
        name: &Arc<str>,
        kind: EventKind,
        key: ObjectKey,
        mut value: Value,
        selectable: &Selectable,
        previous: Option<Arc<Stored>>,
    ) -> Arc<Event> {
        self.revision += 1;
        let object = Arc::new(encode(key, self.revision, &mut value, selectable));
        object.keep(value);
        self.remember(&object, previous.as_deref());
        let event = Arc::new(Event { kind, revision: self.revision, object: object.clone(), previous });
        let ring_size = self.ring_size;
        let table = self.tables.entry(name.clone()).or_default();
        match kind {
            EventKind::Deleted => table.objects.remove(&object.key),
            EventKind::Added | EventKind::Modified => table.objects.insert(object.key.clone(), object),
        };
        table.changed = event.revision;
        table.past.add(event.clone(), ring_size);
        self.journal.push_back((name.clone(), event.clone()));
        self.journal_changed.notify_one();
        event
    }

    /// Keeps the value of what was written, and no longer of what it was before.
    fn remember(&mut self, object: &Arc<Stored>, previous: Option<&Stored>) {
        let oldest = if self.recent.len() == RECENT { self.recent.pop_front() } else { None };
        oldest.as_deref().into_iter().chain(previous).for_each(Stored::forget);
        self.recent.push_back(object.clone());
    }
}

fn encode(key: ObjectKey, revision: u64, value: &mut Value, selectable: &Selectable) -> Stored {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
    }
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
        .collect();
    let deleting = at(value, "/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    let fields = selectable.iter().map(|(_, pointer)| text_at(value, pointer)).collect();
    // A serde_json value always encodes: its keys are strings.
    let bytes = serde_json::to_vec(&*value).unwrap_or_default();
    let (decoded, derived) = (Mutex::default(), OnceLock::new());
    Stored { key, revision, bytes: bytes.into(), labels, fields, deleting, decoded, derived }
}

/// What a pointer leads to, as [`Value::pointer`] finds it, but without making a text of each of its parts.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    pointer.split('/').skip(1).try_fold(value, |value, part| match value {
        Value::Object(fields) => fields.get(part),
        Value::Array(_) => value.pointer(&format!("/{part}")),
        _ => None,
    })
}

fn text_at(value: &Value, pointer: &str) -> Box<str> {
    match at(value, pointer) {
        Some(Value::String(text)) => text.as_str().into(),
        Some(Value::Null) | None => "".into(),
        Some(other) => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(store: &mut Store, table: &Arc<str>, name: &str) -> u64 {
        let key = ObjectKey::new("", name);
        let value = json!({"metadata": {"name": name}});
        store.create(table, key, value, &[]).unwrap().revision
    }

    #[test]
    fn the_ring_forgets_and_says_so() {
        let mut store = Store::new(2);
        let table: Arc<str> = "x".into();
        let first = write(&mut store, &table, "a");
        let second = write(&mut store, &table, "b");
        write(&mut store, &table, "c");
        let past = store.past("x");
        assert_eq!(past.since(first, 10).unwrap().len(), 2);
        assert_eq!(past.since(first, 1).unwrap().len(), 1, "no more than asked for");
        assert_eq!(past.since(first - 1, 10).unwrap_err(), Expired { oldest: first });
        store.compact();
        assert!(past.since(second, 10).is_err());
        assert_eq!(past.since(store.revision(), 10).unwrap().len(), 0);
    }

    #[test]
    fn the_past_can_be_listed() {
        let mut store = Store::new(10);
        let table: Arc<str> = "x".into();
        let then = write(&mut store, &table, "a");
        write(&mut store, &table, "b");
        let key = ObjectKey::new("", "a");
        store.remove(&table, key.clone(), json!({"metadata": {}}), &[]).unwrap();
        let overlay = store.undo_to("x", then).unwrap();
        assert!(overlay.get(&key).unwrap().is_some());
        assert!(overlay.get(&ObjectKey::new("", "b")).unwrap().is_none());
    }

    #[test]
    fn a_pointer_leads_to_the_same() {
        let value = json!({"a": {"b/c": [1, {"d": "x"}]}, "": 2});
        for pointer in ["", "/", "/a", "/a/b~1c/1/d", "/a/b", "/a/b~1c/7", "/a/x/y"] {
            assert_eq!(at(&value, pointer), value.pointer(pointer), "{pointer}");
        }
        assert_eq!(at(&json!({"a": [{"d": 1}]}), "/a/0/d"), Some(&json!(1)));
    }

    #[test]
    fn what_was_just_written_is_not_decoded_again() {
        let mut store = Store::new(10);
        let table: Arc<str> = "x".into();
        let at = write(&mut store, &table, "a");
        let key = ObjectKey::new("", "a");
        let before = store.get("x", &key).unwrap();
        let value = before.value();
        assert_eq!(Arc::strong_count(&value), 2, "the store keeps it");
        store.replace(&table, key.clone(), json!({"metadata": {"name": "a"}}), &[], at).unwrap();
        assert_eq!(Arc::strong_count(&value), 1, "what it was before is not kept");
        let now = store.get("x", &key).unwrap();
        assert_eq!(*now.value(), serde_json::from_slice::<Value>(&now.bytes).unwrap());
        assert!(store.is_awake());
        store.rest();
        assert!(!store.is_awake() && now.decoded().lent.upgrade().is_none(), "nothing is kept twice");
        assert_eq!(now.value()["metadata"]["name"], json!("a"));
    }

    #[test]
    fn what_is_derived_is_made_once_for_each_version() {
        let mut store = Store::new(10);
        let table: Arc<str> = "x".into();
        let at = write(&mut store, &table, "a");
        let key = ObjectKey::new("", "a");
        let made = std::cell::Cell::new(0);
        let name = |value: &Value| {
            made.set(made.get() + 1);
            value["metadata"]["name"].as_str().unwrap_or_default().to_owned()
        };
        let before = store.get("x", &key).unwrap();
        assert_eq!((before.derived(name).as_str(), before.derived(name).as_str()), ("a", "a"));
        assert_eq!(made.get(), 1);
        store.replace(&table, key.clone(), json!({"metadata": {"name": "b"}}), &[], at).unwrap();
        assert_eq!(store.get("x", &key).unwrap().derived(name).as_str(), "b");
        assert_eq!(*before.derived(|_| 7_u8), 7, "who makes something else gets that");
    }

    #[test]
    fn a_stale_writer_loses() {
        let mut store = Store::new(10);
        let table: Arc<str> = "x".into();
        let at = write(&mut store, &table, "a");
        let key = ObjectKey::new("", "a");
        let value = json!({"metadata": {"name": "a"}});
        store.replace(&table, key.clone(), value.clone(), &[], at).unwrap();
        assert_eq!(store.replace(&table, key, value, &[], at).unwrap_err(), WriteError::Stale);
    }
}
