//! Open files, deleted files and terminals.

use super::build::{At, Built, Msg, allowed, config, healthy, numbers};
use super::image::Magic;
use super::{Refusal, Rule, Unfit};
use serde_json::json;

fn with_file(file: Msg) -> Option<Rule> {
    let mut built = healthy();
    built.add("files.img", Magic::Files, file);
    built.broken()
}

#[test]
fn descriptors_of_paths_outside_are_refused() {
    assert_eq!(with_file(At("/data/x").file(9, 24)), None);
    assert_eq!(
        with_file(At("/etc/shadow").file(9, 77)),
        Some(Rule::FilePath),
        "a mount that is not the container's"
    );
    assert_eq!(with_file(At("/data/../../etc/shadow").file(9, 24)), Some(Rule::FilePath));
    assert_eq!(with_file(At("etc/shadow").file(9, 24)), Some(Rule::FilePath));
    for name in ["/proc/self/fd/1000/etc/shadow", "/proc/1/root/etc", "/proc/thread-self/cwd"] {
        assert_eq!(with_file(At(name).file(9, 21)), Some(Rule::FilePath), "{name}");
    }
    assert_eq!(with_file(At("/proc/1/status").file(9, 21)), None);
    let mut file = At("/data/x").file(9, 24);
    file.inner(3).set(7, 1);
    assert_eq!(with_file(file), Some(Rule::FilePath), "mount -1");
    let mut file = At("/data/x").file(9, 24);
    file.inner(3).remove(7);
    assert_eq!(with_file(file), Some(Rule::FilePath), "no mount");
    let mut file = At("/data/x").file(9, 24);
    file.inner(3).set(9, 1);
    assert_eq!(with_file(file), Some(Rule::FilePath), "a file that the node gives");
    let mut file = At("/data/x").file(9, 24);
    file.inner(3).set(1, 3);
    let mut built = healthy();
    built.add("files.img", Magic::Files, file);
    assert!(
        matches!(built.check(&allowed(&config())), Err(Refusal::Damaged { .. })),
        "another number inside"
    );
}

#[test]
fn links_of_dev_to_descriptors_are_refused() {
    for name in ["/dev/fd/1000/etc", "/dev/fd", "/dev/stdin/x", "/dev/stdout/x", "/dev/stderr/etc/shadow"] {
        assert_eq!(with_file(At(name).file(9, 22)), Some(Rule::FilePath), "{name}");
        let handle = numbers(&[(1, 8), (2, 1), (3, 7), (3, 0)]).with(4, name).with(5, 22);
        let watch = numbers(&[(1, 0), (2, 77), (3, 2), (5, 1), (6, 1)]).with(7, handle);
        let file = numbers(&[(1, 9), (2, 0)]).with(4, Msg::default()).with(5, watch);
        assert_eq!(with_file(numbers(&[(1, 8), (2, 9)]).with(13, file)), Some(Rule::FilePath), "{name}");
    }
    let socket = |name: &str, folder: &str| {
        let socket = numbers(&[(1, 9), (2, 5), (3, 1), (4, 1), (5, 0), (6, 0)]);
        with_file(numbers(&[(1, 5), (2, 9)]).with(16, socket.with(11, name).with(14, folder)))
    };
    assert_eq!(socket("/dev/fd/1000/run/x.sock\0", "/"), Some(Rule::UnixSocket));
    assert_eq!(socket("//dev/./fd/1000/run/x.sock\0", "/"), Some(Rule::UnixSocket), "another form of it");
    assert_eq!(socket("fd/1000/run/x.sock\0", "/dev"), Some(Rule::UnixSocket), "from a folder");
    assert_eq!(socket("self/fd/1000/x.sock\0", "/proc"), Some(Rule::UnixSocket), "from a folder");
    assert_eq!(socket("x.sock\0", "/dev/stdin"), Some(Rule::UnixSocket));
    assert_eq!(with_file(At("/dev/fdx").file(9, 22)), None);
    assert_eq!(with_file(At("/data/dev/fd").file(9, 24)), None);
}

#[test]
fn a_file_without_a_mode_is_refused() {
    for name in ["/data/x", "/dev/null"] {
        let mut file = At(name).file(9, 22);
        file.inner(3).remove(10);
        assert_eq!(with_file(file), Some(Rule::FileType), "{name}");
    }
}

