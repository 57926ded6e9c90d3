//! The sum and the length of a stream.

use super::ArchiveError;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// Counts and sums what goes through, up to a limit.
pub(super) struct Summed<Inner> {
    inner: Inner,
    sum: Sha256,
    left: u64,
    exceeded: bool,
}

impl<Inner> Summed<Inner> {
    pub(super) fn new(inner: Inner, limit: u64) -> Self {
        Self { inner, sum: Sha256::new(), left: limit, exceeded: false }
    }

    pub(super) fn sha256(self) -> String {
        self.sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What an error of the stream means.
    pub(super) fn error(&self, error: io::Error, limit: u64) -> ArchiveError {
        if self.exceeded { ArchiveError::TooLong { limit } } else { ArchiveError::Stream(error) }
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            self.exceeded = true;
            return Err(io::Error::other("the stream is too long"));
        };
        self.left = left;
        self.sum.update(bytes);
        Ok(())
    }
}

impl<Inner: Read> Read for Summed<Inner> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count(&buffer[..read])?;
        Ok(read)
    }
}

impl<Inner: Write> Write for Summed<Inner> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.count(&buffer[..written])?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Exactly so many bytes of a file: fewer are an error, and more are not read.
pub(super) struct Exactly<Inner> {
    pub(super) inner: Inner,
    pub(super) left: u64,
}

impl<Inner: Read> Read for Exactly<Inner> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        if read == 0 && most > 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "a file became shorter while it was packed",
            ));
        }
        self.left -= read as u64;
        Ok(read)
    }
}
