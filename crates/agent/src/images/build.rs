//! Checkpoints for tests: an encoder of its own, and a healthy container of two processes and three threads.

use super::image::Magic;
use super::{Allowed, Refusal, Rule, Summary, check};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

/// A message: numbers of fields with their values.
#[derive(Clone, Debug, Default)]
pub(super) struct Msg(pub(super) Vec<(u32, Val)>);

#[derive(Clone, Debug)]
pub(super) enum Val {
    Number(u64),
    Bytes(Vec<u8>),
    Inner(Msg),
}

impl From<u64> for Val {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Val {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Val {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Msg> for Val {
    fn from(message: Msg) -> Self {
        Self::Inner(message)
    }
}

/// A message of numbers.
pub(super) fn numbers(fields: &[(u32, u64)]) -> Msg {
    Msg(fields.iter().map(|(field, number)| (*field, Val::Number(*number))).collect())
}

impl Msg {
    pub(super) fn with(mut self, field: u32, value: impl Into<Val>) -> Self {
        self.0.push((field, value.into()));
        self
    }

    /// Replaces all values of a field by one.
    pub(super) fn set(&mut self, field: u32, value: impl Into<Val>) {
        self.remove(field);
        self.0.push((field, value.into()));
    }

    pub(super) fn remove(&mut self, field: u32) {
        self.0.retain(|(number, _)| *number != field);
    }

    /// The number in a field, 0 without one.
    pub(super) fn number(&self, field: u32) -> u64 {
        let found = self.0.iter().find_map(|(number, value)| match value {
            Val::Number(value) if *number == field => Some(*value),
            _ => None,
        });
        found.unwrap_or(0)
    }

    /// The message in a field.
    pub(super) fn inner(&mut self, field: u32) -> &mut Self {
        let found = self.0.iter_mut().find_map(|(number, value)| match value {
            Val::Inner(message) if *number == field => Some(message),
            _ => None,
        });
        found.unwrap()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (field, value) in &self.0 {
            let wire_type = u64::from(!matches!(value, Val::Number(_))) * 2;
            varint(&mut bytes, (u64::from(*field) << 3) | wire_type);
            let inner = match value {
                Val::Number(number) => {
                    varint(&mut bytes, *number);
                    continue;
                }
                Val::Bytes(inner) => inner.clone(),
                Val::Inner(message) => message.encode(),
            };
            varint(&mut bytes, inner.len() as u64);
            bytes.extend(inner);
        }
        bytes
    }
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A checkpoint that is not written yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Built {
    pub(super) images: BTreeMap<String, (Magic, Vec<Msg>)>,
    pub(super) raw: BTreeMap<String, Vec<u8>>,
}

impl Built {
    pub(super) fn add(&mut self, name: &str, magic: Magic, message: Msg) {
        self.images.entry(name.to_owned()).or_insert((magic, Vec::new())).1.push(message);
    }

    /// The message of an image with that index.
    pub(super) fn message(&mut self, name: &str, index: usize) -> &mut Msg {
        &mut self.images.get_mut(name).unwrap().1[index]
    }

    /// The credentials of a thread.
    pub(super) fn credentials(&mut self, tid: u32) -> &mut Msg {
        self.message(&format!("core-{tid}.img"), 0).inner(5).inner(10)
    }

    /// The mount at a path.
    pub(super) fn mount(&mut self, at: &str) -> &mut Msg {
        let mounts = &mut self.images.get_mut("mountpoints-13.img").unwrap().1;
        let is_there = |mount: &&mut Msg| {
            mount.0.iter().any(
                |(field, value)| matches!(value, Val::Bytes(bytes) if *field == 7 && bytes == at.as_bytes()),
            )
        };
        mounts.iter_mut().find(is_there).unwrap()
    }

    pub(super) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.raw.clone();
        for (name, (magic, messages)) in &self.images {
            let mut bytes = Vec::new();
            if *magic != Magic::Inventory {
                bytes.extend(0x5456_4319_u32.to_le_bytes());
            }
            bytes.extend(magic.number().to_le_bytes());
            for message in messages {
                let message = message.encode();
                bytes.extend((message.len() as u32).to_le_bytes());
                bytes.extend(message);
            }
            files.insert(name.clone(), bytes);
        }
        files
    }

    pub(super) fn write(&self) -> TempDir {
        write(&self.files())
    }

    pub(super) fn check(&self, allowed: &Allowed) -> Result<Summary, Refusal> {
        check(self.write().path(), allowed)
    }

