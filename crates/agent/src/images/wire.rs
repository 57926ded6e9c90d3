//! The wire format of protobuf, read with bounds.
//!
//! CRIU decodes its images with protobuf-c. Where protobuf-c is lenient, the two decoders could understand one file in two ways,
//! so this one refuses: a field that is there twice, a number that is not written in its shortest form or is too large for its
//! field, a text with a zero byte. Unknown fields are skipped.

use super::refusal::{Damage, Refusal};

/// How many messages may lie in each other.
const DEEPEST: u8 = 16;
/// How many fields a message may have.
const MOST_FIELDS: usize = 1 << 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes as they are: no field that is read has them.
    Fixed,
}

/// The fields of one message, in their order.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    image: &'a str,
    depth: u8,
    fields: Vec<(u32, Value<'a>)>,
}

impl<'a> Fields<'a> {
    /// Decodes a message of the image of that name.
    pub(super) fn decode(image: &'a str, bytes: &'a [u8]) -> Result<Self, Refusal> {
        Self::nested(image, bytes, 0)
    }

    fn nested(image: &'a str, bytes: &'a [u8], depth: u8) -> Result<Self, Refusal> {
        let damaged = |damage| Refusal::damaged(image, damage);
        if depth >= DEEPEST {
            return Err(damaged(Damage::TooDeep { limit: DEEPEST }));
        }
        let mut reader = Reader { rest: bytes };
        let mut fields = Vec::new();
        while !reader.rest.is_empty() {
            if fields.len() >= MOST_FIELDS {
                return Err(damaged(Damage::TooMany { limit: MOST_FIELDS }));
            }
            fields.push(reader.field().map_err(damaged)?);
        }
        Ok(Self { image, depth, fields })
    }

    /// The image that the message is in.
    pub(super) fn image(&self) -> &'a str {
        self.image
    }

    fn damaged(&self, damage: Damage) -> Refusal {
        Refusal::damaged(self.image, damage)
    }

    fn values(&self, field: u32) -> impl Iterator<Item = Value<'a>> + '_ {
        self.fields.iter().filter(move |(number, _)| *number == field).map(|(_, value)| *value)
    }

    fn single(&self, field: u32) -> Result<Option<Value<'a>>, Refusal> {
        let mut values = self.values(field);
        let value = values.next();
        match values.next() {
            None => Ok(value),
            Some(_) => Err(self.damaged(Damage::Twice { field })),
        }
    }

    /// A number, or nothing if the field is not there.
    pub(super) fn number(&self, field: u32) -> Result<Option<u64>, Refusal> {
        match self.single(field)? {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(_) => Err(self.damaged(Damage::Type { field })),
        }
    }

    /// A number of 32 bits.
    pub(super) fn u32(&self, field: u32) -> Result<Option<u32>, Refusal> {
        let number = self.number(field)?;
        number
            .map(|number| u32::try_from(number).map_err(|_| self.damaged(Damage::TooLarge { field })))
            .transpose()
    }

    /// A number of 32 bits that must be there.
    pub(super) fn need_u32(&self, field: u32) -> Result<u32, Refusal> {
        self.u32(field)?.ok_or_else(|| self.damaged(Damage::Missing { field }))
    }

    /// A signed number in the zigzag form.
    pub(super) fn signed(&self, field: u32) -> Result<Option<i64>, Refusal> {
        let number = self.u32(field)?;
        Ok(number.map(|number| i64::from(number >> 1) ^ -i64::from(number & 1)))
    }

    /// Yes or no; no if the field is not there.
    pub(super) fn flag(&self, field: u32) -> Result<bool, Refusal> {
        Ok(self.number(field)?.is_some_and(|number| number != 0))
    }

    /// Bytes, or nothing if the field is not there.
    pub(super) fn bytes(&self, field: u32) -> Result<Option<&'a [u8]>, Refusal> {
        match self.single(field)? {
            None => Ok(None),
            Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
            Some(_) => Err(self.damaged(Damage::Type { field })),
        }
    }

    fn as_text(&self, field: u32, bytes: &'a [u8]) -> Result<&'a str, Refusal> {
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text),
            _ => Err(self.damaged(Damage::Text { field })),
        }
    }

    /// A text, or nothing if the field is not there.
    pub(super) fn text(&self, field: u32) -> Result<Option<&'a str>, Refusal> {
        let bytes = self.bytes(field)?;
        bytes.map(|bytes| self.as_text(field, bytes)).transpose()
    }

    /// A list of texts.
    pub(super) fn texts(&self, field: u32) -> Result<Vec<&'a str>, Refusal> {
        let decode = |value: Value<'a>| match value {
            Value::Bytes(bytes) => self.as_text(field, bytes),
            _ => Err(self.damaged(Damage::Type { field })),
        };
        self.values(field).map(decode).collect()
    }

    /// A text that must be there.
    pub(super) fn need_text(&self, field: u32) -> Result<&'a str, Refusal> {
        self.text(field)?.ok_or_else(|| self.damaged(Damage::Missing { field }))
    }

    /// A list of numbers of 32 bits, packed or one by one.
    pub(super) fn u32s(&self, field: u32) -> Result<Vec<u32>, Refusal> {
        let mut numbers = Vec::new();
        for value in self.values(field) {
            match value {
                Value::Number(number) => numbers.push(number),
                Value::Bytes(bytes) => {
                    let mut reader = Reader { rest: bytes };
                    while !reader.rest.is_empty() {
                        numbers.push(reader.varint().map_err(|damage| self.damaged(damage))?);
                    }
                }
                Value::Fixed => return Err(self.damaged(Damage::Type { field })),
            }
            if numbers.len() > MOST_FIELDS {
                return Err(self.damaged(Damage::TooMany { limit: MOST_FIELDS }));
            }
        }
        let narrow =
            |number: u64| u32::try_from(number).map_err(|_| self.damaged(Damage::TooLarge { field }));
        numbers.into_iter().map(narrow).collect()
    }

    /// A message in this one, or nothing if the field is not there.
    pub(super) fn message(&self, field: u32) -> Result<Option<Self>, Refusal> {
        let bytes = self.bytes(field)?;
        bytes.map(|bytes| Self::nested(self.image, bytes, self.depth + 1)).transpose()
    }

    /// A list of messages in this one.
    pub(super) fn messages(&self, field: u32) -> Result<Vec<Self>, Refusal> {
        let decode = |value: Value<'a>| match value {
            Value::Bytes(bytes) => Self::nested(self.image, bytes, self.depth + 1),
            _ => Err(self.damaged(Damage::Type { field })),
        };
        self.values(field).map(decode).collect()
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Damage::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Damage> {
        let mut number = 0_u64;
        for index in 0..10_u32 {
            let (&byte, rest) = self.rest.split_first().ok_or(Damage::Truncated)?;
            self.rest = rest;
            // The tenth byte holds the last bit of a number of 64 bits.
            if index == 9 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return if byte == 0 && index > 0 { Err(Damage::Varint) } else { Ok(number) };
            }
        }
        Err(Damage::Varint)
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), Damage> {
        let key = u32::try_from(self.varint()?).map_err(|_| Damage::Varint)?;
        let (number, wire_type) = (key >> 3, key & 7);
        if number == 0 {
            return Err(Damage::WireType { wire_type });
        }
        let value = match wire_type {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Damage::Truncated)?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            // Groups: CRIU has none, and protobuf-c does not read them.
            wire_type => return Err(Damage::WireType { wire_type }),
        };
        Ok((number, value))
    }
}
