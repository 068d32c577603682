//! The promises of every writable store.

use bytes::Bytes;
use chunkyard_store::atomic::{AnyObject, Content, Outcome, SameBytes, Step};
use chunkyard_store::fault::{Fault, Plan};
use chunkyard_store::{Counted, Dir, Durability, Error, Guard, Kind, Linked, Noun, Store, Version};

use super::{buffers, content, listed, memory, names, scratch};

#[tokio::test]
async fn a_directory_conforms() {
    conformance(&scratch(Durability::Full)).await;
}

#[tokio::test]
async fn a_directory_without_durability_conforms() {
    conformance(&scratch(Durability::None)).await;
}

#[tokio::test]
async fn memory_conforms() {
    conformance(&memory("conformance")).await;
}

#[tokio::test]
async fn a_fault_that_never_strikes_conforms() {
    let (store, fault) = Fault::wrap(&scratch(Durability::None), Plan::never());
    conformance(&store).await;
    assert!(!fault.fired() && fault.ops() > 0);
}

#[tokio::test]
async fn a_counted_store_conforms() {
    for store in [&*scratch(Durability::None), &memory("conformance-counted")] {
        let (store, counted) = Counted::wrap(store);
        conformance(&store).await;
        assert!(counted.take().puts > 0);
    }
}

