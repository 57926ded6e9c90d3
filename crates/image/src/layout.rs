//! The OCI image layout: blobs named by their digest, a manifest, and an index that gives it a name.
//!
//! Beside it stands the `manifest.json` of `docker save`, which names the same blobs: so one archive is for both.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use oci_spec::OciSpecError;
use oci_spec::image::{
    ANNOTATION_REF_NAME, Arch, ConfigBuilder, Descriptor, HistoryBuilder, ImageConfiguration,
    ImageConfigurationBuilder, ImageIndex, ImageIndexBuilder, ImageManifest, ImageManifestBuilder, MediaType,
    OciLayout, OciLayoutBuilder, Os, PlatformBuilder, RootFsBuilder, Sha256Digest,
};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Image, ImageError, Written, layer};

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
    let (layer_file, layer_hash, layer_size) = layer.finish();
    let mut layer_file = layer_file
        .into_inner()
        .map_err(|error| ImageError::io("write layer for", path)(error.into_error()))?;
    layer_file.seek(SeekFrom::Start(0)).map_err(ImageError::io("read layer for", path))?;

    // The layer is not compressed, so the digest of the blob is the diff ID too.
    let refused = |source| ImageError::Description { image: image.name.clone(), source };
    let layer = blob(MediaType::ImageLayer, layer_size, &layer_hash).map_err(refused)?;
    let documents = Documents::of(image, &layer).map_err(refused)?;

    let failed = || ImageError::io("write", path);
    let out =
        tempfile::NamedTempFile::new_in(directory).map_err(ImageError::io("create a file in", directory))?;
    let mut archive = tar::Builder::new(BufWriter::new(out));
    append(&mut archive, "oci-layout", documents.layout.as_bytes()).map_err(failed())?;
    append(&mut archive, "index.json", documents.index.as_bytes()).map_err(failed())?;
    append(&mut archive, "manifest.json", documents.docker.as_bytes()).map_err(failed())?;
    append(&mut archive, &path_of(&documents.config.0), documents.config.1.as_bytes()).map_err(failed())?;
    append_from(&mut archive, &path_of(&layer), layer_size, layer_file).map_err(failed())?;
    append(&mut archive, &path_of(&documents.manifest.0), documents.manifest.1.as_bytes())
        .map_err(failed())?;
    let out = archive.into_inner().map_err(failed())?;
    let out = out.into_inner().map_err(|error| failed()(error.into_error()))?;
    out.persist(path).map_err(|error| failed()(error.error))?;
    readable_by_all(path)?;
    let digest_of = |document: &Document| document.0.digest().to_string();
    Ok(Written { manifest: digest_of(&documents.manifest), id: digest_of(&documents.config) })
}

/// A JSON document that is stored as a blob.
type Document = (Descriptor, String);

/// What describes the layer.
struct Documents {
    layout: String,
    index: String,
    docker: String,
    config: Document,
    manifest: Document,
}

impl Documents {
    fn of(image: &Image, layer: &Descriptor) -> Result<Self, OciSpecError> {
        let config = document(MediaType::ImageConfig, &configuration(image, layer)?)?;
        let manifest = document(MediaType::ImageManifest, &manifest(image, &config.0, layer)?)?;
        Ok(Self {
            layout: text(&layout()?)?,
            index: text(&index(image, &manifest.0)?)?,
            docker: text(&json!([{
                "Config": path_of(&config.0),
                "RepoTags": [image.name],
                "Layers": [path_of(layer)],
            }]))?,
            config,
            manifest,
        })
    }
}

fn layout() -> Result<OciLayout, OciSpecError> {
    OciLayoutBuilder::default().image_layout_version("1.0.0").build()
}

/// The name is a label so that two images of the same content are still two: the container runtime keeps one record an
/// image ID.
fn configuration(image: &Image, layer: &Descriptor) -> Result<ImageConfiguration, OciSpecError> {
    let environment: Vec<String> = image.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let labels = [(ANNOTATION_REF_NAME.to_owned(), image.name.clone())];
    let config = ConfigBuilder::default()
        .user(image.user.as_str())
        .env(environment)
        .entrypoint(image.entrypoint.as_slice())
        .cmd(image.args.as_slice())
        .working_dir(image.working_dir.as_str())
        .labels(labels)
        .build()?;
    let history = HistoryBuilder::default().created(image.created.as_str()).created_by("portolan").build()?;
    ImageConfigurationBuilder::default()
        .created(image.created.as_str())
        .architecture(Arch::default())
        .os(Os::Linux)
        .config(config)
        .rootfs(RootFsBuilder::default().typ("layers").diff_ids([layer.digest().to_string()]).build()?)
        .history([history])
        .build()
}

fn manifest(image: &Image, config: &Descriptor, layer: &Descriptor) -> Result<ImageManifest, OciSpecError> {
    let mut manifest = ImageManifestBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::ImageManifest)
        .config(config.clone())
        .layers([layer.clone()])
        .build()?;
    manifest.set_annotations(Some(image.annotations.clone().into_iter().collect()));
    Ok(manifest)
}

fn index(image: &Image, manifest: &Descriptor) -> Result<ImageIndex, OciSpecError> {
    let tag = image.name.rsplit_once(':').map_or(image.name.as_str(), |(_, tag)| tag);
    let mut named = manifest.clone();
    named.set_platform(Some(PlatformBuilder::default().architecture(Arch::default()).os(Os::Linux).build()?));
    let names = [("io.containerd.image.name", image.name.as_str()), (ANNOTATION_REF_NAME, tag)];
    named.set_annotations(Some(names.map(|(key, value)| (key.to_owned(), value.to_owned())).into()));
    ImageIndexBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::ImageIndex)
        .manifests([named])
        .build()
}

fn document(kind: MediaType, content: &impl Serialize) -> Result<Document, OciSpecError> {
    let text = text(content)?;
    let hash = Sha256::digest(text.as_bytes());
    Ok((blob(kind, text.len() as u64, hash.as_slice())?, text))
}

fn blob(kind: MediaType, size: u64, hash: &[u8]) -> Result<Descriptor, OciSpecError> {
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Descriptor::new(kind, size, hex.parse::<Sha256Digest>()?))
}

fn path_of(blob: &Descriptor) -> String {
    format!("blobs/{}/{}", blob.digest().algorithm(), blob.digest().digest())
}

/// The JSON with its keys in order: the maps of the library have none.
fn text(content: &impl Serialize) -> Result<String, OciSpecError> {
    Ok(serde_json::to_value(content)?.to_string())
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

    fn finish(self) -> (W, Vec<u8>, u64) {
        (self.to, self.hash.finalize().to_vec(), self.size)
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
