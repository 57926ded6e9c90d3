//! The folder, the namespaces, the mounts and the cgroups of a checkpoint.

use super::build::{At, Built, Msg, allowed, config, healthy, numbers, write};
use super::image::Magic;
use super::kind::kind_of;
use super::{Archive, Limits, Refusal, Rule, Unfit, check, check_within};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

fn unfit(result: Result<super::Summary, Refusal>) -> Unfit {
    match result {
        Err(Refusal::Unfit { unfit, .. }) => unfit,
        other => unreachable!("it is not refused as unfit: {other:?}"),
    }
}

fn with_raw(name: &str, bytes: &[u8]) -> Unfit {
    let mut built = healthy();
    built.raw.insert(name.to_owned(), bytes.to_vec());
    unfit(built.check(&allowed(&config())))
}

#[test]
fn a_healthy_checkpoint_is_accepted() {
    let summary = healthy().check(&allowed(&config())).unwrap();
    assert_eq!((summary.processes, summary.threads, summary.mounts, summary.files), (2, 3, 9, 4));
    let mounts = vec![("/dev".to_owned(), "/".to_owned())];
    assert_eq!(summary.archives, [Archive { name: "tmpfs-dev-1022.tar.gz.img".to_owned(), mounts }]);
    for path in ["/", "/bin/app", "/data/log", "/run/secrets"] {
        assert!(summary.paths.contains(path), "{path}");
    }
    assert_eq!(summary.sockets.iter().collect::<Vec<_>>(), ["/data/s"]);
    assert!(summary.bytes > 4096);
}

#[test]
fn a_spec_of_less_is_refused_and_one_of_more_accepted() {
    let mut more = config();
    more["process"]["noNewPrivileges"] = json!(false);
    more["root"]["readonly"] = json!(false);
    more["linux"]["maskedPaths"] = json!(["/proc/kcore", "/proc/acpi"]);
    assert!(healthy().check(&allowed(&more)).is_ok());
    more["mounts"] = json!([]);
    assert_eq!(healthy().broken_for(&allowed(&more)), Some(Rule::Mount));
}

#[test]
fn only_the_names_that_criu_writes_are_known() {
    for name in ["core-1.img", "pagemap-shmem-12.img", "tcp-stream-ab.img", "netns-ct-4.img", "route6-9.img"]
    {
        assert!(kind_of(name).is_some(), "{name}");
    }
    for name in ["core-01.img", "core-.img", "core-a.img", "core-1.img.x", "creds-1.img", "../core-1.img", ""]
    {
        assert!(kind_of(name).is_none(), "{name}");
    }
}

