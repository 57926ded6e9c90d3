//! The image of Portolan.

use std::path::Path;

use oci_spec::image::{
    ANNOTATION_DESCRIPTION, ANNOTATION_LICENSES, ANNOTATION_SOURCE, ANNOTATION_TITLE, ANNOTATION_VERSION,
};

use super::{Image, ImageError};

/// The user and group that Portolan runs as: nobody's, and not root's.
const USER: &str = "65532:65532";

/// The C library asks `/etc/hosts` first and DNS next; without this file some versions of it ask DNS alone.
const NAME_SERVICES: &str = "hosts: files dns\n";

/// The image of Portolan: `binary` as `/portolan`, and the shared objects that it needs, if it needs any.
///
/// Nothing in it is written at run time. It holds no CA certificates: clusters are trusted by the CA of their
/// kubeconfig or service account.
pub fn portolan(name: &str, binary: &Path) -> Result<Image, ImageError> {
    let annotations = [
        (ANNOTATION_TITLE, "Portolan"),
        (ANNOTATION_DESCRIPTION, "Run many Kubernetes clusters as one."),
        (ANNOTATION_LICENSES, env!("CARGO_PKG_LICENSE")),
        (ANNOTATION_SOURCE, env!("CARGO_PKG_REPOSITORY")),
        (ANNOTATION_VERSION, env!("CARGO_PKG_VERSION")),
    ];
    let image = Image::new(name)?
        .program("/portolan", binary)?
        .file("/etc/nsswitch.conf", 0o644, NAME_SERVICES)?
        .entrypoint(["/portolan"])
        .user(USER);
    Ok(annotations.into_iter().fold(image, |image, (key, value)| image.annotation(key, value)))
}
