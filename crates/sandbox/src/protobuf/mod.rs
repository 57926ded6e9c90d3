//! Bodies of requests in protobuf, read into the JSON that the same client would have sent otherwise.
//!
//! Typed clients send the built-in kinds so; answers are JSON, which they accept too. The structure of the messages
//! is in `messages.json`, which `examples/messages.rs` writes from the Go modules of Kubernetes; that needs Go and
//! the modules, so CI does not repeat it.

mod message;
mod table;
#[cfg(test)]
mod tests;
mod well_known;
mod wire;

use serde_json::{Value, json};

pub(crate) use self::wire::Damage;
use self::wire::{Reader, Wire};

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What precedes every body.
const MAGIC: &[u8] = b"k8s\0";

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("empty data")]
    Empty,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    #[error("empty body")]
    EmptyBody,
    /// Of the envelope, so that the kind is not known.
    #[error(transparent)]
    Envelope(Damage),
    #[error(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    )]
    UnknownKind { api_version: String, kind: String },
    #[error("{damage}")]
    Object { api_version: String, kind: String, damage: Damage },
}

impl Unreadable {
    /// The kind and its version, if the envelope told them.
    pub(crate) fn kind(&self) -> Option<(&str, &str)> {
        match self {
            Self::UnknownKind { api_version, kind } | Self::Object { api_version, kind, .. } => {
                Some((kind, api_version.rsplit('/').next().unwrap_or_default()))
            }
            _ => None,
        }
    }
}

/// Whether objects of a kind can be read.
pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
    table::of_kind(api_version, kind).is_some()
}

/// Reads a body. What the envelope leaves open is of the kind and version that are expected.
pub(crate) fn decode(body: &[u8], api_version: &str, kind: &str) -> Result<Value, Unreadable> {
    if body.is_empty() {
        return Err(Unreadable::Empty);
    }
    let envelope = body.strip_prefix(MAGIC).ok_or(Unreadable::NoMagic)?;
    if envelope.is_empty() {
        return Err(Unreadable::EmptyBody);
    }
    let (told_version, told_kind, raw) = open(envelope).map_err(Unreadable::Envelope)?;
    let or = |told: String, expected: &str| if told.is_empty() { expected.to_owned() } else { told };
    let (api_version, kind) = (or(told_version, api_version), or(told_kind, kind));
    let Some(message) = table::of_kind(&api_version, &kind) else {
        return Err(Unreadable::UnknownKind { api_version, kind });
    };
    match message::object(message, raw) {
        Ok(mut object) => {
            object.insert("apiVersion".to_owned(), json!(api_version));
            object.insert("kind".to_owned(), json!(kind));
            Ok(Value::Object(object))
        }
        Err(damage) => Err(Unreadable::Object { api_version, kind, damage }),
    }
}

/// The version, the kind and the bytes of the object in an envelope.
fn open(envelope: &[u8]) -> Result<(String, String, &[u8]), Damage> {
    let (mut api_version, mut kind, mut raw): (_, _, &[u8]) = (String::new(), String::new(), &[]);
    let wrong = |wire: Wire<'_>, field: &str| {
        Err(Damage::WrongWireType { wire_type: wire.wire_type(), field: field.to_owned() })
    };
    let mut reader = Reader::new("Unknown", envelope);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                let mut reader = Reader::new("TypeMeta", meta);
                while let Some((number, wire)) = reader.next()? {
                    match (number, wire) {
                        (1, Wire::Bytes(found)) => api_version = wire::text(found),
                        (2, Wire::Bytes(found)) => kind = wire::text(found),
                        (1, other) => return wrong(other, "APIVersion"),
                        (2, other) => return wrong(other, "Kind"),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(found)) => raw = found,
            (1, other) => return wrong(other, "TypeMeta"),
            (2, other) => return wrong(other, "Raw"),
            _ => {}
        }
    }
    Ok((api_version, kind, raw))
}
