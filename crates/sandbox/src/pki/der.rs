//! The little of DER that a certificate is written in. Whatever was read from elsewhere is copied as it was.

use jiff::Timestamp;

const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// A value with its tag and length before it.
pub(super) fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(u8::try_from(length).unwrap_or_default());
    } else {
        let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        out.push(0x80 | u8::try_from(bytes.len()).unwrap_or_default());
        out.extend(bytes);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(SEQUENCE, parts)
}

pub(super) fn set(parts: &[&[u8]]) -> Vec<u8> {
    tagged(SET, parts)
}

pub(super) fn octets(bytes: &[u8]) -> Vec<u8> {
    tagged(0x04, &[bytes])
}

/// A text.
pub(super) fn utf8(text: &str) -> Vec<u8> {
    tagged(0x0c, &[text.as_bytes()])
}

/// A whole number that is not negative, its bytes in order.
pub(super) fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    match digits.first() {
        Some(first) if *first < 0x80 => tagged(0x02, &[&digits]),
        _ => tagged(0x02, &[&[0], &digits]),
    }
}

/// Whole bytes as a string of bits.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    tagged(0x03, &[&[0], bytes])
}

/// Named bits, the first in the highest place, without zeros at the end.
pub(super) fn flags(set: &[usize]) -> Vec<u8> {
    let Some(last) = set.iter().max() else { return tagged(0x03, &[&[0]]) };
    let mut bytes = vec![0_u8; last / 8 + 1];
    for flag in set {
        if let Some(byte) = bytes.get_mut(flag / 8) {
            *byte |= 0x80 >> (flag % 8);
        }
    }
    let unused = u8::try_from(7 - last % 8).unwrap_or_default();
    tagged(0x03, &[&[unused], &bytes])
}

/// An object identifier, such as 2.5.29.15.
pub(super) fn identifier(arcs: &[u64]) -> Vec<u8> {
    let (first, rest) = match arcs {
        [first, second, rest @ ..] => (first * 40 + second, rest),
        _ => (0, arcs),
    };
    let mut content = Vec::new();
    for arc in std::iter::once(&first).chain(rest) {
        let septets = (1..10).rev().map(|place| arc >> (7 * place)).skip_while(|part| *part == 0);
        content.extend(septets.map(|part| u8::try_from(part & 0x7f).unwrap_or_default() | 0x80));
        content.push(u8::try_from(arc & 0x7f).unwrap_or_default());
    }
    tagged(OBJECT_IDENTIFIER, &[&content])
}

/// A moment: two digits of the year until 2049, four after.
pub(super) fn time(at: Timestamp) -> Vec<u8> {
    let utc = at.to_zoned(jiff::tz::TimeZone::UTC);
    if (1950..2050).contains(&utc.year()) {
        tagged(0x17, &[utc.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()])
    } else {
        tagged(0x18, &[utc.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_standard_has_them() {
        assert_eq!(identifier(&[2, 5, 29, 15]), [0x06, 3, 0x55, 0x1d, 0x0f]);
        assert_eq!(identifier(&[1, 2, 840, 113_549]), [0x06, 6, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]);
        assert_eq!(flags(&[0, 2]), [0x03, 2, 5, 0xa0]);
        assert_eq!(flags(&[8]), [0x03, 3, 7, 0x00, 0x80]);
        assert_eq!(unsigned(&[0, 0x80]), [0x02, 2, 0, 0x80]);
        assert_eq!(unsigned(&[0]), [0x02, 1, 0]);
        assert_eq!(octets(&[7; 200])[..4], [0x04, 0x81, 200, 7]);
        assert_eq!(octets(&[7; 300])[..4], [0x04, 0x82, 1, 44]);
        assert_eq!(time("2026-01-02T03:04:05Z".parse().unwrap()), *b"\x17\x0d260102030405Z");
        assert_eq!(time("2050-01-02T03:04:05Z".parse().unwrap()), *b"\x18\x0f20500102030405Z");
    }
}
