//! Frames: a length of four bytes, a kind of one, and as many bytes as the length says.

use super::refusal::Refusal;
use super::ticket::{SessionKey, Ticket};
use portolan_node::{Name, NameError};
use std::borrow::Cow;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How many bytes a frame with data may have.
pub const FRAME_BYTES: usize = 256 * 1024;
/// How many bytes any other frame may have.
pub(super) const SMALL_FRAME_BYTES: usize = 1024;
/// The version of the protocol.
pub(super) const VERSION: u16 = 1;

/// A sum.
pub(super) type Sha256Sum = [u8; 32];

/// One message of the protocol.
#[derive(Debug)]
pub(super) enum Frame {
    /// The receiver accepts the certificate of the sender.
    Ready { version: u16 },
    /// The sender begins with a part, or goes on with it.
    Open { ticket: Ticket, session: SessionKey, part: Name },
    /// The receiver has so many bytes on disk, with this sum, and acknowledges at least every `sync_bytes`.
    Resume { offset: u64, sync_bytes: u64, sha256: Sha256Sum },
    /// The sender goes on there: where the receiver ended, or at the beginning.
    Begin { offset: u64 },
    /// Bytes of the part.
    Data(Vec<u8>),
    /// The receiver has so many bytes on disk.
    Ack { offset: u64 },
    /// The part has ended.
    End { bytes: u64, sha256: Sha256Sum },
    /// The receiver has the whole part under its name.
    Done,
    /// The other side is busy with sums, and answers later.
    Wait,
    /// The receiver refuses.
    Refused(Refusal),
}

/// Why a frame cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is longer than it may be.
    #[error("a frame has {bytes} bytes, and may have {limit}: use the same version on both agents")]
    TooLong {
        /// How many bytes it has.
        bytes: u64,
        /// How many it may have.
        limit: usize,
    },
    /// It is of no known kind.
    #[error("a frame is of the unknown kind {0}: use the same version on both agents")]
    Unknown(u8),
    /// Its contents are not those of its kind.
    #[error("a frame of the kind {0} is damaged: use the same version on both agents")]
    Malformed(u8),
    /// It names something that cannot be a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The connection ended.
    #[error("the connection ends before the part does")]
    Ended,
    /// The connection broke.
    #[error("the connection breaks ({})", .0.kind())]
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Ended } else { Self::Io(error) }
    }
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Ready { .. } => 1,
            Self::Open { .. } => 2,
            Self::Resume { .. } => 3,
            Self::Begin { .. } => 4,
            Self::Data(_) => 5,
            Self::Ack { .. } => 6,
            Self::End { .. } => 7,
            Self::Done => 8,
            Self::Wait => 9,
            Self::Refused(_) => 10,
        }
    }

    fn payload(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match self {
            Self::Ready { version } => version.to_be_bytes().to_vec(),
            Self::Open { ticket, session, part } => {
                let mut payload = ticket.bytes().to_vec();
                for name in [&session.migration, &session.session, part] {
                    // A name has at most 253 bytes.
                    payload.push(u8::try_from(name.as_str().len()).unwrap_or(u8::MAX));
                    payload.extend_from_slice(name.as_str().as_bytes());
                }
                payload
            }
            Self::Resume { offset, sync_bytes, sha256 } => {
                [offset.to_be_bytes().as_slice(), sync_bytes.to_be_bytes().as_slice(), sha256.as_slice()]
                    .concat()
            }
            Self::Begin { offset } | Self::Ack { offset } => offset.to_be_bytes().to_vec(),
            Self::Data(data) => return Cow::Borrowed(data.as_slice()),
            Self::End { bytes, sha256 } => [bytes.to_be_bytes().as_slice(), sha256.as_slice()].concat(),
            Self::Done | Self::Wait => Vec::new(),
            Self::Refused(refusal) => {
                let (code, number) = refusal.encode();
                [[code].as_slice(), number.to_be_bytes().as_slice()].concat()
            }
        })
    }

    fn decode(kind: u8, payload: Vec<u8>) -> Result<Self, FrameError> {
        if kind == 5 {
            return Ok(Self::Data(payload));
        }
        let mut rest = payload.as_slice();
        let malformed = || FrameError::Malformed(kind);
        let frame = match kind {
            1 => Self::Ready { version: u16::from_be_bytes(take(&mut rest).ok_or_else(malformed)?) },
            2 => {
                let ticket = Ticket::new(take(&mut rest).ok_or_else(malformed)?);
                let migration = name(&mut rest, "migration").ok_or_else(malformed)??;
                let session = name(&mut rest, "session").ok_or_else(malformed)??;
                let part = name(&mut rest, "part").ok_or_else(malformed)??;
                Self::Open { ticket, session: SessionKey { migration, session }, part }
            }
            3 => Self::Resume {
                offset: number(&mut rest).ok_or_else(malformed)?,
                sync_bytes: number(&mut rest).ok_or_else(malformed)?,
                sha256: take(&mut rest).ok_or_else(malformed)?,
            },
            4 => Self::Begin { offset: number(&mut rest).ok_or_else(malformed)? },
            6 => Self::Ack { offset: number(&mut rest).ok_or_else(malformed)? },
            7 => Self::End {
                bytes: number(&mut rest).ok_or_else(malformed)?,
                sha256: take(&mut rest).ok_or_else(malformed)?,
            },
            8 => Self::Done,
            9 => Self::Wait,
            10 => {
                let [code] = take::<1>(&mut rest).ok_or_else(malformed)?;
                let limit = number(&mut rest).ok_or_else(malformed)?;
                Self::Refused(Refusal::decode(code, limit).ok_or_else(malformed)?)
            }
            kind => return Err(FrameError::Unknown(kind)),
        };
        if rest.is_empty() { Ok(frame) } else { Err(malformed()) }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(*first)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_be_bytes)
}

fn name(rest: &mut &[u8], what: &'static str) -> Option<Result<Name, NameError>> {
    let [length] = take::<1>(rest)?;
    let (name, others) = rest.split_at_checked(usize::from(length))?;
    *rest = others;
    Some(Name::new(what, &String::from_utf8_lossy(name)))
}

/// Reads one frame of at most so many bytes.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin), at_most: usize) -> Result<Frame, FrameError> {
    let mut header = [0; 5];
    from.read_exact(&mut header).await?;
    let [a, b, c, d, kind] = header;
    let bytes = u32::from_be_bytes([a, b, c, d]);
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    if length > at_most {
        return Err(FrameError::TooLong { bytes: u64::from(bytes), limit: at_most });
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).await?;
    Frame::decode(kind, payload)
}

/// Writes one frame.
pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> Result<(), FrameError> {
    let payload = frame.payload();
    let too_long = || FrameError::TooLong { bytes: payload.len() as u64, limit: FRAME_BYTES };
    if payload.len() > FRAME_BYTES {
        return Err(too_long());
    }
    let length = u32::try_from(payload.len()).map_err(|_| too_long())?;
    // At once: every write becomes a record of its own.
    let mut bytes = Vec::with_capacity(payload.len() + 5);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.push(frame.kind());
    bytes.extend_from_slice(&payload);
    to.write_all(&bytes).await?;
    to.flush().await?;
    Ok(())
}
