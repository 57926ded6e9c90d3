//! Programs built from a Go module whose versions and sums are checked in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::{Key, Part, timed};
use super::{PartsError, Step, go_mod, process};

/// A module of this crate, read and ready to be built.
#[derive(Debug, Clone)]
pub(super) struct GoModule {
    name: &'static str,
    version: String,
    directory: PathBuf,
    /// The oldest Go that the module allows.
    go: String,
    tags: &'static [&'static str],
    /// Variables that the linker sets.
    variables: Vec<(&'static str, String)>,
    /// Program name and package, in the order in which they are built.
    programs: &'static [(&'static str, &'static str)],
    sources: Vec<(String, Vec<u8>)>,
}

/// What [`GoModule::read`] is told.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    /// Its version in the module's `go.mod` is the version of the part.
    pub(super) requires: &'static str,
    pub(super) directory: PathBuf,
    pub(super) tags: &'static [&'static str],
    pub(super) programs: &'static [(&'static str, &'static str)],
}

impl GoModule {
    /// Reads the module's files, all of which decide what is built.
    pub(super) fn read(recipe: Recipe) -> Result<Self, PartsError> {
        let Recipe { name, requires, directory, tags, programs } = recipe;
        let sources = read_sources(&directory)?;
        let path = directory.join("go.mod");
        let go_mod = fs::read_to_string(&path).map_err(PartsError::io("read", &path))?;
        let lacks = |problem: String| PartsError::GoModule { path: path.clone(), problem };
        let version = go_mod::required(&go_mod, requires)
            .ok_or_else(|| lacks(format!("it requires no version of {requires}")))?
            .to_owned();
        let go = go_mod::go(&go_mod).ok_or_else(|| lacks("it has no `go` line".to_owned()))?.to_owned();
        Ok(Self { name, version, directory, go, tags, variables: Vec::new(), programs, sources })
    }

    /// Sets a string variable of the programs at link time.
    pub(super) fn set(mut self, variable: &'static str, value: String) -> Self {
        self.variables.push((variable, value));
        self
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The oldest Go that the module allows.
    pub(super) fn go(&self) -> &str {
        &self.go
    }

    /// The directory of its `go.mod`.
    pub(super) fn source(&self) -> &Path {
        &self.directory
    }

    /// Everything of the command line but what to build and where to.
    fn flags(&self) -> Vec<String> {
        let mut linker = "-s -w".to_owned();
        for (variable, value) in &self.variables {
            linker.push_str(&format!(" -X {variable}={value}"));
        }
        let mut flags: Vec<String> =
            ["-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags"].map(str::to_owned).to_vec();
        flags.push(linker);
        if !self.tags.is_empty() {
            flags.extend(["-tags".to_owned(), self.tags.join(",")]);
        }
        flags
    }

    fn build(&self, program: &str, package: &str, to: &Path) -> Result<(), PartsError> {
        let fresh = to.with_extension("new");
        let mut command = Command::new("go");
        command.arg("build").args(self.flags()).arg("-o").arg(&fresh).arg(package);
        command.current_dir(&self.directory);
        command.envs([("CGO_ENABLED", "0"), ("GOOS", "linux"), ("GOFLAGS", ""), ("GOWORK", "off")]);
        let help = "Modules come from the Go module proxy: without a network they must already be in Go's module cache.";
        process::run(program, &mut command, help)?;
        fs::rename(&fresh, to).map_err(PartsError::io("rename", &fresh))
    }
}

impl Part for GoModule {
    fn directory(&self) -> String {
        let mut key = Key::new().with("machine", std::env::consts::ARCH.as_bytes());
        for (name, content) in &self.sources {
            key = key.with(name, content);
        }
        for flag in self.flags() {
            key = key.with("flag", flag.as_bytes());
        }
        for (program, package) in self.programs {
            key = key.with(program, package.as_bytes());
        }
        format!("{}-{}-{}", self.name, self.version, key.finish())
    }

    fn title(&self) -> Option<String> {
        None
    }

    /// One program after the other; those that an interrupted attempt finished are kept.
    fn make(&self, partial: &Path, report: &mut dyn FnMut(Step)) -> Result<(), PartsError> {
        for (program, package) in self.programs {
            let to = partial.join(program);
            if !to.exists() {
                let title = format!("{program} {}", self.version);
                timed(title, &to, report, |_| self.build(program, package, &to))?;
            }
        }
        Ok(())
    }
}

/// `go.mod`, `go.sum` and the Go files of a directory, by name.
fn read_sources(directory: &Path) -> Result<Vec<(String, Vec<u8>)>, PartsError> {
    let failed = || PartsError::io("read", directory);
    let mut sources = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "go.mod" || name == "go.sum" || name.ends_with(".go") {
            sources.push((name, fs::read(&path).map_err(PartsError::io("read", &path))?));
        }
    }
    sources.sort();
    Ok(sources)
}

/// The checked-in files of the parts.
pub(super) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(directory: &Path) -> GoModule {
        let recipe = Recipe {
            name: "hello",
            requires: "example.com/hello",
            directory: directory.to_path_buf(),
            tags: &["small", "fast"],
            programs: &[("hello", "example.com/hello/cmd/hello")],
        };
        GoModule::read(recipe).unwrap().set("example.com/hello.version", "v1.2.3".to_owned())
    }

    fn write(directory: &Path, sum: &str) {
        fs::write(directory.join("go.mod"), "go 1.26.0\nrequire example.com/hello v1.2.3\n").unwrap();
        fs::write(directory.join("go.sum"), sum).unwrap();
        fs::write(directory.join("tools.go"), "package tools\n").unwrap();
    }

    #[test]
    fn name_carries_the_version_and_follows_every_ingredient() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "one");
        let first = module(directory.path());
        assert!(first.directory().starts_with("hello-1.2.3-"), "{}", first.directory());
        assert_eq!(first.directory(), module(directory.path()).directory());
        fs::write(directory.path().join("notes.txt"), "no ingredient").unwrap();
        assert_eq!(first.directory(), module(directory.path()).directory());

        assert_ne!(
            first.directory(),
            first.clone().set("example.com/hello.commit", "1".to_owned()).directory()
        );
        assert_ne!(first.directory(), GoModule { tags: &["small"], ..first.clone() }.directory());
        write(directory.path(), "two");
        assert_ne!(first.directory(), module(directory.path()).directory());
    }

    #[test]
    fn flags_are_those_of_a_reproducible_static_build() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "");
        assert_eq!(
            module(directory.path()).flags(),
            [
                "-trimpath",
                "-buildvcs=false",
                "-mod=readonly",
                "-ldflags",
                "-s -w -X example.com/hello.version=v1.2.3",
                "-tags",
                "small,fast"
            ]
        );
    }

    #[test]
    fn a_module_that_requires_something_else_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("go.mod"), "go 1.26.0\n").unwrap();
        let recipe = Recipe {
            name: "hello",
            requires: "example.com/hello",
            directory: directory.path().to_path_buf(),
            tags: &[],
            programs: &[],
        };
        let error = GoModule::read(recipe).unwrap_err().to_string();
        assert!(error.contains("go.mod") && error.contains("example.com/hello"), "{error}");
    }
}
