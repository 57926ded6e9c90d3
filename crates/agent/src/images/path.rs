//! Paths in a container, as text: nothing is looked up.

/// An absolute path without `.`, empty parts and a slash at its end. Nothing if it is relative or has a part `..`.
pub(super) fn normal(path: &str) -> Option<String> {
    let rest = path.strip_prefix('/')?;
    let mut normal = String::new();
    for part in rest.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." || part.contains('\0') {
            return None;
        }
        normal.push('/');
        normal.push_str(part);
    }
    Some(if normal.is_empty() { "/".to_owned() } else { normal })
}

/// Whether a path is absolute and in the form that [`normal`] gives, which is the one that the kernel writes.
pub(super) fn is_normal(path: &str) -> bool {
    normal(path).is_some_and(|normal| normal == path)
}

/// Whether a path is the folder or lies in it. Both are in their normal form.
pub(super) fn is_in(path: &str, folder: &str) -> bool {
    let Some(rest) = path.strip_prefix(folder) else { return false };
    folder == "/" || rest.is_empty() || rest.starts_with('/')
}

/// Whether a path leads through a link of `/proc` that is no text: to a file, the root or the folder of a process. While CRIU
/// restores, one of them may be a folder of the node. The links that runc makes in `/dev` lead there too. The path is in its
/// normal form.
pub(super) fn leads_through_proc(path: &str) -> bool {
    const LINKS: [&str; 5] = ["cwd", "exe", "fd", "map_files", "root"];
    const IN_DEV: [&str; 4] = ["fd", "stderr", "stdin", "stdout"];
    let in_dev = path.strip_prefix("/dev/").and_then(|rest| rest.split('/').next());
    if in_dev.is_some_and(|part| IN_DEV.contains(&part)) {
        return true;
    }
    is_in(path, "/proc") && path.split('/').any(|part| LINKS.contains(&part))
}

/// A path below a folder, from both in their normal form.
pub(super) fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("/", path) => path.to_owned(),
        (folder, "/") => folder.to_owned(),
        (folder, path) => format!("{folder}{path}"),
    }
}