    /// The rule that the checkpoint breaks, with the default spec.
    pub(super) fn broken(&self) -> Option<Rule> {
        self.broken_for(&allowed(&config()))
    }

    pub(super) fn broken_for(&self, allowed: &Allowed) -> Option<Rule> {
        match self.check(allowed) {
            Ok(_) => None,
            Err(refusal) => {
                let text = refusal.to_string();
                let rule = refusal.rule();
                assert!(rule.is_some(), "it is refused for another reason: {text}");
                rule
            }
        }
    }
}

pub(super) fn write(files: &BTreeMap<String, Vec<u8>>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

pub(super) fn allowed(config: &Value) -> Allowed {
    Allowed::from_oci(config).unwrap()
}

/// Bits of CAP_CHOWN, CAP_SETGID, CAP_SETUID and CAP_NET_BIND_SERVICE, as the default spec has them.
pub(super) const CAPABILITIES: u64 = 1 | (1 << 6) | (1 << 7) | (1 << 10);

pub(super) fn config() -> Value {
    let capabilities = json!(["CAP_CHOWN", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE"]);
    json!({
        "process": {
            "user": { "uid": 0, "gid": 0, "additionalGids": [0, 10] },
            "capabilities": { "bounding": capabilities, "effective": capabilities, "permitted": capabilities },
            "noNewPrivileges": true,
            "apparmorProfile": "cri-containerd.apparmor.d",
        },
        "root": { "path": "rootfs", "readonly": true },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"] },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"] },
            { "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"] },
            { "destination": "/data", "type": "bind", "source": "/x", "options": ["rbind", "rprivate", "rw"] },
            { "destination": "/var/run/secrets", "type": "bind", "source": "/y", "options": ["rbind", "rprivate", "ro"] },
        ],
        "linux": {
            "namespaces": [
                { "type": "pid" },
                { "type": "ipc", "path": "/proc/7/ns/ipc" },
                { "type": "uts", "path": "/proc/7/ns/uts" },
                { "type": "mount" },
                { "type": "network", "path": "/proc/7/ns/net" },
            ],
            "seccomp": { "defaultAction": "SCMP_ACT_ERRNO" },
            "maskedPaths": ["/proc/kcore", "/proc/acpi"],
            "readonlyPaths": ["/proc/sys"],
        },
    })
}

/// A program of one instruction that returns this action.
pub(super) fn program(action: u32) -> Vec<u8> {
    [[6, 0, 0, 0], action.to_le_bytes()].concat()
}

fn core(leader: bool) -> Msg {
    let mut credentials = numbers(&[(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0)]);
    for field in [10, 11, 12] {
        credentials = credentials.with(field, CAPABILITIES).with(field, 0);
    }
    // Packed, as the other form of a list.
    credentials = credentials.with(9, &[0_u8, 0][..]).with(19, &[0_u8, 0][..]);
    credentials = credentials.with(13, 0).with(14, 0).with(14, 10);
    credentials = credentials.with(15, "cri-containerd.apparmor.d").with(18, 1);
    let thread = numbers(&[(1, 0), (2, 0), (3, 0), (4, 0)]).with(10, credentials).with(11, 2).with(12, 1);
    let mut core = numbers(&[(1, 1)]).with(5, thread);
    if leader {
        let limits = (0..16).fold(Msg::default(), |limits, number| {
            let limit = if [13, 14].contains(&number) { 0 } else { 4096 };
            limits.with(1, numbers(&[(1, limit), (2, limit)]))
        });
        let task = numbers(&[(1, 1), (2, 0), (3, 0), (4, 0), (5, 0)]).with(6, "app").with(8, limits);
        core.set(3, task.with(9, 2).with(14, 0));
    }
    core
}

/// Something at a path.
pub(super) struct At(pub(super) &'static str);

impl At {
    pub(super) fn mount(self, id: u64, parent: u64, fstype: u64, flags: u64) -> Msg {
        numbers(&[(1, fstype), (2, id), (3, 1000 + id), (4, parent), (5, flags), (17, 0)])
            .with(6, "/")
            .with(7, self.0)
            .with(8, "none")
            .with(9, "")
    }

    pub(super) fn external(self, id: u64, parent: u64, key: &str) -> Msg {
        self.mount(id, parent, 16, 1).with(18, key)
    }

    pub(super) fn file(self, id: u64, mount: u64) -> Msg {
        let file = numbers(&[(1, id), (2, 0), (3, 0)]).with(5, Msg::default()).with(6, self.0);
        numbers(&[(1, 1), (2, id)]).with(3, file.with(7, mount * 2).with(10, 0o100_644))
    }
}

/// A container as CRIU 4.2 and runc keep it.
pub(super) fn healthy() -> Built {
    let mut built = Built::default();
    let node =
        numbers(&[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 2), (7, 3), (8, 4), (9, 5), (10, 6), (11, 7)]);
    let inventory = numbers(&[(1, 2), (2, 1), (4, 1), (5, 1), (6, 2)]).with(3, node);
    built.add("inventory.img", Magic::Inventory, inventory);
    let first = numbers(&[(1, 1), (2, 0), (3, 1), (4, 1), (5, 1), (5, 3)]);
    built.add("pstree.img", Magic::Pstree, first);
    built.add("pstree.img", Magic::Pstree, numbers(&[(1, 2), (2, 1), (3, 1), (4, 1), (5, 2)]));
    for pid in [1, 2] {
        let own = [(5, 9), (6, 10), (7, 11), (8, 12), (9, 13), (10, 6), (11, 7)];
        let ids = [&[(1, pid), (2, pid), (3, pid), (4, pid)][..], &own].concat();
        built.add(&format!("ids-{pid}.img"), Magic::Ids, numbers(&ids));
        built.add(&format!("core-{pid}.img"), Magic::Core, core(true));
        built.add(&format!("fs-{pid}.img"), Magic::Fs, numbers(&[(1, 1), (2, 1)]));
        built.add(&format!("mm-{pid}.img"), Magic::Mm, numbers(&[(12, 2)]));
        built.add(&format!("fdinfo-{pid}.img"), Magic::FdInfo, numbers(&[(1, 3), (2, 0), (3, 1), (4, 0)]));
    }
    built.add("core-3.img", Magic::Core, core(false));
    built.add("files.img", Magic::Files, At("/").file(1, 20));
    built.add("files.img", Magic::Files, At("/bin/app").file(2, 20));
    built.add("files.img", Magic::Files, At("/data/log").file(3, 24));
    let socket = numbers(&[(1, 4), (2, 99), (3, 1), (4, 10), (5, 2), (6, 0), (16, 10)]).with(11, "/data/s\0");
    built.add("files.img", Magic::Files, numbers(&[(1, 5), (2, 4)]).with(16, socket));
    let filters = Msg::default()
        .with(1, Msg::default().with(1, &program(0x7fff_0000)[..]))
        .with(1, Msg::default().with(1, &program(0x0005_0001)[..]).with(2, 0));
    built.add("seccomp.img", Magic::Seccomp, filters);
    for mount in [
        At("/").mount(20, 1, 17, 1),
        At("/proc").mount(21, 20, 1, 14),
        At("/dev").mount(22, 20, 5, 2),
        At("/sys").mount(23, 20, 2, 15),
        At("/data").external(24, 20, "/data"),
        At("/run/secrets").external(25, 20, "/var/run/secrets"),
        At("/proc/kcore").external(26, 21, "/dev/null"),
        At("/proc/acpi").mount(27, 21, 5, 1),
    ] {
        built.add("mountpoints-13.img", Magic::Mountpoints, mount);
    }
    let mut readonly = At("/proc/sys").mount(28, 21, 1, 15);
    readonly.set(3, 1021);
    readonly.set(6, "/sys");
    built.add("mountpoints-13.img", Magic::Mountpoints, readonly);
    built.add("netns-10.img", Magic::Netns, Msg::default().with(8, "extRootNetNS"));
    let pod = "/kubepods/burstable/pod1/c1";
    let controller = |name: &str| Msg::default().with(1, name).with(2, Msg::default().with(1, &pod[1..]));
    let set = |id: u64, path: &str| {
        let member = |name: &str| Msg::default().with(1, name).with(2, path);
        numbers(&[(1, id)]).with(2, member("memory")).with(2, member("cpu,cpuacct"))
    };
    let cgroup = Msg::default().with(1, set(1, "/system.slice")).with(1, set(2, pod));
    let cpu = controller("cpu").with(1, "cpuacct");
    built.add("cgroup.img", Magic::Cgroup, cgroup.with(2, controller("memory")).with(2, cpu));
    built.raw.insert("pages-1.img".into(), vec![0; 4096]);
    built.raw.insert("tmpfs-dev-1022.tar.gz.img".into(), vec![0; 64]);
    built.raw.insert("descriptors.json".into(), b"[\"/dev/null\",\"pipe:[12]\",\"pipe:[13]\"]".to_vec());
    built
}
