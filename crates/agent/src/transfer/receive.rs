//! Receiving one part over one connection.

use super::error::Failure;
use super::expected::ReceivedPart;
use super::file::{FileError, PartFile};
use super::frame::{self, FRAME_BYTES, Frame, SMALL_FRAME_BYTES, Sha256Sum};
use super::refusal::Refusal;
use super::session::hex;
use super::session_state::{SessionState, Slot};
use super::stream::Incoming;
use portolan_node::Name;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{timeout, timeout_at};

/// How many bytes are summed before the other side is told to wait.
pub(super) const SUM_BYTES: u64 = 64 << 20;

/// Receives a part, unless the session is closed, its deadline passes, or another connection comes for the part.
pub(super) async fn receive(
    stream: &mut Incoming,
    session: &SessionState,
    part: &Name,
    idle: Duration,
) -> Result<ReceivedPart, Failure> {
    let slot = session.slot(part)?;
    // A sender connects again before a connection that broke is noticed here.
    slot.newer.notify_waiters();
    let newer = slot.newer.notified();
    let received = Connection { stream, session, part, idle }.run(slot);
    tokio::select! {
        biased;
        () = session.closed() => Err(Refusal::Closed.into()),
        () = newer => Err(Refusal::Displaced.into()),
        received = timeout_at(session.deadline, received) => received.unwrap_or(Err(Failure::Deadline)),
    }
}

struct Connection<'a> {
    stream: &'a mut Incoming,
    session: &'a SessionState,
    part: &'a Name,
    idle: Duration,
}

impl Connection<'_> {
    async fn run(mut self, slot: &Slot) -> Result<ReceivedPart, Failure> {
        let mut file = self.open(slot).await?;
        let (offset, sync_bytes) = (file.length(), self.session.limits.sync_bytes);
        self.write(&Frame::Resume { offset, sync_bytes, sha256: file.sum() }).await?;
        file = match self.begin().await? {
            begin if begin == offset => file,
            0 if file.is_whole() => return Err(Refusal::Exists.into()),
            0 => {
                let file = blocking(move || file.restart()).await?;
                self.session.release(self.part);
                file
            }
            _ => return Err(Failure::Unexpected("an offset that was not offered")),
        };
        loop {
            file = match self.read(FRAME_BYTES).await? {
                Frame::Data(_) if file.is_whole() => return Err(Refusal::Exists.into()),
                Frame::Data(data) if data.is_empty() => {
                    return Err(Failure::Unexpected("a frame without data"));
                }
                Frame::Data(data) => self.data(file, data).await?,
                Frame::End { bytes, sha256 } => return self.end(file, bytes, sha256).await,
                _ => return Err(Failure::Unexpected("a frame other than data")),
            };
        }
    }

    /// The file of the part, summed.
    async fn open(&mut self, slot: &Slot) -> Result<PartFile, Failure> {
        let turn = timeout(self.idle, Arc::clone(&slot.turn).lock_owned()).await;
        let turn = turn.map_err(|_| Failure::Idle(self.idle))?;
        let (folder, name) = (self.session.folder.clone(), self.part.clone());
        let mut file = blocking(move || PartFile::open(&folder, &name, turn)).await?;
        while file.is_unread() {
            file = blocking(move || file.read_again(SUM_BYTES)).await?;
            self.write(&Frame::Wait).await?;
        }
        if let Err(refusal) = self.session.reserve(self.part, file.length()) {
            if file.is_whole() {
                return Err(refusal.into());
            }
            file = blocking(move || file.restart()).await?;
            self.session.release(self.part);
        }
        Ok(file)
    }

    async fn begin(&mut self) -> Result<u64, Failure> {
        loop {
            match self.read(SMALL_FRAME_BYTES).await? {
                Frame::Begin { offset } => return Ok(offset),
                Frame::Wait => {}
                _ => return Err(Failure::Unexpected("a frame before the beginning")),
            }
        }
    }

    async fn data(&mut self, file: PartFile, data: Vec<u8>) -> Result<PartFile, Failure> {
        let bytes = file.length().saturating_add(data.len() as u64);
        if let Err(refusal) = self.session.reserve(self.part, bytes) {
            return Err(self.remove(file, refusal).await);
        }
        let sync_bytes = self.session.limits.sync_bytes;
        let (file, synced) = blocking(move || {
            let file = file.append(&data)?;
            if file.unsynced() < sync_bytes { Ok((file, false)) } else { Ok((file.sync()?, true)) }
        })
        .await?;
        if synced {
            self.write(&Frame::Ack { offset: file.length() }).await?;
        }
        Ok(file)
    }

    async fn end(&mut self, file: PartFile, bytes: u64, sha256: Sha256Sum) -> Result<ReceivedPart, Failure> {
        if bytes != file.length() || sha256 != file.sum() {
            let refusal = if file.is_whole() { Refusal::Exists } else { Refusal::Checksum };
            return Err(self.remove(file, refusal).await);
        }
        let path = blocking(move || file.finish()).await?;
        let part = ReceivedPart { name: self.part.clone(), path, bytes, sha256: hex(&sha256) };
        // The sender first: whoever waits for the session may close it, which ends this connection. A sender that does not hear
        // it asks again.
        self.write(&Frame::Done).await.ok();
        self.session.record_whole(&part);
        Ok(part)
    }

    /// Removes what is of no use, unless it is a whole part.
    async fn remove(&mut self, file: PartFile, refusal: Refusal) -> Failure {
        if file.is_whole() {
            return refusal.into();
        }
        match blocking(move || file.remove()).await {
            Ok(()) => {
                self.session.release(self.part);
                refusal.into()
            }
            Err(failure) => failure,
        }
    }

    async fn read(&mut self, at_most: usize) -> Result<Frame, Failure> {
        let read = timeout(self.idle, frame::read(self.stream, at_most)).await;
        Ok(read.map_err(|_| Failure::Idle(self.idle))??)
    }

    async fn write(&mut self, frame: &Frame) -> Result<(), Failure> {
        let written = timeout(self.idle, frame::write(self.stream, frame)).await;
        Ok(written.map_err(|_| Failure::Idle(self.idle))??)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| Failure::Stopping)??)
}