#[tokio::test]
async fn a_directory_of_a_store_conforms_as_a_store() {
    let (local, memory) = (scratch(Durability::Full), memory("conformance-below"));
    for store in [&*local, &memory] {
        store.put("a/object", buffers(["above"])).await.unwrap();
        conformance(&store.below("a/b").unwrap()).await;
        assert_eq!(content(store, "a/object").await.unwrap(), "above");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_links_to_one_name_exactly_one_wins() {
    for store in [&*scratch(Durability::None), &memory("links")] {
        for i in 0..16 {
            store.put(&format!("tmp/{i}"), vec![i.to_string().into()]).await.unwrap();
        }
        let link = |i: usize| {
            let store = store.clone();
            tokio::spawn(async move { store.link(&format!("tmp/{i}"), "main").await.unwrap() })
        };
        let outcomes = futures::future::join_all((0..16).map(link)).await;
        let won: Vec<usize> =
            (0..16).filter(|&i| *outcomes[i].as_ref().unwrap() == Linked::Done).collect();
        assert_eq!(won.len(), 1);
        assert_eq!(content(store, "main").await.unwrap(), won[0].to_string());
    }
}

async fn conformance(store: &Store) {
    nothing_is_there_at_first(store).await;
    what_is_put_is_read(store).await;
    ranges_are_complete_or_an_error(store).await;
    a_put_replaces(store).await;
    guards_hold(store).await;
    lists_go_deep_and_end_at_slashes(store).await;
    directories_show_what_is_in_them(store).await;
    deleting_is_idempotent(store).await;
    a_tree_is_deleted_with_all_below_it(store).await;
    an_upload_is_seen_once_it_is_finished(store).await;
    an_upload_that_is_given_up_leaves_nothing(store).await;
    an_upload_in_odd_pieces_is_put_together(store).await;
    a_link_does_not_replace(store).await;
    an_atomic_step_has_one_winner(store).await;
    hostile_paths_are_refused(store).await;
    odd_names_are_kept(store).await;
    everything_can_be_deleted(store).await;
}

async fn nothing_is_there_at_first(store: &Store) {
    assert!(names(store, "").await.is_empty());
    assert!(names(store, "no/such/directory").await.is_empty());
    assert_eq!(store.list_dir("").await.unwrap(), Dir::default());
    assert_eq!(store.list_dir("no/such/directory").await.unwrap(), Dir::default());
    let missing = |error| matches!(error, Error::NotFound { what: Noun::Object, .. });
    assert!(missing(store.get("a").await.unwrap_err()));
    assert!(missing(store.head("a/b").await.unwrap_err()));
    assert!(missing(store.get_range("a", 0..1).await.unwrap_err()));
    assert!(missing(store.get_ranges("a", &[], None).await.unwrap_err()));
}

async fn what_is_put_is_read(store: &Store) {
    store.put("x/deep/object", buffers(["ab", "", "cdef", "g"])).await.unwrap();
    store.put("x/empty", vec![]).await.unwrap();
    store.sync(&["x/deep/object".into(), "x/empty".into()]).await.unwrap();
    store.sync(&[]).await.unwrap();

    let object = store.get("x/deep/object").await.unwrap();
    assert_eq!(object.bytes, "abcdefg");
    assert_eq!(object.meta, store.head("x/deep/object").await.unwrap());
    assert_eq!((object.meta.size, &*object.meta.path), (7, "x/deep/object"));
    assert!(object.meta.modified_ms > 1_500_000_000_000, "{}", object.meta.modified_ms);
    assert!(object.meta.etag.is_some());
    assert_eq!(store.get("x/empty").await.unwrap().bytes, "");

    // A directory is not an object, and nothing is below one.
    assert!(content(store, "x/deep").await.is_none());
    assert!(store.head("x/deep").await.is_err());
    assert!(content(store, "x/deep/object/below").await.is_none());
}

async fn ranges_are_complete_or_an_error(store: &Store) {
    store.put("ranges", buffers(["0123456789"])).await.unwrap();
    let ranges = [8..10, 0..3, 2..4, 5..5, 10..10, 0..10];
    let read = store.get_ranges("ranges", &ranges, None).await.unwrap();
    assert_eq!(read, ["89", "012", "23", "", "", "0123456789"]);
    assert!(store.get_ranges("ranges", &[], None).await.unwrap().is_empty());
    for beyond in [8..11, 10..11, 11..11, 50..60, 0..u64::MAX, u64::MAX - 1..u64::MAX] {
        match store.get_ranges("ranges", &[0..1, beyond.clone()], None).await.unwrap_err() {
            Error::Corrupt { file, expected, found, .. } => {
                assert!(file.ends_with("ranges"), "{file}");
                assert_eq!(expected, format!("at least {} bytes", beyond.end));
                assert_eq!(found, "10 bytes");
            }
            other => panic!("{beyond:?}: {other:?}"),
        }
    }
}

async fn a_put_replaces(store: &Store) {
    store.put("again", buffers(["a longer first content"])).await.unwrap();
    let first = store.head("again").await.unwrap();
    store.put("again", buffers(["second"])).await.unwrap();
    let second = store.get("again").await.unwrap();
    assert_eq!(second.bytes, "second");
    assert_ne!(first.etag, second.meta.etag);
    assert_eq!(names(store, "").await.iter().filter(|name| name.contains("tmp")).count(), 0);
}

async fn guards_hold(store: &Store) {
    store.put("guarded", buffers(["0123456789"])).await.unwrap();
    let meta = store.head("guarded").await.unwrap();
    let etag = Guard { etag: meta.etag.clone(), not_newer_than_ms: None };
    let time = Guard { etag: None, not_newer_than_ms: Some(meta.modified_ms) };
    for guard in [&etag, &time, &Guard::default()] {
        let read = store.get_ranges("guarded", &[1..3, 5..5], Some(guard)).await.unwrap();
        assert_eq!(read, ["12", ""]);
    }
    let earlier = Guard { not_newer_than_ms: Some(meta.modified_ms - 1), ..time };
    store.put("guarded", buffers(["9876543210"])).await.unwrap();
    for guard in [&etag, &earlier] {
        let error = store.get_ranges("guarded", &[1..3, 5..6], Some(guard)).await.unwrap_err();
        assert!(matches!(error, Error::VirtualSourceChanged { .. }), "{error:?}");
    }
}

async fn lists_go_deep_and_end_at_slashes(store: &Store) {
    for path in ["list/a", "list/b/c", "list/b/d/e", "list2/f"] {
        store.put(path, buffers(["four"])).await.unwrap();
    }
    let all = listed(store, "list").await;
    let found: Vec<_> = all.iter().map(|meta| (&*meta.path, meta.size)).collect();
    assert_eq!(found, [("list/a", 4), ("list/b/c", 4), ("list/b/d/e", 4)]);
    assert_eq!(all[0], store.head("list/a").await.unwrap());
    assert_eq!(names(store, "list/").await.len(), 3);
    assert_eq!(names(store, "list/b/d").await, ["list/b/d/e"]);
    assert!(names(store, "list/a").await.is_empty(), "an object is not below itself");
    assert!(names(store, "lis").await.is_empty(), "half a name is no directory");
    assert!(names(store, "").await.len() > 4);
}

async fn directories_show_what_is_in_them(store: &Store) {
    for path in ["dir/b", "dir/c/d", "dir/c/e/f", "dir/a", "dir2/g", "dir/h/i"] {
        store.put(path, buffers(["four"])).await.unwrap();
    }
    for prefix in ["dir", "dir/"] {
        let Dir { dirs, objects, .. } = store.list_dir(prefix).await.unwrap();
        assert_eq!(dirs, ["dir/c", "dir/h"]);
        let found: Vec<_> = objects.iter().map(|meta| &*meta.path).collect();
        assert_eq!(found, ["dir/a", "dir/b"]);
        assert_eq!(objects[1], store.head("dir/b").await.unwrap());
    }
    let root = store.list_dir("").await.unwrap();
    assert!(root.dirs.contains(&"dir".to_owned()) && root.dirs.contains(&"dir2".to_owned()));
    assert!(root.objects.iter().any(|meta| meta.path == "ranges"));
    let nothing = ["dir/a", "di", "dir/c/e/f"];
    for prefix in nothing {
        assert_eq!(store.list_dir(prefix).await.unwrap(), Dir::default(), "{prefix}");
    }
    assert!(matches!(store.list_dir("../x").await, Err(Error::Invalid { .. })));
}

async fn an_upload_is_seen_once_it_is_finished(store: &Store) {
    let mut upload = store.begin("up/new").await.unwrap();
    upload.write(buffers(["ab", "", "c"])).await.unwrap();
    upload.write(vec![]).await.unwrap();
    upload.write(buffers(["def"])).await.unwrap();
    assert!(content(store, "up/new").await.is_none());
    upload.finish().await.unwrap();
    store.sync(&["up/new".into()]).await.unwrap();
    assert_eq!(content(store, "up/new").await.unwrap(), "abcdef");

    let before = store.head("up/new").await.unwrap();
    let mut upload = store.begin("up/new").await.unwrap();
    upload.write(buffers(["other"])).await.unwrap();
    assert_eq!(store.head("up/new").await.unwrap(), before, "the old is there until the end");
    upload.finish().await.unwrap();
    assert_eq!(content(store, "up/new").await.unwrap(), "other");
    assert_ne!(store.head("up/new").await.unwrap().etag, before.etag);

    store.begin("up/empty").await.unwrap().finish().await.unwrap();
    assert_eq!(content(store, "up/empty").await.unwrap(), "");
    assert_eq!(names(store, "up").await, ["up/empty", "up/new"]);
}

async fn an_upload_that_is_given_up_leaves_nothing(store: &Store) {
    store.put("gives/up", buffers(["old"])).await.unwrap();
    let large = Bytes::from(vec![7; 20 << 20]);
    for bytes in [Bytes::from("small"), large] {
        let mut aborted = store.begin("gives/up").await.unwrap();
        aborted.write(vec![bytes.clone()]).await.unwrap();
        aborted.abort().await;
        let mut dropped = store.begin("gives/up").await.unwrap();
        dropped.write(vec![bytes]).await.unwrap();
        drop(dropped);
        assert_eq!(names(store, "gives").await, ["gives/up"]);
        assert_eq!(content(store, "gives/up").await.unwrap(), "old");
    }
}

async fn an_upload_in_odd_pieces_is_put_together(store: &Store) {
    let whole: Bytes = (0..(20 << 20) + 1u32).map(|i| (i ^ (i >> 9)) as u8).collect();
    let mut upload = store.begin("odd/pieces").await.unwrap();
    let mut rest = whole.clone();
    for length in [1, 999_983, 0, 77, 3_000_017].into_iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let piece = rest.split_to(rest.len().min(length));
        let middle = piece.len() / 3;
        upload.write(vec![piece.slice(..middle), piece.slice(middle..)]).await.unwrap();
    }
    upload.finish().await.unwrap();
    assert!(content(store, "odd/pieces").await.unwrap() == whole);
    store.delete(&["odd/pieces".into()]).await.unwrap();
}

async fn deleting_is_idempotent(store: &Store) {
    store.put("gone/a", buffers(["x"])).await.unwrap();
    store.put("gone/b", buffers(["x"])).await.unwrap();
    let paths = ["gone/a", "gone/never", "gone/b", "gone/a/below"].map(String::from);
    store.delete(&paths).await.unwrap();
    store.delete(&paths).await.unwrap();
    store.delete(&[]).await.unwrap();
    assert!(names(store, "gone").await.is_empty());
}

async fn a_tree_is_deleted_with_all_below_it(store: &Store) {
    for path in ["tree/a", "tree/b/c", "tree/b/d/e", "tree2/f", "tree.g"] {
        store.put(path, buffers(["x"])).await.unwrap();
    }
    store.delete_dir("tree/b/").await.unwrap();
    assert_eq!(store.list_dir("tree").await.unwrap().dirs, [""; 0]);
    store.delete_dir("tree/a").await.unwrap();
    assert_eq!(names(store, "tree").await, ["tree/a"], "an object is not below itself");
    store.delete_dir("tree").await.unwrap();
    store.delete_dir("tree").await.unwrap();
    store.delete_dir("tree/a/below").await.unwrap();
    assert!(names(store, "tree").await.is_empty());
    assert_eq!(names(store, "tree2").await, ["tree2/f"]);
    assert_eq!(content(store, "tree.g").await.unwrap(), "x");
    // A deleted object can be written again, and is durable then.
    store.put("tree/b/c", buffers(["y"])).await.unwrap();
    store.sync(&["tree/b/c".into()]).await.unwrap();
    assert_eq!(content(store, "tree/b/c").await.unwrap(), "y");
    assert!(matches!(store.delete_dir("../tree").await, Err(Error::Invalid { .. })));
}

async fn everything_can_be_deleted(store: &Store) {
    store.delete_dir("").await.unwrap();
    assert_eq!(store.list_dir("").await.unwrap(), Dir::default());
    store.put("after", buffers(["x"])).await.unwrap();
    assert_eq!(names(store, "").await, ["after"]);
}

async fn a_link_does_not_replace(store: &Store) {
    store.put("link/ä one", buffers(["1"])).await.unwrap();
    store.put("link/two", buffers(["2"])).await.unwrap();
    assert_eq!(store.link("link/ä one", "link/refs/#1").await.unwrap(), Linked::Done);
    assert_eq!(store.link("link/two", "link/refs/#1").await.unwrap(), Linked::Exists);
    assert_eq!(content(store, "link/refs/#1").await.unwrap(), "1");
    let missing = store.link("link/never", "link/x").await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { what: Noun::Object, .. }), "{missing}");
    assert_eq!(content(store, "link/x").await, None);
    store.delete(&["link/ä one".into()]).await.unwrap();
    assert_eq!(content(store, "link/refs/#1").await.unwrap(), "1");
}

