//! Chunks that live in files outside the repository.

use std::path::Path;
use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_repo::{
    CommitOptions, Config, Level, OpenOptions, Repository, Severity, Version, Virtual,
};
use chunkyard_store::{Error, ErrorKind};
use serde_json::json;

use super::support::{collect, create, memory, noise, read_at, reopen, sound, write_noise};

fn plain() -> ArraySpec {
    let codecs = vec![json!({ "name": "bytes" })];
    ArraySpec::builder(&[200], &[100], "uint8").codecs(codecs).build().unwrap()
}

fn reference(url: String, offset: u64, modified_ms: Option<i64>) -> Virtual {
    Virtual {
        url: Arc::from(url),
        offset,
        length: 100,
        etag: None,
        last_modified_ms: modified_ms,
        crc32c: None,
    }
}

fn modified_ms(path: &Path) -> i64 {
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64
}

/// A foreign file, and a repository whose first chunk is bytes 50 to 150 of it.
async fn linked(config: Config, url: impl Fn(&Path) -> String) -> (tempfile::TempDir, Repository) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data.bin");
    std::fs::write(&file, noise(300, 1)).unwrap();
    let repo = create(&memory(), config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", plain()).await.unwrap();
    let modified = Some(modified_ms(&file));
    session.set_virtual("/a", &[0], reference(url(&file), 50, modified)).unwrap();
    write_noise(&session, "/a", "100:200", 2).await.unwrap();
    session.commit(CommitOptions::message("link")).await.unwrap();
    (directory, repo)
}

fn file_url(path: &Path) -> String {
    format!("file://{}", path.display())
}

async fn allowing(repo: &Repository, prefix: &Path) -> Repository {
    let allowed = vec![file_url(prefix)];
    let options = OpenOptions { allowed, ..OpenOptions::default() };
    Repository::open_in(repo.store().clone(), options).await.unwrap()
}

#[tokio::test]
async fn a_chunk_can_live_in_another_file() {
    let (directory, repo) = linked(Config::default(), file_url).await;
    let state = repo.state().await.unwrap();
    assert!(state.required_features.contains(&"virtual".to_owned()));
    let repo = allowing(&repo, directory.path()).await;
    let values = read_at(&repo, &Version::Default, "/a").await.unwrap();
    assert_eq!(values[..100], noise(300, 1)[50..150]);
    assert_eq!(values[100..], noise(100, 2));
    collect(&repo).await.unwrap();
    assert_eq!(sound(&repo).await, 0);
    // Optimising carries the reference along.
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "100:200", 3).await.unwrap();
    session.commit(CommitOptions::message("more")).await.unwrap();
    repo.optimise("main").await.unwrap();
    let repo = allowing(&repo, directory.path()).await;
    let values = read_at(&repo, &Version::Default, "/a").await.unwrap();
    assert_eq!(values[..100], noise(300, 1)[50..150]);
    sound(&repo).await;
}

#[tokio::test]
async fn nothing_is_read_that_was_not_allowed() {
    let (directory, repo) = linked(Config::default(), file_url).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let sibling = directory.path().with_extension("x");
    for prefix in [elsewhere.path(), &sibling] {
        let repo = allowing(&repo, prefix).await;
        let error = read_at(&repo, &Version::Default, "/a").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let error = read_at(&reopen(repo.store()).await, &Version::Default, "/a").await.unwrap_err();
    assert!(error.to_string().contains("allow"), "{error}");
    // Verification reports a place that it may not read, but not as damage.
    let report = repo.verify(Level::Bytes).await.unwrap();
    assert!(report.is_sound());
    assert!(report.findings.iter().any(|finding| finding.severity == Severity::Note));
}

#[tokio::test]
async fn a_source_that_changed_is_not_read() {
    let (directory, repo) = linked(Config::default(), file_url).await;
    let file = directory.path().join("data.bin");
    std::fs::write(&file, noise(300, 9)).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().append(true).open(&file).unwrap().set_modified(later).unwrap();
    let repo = allowing(&repo, directory.path()).await;
    let error = read_at(&repo, &Version::Default, "/a").await.unwrap_err();
    assert!(matches!(error, Error::VirtualSourceChanged { .. }), "{error}");
    assert!(!repo.verify(Level::Existence).await.unwrap().is_sound());
    std::fs::remove_file(&file).unwrap();
    read_at(&repo, &Version::Default, "/a").await.unwrap_err();
    assert!(!repo.verify(Level::Existence).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_link_out_of_the_allowed_place_is_not_followed() {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("secret"), noise(300, 7)).unwrap();
    let link = |file: &Path| {
        let link = file.with_file_name("link");
        std::os::unix::fs::symlink(secret.path().join("secret"), &link).unwrap();
        file_url(&link)
    };
    let (directory, repo) = linked(Config::default(), link).await;
    let allowed = allowing(&repo, directory.path()).await;
    let error = read_at(&allowed, &Version::Default, "/a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");

    let up = |file: &Path| format!("{}/../x/data.bin", file_url(file.parent().unwrap()));
    let (directory, repo) = linked(Config::default(), up).await;
    let allowed = allowing(&repo, directory.path()).await;
    let error = read_at(&allowed, &Version::Default, "/a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn a_named_container_can_move() {
    let (directory, repo) =
        linked(Config::default(), |_| "vcc://archive/data.bin".to_owned()).await;
    let error = read_at(&repo, &Version::Default, "/a").await.unwrap_err();
    for part in ["\"archive\"", "vcc://archive/data.bin", "names none", "--allow or allow="] {
        assert!(error.to_string().contains(part), "{part} in {error}");
    }
    let prefix = file_url(directory.path());
    repo.update_config(|config| {
        config.containers.insert("archive".into(), prefix.clone());
    })
    .await
    .unwrap();
    let error = read_at(&reopen(repo.store()).await, &Version::Default, "/a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "a name in the repository allows nothing");
    let repo = allowing(&repo, directory.path()).await;
    let values = read_at(&repo, &Version::Default, "/a").await.unwrap();
    assert_eq!(values[..100], noise(300, 1)[50..150]);
}

#[tokio::test]
async fn unsound_references_are_refused() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", plain()).await.unwrap();
    let bad = [
        reference("no-scheme".into(), 0, None),
        Virtual { length: 0, ..reference("s3://b/k".into(), 0, None) },
        reference("s3://b/k".into(), u64::MAX - 5, None),
    ];
    for reference in bad {
        let error = session.set_virtual("/a", &[0], reference).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    let outside = session.set_virtual("/a", &[2], reference("s3://b/k".into(), 0, None));
    assert_eq!(outside.unwrap_err().kind(), ErrorKind::Invalid);
}