#[test]
fn disks_and_devices_elsewhere_are_refused() {
    let of_mode = |at: &'static str, mode: u64| {
        let mut file = At(at).file(9, 22);
        file.inner(3).set(10, mode);
        with_file(file)
    };
    assert_eq!(of_mode("/dev/null", 0o020_666), None);
    assert_eq!(of_mode("/data/mem", 0o020_666), Some(Rule::FileType));
    assert_eq!(of_mode("/dev/sda", 0o060_660), Some(Rule::FileType));
}

#[test]
fn types_that_a_container_has_not_are_refused() {
    let of_type =
        |number: u64, field: u32, file: Msg| with_file(numbers(&[(1, number), (2, 9)]).with(field, file));
    let id = || numbers(&[(1, 9), (2, 10), (3, 0), (4, 1), (5, 0)]);
    assert_eq!(of_type(2, 18, id()), None, "a pipe");
    assert_eq!(of_type(15, 11, id()), Some(Rule::FileType), "a tunnel");
    assert_eq!(of_type(16, 15, id()), Some(Rule::FileType), "a file of a plugin");
    assert_eq!(of_type(19, 21, id()), Some(Rule::FileType), "a map of the kernel");
    assert_eq!(of_type(99, 21, id()), Some(Rule::FileType));
    assert_eq!(of_type(10, 6, id()), Some(Rule::FileType), "a packet socket");
    assert_eq!(of_type(12, 14, id()), Some(Rule::FileType), "fanotify");
    let raw = numbers(&[(1, 9), (2, 1), (3, 2), (4, 3)]);
    assert_eq!(of_type(4, 4, raw.clone()), Some(Rule::FileType), "a raw socket");
    let mut flagged = raw.clone();
    flagged.set(4, 3 | 0o2_000_000);
    assert_eq!(of_type(4, 4, flagged), Some(Rule::FileType), "a raw socket with flags");
    let mut packet = raw.clone();
    packet.set(3, 17);
    packet.set(4, 2);
    assert_eq!(
        of_type(4, 4, packet),
        Some(Rule::FileType),
        "a packet socket that says it is an internet socket"
    );
    let mut plain = raw;
    plain.set(4, 1);
    assert_eq!(of_type(4, 4, plain.clone()), None);
    assert_eq!(of_type(4, 4, plain.with(18, 2)), Some(Rule::Namespace), "a socket of the node's network");
    assert_eq!(of_type(14, 5, id()), None, "its own network namespace");
    assert_eq!(of_type(14, 5, numbers(&[(1, 9), (2, 2)])), Some(Rule::Namespace), "the node's");
}

#[test]
fn sockets_of_the_node_are_refused() {
    let socket = |name: &str, flags: u64, folder: &str| {
        let socket = numbers(&[(1, 9), (2, 5), (3, 1), (4, 1), (5, 0), (6, flags)]);
        with_file(numbers(&[(1, 5), (2, 9)]).with(16, socket.with(11, name).with(14, folder)))
    };
    assert_eq!(socket("s\0", 0, "/data"), None);
    assert_eq!(socket("\0abstract/../x", 0, "/"), None);
    assert_eq!(socket("/run/containerd/containerd.sock\0", 1, "/"), Some(Rule::UnixSocket));
    assert_eq!(socket("../../run/docker.sock\0", 0, "/"), Some(Rule::UnixSocket));
    assert_eq!(socket("s\0", 0, "/data/../.."), Some(Rule::UnixSocket));
    assert_eq!(socket("s\0", 0, "/proc/self/fd/1000/run"), Some(Rule::UnixSocket));
}

#[test]
fn watches_are_of_paths_in_the_container() {
    let watch = |handle: Msg| {
        let watch = numbers(&[(1, 0), (2, 77), (3, 2), (5, 1), (6, 1)]).with(7, handle);
        let file = numbers(&[(1, 9), (2, 0)]).with(4, Msg::default()).with(5, watch);
        with_file(numbers(&[(1, 8), (2, 9)]).with(13, file))
    };
    let handle = || numbers(&[(1, 8), (2, 1), (3, 7), (3, 0)]);
    assert_eq!(watch(handle().with(4, "/data/conf").with(5, 24)), None);
    assert_eq!(watch(handle()), Some(Rule::FilePath), "an inode of the node");
    assert_eq!(watch(handle().with(4, "/data/conf")), Some(Rule::FilePath), "no mount");
    assert_eq!(watch(handle().with(4, "/data/conf").with(5, 77)), Some(Rule::FilePath), "another mount");
    for name in ["data", "/data/../etc", "/proc/1/root/etc"] {
        assert_eq!(watch(handle().with(4, name).with(5, 24)), Some(Rule::FilePath), "{name}");
    }
}