async fn an_atomic_step_has_one_winner(store: &Store) {
    let path = "step/main";
    let step = |bytes: &'static str, expected: Option<Version>| async move {
        let (bytes, content) = (Bytes::from(bytes), Content::Parts(buffers([bytes])));
        let witness = SameBytes { store, path, expected: expected.as_ref(), bytes: &bytes };
        let step = Step::new(store, path, witness);
        let outcome = match &expected {
            None => step.create(content, "step/aside").await.unwrap(),
            Some(expected) => step.replace(content, expected, "step/aside").await.unwrap(),
        };
        outcome.known(|| path.into()).unwrap().is_some()
    };
    assert!(step("one", None).await);
    assert!(!step("two", None).await);
    assert_eq!(content(store, path).await.unwrap(), "one");
    if store.kind() != (Kind::Object { conditional_put: false }) {
        let one = Version::from(&store.head(path).await.unwrap());
        assert!(step("three", Some(one)).await);
        assert_eq!(content(store, path).await.unwrap(), "three");
    }
    store.put("step/other", buffers(["other"])).await.unwrap();
    let witness = AnyObject { store, path };
    let outcome = Step::new(store, path, witness).publish("step/other").await.unwrap();
    assert!(matches!(outcome, Outcome::Lost), "{outcome:?}");
    let witness = AnyObject { store, path: "step/free" };
    let outcome = Step::new(store, "step/free", witness).publish("step/other").await.unwrap();
    assert!(matches!(outcome, Outcome::Done(())), "{outcome:?}");
    assert_eq!(content(store, "step/free").await.unwrap(), "other");
    assert_eq!(names(store, "step").await, ["step/free", "step/main", "step/other"]);
}

