//! Whether a program needs a dynamic linker, read from its ELF headers.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::ImageError;

/// How a program is linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linkage {
    /// It starts without any other file.
    Static,
    /// It asks the kernel for a dynamic linker.
    Dynamic {
        /// The path of that linker.
        interpreter: String,
    },
}

const SEGMENT_INTERPRETER: u32 = 3;
/// A path longer than this is no path (Linux: PATH_MAX).
const LONGEST_INTERPRETER: u64 = 4096;

/// Reads how the program at `path` is linked. Only little-endian ELF is known: no other machine runs the lab.
pub fn linkage(path: &Path) -> Result<Linkage, ImageError> {
    let mut file = File::open(path).map_err(ImageError::io("open", path))?;
    read(&mut file, path)
}

fn read(file: &mut (impl Read + Seek), path: &Path) -> Result<Linkage, ImageError> {
    let not_elf = |problem| ImageError::NotElf { path: path.to_path_buf(), problem };
    let mut header = [0_u8; 64];
    let got = read_up_to(file, &mut header).map_err(ImageError::io("read", path))?;
    if got < 52 || !header.starts_with(b"\x7fELF") {
        return Err(not_elf("it does not begin with an ELF header"));
    }
    if header[5] != 1 {
        return Err(not_elf("it is not little-endian"));
    }
    let wide = match header[4] {
        1 => false,
        2 if got == 64 => true,
        _ => return Err(not_elf("its class is neither 32 nor 64 bits")),
    };
    let (table, entry_size, entries) = if wide {
        (number(&header, 32, 8), number(&header, 54, 2), number(&header, 56, 2))
    } else {
        (number(&header, 28, 4), number(&header, 42, 2), number(&header, 44, 2))
    };
    let smallest = if wide { 56 } else { 32 };
    if entries > 0 && entry_size < smallest {
        return Err(not_elf("the entries of its program header table are too short"));
    }
    for index in 0..entries {
        let mut entry = [0_u8; 56];
        let entry = &mut entry[..if wide { 56 } else { 32 }];
        let at = table
            .checked_add(index * entry_size)
            .ok_or_else(|| not_elf("its program header table is out of bounds"))?;
        file.seek(SeekFrom::Start(at)).map_err(ImageError::io("seek in", path))?;
        if read_up_to(file, entry).map_err(ImageError::io("read", path))? < entry.len() {
            return Err(not_elf("its program header table is cut short"));
        }
        if number(entry, 0, 4) != u64::from(SEGMENT_INTERPRETER) {
            continue;
        }
        let (offset, size) = if wide {
            (number(entry, 8, 8), number(entry, 32, 8))
        } else {
            (number(entry, 4, 4), number(entry, 16, 4))
        };
        if size > LONGEST_INTERPRETER {
            return Err(not_elf("the name of its interpreter is too long"));
        }
        file.seek(SeekFrom::Start(offset)).map_err(ImageError::io("seek in", path))?;
        let mut name = Vec::new();
        file.take(size).read_to_end(&mut name).map_err(ImageError::io("read", path))?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        return Ok(Linkage::Dynamic { interpreter: String::from_utf8_lossy(&name[..end]).into_owned() });
    }
    Ok(Linkage::Static)
}

/// A little-endian number of `size` bytes at `at`, both inside `bytes`.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn read_up_to(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A 64-bit ELF file with one program header of this type and, behind it, this text.
    fn elf(segment: u32, text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0_u8; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&segment.to_le_bytes());
        bytes[72] = 120;
        bytes[96] = u8::try_from(text.len()).unwrap();
        bytes.extend_from_slice(text);
        bytes
    }

    fn linkage_of(bytes: Vec<u8>) -> Result<Linkage, ImageError> {
        read(&mut Cursor::new(bytes), Path::new("program"))
    }

    #[test]
    fn interpreter_segment_means_dynamic() {
        let found = linkage_of(elf(SEGMENT_INTERPRETER, b"/lib/ld.so\0")).unwrap();
        assert_eq!(found, Linkage::Dynamic { interpreter: "/lib/ld.so".to_owned() });
        assert_eq!(linkage_of(elf(1, b"")).unwrap(), Linkage::Static);
    }

    #[test]
    fn this_test_is_itself_an_elf_program() {
        let own = std::env::current_exe().unwrap();
        let found = linkage(&own).unwrap();
        assert_eq!(
            matches!(found, Linkage::Dynamic { .. }),
            cfg!(not(target_feature = "crt-static")),
            "{found:?}"
        );
    }

    #[test]
    fn every_prefix_of_a_program_is_refused_without_a_panic() {
        let whole = elf(SEGMENT_INTERPRETER, b"/lib/ld.so\0");
        for length in 0..119 {
            let error = linkage_of(whole[..length].to_vec()).unwrap_err();
            assert!(error.to_string().contains("is no ELF program"), "{error}");
        }
        assert!(linkage_of(b"#!/bin/sh\n".to_vec()).is_err());
    }

    #[test]
    fn absurd_offsets_are_refused() {
        let mut bytes = elf(SEGMENT_INTERPRETER, b"");
        bytes[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(linkage_of(bytes).is_err());
        let mut bytes = elf(SEGMENT_INTERPRETER, b"");
        bytes[96..104].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(linkage_of(bytes).unwrap_err().to_string().contains("too long"));
    }
}
