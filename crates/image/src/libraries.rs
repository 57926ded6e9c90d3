//! The shared objects that a program needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::ImageError;

/// The shared objects of a dynamically linked program, its dynamic linker among them, by their paths on this machine.
///
/// The linker itself is asked, since only it knows where it looks.
pub(super) fn of(program: &Path, interpreter: &str) -> Result<Vec<PathBuf>, ImageError> {
    let failed = |problem: String| ImageError::Libraries { path: program.to_path_buf(), problem };
    // A path without a slash would be looked for among the libraries.
    let absolute = std::path::absolute(program).map_err(ImageError::io("find", program))?;
    let output = Command::new(interpreter)
        .arg("--list")
        .arg(&absolute)
        .env_remove("LD_PRELOAD")
        .output()
        .map_err(|error| failed(format!("cannot run {interpreter}: {error}")))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let mut paths = listed(&String::from_utf8_lossy(&output.stdout)).map_err(failed)?;
    paths.push(PathBuf::from(interpreter));
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The paths in what a dynamic linker lists; the kernel's own object has none.
fn listed(list: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for line in list.lines().map(str::trim) {
        let found = line.split_once("=>").map_or(line, |(_, found)| found.trim());
        if found == "not found" {
            return Err(format!("{line}: install the package with this library"));
        }
        if found.starts_with('/') {
            paths.push(PathBuf::from(found.rsplit_once(" (").map_or(found, |(path, _)| path)));
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_a_list() {
        let list = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let paths = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(listed(list).unwrap(), paths.map(PathBuf::from));
        let error = listed("\tlibgone.so.1 => not found\n").unwrap_err();
        assert!(error.contains("libgone.so.1"), "{error}");
    }
}
