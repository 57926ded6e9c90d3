//! Where the overlay file system keeps what a container changed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The upper folder of the overlay that is the root, by the text of `/proc/PID/mountinfo`.
pub(super) fn upper(mountinfo: &str) -> Option<PathBuf> {
    // Mounts may lie on each other: the last one is what the container sees.
    mountinfo.lines().rev().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        if place.split(' ').nth(4)? != "/" {
            return None;
        }
        let mut kind = kind.split(' ');
        if kind.next()? != "overlay" {
            return None;
        }
        let options = kind.nth(1)?;
        let path = options.split(',').find_map(|option| option.strip_prefix("upperdir="))?;
        Some(PathBuf::from(OsString::from_vec(unescape(path.as_bytes()))))
    })
}

/// The kernel writes some characters as three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let number = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match number {
            Some(number) => {
                bytes.push(number);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}
