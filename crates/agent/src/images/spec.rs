//! The OCI `config.json`, as far as it gives rights.

use super::allowed::{Allowed, AllowedMount, Capabilities, Extent};
use super::capability::CapabilitySet;
use super::namespace::Namespace;
use super::path;
use super::resources::LIMITS;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a `config.json` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A field is missing or has another type.
    #[error("config.json: {field} is missing or has another type: update the container runtime")]
    Field {
        /// Its path.
        field: &'static str,
    },
    /// A name is not known.
    #[error("config.json: {field} has {value:?}, which is not known: update Portolan")]
    Unknown {
        /// The path of the field.
        field: &'static str,
        /// The name.
        value: String,
    },
}

impl Allowed {
    /// What a `config.json` allows.
    ///
    /// # Errors
    /// It is not one that a container runtime writes for Linux.
    pub fn from_oci(config: &Value) -> Result<Self, SpecError> {
        read(config)
    }
}

fn read(config: &Value) -> Result<Allowed, SpecError> {
    let process = config.get("process").ok_or(SpecError::Field { field: "process" })?;
    let user = process.get("user").ok_or(SpecError::Field { field: "process.user" })?;
    let linux = config.get("linux").ok_or(SpecError::Field { field: "linux" })?;
    let capability = |name| capabilities(process.pointer(name));
    let namespaces = list(linux.get("namespaces"), "linux.namespaces")?;
    Ok(Allowed {
        uid: number(user.get("uid"), "process.user.uid")?,
        gid: number(user.get("gid"), "process.user.gid")?,
        groups: list(user.get("additionalGids"), "process.user.additionalGids")?
            .iter()
            .map(|group| number(Some(group), "process.user.additionalGids"))
            .collect::<Result<_, _>>()?,
        capabilities: Capabilities {
            bounding: capability("/capabilities/bounding")?,
            permitted: capability("/capabilities/permitted")?,
            inheritable: capability("/capabilities/inheritable")?,
            ambient: capability("/capabilities/ambient")?,
        },
        no_new_privileges: flag(process.get("noNewPrivileges"), "process.noNewPrivileges")?,
        seccomp: linux.get("seccomp").is_some_and(|seccomp| !seccomp.is_null()),
        seccomp_programs: Vec::new(),
        namespaces: namespaces.iter().map(namespace).collect::<Result<_, _>>()?,
        uid_map: extents(linux.get("uidMappings"), "linux.uidMappings")?,
        gid_map: extents(linux.get("gidMappings"), "linux.gidMappings")?,
        mounts: list(config.get("mounts"), "mounts")?.iter().map(mount).collect::<Result<_, _>>()?,
        root_readonly: flag(config.pointer("/root/readonly"), "root.readonly")?,
        apparmor: label(process.get("apparmorProfile"), "process.apparmorProfile")?
            .filter(|profile| profile != "unconfined"),
        selinux: label(process.get("selinuxLabel"), "process.selinuxLabel")?,
        masked: paths(linux.get("maskedPaths"), "linux.maskedPaths")?,
        readonly: paths(linux.get("readonlyPaths"), "linux.readonlyPaths")?,
        terminal: flag(process.get("terminal"), "process.terminal")?,
        source_cgroup: None,
        oom_score_adj: oom_score_adj(process.get("oomScoreAdj"))?,
        limits: limits(process.get("rlimits"))?,
    })
}

fn number(value: Option<&Value>, field: &'static str) -> Result<u32, SpecError> {
    let number = value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    number.ok_or(SpecError::Field { field })
}

fn oom_score_adj(value: Option<&Value>) -> Result<i32, SpecError> {
    match value {
        None | Some(Value::Null) => Ok(0),
        Some(value) => {
            let score = value.as_i64().and_then(|score| i32::try_from(score).ok());
            score.ok_or(SpecError::Field { field: "process.oomScoreAdj" })
        }
    }
}

fn limits(value: Option<&Value>) -> Result<BTreeMap<&'static str, u64>, SpecError> {
    let field = "process.rlimits";
    let mut limits = BTreeMap::new();
    for limit in list(value, field)? {
        let name = text(limit.get("type"), field)?;
        let hard = limit.get("hard").and_then(Value::as_u64).ok_or(SpecError::Field { field })?;
        let known = LIMITS.into_iter().find(|known| *known == name);
        limits.insert(known.ok_or(SpecError::Unknown { field, value: name })?, hard);
    }
    Ok(limits)
}

fn flag(value: Option<&Value>, field: &'static str) -> Result<bool, SpecError> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(value) => value.as_bool().ok_or(SpecError::Field { field }),
    }
}

fn text(value: Option<&Value>, field: &'static str) -> Result<String, SpecError> {
    value.and_then(Value::as_str).map(str::to_owned).ok_or(SpecError::Field { field })
}

fn label(value: Option<&Value>, field: &'static str) -> Result<Option<String>, SpecError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        value => text(value, field).map(|text| Some(text).filter(|text| !text.is_empty())),
    }
}

fn list<'a>(value: Option<&'a Value>, field: &'static str) -> Result<&'a [Value], SpecError> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(value) => value.as_array().map(Vec::as_slice).ok_or(SpecError::Field { field }),
    }
}

fn texts(value: Option<&Value>, field: &'static str) -> Result<Vec<String>, SpecError> {
    list(value, field)?.iter().map(|value| text(Some(value), field)).collect()
}

fn paths(value: Option<&Value>, field: &'static str) -> Result<Vec<String>, SpecError> {
    texts(value, field)?.into_iter().map(|path| absolute(path, field)).collect()
}

fn absolute(value: String, field: &'static str) -> Result<String, SpecError> {
    path::normal(&value).ok_or(SpecError::Unknown { field, value })
}

fn capabilities(value: Option<&Value>) -> Result<CapabilitySet, SpecError> {
    let field = "process.capabilities";
    texts(value, field)?.into_iter().try_fold(CapabilitySet::default(), |set, value| {
        let capability = CapabilitySet::from_name(&value);
        capability.map(|capability| set.union(capability)).ok_or(SpecError::Unknown { field, value })
    })
}

fn namespace(value: &Value) -> Result<(Namespace, Option<String>), SpecError> {
    let field = "linux.namespaces";
    let name = text(value.get("type"), field)?;
    let namespace = Namespace::from_name(&name).ok_or(SpecError::Unknown { field, value: name })?;
    Ok((namespace, label(value.get("path"), field)?))
}

fn extents(value: Option<&Value>, field: &'static str) -> Result<Vec<Extent>, SpecError> {
    let extent = |value: &Value| -> Result<Extent, SpecError> {
        Ok(Extent {
            inside: number(value.get("containerID"), field)?,
            outside: number(value.get("hostID"), field)?,
            count: number(value.get("size"), field)?,
        })
    };
    list(value, field)?.iter().map(extent).collect()
}

fn mount(value: &Value) -> Result<AllowedMount, SpecError> {
    let destination = absolute(text(value.get("destination"), "mounts.destination")?, "mounts.destination")?;
    let resolved = match destination.strip_prefix("/var/run/") {
        Some(rest) => format!("/run/{rest}"),
        None => destination.clone(),
    };
    let options = texts(value.get("options"), "mounts.options")?.into_iter().collect();
    let fstype = label(value.get("type"), "mounts.type")?.unwrap_or_default();
    Ok(AllowedMount { destination, resolved, fstype, options })
}
