//! `cargo xtask dist`: everything of a release in one folder.

use super::archive::Archive;
use super::build::{self, Built, CLibrary};
use super::commit::Commit;
use super::krew::{self, PLUGIN, PluginArchive};
use super::sbom::Parts;
use super::target::Target;
use super::{folder, image, megabytes, output, sha256};
use crate::steps::root;
use crate::table::Table;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use portolan_install::VERSION;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shells that completions are for, and the files that these look for.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "portolan.bash"),
    ("zsh", "_portolan"),
    ("fish", "portolan.fish"),
    ("powershell", "portolan.ps1"),
];

#[derive(Args)]
pub(crate) struct DistArgs {
    /// The folder of the files; without it, dist in the target directory.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// A target instead of that of this machine, such as x86_64-unknown-linux-musl; can be given several times. It needs a
    /// standard library (`rustup target add`), a C compiler and a linker.
    #[arg(long = "target", value_name = "TRIPLE")]
    targets: Vec<String>,
}

pub(crate) fn run(args: &DistArgs) -> Result<()> {
    let (first, others) = targets(Target::host()?, &args.targets)?;
    let commit = Commit::current()?;
    commit.warn_if_dirty();
    let to = args.output.clone().map_or_else(folder, Ok)?;
    fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    let mut files = image_files(first, &commit, &to)?;
    let built = build::release(first, CLibrary::OfMachine)?;
    let completions = completions_by(&built)?;
    let mut plugins = vec![program_files(first, &built, &completions, &commit, &to, &mut files)?];
    for target in others {
        let built = build::release(target, CLibrary::OfMachine)?;
        plugins.push(program_files(target, &built, &completions, &commit, &to, &mut files)?);
    }
    fs::write(to.join("portolan.yaml"), krew::render(VERSION, &plugins)?)?;
    files.push("portolan.yaml".to_owned());
    let table = write_sums(&to, files)?;
    println!("\n{table}\nin {}; check them there by `sha256sum --check SHA256SUMS`", to.display());
    Ok(())
}

/// Writes the image and what it consists of; answers the names of the files. Nodes run Linux.
fn image_files(target: &Target, commit: &Commit, to: &Path) -> Result<Vec<String>> {
    if target.os != "linux" {
        return Ok(Vec::new());
    }
    let built = build::release(target, CLibrary::Inside)?;
    let archive = image::file_name(target);
    image::of_release(&image::default_name(), &built.path, commit, &to.join(&archive))?;
    let document = format!("{}.cdx.json", image::stem(target));
    write_parts(&Parts::of(target, CLibrary::Inside)?, &built, commit, &to.join(&document))?;
    Ok(vec![archive, document])
}

/// Writes the archives for a target and what its program consists of.
fn program_files(
    target: &'static Target,
    built: &Built,
    completions: &BTreeMap<&str, String>,
    commit: &Commit,
    to: &Path,
    files: &mut Vec<String>,
) -> Result<PluginArchive> {
    let stem = format!("portolan-{VERSION}-{}", target.platform());
    let (archive, document) = (format!("{stem}.tar.gz"), format!("{stem}.cdx.json"));
    program_archive(target, &stem, &built.path, completions, commit).write(&to.join(&archive))?;
    write_parts(&Parts::of(target, CLibrary::OfMachine)?, built, commit, &to.join(&document))?;
    let plugin = format!("{PLUGIN}-{VERSION}-{}.tar.gz", target.platform());
    plugin_archive(target, &built.path, commit).write(&to.join(&plugin))?;
    files.extend([archive, document, plugin.clone()]);
    Ok(PluginArchive { target, sha256: sha256(&to.join(&plugin))?, file: plugin })
}

fn write_parts(parts: &Parts, built: &Built, commit: &Commit, path: &Path) -> Result<()> {
    parts.check(&built.crates)?;
    fs::write(path, parts.render(commit)?).with_context(|| format!("cannot write {}", path.display()))
}

/// First the target whose program runs on this machine, since that prints the completions; then the others. No two may share
/// their names of files.
fn targets(host: &'static Target, named: &[String]) -> Result<(&'static Target, Vec<&'static Target>)> {
    if named.is_empty() {
        return Ok((host, Vec::new()));
    }
    let mut targets: BTreeMap<String, &'static Target> = BTreeMap::new();
    for triple in named {
        let target = Target::named(triple)?;
        if let Some(same) = targets.insert(target.platform(), target).filter(|same| *same != target) {
            bail!("{triple} and {} are both for {}: build one of them", same.triple, same.platform());
        }
    }
    let first = targets.remove(&host.platform()).with_context(|| {
        let (triple, platform) = (host.triple, host.platform());
        format!("no target is for {platform}, whose program prints the completions: add --target {triple}")
    })?;
    Ok((first, targets.into_values().collect()))
}

/// The completion scripts, by the name of their file.
fn completions_by(built: &Built) -> Result<BTreeMap<&'static str, String>> {
    let script = |shell| output(Command::new(&built.path).args(["completion", shell]));
    COMPLETIONS.into_iter().map(|(shell, file)| Ok((file, script(shell)?))).collect()
}

