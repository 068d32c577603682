//! Symbolic links, pipes, sockets and devices: reading follows links, and nothing is written or
//! deleted through one.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use chunkyard_store::{Durability, Error, ErrorKind, Links, Result, Store};
use futures::TryStreamExt;

use super::{Scratch, buffers, content, names, scratch};

/// A store with a link `out`, and its target: a directory that must stay as it is.
struct Trap {
    store: Scratch,
    outside: tempfile::TempDir,
}

impl Trap {
    async fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("d")).unwrap();
        fs::write(outside.path().join("precious"), "precious").unwrap();
        fs::write(outside.path().join("d/precious"), "precious").unwrap();
        let store = scratch(Durability::Full);
        store.put("d/file", buffers(["0123"])).await.unwrap();
        symlink(outside.path(), Path::new(store.url()).join("out")).unwrap();
        Self { store, outside }
    }

    fn root(&self) -> &Path {
        Path::new(self.store.url())
    }

    /// All that is outside, by path and content.
    fn outside(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut ahead = vec![self.outside.path().to_owned()];
        while let Some(directory) = ahead.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => ahead.push(path),
                    false => found.push((path.clone(), fs::read(path).unwrap())),
                }
            }
        }
        found.sort();
        found
    }
}

/// Expects the error of a link, which names the link.
#[track_caller]
fn refused<T: std::fmt::Debug>(what: &str, outcome: Result<T>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    assert!(error.to_string().contains("a symbolic link to"), "{what}: {error}");
}

/// Everything that changes something, tried on a path.
async fn try_all(store: &Store, path: &str) {
    refused("put", store.put(path, buffers(["x"])).await);
    refused("begin", store.begin(path).await.map(drop));
    refused("write_at", store.write_at(path, 0, buffers(["x"])).await);
    refused("truncate", store.truncate(path, 0).await);
    refused("sync", store.sync(&[path.to_owned()]).await);
    refused("sync_content", store.sync_content(&[path.to_owned()]).await);
    refused("delete", store.delete(&["d/never".into(), path.to_owned()]).await);
    refused("delete_dir", store.delete_dir(path).await);
    refused("link from", store.link(path, "new").await);
    refused("link to", store.link("d/file", path).await);
    refused("rename from", store.rename(path, "new").await);
    refused("rename to", store.rename("d/file", path).await);
    refused("exchange", store.exchange(path, "d/file").await);
    refused("exchange", store.exchange("d/file", path).await);
    refused("lock", store.lock(path).await);
    refused("sync_dir", store.sync_dir(path).await);
    let listed: Result<Vec<_>> = store.list(path).await.unwrap().try_collect().await;
    refused("list", listed);
}

#[tokio::test]
async fn nothing_is_written_or_deleted_through_a_link_to_a_directory() {
    let trap = Trap::new().await;
    let before = trap.outside();
    for path in ["out/precious", "out/d", "out/d/precious", "out/new", "out/new/deep"] {
        try_all(&trap.store, path).await;
        assert_eq!(trap.outside(), before, "{path}");
    }
    // A link that stays inside is no better: it may lead elsewhere a moment later.
    symlink("d", trap.root().join("inside")).unwrap();
    try_all(&trap.store, "inside/file").await;
    let below = trap.store.below("out").unwrap();
    refused("put", below.put("x", buffers(["x"])).await);
    refused("delete_dir", below.delete_dir("d").await);
    assert_eq!(trap.outside(), before);
    assert_eq!(content(&trap.store, "d/file").await.unwrap(), "0123");
}

#[tokio::test]
async fn a_link_in_the_place_of_a_file_is_replaced_or_deleted_and_never_written_through() {
    let trap = Trap::new().await;
    let (store, before) = (&trap.store, trap.outside());
    let link = |name: &str| {
        symlink(trap.outside.path().join("precious"), trap.root().join(name)).unwrap();
    };
    link("alias");
    refused("write_at", store.write_at("alias", 0, buffers(["x"])).await);
    refused("truncate", store.truncate("alias", 0).await);
    refused("lock", store.lock("alias").await);
    store.put("alias", buffers(["new"])).await.unwrap();
    assert_eq!(content(store, "alias").await.unwrap(), "new");
    link("second");
    let mut upload = store.begin("second").await.unwrap();
    upload.write(buffers(["new"])).await.unwrap();
    upload.finish().await.unwrap();
    link("third");
    store.rename("alias", "third").await.unwrap();
    link("fourth");
    store.delete(&["fourth".into(), "out".into()]).await.unwrap();
    assert_eq!(names(store, "").await, ["d/file", "second", "third"]);
    assert_eq!(trap.outside(), before);
}

#[tokio::test]
async fn a_tree_is_deleted_with_its_links_and_without_what_they_lead_to() {
    let trap = Trap::new().await;
    let (store, before) = (&trap.store, trap.outside());
    symlink(trap.outside.path(), trap.root().join("d/out")).unwrap();
    symlink(trap.outside.path().join("precious"), trap.root().join("d/alias")).unwrap();
    symlink("nowhere", trap.root().join("d/dangling")).unwrap();
    store.delete_dir("d").await.unwrap();
    store.delete_dir("out").await.unwrap();
    assert!(fs::read_dir(trap.root()).unwrap().next().is_none());
    symlink(trap.outside.path(), trap.root().join("out")).unwrap();
    store.delete_dir("").await.unwrap();
    assert!(trap.root().exists() && fs::read_dir(trap.root()).unwrap().next().is_none());
    assert_eq!(trap.outside(), before);
}

