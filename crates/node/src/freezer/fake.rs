//! Cgroups that behave as the kernel's do, with a crash after any write.

use super::{CgroupFiles, Interface};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub(crate) struct Fake(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    interface: Interface,
    pod: PathBuf,
    /// Whether each cgroup is frozen by itself.
    own: BTreeMap<PathBuf, bool>,
    /// How often a cgroup is looked at until it stands still.
    slowness: u32,
    looked: u32,
    /// How many writes are done before everything fails.
    writes_left: u32,
    /// Which containers run, after each write.
    history: Vec<Vec<bool>>,
}

impl State {
    fn stands(&self, folder: &Path) -> bool {
        let own = |folder: &Path| self.own.get(folder).copied().unwrap_or(false);
        own(folder) || own(&self.pod)
    }
}

impl Fake {
    pub(crate) fn new(interface: Interface, pod: &Path, containers: &[&str]) -> Self {
        let mut own = BTreeMap::from([(pod.to_owned(), false)]);
        own.extend(containers.iter().map(|name| (pod.join(name), false)));
        let pod = pod.to_owned();
        Self(Rc::new(RefCell::new(State {
            interface,
            pod,
            own,
            slowness: 0,
            looked: 0,
            writes_left: u32::MAX,
            history: Vec::new(),
        })))
    }

    pub(crate) fn slow(self, slowness: u32) -> Self {
        self.0.borrow_mut().slowness = slowness;
        self
    }

    pub(crate) fn crash_after(&self, writes: u32) {
        self.0.borrow_mut().writes_left = writes;
    }

    pub(crate) fn running(&self) -> Vec<bool> {
        let state = self.0.borrow();
        state.own.keys().filter(|folder| **folder != state.pod).map(|folder| !state.stands(folder)).collect()
    }

    pub(crate) fn pod_is_frozen(&self) -> bool {
        let state = self.0.borrow();
        state.own.get(&state.pod) == Some(&true)
    }

    pub(crate) fn history(&self) -> Vec<Vec<bool>> {
        self.0.borrow().history.clone()
    }
}

impl CgroupFiles for Fake {
    fn exists(&self, path: &Path) -> bool {
        let state = self.0.borrow();
        let file = match state.interface {
            Interface::V1 => "freezer.state",
            Interface::V2 => "cgroup.freeze",
        };
        state.own.contains_key(path)
            || (path.file_name().is_some_and(|name| name == file)
                && path.parent().is_some_and(|folder| state.own.contains_key(folder)))
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let mut state = self.0.borrow_mut();
        state.looked += 1;
        let folder = path.parent().unwrap_or(path).to_owned();
        let Some(own) = state.own.get(&folder).copied() else { return Err(io::ErrorKind::NotFound.into()) };
        let settled = state.looked > state.slowness;
        let number = |yes: bool| if yes { "1\n".to_owned() } else { "0\n".to_owned() };
        match path.file_name().and_then(|name| name.to_str()) {
            Some("freezer.state") if !state.stands(&folder) => Ok("THAWED\n".to_owned()),
            Some("freezer.state") if settled => Ok("FROZEN\n".to_owned()),
            Some("freezer.state") => Ok("FREEZING\n".to_owned()),
            Some("cgroup.events") => {
                Ok(format!("populated 1\nfrozen {}", number(state.stands(&folder) && settled)))
            }
            Some("freezer.self_freezing" | "cgroup.freeze") => Ok(number(own)),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        if state.writes_left == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        state.writes_left -= 1;
        state.looked = 0;
        let folder = path.parent().unwrap_or(path).to_owned();
        let Some(own) = state.own.get_mut(&folder) else { return Err(io::ErrorKind::NotFound.into()) };
        *own = matches!(text, "FROZEN" | "1");
        drop(state);
        let running = self.running();
        self.0.borrow_mut().history.push(running);
        Ok(())
    }

    fn pause(&self, _attempt: u32) {}
}
