//! Messages that JSON has another form for.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::wire::{Damage, Reader, Wire, text};

/// The second of Go's zero time, 0001-01-01T00:00:00Z, which JSON has as null.
const ZERO_TIME: i64 = -62_135_596_800;

/// What the bytes are, or why that cannot be said in JSON.
type Told<T> = Result<Result<T, String>, Damage>;

pub(super) fn int32(number: u64) -> i32 {
    // As Go does: the lower 32 bits.
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default().cast_signed()
}

pub(super) fn quantity(bytes: &[u8]) -> Result<Value, Damage> {
    let mut reader = Reader::new("Quantity", bytes);
    let mut out = "0".to_owned();
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => out = text(bytes),
            (1, other) => return Err(wrong("String_", other)),
            _ => {}
        }
    }
    Ok(Value::String(out))
}

pub(super) fn int_or_string(bytes: &[u8]) -> Told<Value> {
    let (mut kind, mut number, mut string) = (0, 0, String::new());
    let mut reader = Reader::new("IntOrString", bytes);
    while let Some((field, wire)) = reader.next()? {
        match (field, wire) {
            (1, Wire::Varint(found)) => kind = found,
            (2, Wire::Varint(found)) => number = int32(found),
            (3, Wire::Bytes(found)) => string = text(found),
            (1, other) => return Err(wrong("Type", other)),
            (2, other) => return Err(wrong("IntVal", other)),
            (3, other) => return Err(wrong("StrVal", other)),
            _ => {}
        }
    }
    Ok(match kind {
        0 => Ok(json!(number)),
        1 => Ok(json!(string)),
        _ => Err("impossible IntOrString.Type".to_owned()),
    })
}

/// Whole seconds: the API server drops fractions of this type on both of its wires.
pub(super) fn time(bytes: &[u8]) -> Told<Option<Value>> {
    Ok(instant("Timestamp", bytes)?.map(|found| found.map(|(at, _)| json!(format!("{at:.0}")))))
}

pub(super) fn micro_time(bytes: &[u8]) -> Told<Option<Value>> {
    Ok(instant("MicroTime", bytes)?.and_then(|found| {
        let Some((at, nanos)) = found else { return Ok(None) };
        let at =
            at.checked_add(jiff::SignedDuration::from_nanos(i64::from(nanos))).map_err(|e| e.to_string())?;
        Ok(Some(json!(format!("{at:.6}"))))
    }))
}

/// The second, and the nanoseconds after it.
fn instant(message: &str, bytes: &[u8]) -> Told<Option<(Timestamp, i32)>> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(message, bytes);
    while let Some((field, wire)) = reader.next()? {
        match (field, wire) {
            (1, Wire::Varint(found)) => seconds = found.cast_signed(),
            (2, Wire::Varint(found)) => nanos = int32(found),
            (1, other) => return Err(wrong("Seconds", other)),
            (2, other) => return Err(wrong("Nanos", other)),
            _ => {}
        }
    }
    if bytes.is_empty() || seconds == ZERO_TIME {
        return Ok(Ok(None));
    }
    if seconds < ZERO_TIME {
        return Ok(Err("year outside of range [0,9999]".to_owned()));
    }
    let at = Timestamp::from_second(seconds).map_err(|_| "year outside of range [0,9999]".to_owned());
    Ok(at.map(|at| Some((at, nanos))))
}

/// JSON that was sent as bytes.
pub(super) fn raw_json(bytes: &[u8]) -> Told<Option<Value>> {
    let mut raw: &[u8] = &[];
    let mut reader = Reader::new("RawExtension", bytes);
    while let Some((field, wire)) = reader.next()? {
        match (field, wire) {
            (1, Wire::Bytes(found)) => raw = found,
            (1, other) => return Err(wrong("Raw", other)),
            _ => {}
        }
    }
    if raw.is_empty() {
        return Ok(Ok(None));
    }
    Ok(serde_json::from_slice(raw).map(Some).map_err(|error| format!("not JSON: {error}")))
}

fn wrong(field: &str, wire: Wire<'_>) -> Damage {
    Damage::WrongWireType { wire_type: wire.wire_type(), field: field.to_owned() }
}
