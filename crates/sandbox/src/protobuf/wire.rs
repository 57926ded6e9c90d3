//! The wire format of protobuf, without any knowledge of messages.

/// What is wrong with bytes, worded as the API server words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    Length,
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    #[error("proto: {message}: wiretype end group for non-group")]
    NoGroup { message: String },
    #[error("proto: illegal wireType {wire_type}")]
    WireType { wire_type: u64 },
    #[error("proto: {message}: illegal tag {number} (wire type {tag})")]
    Tag { message: String, number: i32, tag: u64 },
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType { wire_type: u8, field: String },
    #[error("proto: messages nested deeper than {limit}")]
    Depth { limit: usize },
    #[error("field {field}: {why}")]
    Content { field: String, why: String },
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A form that no field of Kubernetes has: its wire type.
    Other(u8),
}

impl Wire<'_> {
    pub(super) fn wire_type(self) -> u8 {
        match self {
            Wire::Varint(_) => 0,
            Wire::Bytes(_) => 2,
            Wire::Other(wire_type) => wire_type,
        }
    }
}

/// The fields of one message, in the order they were sent.
pub(super) struct Reader<'a> {
    /// How errors name the message.
    message: &'a str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a str, bytes: &'a [u8]) -> Self {
        Self { message, rest: bytes }
    }

    /// The next field with its number; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Damage> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = varint(&mut self.rest)?;
        if tag & 7 == 4 {
            return Err(Damage::NoGroup { message: self.message.to_owned() });
        }
        // As Go does: of the number the lower 32 bits count.
        let number = u32::try_from((tag >> 3) & u64::from(u32::MAX)).unwrap_or_default();
        if number.cast_signed() <= 0 {
            return Err(Damage::Tag { message: self.message.to_owned(), number: number.cast_signed(), tag });
        }
        Ok(Some((number, value(tag & 7, &mut self.rest)?)))
    }
}

/// The numbers of a packed list.
pub(super) fn packed(mut bytes: &[u8]) -> Result<Vec<u64>, Damage> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        out.push(varint(&mut bytes)?);
    }
    Ok(out)
}

fn value<'a>(wire_type: u64, rest: &mut &'a [u8]) -> Result<Wire<'a>, Damage> {
    Ok(match wire_type {
        0 => Wire::Varint(varint(rest)?),
        1 => {
            take(rest, 8)?;
            Wire::Other(1)
        }
        2 => {
            let length = varint(rest)?;
            if length.cast_signed() < 0 {
                return Err(Damage::Length);
            }
            Wire::Bytes(take(rest, usize::try_from(length).map_err(|_| Damage::Length)?)?)
        }
        3 => {
            skip_group(rest)?;
            Wire::Other(3)
        }
        5 => {
            take(rest, 4)?;
            Wire::Other(5)
        }
        _ => return Err(Damage::WireType { wire_type }),
    })
}

/// Passes over a group that was begun; groups in it are counted, not recursed into.
fn skip_group(rest: &mut &[u8]) -> Result<(), Damage> {
    let mut open = 1_usize;
    while open > 0 {
        match varint(rest)? & 7 {
            3 => open += 1,
            4 => open = open.checked_sub(1).ok_or(Damage::EndOfGroup)?,
            other => {
                value(other, rest)?;
            }
        }
    }
    Ok(())
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Damage> {
    let (taken, left) = rest.split_at_checked(count).ok_or(Damage::Truncated)?;
    *rest = left;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Damage> {
    let mut out = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, left) = rest.split_first().ok_or(Damage::Truncated)?;
        *rest = left;
        out |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(out);
        }
    }
    Err(Damage::Overflow)
}

/// Go takes any bytes for a string, and its JSON has a replacement for what is no UTF-8.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
