use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::*;

/// All files of a tar.
fn unpack(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(tar).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        assert!(files.insert(name.clone(), content).is_none(), "{name} is there twice");
    }
    files
}

fn example() -> Image {
    Image::new("portolan.test/app:2")
        .unwrap()
        .file("/app/data/greeting", 0o644, "hello")
        .unwrap()
        .directory("/app", 0o700)
        .unwrap()
        .symlink("/bin/greet", "../app/data/greeting")
        .unwrap()
        .entrypoint(["/bin/greet"])
        .args(["--loud"])
        .env("B", "2")
        .env("A", "1")
        .user("1000:1000")
        .annotation("portolan.dev/note", "kept")
}

fn write(image: &Image) -> (Written, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/app.tar");
    let written = image.write_tar(&path).unwrap();
    (written, fs::read(&path).unwrap())
}

fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, digest: &str) -> &'a [u8] {
    let content = &files[&format!("blobs/{}", digest.replace(':', "/"))];
    let hex: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, format!("sha256:{hex}"), "a blob is named by its digest");
    content
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn layout_leads_from_the_name_to_the_files() {
    let (written, tar) = write(&example());
    let files = unpack(&tar);
    assert_eq!(json(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");

    let entry = &json(&files["index.json"])["manifests"][0];
    assert_eq!(entry["annotations"]["io.containerd.image.name"], "portolan.test/app:2");
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "2");
    assert_eq!(entry["digest"], written.manifest);
    let manifest = blob(&files, &written.manifest);
    assert_eq!(entry["size"], manifest.len());

    let manifest = json(manifest);
    assert_eq!(manifest["annotations"]["portolan.dev/note"], "kept");
    assert_eq!(manifest["config"]["digest"], written.id);
    let config = json(blob(&files, &written.id));
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/bin/greet"]));
    assert_eq!(config["config"]["Cmd"], serde_json::json!(["--loud"]));
    assert_eq!(config["config"]["Env"], serde_json::json!(["A=1", "B=2"]));
    assert_eq!(config["config"]["User"], "1000:1000");
    assert!(config["created"].is_string());

    // `docker load` of a version that knows no OCI layout reads this instead.
    let docker = &json(&files["manifest.json"])[0];
    assert_eq!(docker["RepoTags"], serde_json::json!(["portolan.test/app:2"]));
    assert_eq!(docker["Config"], format!("blobs/{}", written.id.replace(':', "/")));
    assert!(files.contains_key(docker["Layers"][0].as_str().unwrap()), "{docker}");

    let layer = &manifest["layers"][0];
    assert_eq!(config["rootfs"]["diff_ids"], serde_json::json!([layer["digest"]]));
    let layer_tar = blob(&files, layer["digest"].as_str().unwrap());
    assert_eq!(layer["size"], layer_tar.len());
    let names: Vec<String> = unpack(layer_tar).into_keys().collect();
    assert_eq!(names, ["app/", "app/data/", "app/data/greeting", "bin/", "bin/greet"]);
    assert_eq!(unpack(layer_tar)["app/data/greeting"], b"hello");
}

#[test]
fn modes_are_kept_and_directories_come_before_what_is_in_them() {
    let (written, tar) = write(&example());
    let files = unpack(&tar);
    let manifest = json(blob(&files, &written.manifest));
    let layer = blob(&files, manifest["layers"][0]["digest"].as_str().unwrap());
    let mut archive = tar::Archive::new(layer);
    let entries = archive.entries().unwrap().map(|entry| {
        let entry = entry.unwrap();
        let header = entry.header();
        (entry.path().unwrap().to_str().unwrap().to_owned(), header.mode().unwrap(), header.uid().unwrap())
    });
    let expected = [
        ("app/", 0o700),
        ("app/data/", 0o755),
        ("app/data/greeting", 0o644),
        ("bin/", 0o755),
        ("bin/greet", 0o777),
    ];
    assert_eq!(entries.collect::<Vec<_>>(), expected.map(|(path, mode)| (path.to_owned(), mode, 0)));
}

#[test]
fn same_content_gives_the_same_bytes_and_another_name_another_id() {
    let (first, bytes) = write(&example());
    let (second, again) = write(&example());
    assert_eq!((&first, &bytes), (&second, &again));
    let mut annotated = example();
    for key in ["a", "b", "c", "d", "e", "f"] {
        annotated = annotated.annotation(key, key);
    }
    assert!(write(&annotated) == write(&annotated), "the order of annotations does not change");
    let mut renamed = example();
    "portolan.test/app:3".clone_into(&mut renamed.name);
    assert_ne!(write(&renamed).0.id, first.id);
}

#[test]
fn names_must_be_full() {
    for name in ["portolan.test/a/b:1.0-x", "localhost/a:latest", "host:5000/a:1"] {
        Image::new(name).unwrap();
    }
    for name in [
        "",
        "busybox",
        "busybox:1",
        "library/busybox:1",
        "portolan.test/app",
        "portolan.test/App:1",
        "portolan.test/:1",
        "portolan.test/a//b:1",
        "portolan.test/a:",
        "portolan.test/a:.1",
        "portolan.test/a:b c",
    ] {
        let error = Image::new(name).unwrap_err().to_string();
        assert!(error.contains("portolan.test/app:1"), "{name}: {error}");
    }
}

#[test]
fn paths_outside_the_image_or_below_a_file_are_refused() {
    for path in ["", "/", "relative", "/a/../b", "/.", "/a\0b"] {
        assert!(matches!(example().file(path, 0o644, ""), Err(ImageError::BadPath { .. })), "{path:?}");
    }
    let below = example().file("/bin/greet/more", 0o644, "").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.tar");
    let error = below.write_tar(&path).unwrap_err().to_string();
    assert!(error.contains("/bin/greet/more lies below /bin/greet"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_dynamic_program_is_refused_with_the_way_out() {
    let own = std::env::current_exe().unwrap();
    let error = Image::from_static_binary("portolan.test/app:1", &own).unwrap_err().to_string();
    assert!(error.contains("dynamically linked") && error.contains("-musl"), "{error}");
    let script = tempfile::NamedTempFile::new().unwrap();
    fs::write(script.path(), "#!/bin/sh\n").unwrap();
    let error = Image::from_static_binary("portolan.test/app:1", script.path()).unwrap_err().to_string();
    assert!(error.contains("is no ELF program"), "{error}");
}

#[test]
fn a_dynamic_program_brings_its_linker_and_libraries() {
    let own = std::env::current_exe().unwrap();
    let Linkage::Dynamic { interpreter } = linkage(&own).unwrap() else {
        panic!("tests are linked dynamically");
    };
    let (written, tar) = write(&portolan("localhost/portolan:test", &own).unwrap());
    let files = unpack(&tar);
    let manifest = json(blob(&files, &written.manifest));
    let config = json(blob(&files, &written.id));
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/portolan"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    let layer = unpack(blob(&files, manifest["layers"][0]["digest"].as_str().unwrap()));
    assert_eq!(layer["portolan"], fs::read(&own).unwrap());
    assert_eq!(layer[interpreter.trim_start_matches('/')], fs::read(&interpreter).unwrap());
    assert!(layer.keys().any(|path| path.ends_with("/libc.so.6")), "{:?}", layer.keys());
}

#[test]
fn a_missing_file_is_named_when_the_image_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let absent = directory.path().join("absent");
    let image = Image::new("portolan.test/app:1").unwrap().file_from("/data", 0o644, &absent).unwrap();
    let error = image.write_tar(&directory.path().join("app.tar")).unwrap_err().to_string();
    assert!(error.contains("absent"), "{error}");
}

/// Writes Portolan's image of a program, copied into a new directory with this mode and time of change.
fn written_elsewhere(mode: u32, seconds: u64) -> (Written, Vec<u8>) {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let binary = directory.path().join(format!("program-{mode:o}"));
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(mode)).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    fs::File::options().write(true).open(&binary).unwrap().set_modified(time).unwrap();
    write(&portolan("localhost/portolan:test", &binary).unwrap().created("2026-01-01T00:00:00Z"))
}

#[test]
fn the_same_files_give_the_same_digest_in_another_directory_and_at_another_time() {
    let (first, bytes) = written_elsewhere(0o755, 1_000_000);
    let (second, again) = written_elsewhere(0o700, 2_000_000);
    assert_eq!(first, second);
    assert!(bytes == again, "the archives differ");
    let files = unpack(&bytes);
    assert_eq!(json(blob(&files, &first.id))["created"], "2026-01-01T00:00:00Z");
}
