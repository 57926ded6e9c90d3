//! The OCI image layout: blobs named by their digest, a manifest, and an index that gives it a name.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Image, ImageError, Written, layer};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// Refuses names that containerd would change or not take at import.
pub(super) fn check_name(name: &str) -> Result<(), ImageError> {
    let bad = |problem| Err(ImageError::BadName { name: name.to_owned(), problem });
    let Some((host, rest)) = name.split_once('/') else { return bad("it has no host before a `/`") };
    if !(host.contains('.') || host.contains(':') || host == "localhost") {
        return bad("its first part is no host (it has no dot)");
    }
    let Some((path, tag)) = rest.rsplit_once(':') else { return bad("it has no tag") };
    let of_path = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
    if path.is_empty() || !path.chars().all(of_path) || path.split('/').any(str::is_empty) {
        return bad("its path may hold a-z, 0-9, `.`, `_`, `-` and `/` only");
    }
    let of_tag = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if tag.is_empty() || tag.len() > 128 || tag.starts_with(['.', '-']) || !tag.chars().all(of_tag) {
        return bad("its tag must be 1 to 128 letters, digits, `.`, `_` or `-`");
    }
    Ok(())
}

/// Writes the whole layout into a file beside `path` and renames it.
pub(super) fn write(image: &Image, path: &Path) -> Result<Written, ImageError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(ImageError::io("create", directory))?;

    let layer_file =
        tempfile::tempfile_in(directory).map_err(ImageError::io("create a file in", directory))?;
    let mut layer = Hashed::new(BufWriter::new(layer_file));
    layer::write(&image.name, &image.entries, &mut layer)?;
    let (layer_file, layer_digest, layer_size) = layer.finish();
    let mut layer_file = layer_file
        .into_inner()
        .map_err(|error| ImageError::io("write layer for", path)(error.into_error()))?;
    layer_file.seek(SeekFrom::Start(0)).map_err(ImageError::io("read layer for", path))?;

    // The layer is not compressed, so the digest of the blob is the diff ID too.
    let config = config(image, &layer_digest).to_string();
    let config_digest = digest(config.as_bytes());
    let manifest =
        manifest(image, (&config_digest, config.len() as u64), (&layer_digest, layer_size)).to_string();
    let manifest_digest = digest(manifest.as_bytes());
    let index = index(&image.name, &manifest_digest, manifest.len() as u64).to_string();

    let failed = || ImageError::io("write", path);
    let out =
        tempfile::NamedTempFile::new_in(directory).map_err(ImageError::io("create a file in", directory))?;
    let mut archive = tar::Builder::new(BufWriter::new(out));
    append(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#).map_err(failed())?;
    append(&mut archive, "index.json", index.as_bytes()).map_err(failed())?;
    append(&mut archive, &blob(&config_digest), config.as_bytes()).map_err(failed())?;
    append_from(&mut archive, &blob(&layer_digest), layer_size, layer_file).map_err(failed())?;
    append(&mut archive, &blob(&manifest_digest), manifest.as_bytes()).map_err(failed())?;
    let out = archive.into_inner().map_err(failed())?;
    let out = out.into_inner().map_err(|error| failed()(error.into_error()))?;
    out.persist(path).map_err(|error| failed()(error.error))?;
    readable_by_all(path)?;
    Ok(Written { manifest: manifest_digest, id: config_digest })
}

/// The name is a label so that two images of the same content are still two: the container runtime keeps one record an
/// image ID.
fn config(image: &Image, diff_id: &str) -> Value {
    let environment: Vec<String> = image.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    json!({
        "created": image.created,
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "User": image.user,
            "Env": environment,
            "Entrypoint": image.entrypoint,
            "Cmd": image.args,
            "WorkingDir": image.working_dir,
            "Labels": { "org.opencontainers.image.ref.name": image.name },
        },
        "rootfs": { "type": "layers", "diff_ids": [diff_id] },
        "history": [{ "created": image.created, "created_by": "portolan-lab" }],
    })
}

fn manifest(image: &Image, config: (&str, u64), layer: (&str, u64)) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": CONFIG, "digest": config.0, "size": config.1 },
        "layers": [{ "mediaType": LAYER, "digest": layer.0, "size": layer.1 }],
        "annotations": image.annotations,
    })
}

fn index(name: &str, manifest: &str, size: u64) -> Value {
    let tag = name.rsplit_once(':').map_or(name, |(_, tag)| tag);
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": MANIFEST,
            "digest": manifest,
            "size": size,
            "platform": { "architecture": architecture(), "os": "linux" },
            "annotations": {
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": tag,
            },
        }],
    })
}

/// The machine's architecture as Go and so OCI name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn blob(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

fn digest(bytes: &[u8]) -> String {
    named(Sha256::digest(bytes).as_slice())
}

fn named(hash: &[u8]) -> String {
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn append(archive: &mut tar::Builder<impl Write>, path: &str, content: &[u8]) -> io::Result<()> {
    append_from(archive, path, content.len() as u64, content)
}

fn append_from(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    size: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = layer::header(tar::EntryType::Regular, 0o644, size);
    archive.append_data(&mut header, path, content)
}

/// A temporary file is its owner's alone; an image is not.
fn readable_by_all(path: &Path) -> Result<(), ImageError> {
    use std::os::unix::fs::PermissionsExt;
    File::open(path)
        .and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o644)))
        .map_err(ImageError::io("set the mode of", path))
}

/// Passes bytes on and hashes them.
struct Hashed<W> {
    to: W,
    hash: Sha256,
    size: u64,
}

impl<W> Hashed<W> {
    fn new(to: W) -> Self {
        Self { to, hash: Sha256::new(), size: 0 }
    }

    fn finish(self) -> (W, String, u64) {
        (self.to, named(self.hash.finalize().as_slice()), self.size)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