/// What people unpack.
fn program_archive(
    target: &Target,
    stem: &str,
    binary: &Path,
    completions: &BTreeMap<&str, String>,
    commit: &Commit,
) -> Archive {
    let (program, plugin) = (target.program("portolan"), target.program(PLUGIN));
    let archive = Archive::new(commit.seconds)
        .program(&format!("{stem}/{program}"), binary)
        .file(&format!("{stem}/LICENSE"), &root().join("LICENSE"))
        .file(&format!("{stem}/README.md"), &root().join("README.md"));
    let archive = if target.os == "windows" {
        // Links need a privilege there.
        archive.program(&format!("{stem}/{plugin}"), binary)
    } else {
        archive.link(&format!("{stem}/{plugin}"), &program)
    };
    completions.iter().fold(archive, |archive, (file, script)| {
        archive.text(&format!("{stem}/completions/{file}"), script.clone())
    })
}

/// What Krew unpacks: it takes plain files only, so that the link of the other archive would be refused.
fn plugin_archive(target: &Target, binary: &Path, commit: &Commit) -> Archive {
    Archive::new(commit.seconds)
        .program(&target.program(PLUGIN), binary)
        .file("LICENSE", &root().join("LICENSE"))
}

/// Writes SHA256SUMS of the files in a folder.
fn write_sums(folder: &Path, mut files: Vec<String>) -> Result<Table> {
    files.sort();
    let mut table = Table::new(["FILE", "SIZE", "SHA-256"]);
    let mut sums = String::new();
    for file in files {
        ensure!(!file.contains(char::is_whitespace), "{file:?} has a space in its name");
        let sum = sha256(&folder.join(&file))?;
        sums.push_str(&format!("{sum}  {file}\n"));
        table.row([file.clone(), megabytes(&folder.join(&file))?, sum]);
    }
    fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn commit() -> Commit {
        Commit { id: "4be7d12".to_owned(), seconds: 1, time: "1970-01-01T00:00:01Z".to_owned() }
    }

    /// The entries of an archive: its type, the name and the content.
    fn unpacked(archive: &Archive) -> Vec<(tar::EntryType, String, Vec<u8>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar.gz");
        archive.write(&path).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(fs::File::open(path).unwrap()));
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.header().entry_type(), entry.path().unwrap().display().to_string(), content)
        });
        entries.collect()
    }

    fn program() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "ELF").unwrap();
        file
    }

    #[test]
    fn people_get_program_plugin_licence_and_completions_in_one_folder() {
        let (binary, target) = (program(), Target::named("x86_64-unknown-linux-gnu").unwrap());
        let completions = [("_portolan", "#compdef portolan".to_owned())].into();
        let archive = program_archive(target, "p", binary.path(), &completions, &commit());
        let names: Vec<String> = unpacked(&archive).into_iter().map(|(_, name, _)| name).collect();
        let expected = ["LICENSE", "README.md", "completions/_portolan", "kubectl-portolan", "portolan"]
            .map(|name| format!("p/{name}"));
        assert_eq!(names, expected);
        let windows = Target::named("x86_64-pc-windows-msvc").unwrap();
        let archive = program_archive(windows, "p", binary.path(), &completions, &commit());
        let plugin = unpacked(&archive).into_iter().find(|(_, name, _)| name == "p/kubectl-portolan.exe");
        assert_eq!(plugin.unwrap().2, b"ELF", "there are no links on Windows");
    }

    #[test]
    fn krew_gets_plain_files_at_the_root() {
        let (binary, target) = (program(), Target::named("x86_64-unknown-linux-gnu").unwrap());
        let entries = unpacked(&plugin_archive(target, binary.path(), &commit()));
        let names: Vec<&str> = entries.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, ["LICENSE", "kubectl-portolan"]);
        assert!(entries.iter().all(|(kind, _, _)| *kind == tar::EntryType::Regular));
        assert_eq!(entries[1].2, b"ELF");
    }

    #[test]
    fn sums_are_those_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "").unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        write_sums(folder.path(), vec!["b".to_owned(), "a".to_owned()]).unwrap();
        let sums = fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
        assert_eq!(
            sums,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
    }

    #[test]
    fn targets_begin_with_one_that_runs_here_and_none_is_for_the_platform_of_another() {
        let target = |triple| Target::named(triple).unwrap();
        let (gnu, musl) = (target("x86_64-unknown-linux-gnu"), target("x86_64-unknown-linux-musl"));
        let (mac, arm) = (target("aarch64-apple-darwin"), target("aarch64-unknown-linux-gnu"));
        let asked =
            |of: &[&Target]| targets(gnu, &of.iter().map(|each| each.triple.to_owned()).collect::<Vec<_>>());
        assert_eq!(asked(&[]).unwrap(), (gnu, vec![]));
        assert_eq!(asked(&[mac, musl, arm, musl]).unwrap(), (musl, vec![mac, arm]));
        let error = asked(&[gnu, musl]).unwrap_err().to_string();
        assert!(error.contains("both for linux-amd64"), "{error}");
        let error = asked(&[mac]).unwrap_err().to_string();
        assert!(error.contains("--target x86_64-unknown-linux-gnu"), "{error}");
    }
}
