//! Where parts are kept, and the one way in which a part comes there.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{PartsError, Step};

/// Something that is made once and then kept.
pub(super) trait Part {
    /// The name of its directory in the cache: what it is, its version, and a [`Key`] of all it is made from.
    fn directory(&self) -> String;

    /// What its making is told as; none when its pieces tell of themselves.
    fn title(&self) -> Option<String>;

    /// Makes it in `partial`, which may hold what an interrupted attempt left behind.
    fn make(&self, partial: &Path, report: &mut dyn FnMut(Step)) -> Result<(), PartsError>;
}

/// The user's cache, `${XDG_CACHE_HOME:-$HOME/.cache}/portolan`.
pub(crate) fn user_cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = variable("XDG_CACHE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(|| PathBuf::from("/var/cache"));
    base.join("portolan")
}

/// The directory of all parts.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The parts in the user's cache.
    pub(super) fn of_user() -> Self {
        Self::at(user_cache().join("parts"))
    }

    pub(super) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where this part lies, or will.
    pub(super) fn path(&self, part: &impl Part) -> PathBuf {
        self.root.join(part.directory())
    }

    pub(super) fn holds(&self, part: &impl Part) -> bool {
        self.path(part).is_dir()
    }

    /// Gives a part, making it first when it is not there. It appears under its name only when it is whole.
    pub(super) fn ensure(
        &self,
        part: &impl Part,
        report: &mut dyn FnMut(Step),
    ) -> Result<PathBuf, PartsError> {
        let path = self.path(part);
        if path.is_dir() {
            return Ok(path);
        }
        let _lock = self.lock(report)?;
        if path.is_dir() {
            return Ok(path);
        }
        let partial = self.root.join(format!("{}.partial", part.directory()));
        fs::create_dir_all(&partial).map_err(PartsError::io("create", &partial))?;
        match part.title() {
            None => part.make(&partial, report)?,
            Some(title) => timed(title, &partial, report, |report| part.make(&partial, report))?,
        }
        fs::rename(&partial, &path).map_err(PartsError::io("rename", &partial))?;
        Ok(path)
    }

    /// Waits until no other process makes parts; released when the file is dropped, also by a crash.
    fn lock(&self, report: &mut dyn FnMut(Step)) -> Result<File, PartsError> {
        fs::create_dir_all(&self.root).map_err(PartsError::io("create", &self.root))?;
        let path = self.root.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(PartsError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => report(Step::Waiting { lock: path.clone() }),
            Err(TryLockError::Error(source)) => return Err(PartsError::io("lock", &path)(source)),
        }
        file.lock().map_err(PartsError::io("lock", &path))?;
        Ok(file)
    }
}

/// Runs `make`, telling its start, its end, its time and the size of what it made.
pub(super) fn timed(
    part: String,
    made: &Path,
    report: &mut dyn FnMut(Step),
    make: impl FnOnce(&mut dyn FnMut(Step)) -> Result<(), PartsError>,
) -> Result<(), PartsError> {
    report(Step::Started { part: part.clone() });
    let start = std::time::Instant::now();
    make(report)?;
    let took = start.elapsed();
    let bytes = size(made).map_err(PartsError::io("measure", made))?;
    report(Step::Finished { part, took, bytes });
    Ok(())
}

/// Removes a directory that may not be there.
pub(super) fn clear(directory: &Path) -> Result<(), PartsError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(PartsError::io("remove", directory)(error))
        }
        _ => Ok(()),
    }
}

fn size(path: &Path) -> io::Result<u64> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    fs::read_dir(path)?.try_fold(0, |total, entry| Ok(total + size(&entry?.path())?))
}

/// A short hash of everything that decides what a part will be.
pub(super) struct Key(Sha256);

impl Key {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds an ingredient. Name and length go in too, so that no two lists of ingredients read alike.
    pub(super) fn with(mut self, name: &str, content: &[u8]) -> Self {
        for bytes in [name.as_bytes(), content] {
            self.0.update((bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        }
        self
    }

    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Note {
        text: &'static str,
        made: Cell<u32>,
        fails: bool,
    }

    impl Part for Note {
        fn directory(&self) -> String {
            format!("note-{}", Key::new().with("text", self.text.as_bytes()).finish())
        }

        fn title(&self) -> Option<String> {
            Some("note".to_owned())
        }

        fn make(&self, partial: &Path, _: &mut dyn FnMut(Step)) -> Result<(), PartsError> {
            self.made.set(self.made.get() + 1);
            let path = partial.join("note");
            fs::write(&path, self.text).map_err(PartsError::io("write", &path))?;
            if self.fails { Err(PartsError::io("write", &path)(io::Error::other("full"))) } else { Ok(()) }
        }
    }

    fn note(text: &'static str) -> Note {
        Note { text, made: Cell::new(0), fails: false }
    }

    #[test]
    fn a_part_is_made_once_and_again_when_an_ingredient_changes() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().join("parts"));
        let (first, changed) = (note("one"), note("two"));
        let mut steps = Vec::new();
        let path = cache.ensure(&first, &mut |step| steps.push(step)).unwrap();
        assert_eq!(cache.ensure(&first, &mut |step| steps.push(step)).unwrap(), path);
        assert_eq!(first.made.get(), 1);
        assert!(matches!(&steps[..], [Step::Started { .. }, Step::Finished { bytes: 3.., .. }]), "{steps:?}");
        assert_ne!(cache.ensure(&changed, &mut |_| ()).unwrap(), path);
        assert_eq!(fs::read_to_string(path.join("note")).unwrap(), "one");
    }

    #[test]
    fn a_failed_part_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_path_buf());
        let broken = Note { fails: true, ..note("one") };
        assert!(cache.ensure(&broken, &mut |_| ()).is_err());
        assert!(!cache.holds(&broken));
        let whole = note("one");
        cache.ensure(&whole, &mut |_| ()).unwrap();
        assert_eq!(whole.made.get(), 1);
    }

    #[test]
    fn two_at_once_make_it_once() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_path_buf());
        let lock = cache.lock(&mut |_| ()).unwrap();
        let (waiting, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let part = note("one");
                cache.ensure(&part, &mut |step| waiting.send(step).unwrap()).unwrap();
                part.made.get()
            });
            assert!(matches!(told.recv().unwrap(), Step::Waiting { .. }));
            fs::create_dir(cache.path(&note("one"))).unwrap();
            drop(lock);
            assert_eq!(other.join().unwrap(), 0, "the part appeared while it waited");
        });
    }

    #[test]
    fn ingredients_do_not_run_into_each_other() {
        let key = |pairs: &[(&str, &str)]| {
            pairs.iter().fold(Key::new(), |key, (name, content)| key.with(name, content.as_bytes())).finish()
        };
        assert_ne!(key(&[("a", "bc")]), key(&[("ab", "c")]));
        assert_ne!(key(&[("a", "b"), ("c", "d")]), key(&[("c", "d"), ("a", "b")]));
        assert_eq!(key(&[("a", "b")]), key(&[("a", "b")]));
    }
}
