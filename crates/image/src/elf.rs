//! Whether a program needs a dynamic linker, read from its ELF headers.

use std::fs::File;
use std::path::Path;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadCacheOps, ReadRef, elf};

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

/// Reads how the program at `path` is linked.
pub fn linkage(path: &Path) -> Result<Linkage, ImageError> {
    let file = File::open(path).map_err(ImageError::io("open", path))?;
    read(file, path)
}

fn read(file: impl ReadCacheOps, path: &Path) -> Result<Linkage, ImageError> {
    let cache = ReadCache::new(file);
    let found = match FileKind::parse(&cache) {
        Ok(FileKind::Elf32) => of_headers::<elf::FileHeader32<Endianness>, _>(&cache),
        Ok(_) => of_headers::<elf::FileHeader64<Endianness>, _>(&cache),
        Err(error) => Err(error),
    };
    found.map_err(|error| ImageError::NotElf { path: path.to_path_buf(), problem: error.to_string() })
}

fn of_headers<'data, H: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(
    data: R,
) -> Result<Linkage, object::Error> {
    let header = H::parse(data)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, data)? {
        if let Some(path) = segment.interpreter(endian, data)? {
            return Ok(Linkage::Dynamic { interpreter: String::from_utf8_lossy(path).into_owned() });
        }
    }
    Ok(Linkage::Static)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const SEGMENT_INTERPRETER: u32 = 3;

    /// A 64-bit ELF file with one program header of this type and, behind it, this text.
    fn elf(segment: u32, text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0_u8; 120];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
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
        read(Cursor::new(bytes), Path::new("program"))
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
        assert!(linkage_of(bytes).unwrap_err().to_string().contains("interpreter"));
    }
}
