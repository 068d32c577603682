//! Strict draft mode, and files of a program that knows only the draft.

use arrow_array::cast::AsArray;
use bytes::Bytes;
use chunkyard_repo::{
    CommitOptions, Compat, Config, CreateOptions, ExpireOptions, Level, OpenOptions, RepackOptions,
    Repository, State, Version,
};
use chunkyard_store::{Error, ErrorKind, Store};
use futures::TryStreamExt;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value, json};

use super::support::{
    Contents, Place, bytes_spec, collect, contents, create, history, memory, noise, picture,
    read_at, reopen, sound, write, write_noise,
};

fn strict() -> Config {
    Config { compat: Compat::Draft, inline_chunk_max: 20, ..Config::default() }
}

/// A repository in strict draft mode with two versions.
async fn furnished() -> Repository {
    let repo = create(&memory(), strict()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/g/a", bytes_spec(&[60], &[20])).await.unwrap();
    session.set_attributes("/g", Map::from_iter([("x".to_owned(), json!(1))])).unwrap();
    write_noise(&session, "/g/a", "0:60", 1).await.unwrap();
    session.create_array("/b", bytes_spec(&[4], &[2])).await.unwrap();
    write(&session, "/b", "0:4", 1).await.unwrap();
    session.commit(CommitOptions::message("one")).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/g/a", "20:40", 2).await.unwrap();
    write(&session, "/b", "0:2", 0).await.unwrap();
    session.commit(CommitOptions::message("two")).await.unwrap();
    repo
}

async fn batches(store: &Store, path: &str) -> ParquetRecordBatchReaderBuilder<Bytes> {
    let bytes = store.get(path).await.unwrap().bytes;
    ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap()
}

/// Name and type of each column, nested ones in brackets, without nullability.
fn columns(builder: &ParquetRecordBatchReaderBuilder<Bytes>) -> Vec<String> {
    use arrow_schema::DataType;
    fn name(of: &DataType) -> String {
        match of {
            DataType::List(item) => format!("list[{}]", name(item.data_type())),
            DataType::FixedSizeList(item, n) => format!("list{n}[{}]", name(item.data_type())),
            DataType::Struct(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|field| format!("{} {}", field.name(), name(field.data_type())))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            other => other.to_string(),
        }
    }
    let fields = builder.schema().fields().iter();
    fields.map(|field| format!("{} {}", field.name(), name(field.data_type()))).collect()
}

#[tokio::test]
async fn strict_mode_writes_exactly_the_drafts_types() {
    let repo = furnished().await;
    let state = repo.state().await.unwrap();
    let tip = state.tip("main").unwrap();
    let structure = batches(repo.store(), &format!("s/{}", tip.structure_file)).await;
    let found = columns(&structure);
    let names: Vec<_> = found.iter().map(|column| column.split(' ').next().unwrap()).collect();
    let expected =
        ["id", "type", "path", "array_metadata", "inline_attrs", "attrs_reference", "inventories"];
    assert_eq!(names, expected, "no column that the draft does not have");
    assert_eq!(found[0], "id UInt16");
    assert!(found[3].contains("shape list[UInt16]"), "{}", found[3]);
    let inventories = &found[6];
    for field in ["inventory_file Utf8", "row UInt16", "flags UInt16"] {
        assert!(inventories.contains(field), "{inventories}");
    }
    for added in ["rows", "file_size", "tail_size", "coord_min"] {
        assert!(!inventories.contains(added), "{inventories}");
    }
    for wide in ["UInt32", "UInt64"] {
        assert!(!inventories.contains(wide), "{inventories}");
    }

    let session = repo.readonly_session(&Version::Default).await.unwrap();
    let node = session.node("/g/a").unwrap();
    assert_eq!(node.inventories.len(), 1, "a reader of the draft does not know stacked runs");
    let manifest = batches(repo.store(), &format!("i/{}", node.inventories[0].file)).await;
    let expected = [
        "id UInt32",
        "array_id UInt32",
        "coord Binary",
        "inline_data Binary",
        "chunk_file Utf8",
        "offset UInt64",
        "length UInt32",
    ];
    assert_eq!(columns(&manifest), expected);
    for feature in ["wide-ints", "delta-inventories", "removals"] {
        assert!(!state.required_features.iter().any(|name| name == feature), "{feature}");
    }
    sound(&repo).await;
}

#[tokio::test]
async fn strict_mode_reads_back_what_it_wrote() {
    let repo = reopen(furnished().await.store()).await;
    let mut expected = noise(60, 1);
    expected[20..40].copy_from_slice(&noise(20, 2));
    assert_eq!(read_at(&repo, &Version::Default, "/g/a").await.unwrap(), expected);
    assert_eq!(read_at(&repo, &Version::Default, "/b").await.unwrap(), [0, 0, 1, 1]);
    let first = repo.state().await.unwrap().snapshots[1].snapshot_id.clone();
    let old = read_at(&repo, &Version::Snapshot(first), "/b").await.unwrap();
    assert_eq!(old, [1; 4]);
}

#[tokio::test]
async fn a_value_that_does_not_fit_names_its_field() {
    let repo = create(&memory(), strict()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/long", bytes_spec(&[70_000], &[1000])).await.unwrap();
    let error = session.commit(CommitOptions::message("x")).await.unwrap_err();
    let Error::ValueDoesNotFit { field, value } = &error else { panic!("{error:?}") };
    assert_eq!((*field, *value), ("array_metadata.shape", 70_000));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    // The session lives on, and the repository is as it was.
    session.delete("/long").unwrap();
    session.create_array("/short", bytes_spec(&[60_000], &[1000])).await.unwrap();
    session.commit(CommitOptions::message("y")).await.unwrap();
    sound(&repo).await;
}

/// Rewrites a Parquet file without anything that the draft does not know.
async fn strip(from: &Store, to: &Store, path: &str) {
    let builder = batches(from, path).await;
    let schema = builder.schema().fields().clone();
    let schema = std::sync::Arc::new(arrow_schema::Schema::new(schema));
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema.clone(), None).unwrap();
    for batch in builder.build().unwrap() {
        let batch = batch.unwrap();
        let columns = batch.columns().to_vec();
        let batch = arrow_array::RecordBatch::try_new(schema.clone(), columns).unwrap();
        writer.write(&batch).unwrap();
    }
    writer.close().unwrap();
    to.put(path, vec![bytes.into()]).await.unwrap();
}

/// The same data as a program of the draft would have written it: the draft's keys in the state, the
/// draft's columns in Parquet files, no checksums, no metadata.
async fn bare(repo: &Repository) -> Store {
    let (from, to) = (repo.store(), memory());
    let state = repo.state().await.unwrap();
    let snapshot = |s: &chunkyard_repo::Snapshot| {
        json!({
            "snapshot-id": s.snapshot_id,
            "parent-snapshot-id": s.parent_snapshot_id,
            "timestamp-ms": s.timestamp_ms,
            "structure-file": s.structure_file,
        })
    };
    let document = json!({
        "id": state.id,
        "generation": 7,
        "refs": { "main": {
            "name": "main", "snapshot-id": state.tip("main").unwrap().snapshot_id, "type": "branch",
        } },
        "snapshots": state.snapshots.iter().map(|s| snapshot(s)).collect::<Vec<Value>>(),
    });
    to.put("state.json", vec![document.to_string().into()]).await.unwrap();
    for directory in ["s", "i"] {
        let listed: Vec<_> = from.list(directory).await.unwrap().try_collect().await.unwrap();
        for meta in listed {
            strip(from, &to, &meta.path).await;
        }
    }
    let listed: Vec<_> = from.list("c").await.unwrap().try_collect().await.unwrap();
    for meta in listed {
        let bytes = from.get(&meta.path).await.unwrap().bytes;
        to.put(&meta.path, vec![bytes]).await.unwrap();
    }
    to
}

#[tokio::test]
async fn files_of_the_bare_draft_are_readable() {
    let repo = furnished().await;
    let store = bare(&repo).await;
    let draft = Repository::open_in(store.clone(), OpenOptions::default()).await.unwrap();
    for path in ["/g/a", "/b"] {
        let expected = read_at(&repo, &Version::Default, path).await.unwrap();
        assert_eq!(read_at(&draft, &Version::Default, path).await.unwrap(), expected, "{path}");
    }
    let session = draft.readonly_session(&Version::Default).await.unwrap();
    assert_eq!(session.attributes("/g").await.unwrap()["x"], 1);
    let report = draft.verify(chunkyard_repo::Level::Bytes).await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
}

/// Work on them can continue: the first commit adds what the draft lacks.
#[tokio::test]
async fn a_repository_of_the_bare_draft_takes_commits() {
    let repo = furnished().await;
    let store = bare(&repo).await;
    let before = read_at(&repo, &Version::Default, "/g/a").await.unwrap();
    let draft = reopen(&store).await;
    let session = draft.writable_session("main").await.unwrap();
    write_noise(&session, "/g/a", "0:20", 5).await.unwrap();
    session.create_array("/c", bytes_spec(&[4], &[4])).await.unwrap();
    write(&session, "/c", "0:4", 3).await.unwrap();
    session.commit(CommitOptions::message("ours")).await.unwrap();
    let draft = reopen(&store).await;
    let values = read_at(&draft, &Version::Default, "/g/a").await.unwrap();
    assert_eq!((&values[..20], &values[20..]), (&noise(20, 5)[..], &before[20..]));
    assert_eq!(read_at(&draft, &Version::Default, "/c").await.unwrap(), [3; 4]);
    let report = draft.verify(chunkyard_repo::Level::Bytes).await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
}

#[tokio::test]
async fn the_default_branch_can_have_another_name() {
    let options = CreateOptions { default_branch: "trunk".into(), ..CreateOptions::default() };
    let repo = Repository::create_in(memory(), OpenOptions::default(), options).await.unwrap();
    assert_eq!(repo.state().await.unwrap().default_branch, "trunk");
    repo.writable_session("trunk").await.unwrap();
    assert!(repo.writable_session("main").await.is_err());
}

/// Everything that the draft leaves open, done differently from our files: a blank `store_root`, no
/// branch `main`, snapshots newest first and the oldest of them not listed, structure files in
/// another order and without the groups that paths imply.
async fn liberal(repo: &Repository, to: &Store) {
    let bare = bare(repo).await;
    let mut state: Value =
        serde_json::from_slice(&bare.get("state.json").await.unwrap().bytes).unwrap();
    let snapshots = state["snapshots"].as_array_mut().unwrap();
    snapshots.remove(0);
    snapshots.reverse();
    let tip = snapshots[0]["snapshot-id"].clone();
    state["store_root"] = json!("");
    state["refs"] = json!({
        "trunk": { "name": "trunk", "snapshot-id": tip, "type": "branch" },
        "v1": { "name": "v1", "snapshot-id": tip, "type": "tag" },
    });
    let structures: Vec<String> = state["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|snapshot| format!("s/{}", snapshot["structure-file"].as_str().unwrap()))
        .collect();
    let listed: Vec<_> = bare.list("").await.unwrap().try_collect().await.unwrap();
    for meta in listed {
        let bytes = match meta.path.as_str() {
            "state.json" => state.to_string().into(),
            path if structures.contains(&meta.path) => rearranged(&bare, path).await,
            path => bare.get(path).await.unwrap().bytes,
        };
        if !meta.path.starts_with("s/") || structures.contains(&meta.path) {
            to.put(&meta.path, vec![bytes]).await.unwrap();
        }
    }
}

/// The rows of a structure file in reverse order, without `/` and `/d`.
async fn rearranged(store: &Store, path: &str) -> Bytes {
    let builder = batches(store, path).await;
    let schema = builder.schema().clone();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
    let batches: Vec<_> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    for batch in batches.iter().rev() {
        let paths = batch.column_by_name("path").unwrap().as_string::<i32>();
        for row in (0..batch.num_rows()).rev() {
            if !["/", "/d"].contains(&paths.value(row)) {
                writer.write(&batch.slice(row, 1)).unwrap();
            }
        }
    }
    writer.close().unwrap();
    bytes.into()
}

/// Like [`furnished`], with a group that only a path implies.
async fn with_implied_group() -> Repository {
    let repo = furnished().await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/d/e", bytes_spec(&[40], &[20])).await.unwrap();
    write_noise(&session, "/d/e", "0:40", 3).await.unwrap();
    session.commit(CommitOptions::message("three")).await.unwrap();
    repo
}

#[tokio::test]
async fn files_that_use_the_freedom_of_the_draft_are_read() {
    let repo = with_implied_group().await;
    let store = memory();
    liberal(&repo, &store).await;
    let draft = reopen(&store).await;
    let state = draft.state().await.unwrap();
    assert_eq!((state.default_branch.as_str(), state.store_root.as_ref()), ("trunk", None));
    let ours = repo.state().await.unwrap();
    let ids = |state: &State| -> Vec<String> {
        state.snapshots.iter().map(|s| s.snapshot_id.clone()).collect()
    };
    assert_eq!(ids(&state), ids(&ours)[1..], "oldest first");
    assert_eq!(history(&draft, "trunk").await.len(), 3);
    assert_eq!(state.snapshots[0].parent_snapshot_id, None);
    for snapshot in &ids(&state) {
        let version = Version::Snapshot(snapshot.clone());
        let expected = contents(&repo.readonly_session(&version).await.unwrap()).await.unwrap();
        let found = contents(&draft.readonly_session(&version).await.unwrap()).await.unwrap();
        assert_eq!(found, expected);
    }
    // The groups that are implied are the same in all versions.
    let [first, second] = [1, 2].map(|at| Version::Snapshot(ids(&ours)[at].clone()));
    let diff = draft.diff(&first, &second).await.unwrap();
    assert_eq!(diff, repo.diff(&first, &second).await.unwrap());
    let report = draft.verify(Level::Bytes).await.unwrap();
    assert_eq!(report.findings, []);
}

/// The first commit converts it to our form, and everything works from then on.
#[tokio::test]
async fn a_repository_of_another_form_of_the_draft_takes_commits() {
    let repo = with_implied_group().await;
    for place in Place::ALL {
        let (_guard, store) = place.open();
        liberal(&repo, &store).await;
        let draft = reopen(&store).await;
        let before = history(&draft, "trunk").await[0].snapshot_id.clone();
        let session = draft.writable_session("trunk").await.unwrap();
        write_noise(&session, "/d/e", "0:20", 5).await.unwrap();
        session.create_group("/d/f", Map::new()).unwrap();
        let after = session.commit(CommitOptions::message("ours")).await.unwrap();

        let draft = reopen(&store).await;
        let state = draft.state().await.unwrap();
        assert!(state.swap.is_some() && !state.write_id.is_empty());
        assert_eq!(state.required_features[0], "wide-ints");
        assert_eq!(history(&draft, "trunk").await.len(), 4);
        let (from, to) = (Version::Snapshot(before), Version::Snapshot(after.snapshot_id.clone()));
        let diff = draft.diff(&from, &to).await.unwrap();
        let added: Vec<_> = diff.added.iter().map(|node| node.path.as_str()).collect();
        assert_eq!((added, diff.removed.len(), diff.moved.len()), (vec!["/d/f"], 0, 0));
        assert_eq!(diff.chunks.len(), 1);
        assert_eq!(
            (diff.chunks[0].path.as_str(), &diff.chunks[0].replaced),
            ("/d/e", &vec![vec![0]])
        );

        let picture = picture(&draft).await;
        sound(&draft).await;
        let keep = ExpireOptions { keep_last: Some(2), ..ExpireOptions::default() };
        let expired = draft.expire(&keep).await.unwrap().snapshots.len();
        assert_eq!(expired, 2);
        assert!(collect(&draft).await.unwrap().files > 0);
        let draft = reopen(&store).await;
        assert_eq!(sound(&draft).await, 0);
        let (line, kept) = (&picture.references["Branch trunk"], history(&draft, "trunk").await);
        for (snapshot, (message, expected)) in kept.iter().zip(line) {
            let version = Version::Snapshot(snapshot.snapshot_id.clone());
            let session = draft.readonly_session(&version).await.unwrap();
            assert_eq!(
                (&snapshot.message, &contents(&session).await.unwrap()),
                (message, expected)
            );
        }
        draft.optimise("trunk").await.unwrap();
        draft.repack("trunk", &RepackOptions { live_share_min: 2.0 }).await.unwrap();
        sound(&draft).await;
    }
}

#[tokio::test]
async fn damage_in_our_own_files_stays_damage() {
    let repo = with_implied_group().await;
    let state = repo.state().await.unwrap();
    let path = format!("s/{}", state.tip("main").unwrap().structure_file);
    let sealed = repo.store().get(&path).await.unwrap().bytes;
    let rearranged = rearranged(repo.store(), &path).await;
    // The size and the checksum in the state decide, whatever the file itself says.
    repo.store().put(&path, vec![rearranged]).await.unwrap();
    let error = contents_of(&repo).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    repo.store().put(&path, vec![sealed]).await.unwrap();
    contents_of(&repo).await.unwrap();
}

async fn contents_of(repo: &Repository) -> Result<Contents, Error> {
    let repo = reopen(repo.store()).await;
    contents(&repo.readonly_session(&Version::Default).await?).await
}
