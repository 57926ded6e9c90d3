//! From messages to JSON, as the Go types would write it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::table::{self, Field, Kind, Message, Shape};
use super::well_known;
use super::wire::{Damage, Reader, Wire, packed, text};

/// The messages of Kubernetes nest about half as deep.
const DEPTH: usize = 32;

/// The object a message stands for.
pub(super) fn object(message: &Message, bytes: &[u8]) -> Result<Map<String, Value>, Damage> {
    let mut out = Map::new();
    fill(message, bytes, &mut out, 0)?;
    Ok(out)
}

/// Adds the fields of a message. A message that is sent in parts is merged, as protobuf has it.
fn fill(message: &Message, bytes: &[u8], out: &mut Map<String, Value>, depth: usize) -> Result<(), Damage> {
    if depth > DEPTH {
        return Err(Damage::Depth { limit: DEPTH });
    }
    let mut reader = Reader::new(&message.name, bytes);
    while let Some((number, wire)) = reader.next()? {
        // Newer clients send fields that are not known here; Go passes over them too.
        let Some(field) = message.field(number) else { continue };
        match (field.shape, field.kind) {
            (Shape::Inline, Kind::Message(index)) => {
                if let Some(inner) = table::message(index) {
                    fill(inner, bytes_of(field, wire)?, out, depth + 1)?;
                }
            }
            (Shape::One | Shape::Inline, _) => {
                let before = out.remove(&field.name);
                if let Some(value) = value(field, wire, before, depth)?
                    && !(field.omit_zero && is_zero(&value))
                {
                    out.insert(field.name.clone(), value);
                }
            }
            (Shape::List, _) => {
                let items = items(field, wire, depth)?;
                match out.get_mut(&field.name) {
                    Some(Value::Array(list)) => list.extend(items),
                    _ => {
                        out.insert(field.name.clone(), Value::Array(items));
                    }
                }
            }
            (Shape::Map, _) => {
                let (key, value) = entry(field, bytes_of(field, wire)?, depth)?;
                match out.get_mut(&field.name) {
                    Some(Value::Object(map)) => {
                        map.insert(key, value);
                    }
                    _ => {
                        out.insert(field.name.clone(), json!({ key: value }));
                    }
                }
            }
        }
    }
    Ok(())
}

fn items(field: &Field, wire: Wire<'_>, depth: usize) -> Result<Vec<Value>, Damage> {
    if let (Kind::Bool | Kind::Int32 | Kind::Int64, Wire::Bytes(bytes)) = (field.kind, wire) {
        return packed(bytes)?
            .into_iter()
            .filter_map(|number| value(field, Wire::Varint(number), None, depth).transpose())
            .collect();
    }
    Ok(vec![value(field, wire, None, depth)?.unwrap_or(Value::Null)])
}

/// An entry of a map: a message of key and value, either of which may be left out.
fn entry(field: &Field, bytes: &[u8], depth: usize) -> Result<(String, Value), Damage> {
    let (mut key, mut found) = (String::new(), None);
    let mut reader = Reader::new(&field.name, bytes);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => key = text(bytes_of(field, wire)?),
            2 => found = value(field, wire, None, depth)?,
            _ => {}
        }
    }
    let absent = match field.kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => Wire::Varint(0),
        _ => Wire::Bytes(&[]),
    };
    let value = match found {
        Some(found) => found,
        None => value(field, absent, None, depth)?.unwrap_or(Value::Null),
    };
    Ok((key, value))
}

/// One value; none for what JSON leaves out or has as null.
fn value(
    field: &Field,
    wire: Wire<'_>,
    before: Option<Value>,
    depth: usize,
) -> Result<Option<Value>, Damage> {
    let content = |why: String| Damage::Content { field: field.name.clone(), why };
    Ok(Some(match field.kind {
        Kind::Text => Value::String(text(bytes_of(field, wire)?)),
        Kind::Bytes => Value::String(STANDARD.encode(bytes_of(field, wire)?)),
        Kind::Bool => Value::Bool(number_of(field, wire)? != 0),
        Kind::Int32 => json!(well_known::int32(number_of(field, wire)?)),
        Kind::Int64 => json!(number_of(field, wire)?.cast_signed()),
        Kind::Quantity => well_known::quantity(bytes_of(field, wire)?)?,
        Kind::IntOrString => well_known::int_or_string(bytes_of(field, wire)?)?.map_err(content)?,
        Kind::Time => return well_known::time(bytes_of(field, wire)?)?.map_err(content),
        Kind::MicroTime => return well_known::micro_time(bytes_of(field, wire)?)?.map_err(content),
        Kind::Json => return well_known::raw_json(bytes_of(field, wire)?)?.map_err(content),
        Kind::Message(index) => {
            let bytes = bytes_of(field, wire)?;
            let Some(message) = table::message(index) else { return Ok(None) };
            let mut out = match before {
                Some(Value::Object(map)) => map,
                _ => Map::new(),
            };
            fill(message, bytes, &mut out, depth + 1)?;
            if message.is_list {
                out.remove("items").unwrap_or_else(|| json!([]))
            } else {
                Value::Object(out)
            }
        }
    }))
}

fn bytes_of<'a>(field: &Field, wire: Wire<'a>) -> Result<&'a [u8], Damage> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        other => Err(wrong(field, other)),
    }
}

fn number_of(field: &Field, wire: Wire<'_>) -> Result<u64, Damage> {
    match wire {
        Wire::Varint(number) => Ok(number),
        other => Err(wrong(field, other)),
    }
}

/// Go names the field of its struct, which is nearly always the JSON name with a capital.
fn wrong(field: &Field, wire: Wire<'_>) -> Damage {
    let mut name = field.name.clone();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Damage::WrongWireType { wire_type: wire.wire_type(), field: name }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
