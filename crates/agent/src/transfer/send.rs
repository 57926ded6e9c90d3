//! Sending one part over one connection.

use super::error::Failure;
use super::flow::Flow;
use super::frame::{self, FRAME_BYTES, Frame, FrameError, SMALL_FRAME_BYTES, Sha256Sum, VERSION};
use super::handshake::HandshakeError;
use super::pace::Pacer;
use super::progress::Progress;
use super::receive::SUM_BYTES;
use super::session::MOST_SYNC_BYTES;
use super::source::{Source, SourceReader};
use super::stream::{Connect, Stream};
use super::ticket::{SessionKey, Ticket};
use super::tls::no_server_name;
use portolan_node::Name;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, split};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long to listen for what the receiver refuses, if nothing can be written to it any more.
const LAST_WORD: Duration = Duration::from_secs(5);

/// A connection to the peer.
type Connected = tokio_rustls::client::TlsStream<Box<dyn Stream>>;

/// A part that is sent.
pub(super) struct Outgoing {
    pub(super) session: SessionKey,
    pub(super) ticket: Ticket,
    pub(super) part: Name,
    pub(super) source: Arc<dyn Source>,
    pub(super) progress: Progress,
    pub(super) pacer: Option<Arc<Pacer>>,
    pub(super) frame_bytes: usize,
    pub(super) handshake_timeout: Duration,
    pub(super) idle_timeout: Duration,
}

impl Outgoing {
    /// Tries once.
    pub(super) async fn attempt(
        &self,
        connect: &dyn Connect,
        tls: &TlsConnector,
    ) -> Result<(u64, Sha256Sum), Failure> {
        let mut stream = self.connect(connect, tls).await?;
        let open = Frame::Open {
            ticket: self.ticket.clone(),
            session: self.session.clone(),
            part: self.part.clone(),
        };
        self.write(&mut stream, &open).await?;
        let (offset, sync_bytes, sha256) = self.resume(&mut stream).await?;
        let reader = self.reader(&mut stream, offset, sha256).await?;
        let begin = reader.offset();
        self.progress.record(&self.part, |part| part.acknowledged = begin);
        self.write(&mut stream, &Frame::Begin { offset: begin }).await?;
        let flow = Flow::new(begin);
        let (mut from, mut to) = split(stream);
        let window = sync_bytes.saturating_add(self.frame_bytes as u64).saturating_mul(2);
        let sent = Box::pin(self.flow(&flow, reader, window, &mut from, &mut to)).await?;
        // The receiver has the part, whether or not it still listens.
        timeout(self.handshake_timeout, to.shutdown()).await.ok();
        Ok(sent)
    }

