//! The images that every cluster has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::{Key, Part, clear};
use super::{BUSYBOX_IMAGE, COREDNS_IMAGE, PAUSE_IMAGE, PartsError, Step, process};
use portolan_image::Image;

const PAUSE_SOURCE: &str = include_str!("../../parts/pause/pause.c");

/// A changed way to make images makes them anew.
const RECIPE: &[&[u8]] = &[
    include_bytes!("images.rs"),
    include_bytes!("../../../image/src/layer.rs"),
    include_bytes!("../../../image/src/layout.rs"),
];

/// The images, made from parts that are already there.
#[derive(Debug, Clone)]
pub(super) struct Images {
    root: PathBuf,
    coredns: PathBuf,
}

impl Images {
    /// `root` is the node root, `coredns` the directory with that program.
    pub(super) fn new(root: &Path, coredns: &Path) -> Self {
        Self { root: root.to_path_buf(), coredns: coredns.to_path_buf() }
    }

    fn pause(&self, scratch: &Path) -> Result<Image, PartsError> {
        let (source, program) = (scratch.join("pause.c"), scratch.join("pause"));
        fs::write(&source, PAUSE_SOURCE).map_err(PartsError::io("write", &source))?;
        let mut command = Command::new("gcc");
        command.args(["-Os", "-Wall", "-Werror", "-static", "-s", "-o"]).arg(&program).arg(&source);
        process::run(
            "pause",
            &mut command,
            "A static program needs the static C library (package libc6-dev).",
        )?;
        // Not root: it needs nothing, and every pod has it.
        Ok(Image::from_static_binary(PAUSE_IMAGE, &program)?.user("65535:65535"))
    }

    /// Each applet as a link, as a user of busybox expects.
    fn busybox(&self) -> Result<Image, PartsError> {
        let program = self.root.join("usr/bin/busybox");
        let applets = process::run("busybox", Command::new(&program).arg("--list"), "")?;
        let mut image = Image::new(BUSYBOX_IMAGE)?
            .static_binary("/bin/busybox", &program)?
            .directory("/tmp", 0o1777)?
            .directory("/root", 0o700)?
            .file(
                "/etc/passwd",
                0o644,
                "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
            )?
            .file("/etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\n")?
            .env("PATH", "/bin")
            .args(["sh"]);
        for applet in applets.lines().filter(|applet| *applet != "busybox") {
            image = image.symlink(&format!("/bin/{applet}"), "busybox")?;
        }
        Ok(image)
    }

    fn coredns(&self) -> Result<Image, PartsError> {
        Ok(Image::from_static_binary(COREDNS_IMAGE, &self.coredns.join("coredns"))?)
    }
}

impl Part for Images {
    fn directory(&self) -> String {
        let mut key = Key::new().with("pause", PAUSE_SOURCE.as_bytes());
        for path in [&self.root, &self.coredns] {
            key = key.with("part", path.file_name().unwrap_or_default().as_encoded_bytes());
        }
        for source in RECIPE {
            key = key.with("recipe", source);
        }
        format!("images-{}", key.finish())
    }

    fn title(&self) -> Option<String> {
        Some("images".to_owned())
    }

    fn make(&self, partial: &Path, _: &mut dyn FnMut(Step)) -> Result<(), PartsError> {
        clear(partial)?;
        fs::create_dir(partial).map_err(PartsError::io("create", partial))?;
        let scratch =
            tempfile::tempdir_in(partial).map_err(PartsError::io("create a directory in", partial))?;
        self.pause(scratch.path())?.write_tar(&partial.join("pause.tar"))?;
        self.busybox()?.write_tar(&partial.join("busybox.tar"))?;
        self.coredns()?.write_tar(&partial.join("coredns.tar"))?;
        Ok(())
    }
}
