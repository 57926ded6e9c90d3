//! What a call means: pure decisions.

use super::{Command, Invocation};
use crate::annotations::{CONTAINER_NAME, CONTAINER_TYPE, RESTORE, SANDBOX_UID};
use crate::store::Presence;
use crate::{Name, NameError};
use std::collections::BTreeMap;

/// What the container runtime writes down as the UID of the pod; no pod can choose it.
const POD_UID: [&str; 2] = [SANDBOX_UID, "io.kubernetes.pod.uid"];

/// A container that is to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The migration.
    pub migration: Name,
    /// The name of the container in its pod.
    pub container: Name,
    /// The UID of the pod.
    pub pod: Name,
}

/// What to do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Hand it to runc as it came.
    Exec,
    /// Wait for the checkpoint, then restore.
    Restore(Request),
    /// Nothing: the container was restored, and with that it was started.
    Nothing,
}

/// Why a container is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A name is wrong.
    #[error(transparent)]
    Name(#[from] NameError),
    /// What the bundle says is not enough.
    #[error(
        "the bundle has the annotation {RESTORE} and no {missing}: only containers of a pod can be restored"
    )]
    Incomplete {
        /// The annotation that is missing.
        missing: &'static str,
    },
    /// It is said to belong to two pods.
    #[error("the bundle has two UIDs of its pod, {one:?} and {other:?}: update the container runtime")]
    TwoPods {
        /// One of them.
        one: String,
        /// The other one.
        other: String,
    },
    /// It is neither a container nor a sandbox.
    #[error("a container of type {kind:?} cannot be restored")]
    Type {
        /// The type.
        kind: String,
    },
    /// It is to be restored in a way that is not known.
    #[error("option {option:?} is not possible for a container that is restored")]
    Option {
        /// The option.
        option: String,
    },
    /// The migration was given up.
    #[error("migration {migration} was given up: its pod is not restored")]
    Cancelled {
        /// The migration.
        migration: Name,
    },
    /// Its checkpoint was used.
    #[error(
        "the checkpoint of container {container} in migration {migration} was used, and the migration is not committed: it is \
         neither restored again nor started afresh"
    )]
    Used {
        /// The migration.
        migration: Name,
        /// The container.
        container: Name,
    },
    /// Its checkpoint is for another pod.
    #[error(
        "the checkpoint of container {container} in migration {migration} is for the pod with UID {owner}, and this container is of \
         the pod with UID {pod}: only the pod that was created for a migration may have the annotation {RESTORE} of it"
    )]
    OtherPod {
        /// The migration.
        migration: Name,
        /// The container.
        container: Name,
        /// The UID of its pod.
        pod: Name,
        /// The UID of the pod that the checkpoint is for, as far as it can be shown.
        owner: String,
    },
    /// Nothing says which pod its checkpoint is for.
    #[error(
        "the checkpoint of container {container} in migration {migration} does not say which pod it is for: it is not restored"
    )]
    NoOwner {
        /// The migration.
        migration: Name,
        /// The container.
        container: Name,
    },
    /// The checkpoint does not come.
    #[error(
        "the checkpoint of container {container} in migration {migration} has not come, and the agent of the node has said nothing \
         about that for {seconds} s: see its log"
    )]
    Late {
        /// The migration.
        migration: Name,
        /// The container.
        container: Name,
        /// For how long nothing was said.
        seconds: u64,
    },
}

/// What the annotations of a bundle ask for: none if it is made as any other.
///
/// # Errors
/// It is to be restored, and what it says is not enough for that.
pub fn request(annotations: &BTreeMap<String, String>) -> Result<Option<Request>, Refused> {
    let Some(migration) = annotations.get(RESTORE) else { return Ok(None) };
    match annotations.get(CONTAINER_TYPE).map(String::as_str) {
        // The pod's sandbox is not part of a checkpoint: it is the new pod's.
        Some("sandbox") => return Ok(None),
        Some("container") => {}
        Some(kind) => return Err(Refused::Type { kind: kind.chars().take(64).collect() }),
        None => return Err(Refused::Incomplete { missing: CONTAINER_TYPE }),
    }
    let container = annotations.get(CONTAINER_NAME).ok_or(Refused::Incomplete { missing: CONTAINER_NAME })?;
    let migration = Name::new("migration", migration)?;
    let container = Name::new("container", container)?;
    Ok(Some(Request { migration, container, pod: pod_uid(annotations)? }))
}

