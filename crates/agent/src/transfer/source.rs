//! What is sent.

use super::error::Failure;
use super::frame::Sha256Sum;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// How many bytes are read at once to sum them.
const READ_BYTES: usize = 1 << 20;

/// A part on the disk of the sender. It is read from any offset, and again after a connection broke: it must give the same bytes
/// each time, and is usually a file that the archive of the part was written to.
pub trait Source: Send + Sync + 'static {
    /// Reads at an offset; no bytes are the end. It may block, but for less than the idle timeout.
    ///
    /// # Errors
    /// It cannot be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Source for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

impl Source for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
}

/// Reads a source from its beginning, and sums what it has read.
pub(super) struct SourceReader {
    source: Arc<dyn Source>,
    hash: Sha256,
    offset: u64,
}

impl SourceReader {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, hash: Sha256::new(), offset: 0 }
    }

    /// How many bytes were read.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Their sum.
    pub(super) fn sum(&self) -> Sha256Sum {
        self.hash.clone().finalize().into()
    }

    /// Reads the next bytes: so many, or fewer at the end.
    pub(super) async fn next(self, bytes: usize) -> Result<(Self, Vec<u8>), Failure> {
        let read = tokio::task::spawn_blocking(move || {
            let mut reader = self;
            let data = reader.read(bytes)?;
            io::Result::Ok((reader, data))
        });
        read.await.map_err(|_| Failure::Stopping)?.map_err(Failure::Source)
    }

    /// Sums so many bytes, or fewer at the end.
    pub(super) async fn skip(self, bytes: u64) -> Result<Self, Failure> {
        let read = tokio::task::spawn_blocking(move || {
            let mut reader = self;
            let end = reader.offset.saturating_add(bytes);
            while reader.offset < end {
                let most = usize::try_from(end - reader.offset).unwrap_or(READ_BYTES).min(READ_BYTES);
                if reader.read(most)?.is_empty() {
                    break;
                }
            }
            io::Result::Ok(reader)
        });
        read.await.map_err(|_| Failure::Stopping)?.map_err(Failure::Source)
    }

    fn read(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut data = vec![0; bytes];
        let mut filled = 0;
        while filled < bytes {
            match self.source.read_at(&mut data[filled..], self.offset) {
                Ok(0) => break,
                Ok(read) => {
                    let read = read.min(bytes - filled);
                    self.hash.update(&data[filled..filled + read]);
                    self.offset += read as u64;
                    filled += read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        data.truncate(filled);
        Ok(data)
    }
}