#[test]
fn unknown_and_foreign_images_are_refused_by_name() {
    assert_eq!(with_raw("reg-files.img", b""), Unfit::UnknownName);
    assert_eq!(with_raw("..evil", b""), Unfit::UnknownName);
    assert_eq!(with_raw("core-1\n.img", b""), Unfit::UnknownName);
    assert_eq!(with_raw("apparmor.img", b""), Unfit::Kind);
    assert_eq!(with_raw("binfmt-misc.img", b""), Unfit::Kind);
    assert_eq!(with_raw("core-77.img", b""), Unfit::Stray);
    assert_eq!(with_raw("mountpoints-77.img", b""), Unfit::Stray);
    assert_eq!(with_raw("tmpfs-dev-77.tar.gz.img", b""), Unfit::Stray);
    assert_eq!(with_raw("iptables-10.img", b"*filter :INPUT"), Unfit::Network { bytes: 14 });
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let allowed = allowed(&config());
    for name in ["core-1.img", "pages-1.img"] {
        let folder = healthy().write();
        let path = folder.path().join(name);
        fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        assert_eq!(unfit(check(folder.path(), &allowed)), Unfit::NotRegular, "{name}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(unfit(check(folder.path(), &allowed)), Unfit::NotRegular, "{name}");
    }
    let folder = healthy().write();
    let link = folder.path().join("link");
    symlink(folder.path(), &link).unwrap();
    assert!(matches!(check(&link, &allowed), Err(Refusal::Io { .. })), "the folder itself is a link");
    assert_eq!(unfit(check(folder.path(), &allowed)), Unfit::UnknownName, "a link with a name of its own");
}

#[test]
fn limits_hold() {
    let folder = healthy().write();
    let allowed = allowed(&config());
    let limits = Limits::default();
    let of = |limits| unfit(check_within(folder.path(), &allowed, limits));
    assert_eq!(of(Limits { files: 3, ..limits }), Unfit::TooManyFiles { limit: 3 });
    assert!(matches!(of(Limits { total_bytes: 4100, ..limits }), Unfit::TooManyBytes { limit: 4100, .. }));
    assert!(matches!(of(Limits { image_bytes: 20, ..limits }), Unfit::TooLarge { limit: 20, .. }));
}

#[test]
fn every_image_that_is_needed_must_be_there() {
    let allowed = allowed(&config());
    let needed = [
        "inventory.img",
        "pstree.img",
        "core-1.img",
        "core-3.img",
        "ids-2.img",
        "files.img",
        "cgroup.img",
        "mountpoints-13.img",
    ];
    for name in needed {
        let mut files = healthy().files();
        files.remove(name);
        assert_eq!(unfit(check(write(&files).path(), &allowed)), Unfit::Missing, "{name}");
    }
}

#[test]
fn descriptors_name_pipes_only() {
    for bad in ["[\"a\",\"b\",\"c\",\"d\"]", "{}", "[1]", "[\"pipe:[x]\"]", "[\"x pipe:[1]\"]"] {
        let mut built = healthy();
        built.raw.insert("descriptors.json".into(), bad.as_bytes().to_vec());
        assert!(matches!(built.check(&allowed(&config())), Err(Refusal::Damaged { .. })), "{bad}");
    }
}

/// Changes the namespaces of both processes.
fn in_namespace(field: u32, number: u64) -> Built {
    let mut built = healthy();
    built.message("ids-1.img", 0).set(field, number);
    built.message("ids-2.img", 0).set(field, number);
    built
}

#[test]
fn namespaces_of_the_node_are_refused() {
    for (field, of_node) in [(5, 1), (7, 3), (8, 4)] {
        assert_eq!(in_namespace(field, of_node).broken(), Some(Rule::Namespace), "field {field}");
        assert_eq!(in_namespace(field, 0).broken(), Some(Rule::Namespace), "field {field} is missing");
    }
    let mut built = in_namespace(6, 2);
    built.images.remove("netns-10.img");
    assert_eq!(built.broken(), Some(Rule::Namespace), "the network of the node");
    let mut built = healthy();
    built.message("ids-2.img", 0).set(9, 14);
    assert_eq!(built.broken(), Some(Rule::Namespace), "one process in another mount namespace");
}

#[test]
fn a_foreign_user_namespace_is_refused() {
    assert_eq!(in_namespace(10, 50).broken(), Some(Rule::UserNamespace));
    let map = |outside| Msg::default().with(1, numbers(&[(1, 0), (2, outside), (3, 65536)]));
    let mut built = healthy();
    built.add("userns-6.img", Magic::Userns, map(0));
    assert_eq!(built.broken(), Some(Rule::UserNamespace));

    let mut config = config();
    config["linux"]["namespaces"].as_array_mut().unwrap().push(json!({ "type": "user" }));
    config["linux"]["uidMappings"] = json!([{ "containerID": 0, "hostID": 100_000, "size": 65536 }]);
    let allowed = allowed(&config);
    assert_eq!(healthy().broken_for(&allowed), Some(Rule::Namespace), "the spec wants one");
    let mut built = in_namespace(10, 50);
    built.add("userns-50.img", Magic::Userns, map(100_000));
    assert_eq!(built.broken_for(&allowed), None);
    built.images.remove("userns-50.img");
    built.add("userns-50.img", Magic::Userns, map(0));
    assert_eq!(built.broken_for(&allowed), Some(Rule::UserNamespace), "root is root of the node");
}

#[test]
fn joined_namespaces_are_left_as_they_are() {
    let mut built = healthy();
    built.message("netns-10.img", 0).remove(8);
    assert_eq!(built.broken(), Some(Rule::JoinedNamespace));
    let mut built = healthy();
    built.add("pidns-9.img", Magic::Pidns, Msg::default().with(1, "extRootPidNS"));
    assert_eq!(built.broken(), Some(Rule::JoinedNamespace));
}

#[test]
fn mounts_outside_of_the_spec_are_refused() {
    let with = |mount: Msg| {
        let mut built = healthy();
        built.add("mountpoints-13.img", Magic::Mountpoints, mount);
        built.broken()
    };
    assert_eq!(with(At("/host").external(40, 20, "/")), Some(Rule::Mount), "the root of the node");
    assert_eq!(with(At("/host").mount(40, 20, 16, 0)), Some(Rule::Mount));
    assert_eq!(with(At("/data/../host").mount(40, 24, 16, 0)), Some(Rule::Mount));
    assert_eq!(with(At("/proc").mount(40, 20, 1, 15)), Some(Rule::MountOrder), "it hides the masked paths");
    assert_eq!(with(At("/proc/tty").mount(40, 20, 1, 15)), Some(Rule::MountOrder), "it is not on /proc");
}

#[test]
fn sources_and_types_of_mounts_are_the_destinations() {
    let with = |at: &str, change: fn(&mut Msg)| {
        let mut built = healthy();
        change(built.mount(at));
        built.broken()
    };
    assert_eq!(with("/data", |mount| mount.set(18, "/")), Some(Rule::MountSource));
    assert_eq!(with("/data", |mount| mount.set(18, "CRIU:AUTOGENERATED")), Some(Rule::MountSource));
    assert_eq!(
        with("/data", |mount| mount.set(13, 1)),
        Some(Rule::MountSource),
        "CRIU would take the root as its key"
    );
    let old_form = |mount: &mut Msg| {
        mount.remove(18);
        mount.set(6, "/data");
        mount.set(13, 1);
    };
    assert_eq!(with("/data", old_form), None);
    let whole_disk = |mount: &mut Msg| {
        mount.remove(18);
        mount.set(8, "/dev/sda1");
    };
    assert_eq!(with("/data", whole_disk), Some(Rule::MountSource));
    assert_eq!(with("/", |mount| mount.set(18, "/data")), Some(Rule::MountSource));
    assert_eq!(with("/data", |mount| mount.set(12, 1)), Some(Rule::MountSource), "a plugin");
    assert_eq!(with("/sys", |mount| mount.set(1, 11)), Some(Rule::MountType), "debugfs");
    assert_eq!(with("/proc", |mount| mount.set(6, "/1/root")), Some(Rule::MountSource));
}

#[test]
fn options_of_mounts_are_at_least_the_specs() {
    for (at, flags) in [("/", 0_u64), ("/sys", 14), ("/proc", 6), ("/dev", 0), ("/run/secrets", 0)] {
        let mut built = healthy();
        built.mount(at).set(5, flags);
        assert_eq!(built.broken(), Some(Rule::MountOptions), "{at}");
    }
    let mut built = healthy();
    built.mount("/data").set(10, 5);
    assert_eq!(built.broken(), Some(Rule::MountOptions), "shared with the node");
}

#[test]
fn a_mount_without_the_flags_of_its_file_system_is_refused() {
    for at in ["/", "/proc/sys", "/run/secrets", "/data"] {
        let mut built = healthy();
        built.mount(at).remove(17);
        assert_eq!(built.broken(), Some(Rule::MountOptions), "{at} would be writable");
    }
}

#[test]
fn a_new_file_system_has_no_device_of_another() {
    // CRIU would bind the secrets to /dev, writable.
    let with = |at: &str, of: &str| {
        let mut built = healthy();
        let device = built.mount(of).number(3);
        built.mount(at).set(3, device);
        built.broken()
    };
    for of in ["/run/secrets", "/data", "/", "/proc", "/sys", "/proc/acpi"] {
        assert_eq!(with("/dev", of), Some(Rule::MountSource), "/dev has the device of {of}");
    }
    assert_eq!(with("/", "/data"), Some(Rule::MountSource));
    assert_eq!(with("/proc/acpi", "/run/secrets"), Some(Rule::MountSource), "a masked folder");
    assert_eq!(with("/data", "/run/secrets"), None, "both are given by the destination");
    assert_eq!(with("/proc/kcore", "/dev"), None, "a masked file is /dev/null");
    let mut built = healthy();
    built.mount("/proc/kcore").remove(18);
    built.mount("/proc/kcore").set(1, 5);
    built.mount("/proc/kcore").set(3, 1027);
    assert_eq!(built.broken(), None, "one file system for all masked folders");
}

#[test]
fn masked_and_readonly_paths_stay() {
    for (at, rule) in [
        ("/proc/kcore", Rule::MaskedPath),
        ("/proc/acpi", Rule::MaskedPath),
        ("/proc/sys", Rule::ReadonlyPath),
    ] {
        let mut built = healthy();
        built.mount(at).set(7, "/data/elsewhere");
        built.mount("/data/elsewhere").set(4, 24);
        assert_eq!(built.broken(), Some(Rule::Mount), "{at} is moved");
        let mut built = healthy();
        let mounts = &mut built.images.get_mut("mountpoints-13.img").unwrap().1;
        let encoded = Msg::default().with(7, at).encode();
        mounts.retain(|mount| !mount.encode().windows(encoded.len()).any(|window| window == encoded));
        assert_eq!(built.broken(), Some(rule), "{at} is missing");
        let mut allowed = allowed(&config());
        allowed.without_absent_paths(|path| path != at);
        assert_eq!(built.broken_for(&allowed), None, "this kernel has no {at}");
    }
    let mut built = healthy();
    built.mount("/proc/acpi").set(5, 0);
    assert_eq!(built.broken(), Some(Rule::MaskedPath), "writable");
    let mut built = healthy();
    built.mount("/proc/kcore").set(18, "/proc/kcore.real");
    assert_eq!(built.broken(), Some(Rule::MaskedPath));
    for (field, value) in [(5, 0_u64), (3, 7)] {
        let mut built = healthy();
        built.mount("/proc/sys").set(field, value);
        assert_eq!(built.broken(), Some(Rule::ReadonlyPath));
    }
    let mut built = healthy();
    built.mount("/proc/sys").set(6, "/1");
    assert_eq!(built.broken(), Some(Rule::ReadonlyPath), "another folder of /proc");
}

#[test]
fn foreign_cgroups_are_refused() {
    for path in
        ["/", "/system.slice", "/kubepods/burstable/pod1/c12", "/kubepods/burstable/pod1/c1/../../x", "x"]
    {
        let mut built = healthy();
        let set = Msg::default().with(1, 2).with(2, Msg::default().with(1, "memory").with(2, path));
        built.message("cgroup.img", 0).0[1].1 = set.into();
        assert_eq!(built.broken(), Some(Rule::Cgroup), "{path}");
    }
    for folder in ["", "/", "/kubepods/burstable/pod1/c1", "a/../b", "b"] {
        let mut built = healthy();
        built.message("cgroup.img", 0).inner(2).set(2, Msg::default().with(1, folder));
        assert_eq!(built.broken(), Some(Rule::Cgroup), "{folder}");
    }
    let property = Msg::default().with(1, "../../../../../etc/x").with(2, "evil");
    let mut built = healthy();
    built.message("cgroup.img", 0).inner(2).inner(2).set(3, property);
    assert_eq!(built.broken(), Some(Rule::Cgroup), "the name of a property leads out");
    let mut built = healthy();
    built.message("cgroup.img", 0).inner(2).inner(2).set(2, Msg::default().with(1, "../c2"));
    assert_eq!(built.broken(), Some(Rule::Cgroup), "a folder leads out");
    let mut built = healthy();
    built.message("core-3.img", 0).inner(5).set(16, 9);
    assert_eq!(built.broken(), Some(Rule::Cgroup), "a thread in an unknown set");
}

#[test]
fn only_hierarchies_that_keep_their_name_are_known() {
    let with = |name: &str, folder: &str, member: &str| {
        let mut built = healthy();
        let controller = Msg::default().with(1, name).with(2, Msg::default().with(1, folder));
        built.message("cgroup.img", 0).0.push((2, controller.into()));
        let member = Msg::default().with(1, name).with(2, member);
        built.message("cgroup.img", 0).0.push((1, numbers(&[(1, 5)]).with(2, member).into()));
        built.message("core-1.img", 0).inner(5).set(16, 5);
        built.broken()
    };
    let own = "kubepods/burstable/pod1/c1";
    assert_eq!(with("name=systemd", own, "/kubepods/burstable/pod1/c1"), None);
    for name in ["name=devices", "name=memory", "name=unified", "unified", "systemd", "name=", "x"] {
        assert_eq!(with(name, "", "/"), Some(Rule::Cgroup), "{name}");
        assert_eq!(with(name, own, "/kubepods/burstable/pod1/c1"), Some(Rule::Cgroup), "{name}");
    }
    for name in ["name=systemd", "perf_event", "hugetlb"] {
        assert_eq!(with(name, "", "/"), Some(Rule::Cgroup), "the root of {name}");
    }
    // Without a folder, CRIU still mounts the hierarchy.
    for name in ["name=devices", "memory"] {
        let mut built = healthy();
        built.message("cgroup.img", 0).0.push((2, Msg::default().with(1, name).into()));
        assert_eq!(built.broken(), Some(Rule::Cgroup), "{name} without a folder");
    }
}

/// A checkpoint of a node with cgroup v1, which has cgroup v2 beside it.
fn with_v1(controllers: &[&str]) -> Built {
    let mut built = healthy();
    let folder = "kubepods/burstable/pod1/c1";
    for name in controllers {
        let controller = Msg::default().with(1, *name).with(2, Msg::default().with(1, folder));
        built.message("cgroup.img", 0).0.push((2, controller.into()));
    }
    let unified = Msg::default().with(1, "").with(2, Msg::default().with(1, ""));
    built.message("cgroup.img", 0).0.push((2, unified.into()));
    let member = Msg::default().with(1, "").with(2, "/");
    built.message("cgroup.img", 0).0.push((1, numbers(&[(1, 5)]).with(2, member).into()));
    built.message("core-1.img", 0).inner(5).set(16, 5);
    built
}

#[test]
fn only_cgroup_v1_lets_a_container_be_in_the_root_of_cgroup_v2() {
    let controllers = ["blkio", "cpuset", "devices", "freezer", "pids"];
    assert_eq!(with_v1(&controllers).broken(), None);
    assert_eq!(with_v1(&controllers[1..]).broken(), Some(Rule::Cgroup), "without one of them");
    assert_eq!(with_v1(&[]).broken(), Some(Rule::Cgroup));
    let mut config = config();
    config["linux"]["namespaces"].as_array_mut().unwrap().push(json!({ "type": "cgroup" }));
    let mut built = with_v1(&controllers);
    for pid in [1, 2] {
        built.message(&format!("ids-{pid}.img"), 0).set(11, 14);
    }
    assert_eq!(built.broken_for(&allowed(&config)), Some(Rule::Cgroup), "the destination has cgroup v2");
}

#[test]
fn the_folder_of_hierarchies_may_be_writable_and_they_may_not() {
    let mut config = config();
    let options = ["nosuid", "noexec", "nodev", "ro"];
    let cgroup = json!({ "destination": "/sys/fs/cgroup", "type": "cgroup", "options": options });
    config["mounts"].as_array_mut().unwrap().push(cgroup);
    let with = |folder: Msg, hierarchy: Msg| {
        let mut built = healthy();
        built.add("mountpoints-13.img", Magic::Mountpoints, folder);
        built.add("mountpoints-13.img", Magic::Mountpoints, hierarchy);
        built.broken_for(&allowed(&config))
    };
    let folder = |flags| At("/sys/fs/cgroup").mount(40, 23, 5, flags);
    let hierarchy = |flags| At("/sys/fs/cgroup/cpu").mount(41, 40, 12, flags).with(18, "/sys/fs/cgroup/cpu");
    assert_eq!(with(folder(14), hierarchy(15)), None);
    assert_eq!(with(folder(14), hierarchy(14)), Some(Rule::MountOptions));
    assert_eq!(with(folder(12), hierarchy(15)), Some(Rule::MountOptions), "set-user-ID files");
    let shown = At("/sys/fs/cgroup").mount(40, 23, 12, 14);
    assert_eq!(with(shown, hierarchy(15)), Some(Rule::MountOptions), "a hierarchy itself");
    let given = At("/sys/fs/cgroup").mount(40, 23, 5, 14).with(18, "/sys/fs/cgroup");
    assert_eq!(with(given, hierarchy(15)), Some(Rule::MountOptions), "one of the node");
}

#[test]
fn clocks_are_those_without_a_time_namespace() {
    let mut built = healthy();
    built.raw.insert("timens-0.img".into(), Vec::new());
    assert_eq!(built.broken(), None);
    assert_eq!(with_raw("timens-9.img", b""), Unfit::Stray);
}

#[test]
fn a_process_without_its_first_thread_has_ended() {
    let mut built = healthy();
    built.message("pstree.img", 1).set(5, 1_932_776_048);
    assert!(matches!(built.check(&allowed(&config())), Err(Refusal::Damaged { .. })), "it lives");
    built.images.remove("ids-2.img");
    let core = built.message("core-2.img", 0);
    core.remove(5);
    core.inner(3).set(1, 2);
    core.inner(3).remove(9);
    assert_eq!(built.broken(), None);
    // CRIU would take the first one for the leader.
    let mut built = healthy();
    let threads = &mut built.message("pstree.img", 0).0;
    threads.retain(|(field, _)| *field != 5);
    threads.extend([(5, 3_u64.into()), (5, 1_u64.into())]);
    assert!(matches!(built.check(&allowed(&config())), Err(Refusal::Damaged { .. })), "another order");
}

#[test]
fn cgroups_are_of_the_source_that_was_announced() {
    let allowed = |path: &str| allowed(&config()).with_source_cgroup(path);
    assert_eq!(healthy().broken_for(&allowed("/kubepods/burstable/pod1")), None);
    assert_eq!(healthy().broken_for(&allowed("/kubepods/burstable/pod2")), Some(Rule::Cgroup));
}
