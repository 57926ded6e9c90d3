//! Streams compressed with zstd.

use super::ArchiveError;
use std::io::{self, BufReader, Read, Write};

/// Fast, and already much smaller: memory is mostly zeros and repetition.
const LEVEL: i32 = 1;

/// How much memory a stranger's stream may ask for to be decompressed: 2 to the power of this.
const WINDOW_LOG_MAX: u32 = 23;

/// Writes through `pack` and compresses what it writes.
///
/// # Errors
/// Those of `pack`, or the stream cannot be written.
pub fn compressed<Out: Write, Packed>(
    to: Out,
    pack: impl FnOnce(&mut dyn Write) -> Result<Packed, ArchiveError>,
) -> Result<Packed, ArchiveError> {
    let mut encoder = zstd::stream::Encoder::new(to, LEVEL).map_err(ArchiveError::Stream)?;
    let packed = pack(&mut encoder)?;
    encoder.finish().and_then(|mut out| out.flush()).map_err(ArchiveError::Stream)?;
    Ok(packed)
}

/// What a compressed stream holds. How much that is, is for the reader to limit.
///
/// # Errors
/// There is no memory for it.
pub fn decompressed<In: Read>(from: In) -> io::Result<zstd::stream::Decoder<'static, BufReader<In>>> {
    let mut decoder = zstd::stream::Decoder::new(from)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
}
