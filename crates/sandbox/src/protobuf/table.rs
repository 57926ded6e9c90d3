//! The structure of the messages, read once from the generated table.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

const MESSAGES: &[u8] = include_bytes!("messages.json");

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: String,
    /// By number.
    fields: Vec<Field>,
    /// A message on the wire only; in JSON it is the list it holds.
    pub(super) is_list: bool,
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        let index = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        self.fields.get(index)
    }
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    number: u32,
    /// Its name in JSON.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    /// Zero is sent for what was never set.
    pub(super) omit_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    /// By strings.
    Map,
    /// The fields of the message stand in JSON beside those of the one that holds it.
    Inline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bytes,
    Bool,
    Int32,
    Int64,
    Message(usize),
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    /// JSON within the protobuf.
    Json,
}

#[derive(Deserialize, Default)]
struct Document {
    kinds: BTreeMap<String, String>,
    messages: BTreeMap<String, Vec<(u32, String, String, String)>>,
}

struct Table {
    kinds: BTreeMap<String, usize>,
    messages: Vec<Message>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // The table is part of the binary; `the_table_is_complete` proves that it parses.
    let document: Document = serde_json::from_slice(MESSAGES).unwrap_or_default();
    let positions: BTreeMap<&str, usize> =
        document.messages.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let messages = document.messages.iter().map(|(name, rows)| {
        let mut fields: Vec<Field> = rows.iter().filter_map(|row| field(row, &positions)).collect();
        fields.sort_by_key(|field| field.number);
        Message {
            name: name.rsplit('.').next().unwrap_or_default().to_owned(),
            fields,
            is_list: rows.iter().any(|row| row.3.contains('w')),
        }
    });
    let kinds = document.kinds.iter();
    Table {
        kinds: kinds
            .filter_map(|(kind, name)| Some((kind.clone(), *positions.get(name.as_str())?)))
            .collect(),
        messages: messages.collect(),
    }
});

fn field(row: &(u32, String, String, String), positions: &BTreeMap<&str, usize>) -> Option<Field> {
    let (number, name, kind, flags) = row;
    let kind = match kind.as_str() {
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "#api.resource.Quantity" => Kind::Quantity,
        "#util.intstr.IntOrString" => Kind::IntOrString,
        "#meta.v1.Time" => Kind::Time,
        "#meta.v1.MicroTime" => Kind::MicroTime,
        "#meta.v1.FieldsV1" | "#runtime.RawExtension" => Kind::Json,
        message => Kind::Message(*positions.get(message.strip_prefix('#')?)?),
    };
    let shape = match flags.as_str() {
        flags if flags.contains('r') => Shape::List,
        flags if flags.contains('m') => Shape::Map,
        flags if flags.contains('i') => Shape::Inline,
        _ => Shape::One,
    };
    Some(Field { number: *number, name: name.clone(), kind, shape, omit_zero: flags.contains('o') })
}

/// The message of a kind, if it is built in.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    let found = TABLE.kinds.get(&format!("{api_version}/{kind}"));
    let index = found.or_else(|| TABLE.kinds.get(&format!("*/{kind}")))?;
    message(*index)
}

pub(super) fn message(index: usize) -> Option<&'static Message> {
    TABLE.messages.get(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete() {
        let document: Document = serde_json::from_slice(MESSAGES).unwrap();
        let rows: usize = document.messages.values().map(Vec::len).sum();
        let read: usize = TABLE.messages.iter().map(|message| message.fields.len()).sum();
        assert_eq!((TABLE.kinds.len(), read), (document.kinds.len(), rows));
        assert!(of_kind("apps/v1", "Deployment").is_some() && of_kind("v1", "Pod").is_some());
        assert!(of_kind("apps/v1", "DeleteOptions").is_some());
        assert!(of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").is_none());
    }

    #[test]
    fn what_protobuf_does_not_know_comes_from_the_go_tags() {
        let find = |kind: &str, path: &[u32]| {
            let mut found = of_kind("v1", kind).unwrap();
            for number in path {
                let Kind::Message(index) = found.field(*number).unwrap().kind else { panic!("{number}") };
                found = message(index).unwrap();
            }
            found
        };
        let service = find("Service", &[2]);
        assert_eq!(service.field(3).unwrap().name, "clusterIP");
        let volume = find("Pod", &[2, 1]);
        assert_eq!((volume.name.as_str(), volume.field(2).unwrap().shape), ("Volume", Shape::Inline));
        let daemon_endpoint = find("Node", &[3, 6, 1]);
        assert_eq!(daemon_endpoint.field(1).unwrap().name, "Port");
        let replicas = find("ReplicationController", &[2]).field(1).unwrap();
        assert!(!replicas.omit_zero, "a pointer in Go: zero is a value");
    }
}