fn pod_uid(annotations: &BTreeMap<String, String>) -> Result<Name, Refused> {
    let mut found = POD_UID.iter().filter_map(|name| annotations.get(*name));
    let uid = found.next().ok_or(Refused::Incomplete { missing: POD_UID[0] })?;
    if let Some(other) = found.find(|other| *other != uid) {
        let shown = |uid: &str| uid.chars().take(64).collect();
        return Err(Refused::TwoPods { one: shown(uid), other: shown(other) });
    }
    Ok(Name::new("UID of a pod", uid)?)
}

/// What to do with a call. `annotations` are those of the bundle, if it has one; `restored` says whether the container of the
/// call was restored.
///
/// # Errors
/// The container is not to be made in this way.
pub fn decide(
    invocation: &Invocation,
    annotations: &BTreeMap<String, String>,
    restored: bool,
) -> Result<Plan, Refused> {
    match &invocation.command {
        Command::Create(create) => match request(annotations)? {
            None => Ok(Plan::Exec),
            Some(request) => match create.others.first() {
                Some(option) => Err(Refused::Option { option: option.clone() }),
                None => Ok(Plan::Restore(request)),
            },
        },
        Command::Run(_) => match request(annotations)? {
            None => Ok(Plan::Exec),
            Some(_) => Err(Refused::Option { option: "run".to_owned() }),
        },
        Command::Start { .. } if restored => Ok(Plan::Nothing),
        Command::Start { .. } | Command::Delete { .. } | Command::Other => Ok(Plan::Exec),
    }
}

/// What a look into the store says about a container that is to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Its checkpoint is there: take it.
    Take,
    /// The pod is live: start it afresh, from its image.
    Fresh,
    /// It has to wait.
    Wait,
}

