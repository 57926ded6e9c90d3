//! The few kinds that kubectl sends as protobuf, read into JSON. Everything else is JSON on the way in.

use serde_json::{Map, Value, json};

/// What precedes every such body.
const MAGIC: &[u8] = b"k8s\0";

/// What a field holds.
enum Kind {
    Text,
    TextList,
    Number,
    Message(&'static [Field]),
}

struct Field(u64, &'static str, Kind);

use Kind::{Message, Number, Text, TextList};

const RESOURCE: &[Field] = &[
    Field(1, "namespace", Text),
    Field(2, "verb", Text),
    Field(3, "group", Text),
    Field(4, "version", Text),
    Field(5, "resource", Text),
    Field(6, "subresource", Text),
    Field(7, "name", Text),
];
const PATH: &[Field] = &[Field(1, "path", Text), Field(2, "verb", Text)];
const METADATA: &[Field] = &[Field(1, "name", Text), Field(3, "namespace", Text)];
const OPTIONS: &[Field] = &[
    Field(1, "gracePeriodSeconds", Number),
    Field(4, "propagationPolicy", Text),
    Field(5, "dryRun", TextList),
];

fn fields(kind: &str) -> Option<&'static [Field]> {
    Some(match kind {
        "TokenRequest" => &[
            Field(1, "metadata", Message(METADATA)),
            Field(
                2,
                "spec",
                Message(&[Field(1, "audiences", TextList), Field(4, "expirationSeconds", Number)]),
            ),
        ],
        "SelfSubjectAccessReview" => &[Field(
            2,
            "spec",
            Message(&[
                Field(1, "resourceAttributes", Message(RESOURCE)),
                Field(2, "nonResourceAttributes", Message(PATH)),
            ]),
        )],
        "SelfSubjectRulesReview" => &[Field(2, "spec", Message(&[Field(1, "namespace", Text)]))],
        "SelfSubjectReview" => &[],
        "Eviction" => &[Field(1, "metadata", Message(METADATA)), Field(2, "deleteOptions", Message(OPTIONS))],
        "DeleteOptions" => OPTIONS,
        _ => return None,
    })
}

/// Reads a body; none if it is damaged or of a kind that is not read here.
pub(super) fn read(body: &[u8]) -> Option<Value> {
    let mut envelope = body.strip_prefix(MAGIC)?;
    let (mut version, mut kind, mut raw): (String, String, &[u8]) = (String::new(), String::new(), &[]);
    while let Some((number, value)) = next(&mut envelope)? {
        match (number, value) {
            (1, Wire::Bytes(mut meta)) => {
                while let Some((number, value)) = next(&mut meta)? {
                    match (number, value) {
                        (1, Wire::Bytes(text)) => version = String::from_utf8(text.to_vec()).ok()?,
                        (2, Wire::Bytes(text)) => kind = String::from_utf8(text.to_vec()).ok()?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(found)) => raw = found,
            _ => {}
        }
    }
    let mut out = message(raw, fields(&kind)?)?;
    out["apiVersion"] = json!(version);
    out["kind"] = json!(kind);
    Some(out)
}

fn message(mut bytes: &[u8], fields: &[Field]) -> Option<Value> {
    let mut out = Map::new();
    while let Some((number, value)) = next(&mut bytes)? {
        let Some(Field(_, name, kind)) = fields.iter().find(|field| field.0 == number) else { continue };
        let read = match (kind, value) {
            (Text | TextList, Wire::Bytes(text)) => json!(std::str::from_utf8(text).ok()?),
            (Number, Wire::Varint(number)) => json!(number.cast_signed()),
            (Message(inner), Wire::Bytes(bytes)) => message(bytes, inner)?,
            _ => return None,
        };
        match (kind, out.get_mut(*name)) {
            (TextList, Some(Value::Array(list))) => list.push(read),
            (TextList, _) => {
                out.insert((*name).to_owned(), json!([read]));
            }
            // Absent and empty are the same on this wire.
            (Text, _) if read == json!("") => {}
            _ => {
                out.insert((*name).to_owned(), read);
            }
        }
    }
    Some(Value::Object(out))
}

enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Skipped,
}

/// The next field; `Some(None)` at the end, `None` if the bytes are damaged.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<Option<(u64, Wire<'a>)>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let tag = varint(bytes)?;
    let value = match tag & 7 {
        0 => Wire::Varint(varint(bytes)?),
        1 => skip(bytes, 8)?,
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            let (found, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Wire::Bytes(found)
        }
        5 => skip(bytes, 4)?,
        _ => return None,
    };
    Some(Some((tag >> 3, value)))
}

fn skip<'a>(bytes: &mut &'a [u8], count: usize) -> Option<Wire<'a>> {
    *bytes = bytes.get(count..)?;
    Some(Wire::Skipped)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut out = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        out |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(out);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_request_is_read_and_damage_is_noticed() {
        let spec = [0x0a, 1, b'x', 0x20, 0xd8, 0x04];
        let raw = [&[0x12, 6][..], &spec].concat();
        let meta = [&[0x0a, 2][..], b"v1", &[0x12, 12], b"TokenRequest"].concat();
        let envelope = [
            &[0x0a, u8::try_from(meta.len()).unwrap()][..],
            &meta,
            &[0x12, u8::try_from(raw.len()).unwrap()],
            &raw,
        ]
        .concat();
        let body = [MAGIC, &envelope].concat();
        let read_back = read(&body).unwrap();
        assert_eq!(read_back["spec"], json!({"audiences": ["x"], "expirationSeconds": 600}));
        for end in 0..body.len() {
            // Any beginning of it is read without harm.
            let _ = read(&body[..end]);
        }
        assert!(read(b"k8s\0\xff\xff\xff").is_none());
    }
}
