//! Packing parts into files and unpacking them. All functions block.

use super::parts::Part;
use super::{NodeError, Settings};
use crate::session::Pod;
use portolan_node::archive::{
    ArchiveError, Limits, Refusal, compressed, decompressed, inspect, pack, unpack,
};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops what is being packed when it is dropped: a thread does not end with who waits for it.
#[derive(Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Writes until it is stopped.
struct Stoppable {
    to: BufWriter<File>,
    stopped: Arc<AtomicBool>,
}

impl Write for Stoppable {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::SeqCst) {
            return Err(io::Error::other("it was stopped"));
        }
        self.to.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Packs a folder into a new file, and is sure that it is on the disk.
pub(super) fn pack_part(
    pod: &Pod,
    part: &Part,
    folder: &Path,
    to: &Path,
    settings: &Settings,
    stopped: Arc<AtomicBool>,
) -> Result<(), NodeError> {
    let failed = |source| NodeError::Archive {
        pod: pod.to_string(),
        part: part.to_string(),
        source: Box::new(source),
    };
    let mut options = fs::OpenOptions::new();
    let file =
        options.write(true).create_new(true).mode(0o600).open(to).map_err(NodeError::io("make", to))?;
    let same = file.try_clone().map_err(NodeError::io("make", to))?;
    let mut out = Stoppable { to: BufWriter::with_capacity(1 << 20, file), stopped };
    let limits = &settings.limits;
    let packed = match part {
        // `portolan-runc` reads it as it is.
        Part::Rootfs(_) => pack(part.kind(), folder, &mut out, limits).map(|_| ()),
        _ => compressed(&mut out, |out| pack(part.kind(), folder, out, limits)).map(|_| ()),
    };
    packed.and_then(|()| out.flush().map_err(ArchiveError::Stream)).map_err(failed)?;
    same.sync_all().map_err(NodeError::io("write to the disk", to))
}

/// Unpacks a part whose sum was checked when it arrived: at most so many bytes. How many it had. For a root file system, `to` is a
/// file.
pub(super) fn unpack_part(
    pod: &Pod,
    part: &Part,
    from: &Path,
    to: &Path,
    limits: &Limits,
) -> Result<u64, NodeError> {
    let failed = |source| NodeError::Archive {
        pod: pod.to_string(),
        part: part.to_string(),
        source: Box::new(source),
    };
    let mut file = File::open(from).map_err(NodeError::io("open", from))?;
    if let Part::Rootfs(_) = part {
        let bytes = file.metadata().map_err(NodeError::io("look at", from))?.len();
        let limit = limits.total_bytes;
        if bytes > limit {
            let refusal = Refusal::TooManyBytes { bytes, limit };
            return Err(failed(ArchiveError::Refused { entry: ".".to_owned(), refusal }));
        }
        // It is `portolan-runc` that unpacks it, and by then the pod has stood still for longer.
        inspect(part.kind(), BufReader::new(&file), limits).map_err(failed)?;
        file.rewind().map_err(NodeError::io("read", from))?;
        let copied = File::create(to).and_then(|mut to| io::copy(&mut file, &mut to));
        return copied.map_err(NodeError::io("write", to));
    }
    let stream = decompressed(file).map_err(NodeError::io("read", from))?;
    unpack(part.kind(), stream, to, limits, None).map(|summary| summary.bytes).map_err(failed)
}
