//! Kubernetes events, on the given clock.

use crate::foreign_text;
use crate::{Clock, call};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Resource};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The longest note that the API server accepts.
const NOTE_LIMIT: usize = 1024;

/// Tells users what a controller did, as events on their objects.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    clock: Clock,
    controller: &'static str,
    /// What the same news is told for again.
    occasion: String,
}

/// Whether an event is good to know or calls for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Good to know.
    Normal,
    /// Calls for attention.
    Warning,
}

impl Recorder {
    /// A recorder for one controller, such as `portolan.dev/placement`.
    #[must_use]
    pub fn new(client: Client, clock: Clock, controller: &'static str) -> Self {
        Self { client, clock, controller, occasion: String::new() }
    }

    /// A recorder that tells the same news once for this occasion: for what may happen again and again to one generation.
    #[must_use]
    pub fn on(&self, occasion: &str) -> Self {
        Self { occasion: occasion.to_owned(), ..self.clone() }
    }

    /// Records that something happened to an object.
    ///
    /// The event's name is made of what it says, so that the same news of the same generation is told once, whoever
    /// tells it and however often it is retried. An event that cannot be written is logged: nothing depends on it.
    pub async fn record<K>(&self, object: &K, type_: EventType, reason: impl AsRef<str>, note: &str)
    where
        K: Resource<DynamicType = ()>,
    {
        let reason = reason.as_ref();
        let event = self.event(object, type_, reason, note);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        match call(format!("record event {reason}"), api.create(&PostParams::default(), &event)).await {
            Err(error) if !error.is_conflict() => tracing::warn!(%error, note, "event is lost"),
            // It was recorded before.
            Err(_) => {}
            Ok(_) => self.log(object, type_, reason, note),
        }
    }

    /// One line in the log for what happened: the log of a controller says what its events say.
    fn log<K: Resource<DynamicType = ()>>(&self, object: &K, type_: EventType, reason: &str, note: &str) {
        let meta = object.meta();
        let namespace = meta.namespace.as_ref().map(|name| format!("{name}/")).unwrap_or_default();
        let name = meta.name.as_deref().unwrap_or_default();
        let object = foreign_text(&format!("{} {namespace}{name}", K::kind(&())));
        let note = foreign_text(note);
        match type_ {
            EventType::Normal => tracing::info!("{object}: {reason}: {note}"),
            EventType::Warning => tracing::warn!("{object}: {reason}: {note}"),
        }
    }

    fn event<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        type_: EventType,
        reason: &str,
        note: &str,
    ) -> Event {
        let meta = object.meta();
        let name = meta.name.clone().unwrap_or_default();
        let namespace = meta.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let digest = Sha256::new()
            .chain_update(meta.uid.as_deref().unwrap_or_default())
            .chain_update(meta.generation.unwrap_or_default().to_le_bytes())
            .chain_update(reason)
            .chain_update(note)
            .chain_update(&self.occasion)
            .finalize();
        let suffix = digest[..8].iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let mut note = note.to_owned();
        if note.len() > NOTE_LIMIT {
            let end = (0..=NOTE_LIMIT - 3).rev().find(|&at| note.is_char_boundary(at)).unwrap_or(0);
            note.truncate(end);
            note.push_str("...");
        }
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{suffix}")),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            event_time: Some(self.clock.micro_time()),
            reporting_controller: Some(self.controller.to_owned()),
            reporting_instance: Some(self.controller.replace('/', "-")),
            action: Some(reason.to_owned()),
            reason: Some(reason.to_owned()),
            note: Some(note),
            type_: Some(match type_ {
                EventType::Normal => "Normal".to_owned(),
                EventType::Warning => "Warning".to_owned(),
            }),
            regarding: Some(ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                name: Some(name),
                namespace: meta.namespace.clone(),
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
                ..ObjectReference::default()
            }),
            ..Event::default()
        }
    }
}