    async fn connect(&self, connect: &dyn Connect, tls: &TlsConnector) -> Result<Connected, Failure> {
        let limit = self.handshake_timeout;
        let too_long = |_| Failure::from(HandshakeError::Timeout(limit));
        let stream = timeout(limit, connect.connect()).await.map_err(too_long)?.map_err(Failure::Connect)?;
        let connected = timeout(limit, tls.connect(no_server_name(), stream)).await.map_err(too_long)?;
        let mut stream = connected.map_err(HandshakeError::of)?;
        // Only now it is known whether the receiver accepts the certificate of this side.
        match timeout(limit, frame::read(&mut stream, SMALL_FRAME_BYTES)).await.map_err(too_long)? {
            Ok(Frame::Ready { version: VERSION }) => Ok(stream),
            Ok(Frame::Refused(refusal)) => Err(refusal.into()),
            Ok(_) => Err(Failure::Unexpected("another version of the protocol")),
            Err(FrameError::Io(error)) => Err(HandshakeError::of(error).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// How much the receiver has.
    async fn resume(&self, stream: &mut Connected) -> Result<(u64, u64, Sha256Sum), Failure> {
        loop {
            let read = timeout(self.idle_timeout, frame::read(stream, SMALL_FRAME_BYTES)).await;
            match read.map_err(|_| Failure::Idle(self.idle_timeout))?? {
                Frame::Resume { offset, sync_bytes, sha256 }
                    if (1..=MOST_SYNC_BYTES).contains(&sync_bytes) =>
                {
                    return Ok((offset, sync_bytes, sha256));
                }
                Frame::Wait => {}
                Frame::Refused(refusal) => return Err(refusal.into()),
                _ => return Err(Failure::Unexpected("a frame before the offset")),
            }
        }
    }

    /// The source, from where the receiver has it; from its beginning if the receiver has something else.
    async fn reader(
        &self,
        stream: &mut Connected,
        offset: u64,
        sha256: Sha256Sum,
    ) -> Result<SourceReader, Failure> {
        let mut reader = SourceReader::new(Arc::clone(&self.source));
        while reader.offset() < offset {
            let (before, rest) = (reader.offset(), offset - reader.offset());
            reader = reader.skip(rest.min(SUM_BYTES)).await?;
            if reader.offset() == before {
                break;
            }
            self.write(stream, &Frame::Wait).await?;
        }
        let same = reader.offset() == offset && reader.sum() == sha256;
        Ok(if same { reader } else { SourceReader::new(Arc::clone(&self.source)) })
    }

    /// Writes and reads at the same time, until the receiver has the whole part.
    async fn flow(
        &self,
        flow: &Flow,
        reader: SourceReader,
        window: u64,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(u64, Sha256Sum), Failure> {
        let answers = self.answers(flow, from);
        let pushed = self.push(flow, reader, window, to);
        let stalled = flow.stalled(self.idle_timeout);
        tokio::pin!(answers, pushed, stalled);
        let mut pushing = true;
        loop {
            tokio::select! {
                biased;
                answer = &mut answers => return answer,
                outcome = &mut pushed, if pushing => match outcome {
                    Ok(()) => pushing = false,
                    // The receiver may have told why before it closed the connection.
                    Err(Failure::Frame(error)) => {
                        return match timeout(LAST_WORD, &mut answers).await {
                            Ok(Err(Failure::Refused(refusal))) => Err(refusal.into()),
                            _ => Err(error.into()),
                        };
                    }
                    Err(failure) => return Err(failure),
                },
                () = &mut stalled => return Err(Failure::Idle(self.idle_timeout)),
            }
        }
    }

    async fn push(
        &self,
        flow: &Flow,
        mut reader: SourceReader,
        window: u64,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Failure> {
        let paced = self.pacer.as_ref().map_or(usize::MAX, |pacer| pacer.chunk());
        let chunk = self.frame_bytes.clamp(1, FRAME_BYTES).min(paced);
        loop {
            let (next, data) = reader.next(chunk).await?;
            reader = next;
            if data.is_empty() {
                break;
            }
            flow.room(reader.offset(), window).await;
            let bytes = data.len();
            if let Some(pacer) = &self.pacer {
                pacer.take(bytes).await;
            }
            flow.touch();
            // Before it is written: the receiver may acknowledge it while this still waits.
            flow.sent.store(reader.offset(), Ordering::SeqCst);
            self.progress.record(&self.part, |part| part.sent += bytes as u64);
            frame::write(to, &Frame::Data(data)).await?;
            flow.touch();
        }
        let (bytes, sha256) = (reader.offset(), reader.sum());
        *flow.end.lock().unwrap_or_else(PoisonError::into_inner) = Some((bytes, sha256));
        frame::write(to, &Frame::End { bytes, sha256 }).await?;
        flow.touch();
        Ok(())
    }

    async fn answers(
        &self,
        flow: &Flow,
        from: &mut (impl AsyncRead + Unpin),
    ) -> Result<(u64, Sha256Sum), Failure> {
        loop {
            let frame = frame::read(from, SMALL_FRAME_BYTES).await?;
            flow.touch();
            match frame {
                Frame::Ack { offset } => {
                    if !flow.acknowledge(offset) {
                        return Err(Failure::Unexpected("an acknowledgement of what was not sent"));
                    }
                    self.progress.record(&self.part, |part| part.acknowledged = offset);
                }
                Frame::Done => {
                    let end = *flow.end.lock().unwrap_or_else(PoisonError::into_inner);
                    return end.ok_or(Failure::Unexpected("the end of a part that is not sent"));
                }
                Frame::Wait => {}
                Frame::Refused(refusal) => return Err(refusal.into()),
                _ => return Err(Failure::Unexpected("a frame other than an answer")),
            }
        }
    }

    async fn write(&self, stream: &mut Connected, frame: &Frame) -> Result<(), Failure> {
        let written = timeout(self.idle_timeout, frame::write(stream, frame)).await;
        Ok(written.map_err(|_| Failure::Idle(self.idle_timeout))??)
    }
}