/// Decides by what the store holds, by the UID of the pod that this is for, and by which marks it has.
///
/// # Errors
/// The container is not made at all.
pub fn look(
    request: &Request,
    presence: Presence,
    owner: Option<&str>,
    live: bool,
    cancelled: bool,
) -> Result<Look, Refused> {
    let Request { migration, container, pod } = request.clone();
    if live {
        return Ok(Look::Fresh);
    }
    if cancelled {
        return Err(Refused::Cancelled { migration });
    }
    match (presence, owner) {
        (Presence::None, _) => Ok(Look::Wait),
        (_, None) => Err(Refused::NoOwner { migration, container }),
        (_, Some(owner)) if owner != pod.as_str() => {
            let owner = owner.chars().take(64).collect();
            Err(Refused::OtherPod { migration, container, pod, owner })
        }
        (Presence::Ready, _) => Ok(Look::Take),
        (Presence::Used, _) => Err(Refused::Used { migration, container }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn annotations(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn restoring() -> BTreeMap<String, String> {
        annotations(&[
            (RESTORE, "move-1"),
            (CONTAINER_NAME, "a"),
            (CONTAINER_TYPE, "container"),
            (POD_UID[0], "uid-1"),
        ])
    }

    fn call(text: &str) -> Invocation {
        Invocation::parse(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    fn wanted() -> Request {
        request(&restoring()).unwrap().unwrap()
    }

    #[test]
    fn only_containers_of_a_restored_pod_are_restored() {
        let plain = annotations(&[(CONTAINER_NAME, "a"), (CONTAINER_TYPE, "container")]);
        let sandbox = annotations(&[(RESTORE, "move-1"), (CONTAINER_TYPE, "sandbox")]);
        for (text, annotations, restored, plan) in [
            ("create abc", &restoring(), false, Plan::Restore(wanted())),
            ("create abc", &plain, false, Plan::Exec),
            ("create abc", &sandbox, false, Plan::Exec),
            ("run abc", &plain, false, Plan::Exec),
            ("start abc", &plain, false, Plan::Exec),
            ("start abc", &plain, true, Plan::Nothing),
            ("delete abc", &plain, true, Plan::Exec),
            ("state abc", &restoring(), true, Plan::Exec),
        ] {
            assert_eq!(decide(&call(text), annotations, restored), Ok(plan), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_restored_is_not_started_instead() {
        for (text, annotations) in [
            ("create abc", annotations(&[(RESTORE, "move-1")])),
            ("create abc", annotations(&[(RESTORE, "move-1"), (CONTAINER_TYPE, "container")])),
            ("create abc", annotations(&[(RESTORE, "move-1"), (CONTAINER_NAME, "a")])),
            ("create abc", annotations(&[(RESTORE, "move-1"), (CONTAINER_TYPE, "vm")])),
            (
                "create abc",
                annotations(&[(RESTORE, "../etc"), (CONTAINER_NAME, "a"), (CONTAINER_TYPE, "container")]),
            ),
            (
                "create abc",
                annotations(&[(RESTORE, "m"), (CONTAINER_NAME, "../a"), (CONTAINER_TYPE, "container")]),
            ),
            (
                "create abc",
                annotations(&[(RESTORE, ""), (CONTAINER_NAME, "a"), (CONTAINER_TYPE, "container")]),
            ),
            (
                "create abc",
                annotations(&[(RESTORE, "m"), (CONTAINER_NAME, "a"), (CONTAINER_TYPE, "container")]),
            ),
            ("create --preserve-fds 2 abc", restoring()),
            ("run abc", restoring()),
        ] {
            assert!(decide(&call(text), &annotations, false).is_err(), "{text} {annotations:?}");
        }
    }

    #[test]
    fn before_the_commit_there_is_a_restore_or_nothing() {
        let request = wanted();
        for (presence, live, cancelled, expected) in [
            (Presence::None, false, false, Some(Look::Wait)),
            (Presence::Ready, false, false, Some(Look::Take)),
            (Presence::Used, false, false, None),
            (Presence::None, false, true, None),
            (Presence::Ready, false, true, None),
            (Presence::Used, false, true, None),
            (Presence::None, true, false, Some(Look::Fresh)),
            (Presence::Ready, true, false, Some(Look::Fresh)),
            (Presence::Used, true, false, Some(Look::Fresh)),
            (Presence::Used, true, true, Some(Look::Fresh)),
        ] {
            let looked = look(&request, presence, Some("uid-1"), live, cancelled).ok();
            assert_eq!(looked, expected, "{presence:?} live {live} cancelled {cancelled}");
        }
    }

    #[test]
    fn the_pod_is_known_by_what_the_container_runtime_says() {
        let with = |uids: &[(&str, &str)]| {
            let mut all = restoring();
            all.remove(POD_UID[0]);
            all.extend(annotations(uids));
            request(&all)
        };
        let (cri, kubelet) = (POD_UID[0], POD_UID[1]);
        for uids in [&[(cri, "uid-1")][..], &[(kubelet, "uid-1")], &[(cri, "uid-1"), (kubelet, "uid-1")]] {
            assert_eq!(with(uids).unwrap().unwrap().pod.as_str(), "uid-1");
        }
        assert_eq!(with(&[]), Err(Refused::Incomplete { missing: cri }));
        assert!(matches!(with(&[(cri, "uid-1"), (kubelet, "uid-2")]), Err(Refused::TwoPods { .. })));
        assert!(matches!(with(&[(cri, "../uid")]), Err(Refused::Name(_))));
    }

    #[test]
    fn a_checkpoint_is_for_one_pod() {
        let request = wanted();
        for presence in [Presence::Ready, Presence::Used] {
            let of_another = look(&request, presence, Some("uid-2"), false, false);
            assert!(matches!(of_another, Err(Refused::OtherPod { .. })), "{of_another:?}");
            let of_nobody = look(&request, presence, None, false, false);
            assert!(matches!(of_nobody, Err(Refused::NoOwner { .. })), "{of_nobody:?}");
        }
        assert_eq!(look(&request, Presence::None, Some("uid-2"), false, false), Ok(Look::Wait));
    }
}
