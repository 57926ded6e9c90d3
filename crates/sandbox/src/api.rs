//! The state of one cluster's API server. Every request runs on it from start to end, without interruption.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use jiff::Timestamp;
use portolan_runtime::{Clock, Seed};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::admission::Installed;
use crate::auth::{KnownRules, User};
use crate::crd::Validator;
use crate::error::ApiError;
use crate::pki::{Authority, CertificateError};
use crate::profile::Profile;
use crate::registry::{Registry, Resource};
use crate::server::Calls;
use crate::store::{Event, ObjectKey, Store, Stored, at};
use crate::world::EventLog;

/// The letters of generated names: no vowels, nothing that looks like something else.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The API server of a cluster.
pub(crate) struct Api {
    pub(crate) cluster: Arc<str>,
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) log: EventLog,
    pub(crate) addresses: BTreeSet<u32>,
    pub(crate) node_ports: BTreeSet<u16>,
    /// Simulated nodes that have fallen silent, and since when.
    pub(crate) silent_nodes: BTreeMap<Arc<str>, Timestamp>,
    /// Whether approved requests for certificates are left unsigned.
    pub(crate) signers_stopped: bool,
    /// How pods behave on simulated nodes.
    pub(crate) profile: Arc<Profile>,
    pub(crate) rules: Validator,
    /// Hooks and policies.
    pub(crate) admission: Installed,
    /// What the present request is warned of.
    pub(crate) warnings: Vec<String>,
    /// What was called, and how often.
    pub(crate) calls: Calls,
    /// What users may do.
    pub(crate) known_rules: Mutex<KnownRules>,
    /// Signs the tokens of service accounts.
    pub(crate) token_key: [u8; 32],
    authority: Result<Arc<Authority>, CertificateError>,
    random: ChaCha8Rng,
}

/// Who writes, and how.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// The field manager.
    pub(crate) manager: String,
    /// Everything is checked and answered, nothing is kept.
    pub(crate) dry_run: bool,
    pub(crate) unknown_fields: UnknownFields,
    /// On whose behalf; nobody's, if the sandbox itself writes.
    pub(crate) user: Option<Arc<User>>,
}

/// What becomes of fields that no schema names: they are dropped, and that is said or not, or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    Ignore,
    Warn,
    Refuse,
}

impl Writer {
    pub(crate) fn named(manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            dry_run: false,
            unknown_fields: UnknownFields::Ignore,
            user: None,
        }
    }
}

/// An object as it is answered: from the store, or of a dry run.
pub(crate) enum Answer {
    Stored(Arc<Stored>),
    Value(Value),
}

impl Answer {
    pub(crate) fn value(&self) -> Arc<Value> {
        match self {
            Answer::Stored(stored) => stored.value(),
            Answer::Value(value) => Arc::new(value.clone()),
        }
    }
}

/// The API server as soon as nobody else has it; until then the thread is there for others.
pub(crate) async fn in_turn(api: &Mutex<Api>) -> MutexGuard<'_, Api> {
    loop {
        match api.try_lock() {
            Ok(api) => return api,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::task::yield_now().await;
    }
}

impl Api {
    pub(crate) fn new(cluster: &str, clock: Clock, seed: Seed, log: EventLog, ring_size: usize) -> Self {
        let mut token_key = [0; 32];
        seed.child("tokens").rng().fill_bytes(&mut token_key);
        Self {
            cluster: cluster.into(),
            store: Store::new(ring_size),
            registry: Registry::new(),
            clock,
            log,
            addresses: BTreeSet::new(),
            node_ports: BTreeSet::new(),
            silent_nodes: BTreeMap::new(),
            signers_stopped: false,
            profile: Arc::default(),
            rules: Validator::new(),
            admission: Installed::default(),
            warnings: Vec::new(),
            calls: Calls::default(),
            known_rules: Mutex::default(),
            token_key,
            authority: Authority::new(&seed.child("authority")).map(Arc::new),
            random: seed.child("identifiers").rng(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Now, as metadata and conditions show it.
    pub(crate) fn time(&self) -> Value {
        json!(self.clock.time())
    }

    /// The authority for this cluster's certificates.
    pub(crate) fn authority(&self) -> Result<&Arc<Authority>, ApiError> {
        self.authority.as_ref().map_err(ApiError::internal)
    }

    /// The serial number of a certificate.
    pub(crate) fn new_serial(&mut self) -> [u8; 16] {
        let mut serial = [0; 16];
        self.random.fill_bytes(&mut serial);
        serial
    }

    pub(crate) fn new_uid(&mut self) -> String {
        let mut bytes = [0_u8; 16];
        self.random.fill_bytes(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The random end of a generated name.
    pub(crate) fn name_suffix(&mut self, length: usize) -> String {
        let letters = (0..length).map(|_| {
            let index = self.random.next_u32() as usize % NAME_ALPHABET.len();
            char::from(NAME_ALPHABET[index])
        });
        letters.collect()
    }

    /// The built-in row that the sandbox itself works with.
    pub(crate) fn row(&self, group: &str, plural: &str) -> Result<Arc<Resource>, ApiError> {
        let version = if group == "autoscaling" { "v2" } else { "v1" };
        let missing = || ApiError::internal(format!("no built-in resource {plural} of group {group:?}"));
        self.registry.find(group, version, plural).ok_or_else(missing)
    }

    pub(crate) fn live(&self, row: &Resource, namespace: &str, name: &str) -> Result<Arc<Stored>, ApiError> {
        let key = ObjectKey::new(namespace, name);
        self.store.get(&row.table, &key).ok_or_else(|| ApiError::not_found(row.about(name)))
    }

    /// Whether a namespace goes away.
    pub(crate) fn is_terminating(&self, namespace: &str) -> bool {
        self.store.get("/namespaces", &ObjectKey::new("", namespace)).is_none_or(|found| found.deleting)
    }

    /// What follows every change: the log, and the rows of custom resources.
    pub(crate) fn changed(&mut self, row: &Resource, event: &Event) {
        self.log.change(self.clock.now(), &self.cluster, &row.table, event);
        if row.is("apiextensions.k8s.io", "customresourcedefinitions") {
            self.definition_changed(event);
        }
        if row.is("", "services") && event.kind == crate::store::EventKind::Deleted {
            crate::kinds::release_address(self, &event.object.value());
        }
    }

    fn definition_changed(&mut self, event: &Event) {
        let value = event.object.value();
        let group = at(&value, "/spec/group").and_then(Value::as_str).unwrap_or_default();
        let plural = at(&value, "/spec/names/plural").and_then(Value::as_str).unwrap_or_default();
        let established = crate::kinds::condition_is_true(&value, "Established");
        let served = event.kind != crate::store::EventKind::Deleted && established;
        self.registry.set_custom(&format!("{group}/{plural}"), served.then_some(&value));
    }
}