#[tokio::test]
async fn the_root_may_be_reached_through_links() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir_all(temp.path().join("real/root")).unwrap();
    symlink("real", temp.path().join("above")).unwrap();
    symlink(temp.path().join("above/root"), temp.path().join("alias")).unwrap();
    let url = temp.path().join("alias");
    let store = Store::open(url.to_str().unwrap(), &Default::default()).unwrap();
    store.put("a/b", buffers(["x"])).await.unwrap();
    store.sync(&["a/b".into()]).await.unwrap();
    store.rename("a/b", "c").await.unwrap();
    store.sync_dir("").await.unwrap();
    assert_eq!(fs::read(temp.path().join("real/root/c")).unwrap(), b"x");
    store.delete_dir("").await.unwrap();
    assert!(url.is_symlink() && fs::read_dir(url).unwrap().next().is_none());
}

#[tokio::test]
async fn a_list_refuses_passes_over_or_follows_links_to_directories() {
    let store = scratch(Durability::None);
    store.put("d/file", buffers(["four"])).await.unwrap();
    let root = Path::new(store.url());
    symlink("file", root.join("d/alias")).unwrap();
    symlink("nowhere", root.join("d/dangling")).unwrap();
    assert_eq!(names(&store, "").await, ["d/alias", "d/file"]);
    symlink("d", root.join("again")).unwrap();
    let list = async |links| -> Result<Vec<String>> {
        let found = store.list_links("", links).await?;
        let mut found: Vec<String> = found.map_ok(|meta| meta.path).try_collect().await?;
        found.sort();
        Ok(found)
    };
    refused("list", list(Links::Refuse).await);
    assert_eq!(list(Links::Skip).await.unwrap(), ["d/alias", "d/file"]);
    let all = ["again/alias", "again/file", "d/alias", "d/file"];
    assert_eq!(list(Links::Follow).await.unwrap(), all);
    assert_eq!(store.list_dir("").await.unwrap().dirs, ["d"]);
    symlink(root, root.join("d/circle")).unwrap();
    assert_eq!(list(Links::Skip).await.unwrap(), ["d/alias", "d/file"]);
    assert_eq!(list(Links::Follow).await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn reading_follows_links() {
    let trap = Trap::new().await;
    assert_eq!(content(&trap.store, "out/d/precious").await.unwrap(), "precious");
    assert_eq!(trap.store.head("out/precious").await.unwrap().size, 8);
    assert_eq!(trap.store.get_range("out/precious", 0..3).await.unwrap(), "pre");
    assert_eq!(trap.store.list_dir("out").await.unwrap().dirs, ["out/d"]);
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_not_read() {
    let store = scratch(Durability::None);
    store.put("file", buffers(["x"])).await.unwrap();
    let root = Path::new(store.url());
    let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(made.success());
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    symlink("/dev/zero", root.join("device")).unwrap();
    for (name, sort) in [("pipe", "a named pipe"), ("socket", "a socket"), ("device", "a device")] {
        let outcomes = [
            store.get(name).await.map(drop),
            store.get_all(&["file".into(), name.into()]).await.map(drop),
            store.get_range(name, 0..1).await.map(drop),
            store.head(name).await.map(drop),
        ];
        for outcome in outcomes {
            match outcome.unwrap_err() {
                Error::Corrupt { file, expected, found, .. } => {
                    assert!(file.ends_with(name), "{file}");
                    assert_eq!((&*expected, &*found), ("a regular file", sort));
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    for name in ["pipe", "socket"] {
        let changed = store.write_at(name, 0, buffers(["x"])).await.unwrap_err();
        assert_eq!(changed.kind(), ErrorKind::Corrupt, "{changed}");
        assert_eq!(store.lock(name).await.unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert_eq!(names(&store, "").await, ["file"]);
    let followed = store.list_links("", Links::Follow).await.unwrap();
    let followed: Result<Vec<_>> = followed.try_collect().await;
    assert_eq!(
        followed.unwrap_err().kind(),
        ErrorKind::Corrupt,
        "it may be where a chunk should be"
    );
}

#[tokio::test]
async fn a_file_where_the_root_should_be_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    fs::write(&file, "x").unwrap();
    for root in [file.clone(), file.join("below")] {
        let store = Store::open(root.to_str().unwrap(), &Default::default()).unwrap();
        for error in [
            store.put("a/b", buffers(["x"])).await.unwrap_err(),
            store.lock("lock").await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.to_string().starts_with(&format!("{} is a file", file.display())));
        }
    }
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

#[tokio::test]
async fn a_name_that_the_file_system_refuses_is_the_callers_mistake() {
    let store = scratch(Durability::None);
    let long = "n".repeat(300);
    for error in [
        store.put(&long, buffers(["x"])).await.unwrap_err(),
        store.get(&format!("{long}/x")).await.unwrap_err(),
        store.lock(&long).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