#[test]
fn paths_are_told_to_who_looks_them_up() {
    let mut built = healthy();
    let handle = numbers(&[(1, 8), (2, 1), (3, 7), (3, 0)]).with(4, "/data/conf").with(5, 24);
    let watch = numbers(&[(1, 0), (2, 77), (3, 2), (5, 1), (6, 1)]).with(7, handle);
    let file = numbers(&[(1, 9), (2, 0)]).with(4, Msg::default()).with(5, watch);
    built.add("files.img", Magic::Files, numbers(&[(1, 8), (2, 9)]).with(13, file));
    for (id, name) in [(10, "x.sock\0"), (11, "\0abstract"), (12, "")] {
        let socket = numbers(&[(1, id), (2, 5), (3, 1), (4, 1), (5, 0), (6, 0)]);
        let socket = socket.with(11, name).with(14, "/run/app");
        built.add("files.img", Magic::Files, numbers(&[(1, 5), (2, id)]).with(16, socket));
    }
    let summary = built.check(&allowed(&config())).unwrap();
    assert!(summary.paths.contains("/data/conf"), "{:?}", summary.paths);
    assert_eq!(summary.sockets.iter().collect::<Vec<_>>(), ["/data/s", "/run/app/x.sock"]);
}

#[test]
fn references_lead_to_files_that_were_checked() {
    let broken = |name: &str, field: u32| {
        let mut built = healthy();
        built.message(name, 0).set(field, 77);
        built.broken()
    };
    for (name, field) in
        [("fdinfo-1.img", 1), ("fdinfo-1.img", 3), ("fs-2.img", 1), ("fs-2.img", 2), ("mm-1.img", 12)]
    {
        assert_eq!(broken(name, field), Some(Rule::FileReference), "{name} field {field}");
    }
    let terminal = numbers(&[(1, 9), (2, 1), (3, 0), (6, 77)]);
    assert_eq!(with_file(numbers(&[(1, 11), (2, 9)]).with(19, terminal)), Some(Rule::FileReference));
}

fn with_ghost(mode: u64) -> Built {
    let mut built = healthy();
    built.add("ghost-file-1f.img", Magic::GhostFile, numbers(&[(1, 0), (2, 0), (3, mode), (6, 0x0800)]));
    built.add("remap-fpath.img", Magic::RemapPaths, numbers(&[(1, 3), (2, 0x1f), (3, 1)]));
    built
}

#[test]
fn a_device_as_a_deleted_file_is_refused() {
    for (mode, rule) in [
        (0o100_644, None),
        (0o120_777, None),
        (0o042_755, None),
        (0o020_666, Some(Rule::GhostFile)),
        (0o060_660, Some(Rule::GhostFile)),
        (0o104_755, Some(Rule::GhostFile)),
        (0o102_755, Some(Rule::GhostFile)),
        (0, Some(Rule::GhostFile)),
    ] {
        assert_eq!(with_ghost(mode).broken(), rule, "mode {mode:o}");
    }
}

#[test]
fn deleted_files_are_where_files_were() {
    let mut built = with_ghost(0o100_644);
    built.message("remap-fpath.img", 0).set(1, 77);
    assert_eq!(built.broken(), Some(Rule::FileReference));
    let mut built = with_ghost(0o100_644);
    built.message("remap-fpath.img", 0).set(3, 0);
    assert_eq!(built.broken(), Some(Rule::FileReference), "it is said to be linked");
    let mut built = with_ghost(0o100_644);
    built.message("remap-fpath.img", 0).set(3, 9);
    assert_eq!(built.broken(), Some(Rule::GhostFile));
    let mut built = with_ghost(0o100_644);
    built.images.remove("ghost-file-1f.img");
    let result = built.check(&allowed(&config()));
    assert!(matches!(result, Err(Refusal::Unfit { unfit: Unfit::Missing, .. })));
}

#[test]
fn terminals_of_the_node_are_refused() {
    let mut with_terminal = config();
    with_terminal["process"]["terminal"] = json!(true);
    for (number, rule, rule_with) in [
        (1, None, None),
        (2, Some(Rule::Terminal), Some(Rule::Terminal)),
        (3, Some(Rule::Terminal), Some(Rule::Terminal)),
        (5, Some(Rule::Terminal), None),
        (6, Some(Rule::Terminal), Some(Rule::Terminal)),
    ] {
        let mut built = healthy();
        built.add("tty-info.img", Magic::TtyInfo, numbers(&[(1, 1), (2, number)]));
        assert_eq!(built.broken(), rule, "type {number}");
        assert_eq!(built.broken_for(&allowed(&with_terminal)), rule_with, "type {number}");
    }
}
