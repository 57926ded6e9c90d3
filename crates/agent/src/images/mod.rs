//! Restored means no more rights: the check of a checkpoint that came from another node.
//!
//! CRIU restores as root what the images say: user IDs, capabilities, seccomp filters, labels, mounts, open files, cgroups.
//! It does not ask whether the pod may have them. So the images are input from outside, and before CRIU reads them
//! [`check()`] decodes them with a decoder of its own and compares them with what the destination's container runtime made of
//! the admitted pod ([`Allowed::from_oci`]). A process may have less than the spec gives, never more. What is not known is
//! refused. The numbers of fields and kinds are those of CRIU 4.2.1.
//!
//! Weaker than it could be:
//! - A seccomp filter is compared only if its program is given ([`Allowed::with_seccomp_programs`]). Without, a filter that
//!   can get to a return that restricts is enough, even if no system call meets its conditions.
//! - CRIU resolves the paths of open files in the container's own mounts; here they are compared as texts. Those
//!   through `/proc/*/fd` and the links to it in `/dev` are refused. Other links in the container's root or in a volume could
//!   lead there: who wraps CRIU must look up [`Summary::paths`] and [`Summary::sockets`] inside the root, as `portolan-runc` does.
//! - CRIU opens files as root: a process may come with an open file of its container that it could not open itself.
//!
//! Not checked here: memory (a process may write what it wants to its own); the content of archives of memory file systems
//! ([`Summary::archives`]: the hands inspect them, and refuse devices and set-user-ID files in them); limits of resources that
//! neither the spec has nor give priority (the cgroup of the destination limits them); the values of properties of cgroups (in runc's mode "soft", CRIU writes only those
//! of cgroups that it makes below the container's). Nobody else may write to the folder between the check and the restore.

mod allowed;
mod bpf;
mod capability;
mod cgroup;
mod check;
mod files;
mod folder;
mod ghosts;
mod image;
mod kind;
mod mounts;
mod namespace;
mod origins;
mod path;
mod process;
mod refusal;
mod resources;
mod rule;
mod seccomp;
mod spec;
mod tree;
mod wire;

#[cfg(test)]
mod build;
#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod resources_tests;
#[cfg(test)]
mod tests;

pub use allowed::Allowed;
pub use check::{Archive, Summary, check, check_within};
pub use folder::Limits;
pub use refusal::{Damage, Refusal, Unfit};
pub use rule::Rule;
pub use spec::SpecError;