async fn hostile_paths_are_refused(store: &Store) {
    let invalid = |error: Error| matches!(error, Error::Invalid { .. });
    for path in ["", "/etc/passwd", "../escape", "a/../../escape", "a//b", "./a", "a/", "nul\0"] {
        let paths = [path.to_owned()];
        assert!(invalid(store.get(path).await.unwrap_err()), "{path:?}");
        assert!(invalid(store.head(path).await.unwrap_err()), "{path:?}");
        assert!(invalid(store.get_range(path, 0..1).await.unwrap_err()), "{path:?}");
        assert!(invalid(store.put(path, vec![]).await.unwrap_err()), "{path:?}");
        assert!(invalid(store.begin(path).await.unwrap_err()), "{path:?}");
        assert!(invalid(store.sync(&paths).await.unwrap_err()), "{path:?}");
        assert!(invalid(store.delete(&paths).await.unwrap_err()), "{path:?}");
        assert!(invalid(store.link(path, "b").await.unwrap_err()), "{path:?}");
        assert!(invalid(store.link("x/empty", path).await.unwrap_err()), "{path:?}");
        if store.kind() == Kind::Local {
            assert!(invalid(store.rename("x/empty", path).await.unwrap_err()), "{path:?}");
            assert!(invalid(store.exchange("x/empty", path).await.unwrap_err()), "{path:?}");
            assert!(invalid(store.lock(path).await.unwrap_err()), "{path:?}");
        } else {
            assert!(invalid(store.create(path, "x".into()).await.unwrap_err()), "{path:?}");
        }
    }
    assert!(store.list("../..").await.is_err());
}

async fn odd_names_are_kept(store: &Store) {
    let odd = ["odd/ä ö", "odd/%2F", "odd/a+b&c=d", "odd/#?[]{}", "odd/..a", "odd/.hidden"];
    for name in odd {
        store.put(name, buffers([name])).await.unwrap();
    }
    for name in odd {
        assert_eq!(content(store, name).await.as_deref(), Some(name.as_bytes()));
    }
    let mut sorted = odd.to_vec();
    sorted.sort_unstable();
    assert_eq!(names(store, "odd").await, sorted);
}
