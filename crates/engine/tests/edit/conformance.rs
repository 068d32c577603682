//! One suite for the editors of all formats that conversions write.

use std::sync::Arc;

use chunkyard_array::{Attributes, Region, non_finite};
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::{
    Edit, EditOptions, Editor, Format, Node, OpenOptions, Place, Versions,
};
use chunkyard_engine::open::{FORMATS, format_named};
use chunkyard_engine::repo::{self, Repository};
use serde_json::{Value, json};

use super::hierarchy::spec;
use crate::convert::formats::{Entry, named, sinks_of_hierarchies};
use crate::convert::naive::Naive;
use crate::convert::sample::Sample;
use crate::convert::support::{PATH, Yard, convert, opened, options, read};

const SHAPE: [u64; 2] = [13, 6];

/// A sample in one format, in one sort of store.
struct Bench {
    yard: Yard,
    to: &'static Entry,
    name: String,
    format: &'static dyn Format,
    sample: Sample,
}

impl Bench {
    /// One for every format and sort of store.
    async fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for to in sinks_of_hierarchies() {
            for yard in Yard::both() {
                let sample = Sample::new(&SHAPE, &[4, 3], "uint8");
                let source = named("zarr3").write(&yard, "sample", &sample).await;
                let name = to.called("a");
                let wishes = to.packs(&SHAPE, &[4, 3]);
                convert(&source, &yard.at(&name), to.format, &wishes).await;
                let format = format_named(to.format).unwrap();
                all.push(Self { yard, to, name, format, sample });
            }
        }
        all
    }

    fn label(&self) -> String {
        format!("{:?} in {}", self.to, self.yard.at(&self.name))
    }

    fn place(&self) -> Place {
        Place::new(&self.yard.at(&self.name), &options()).unwrap()
    }

    async fn editor(&self) -> Arc<dyn Editor> {
        self.format.edit(&self.place(), &edit_options()).await.unwrap()
    }

    fn can(&self, edit: Edit) -> bool {
        self.format.edits().contains(&edit)
    }

    /// Whether changes are visible before they are committed.
    fn is_in_place(&self) -> bool {
        self.to.format == "zarr3"
    }

    /// The array as other readers see it now.
    async fn seen(&self, path: &str) -> Naive {
        read(&opened(&self.yard.at(&self.name)).await, path).await
    }

    async fn node_seen(&self, path: &str) -> Option<Node> {
        opened(&self.yard.at(&self.name)).await.dataset().nodes.get(path).cloned()
    }
}

fn edit_options() -> EditOptions {
    let open = OpenOptions { store: options(), ..OpenOptions::default() };
    EditOptions { open, ..EditOptions::default() }
}

fn attributes(value: Value) -> Attributes {
    value.as_object().unwrap().clone()
}

/// The array as an editor reads it.
async fn mine(editor: &dyn Editor, path: &str) -> Naive {
    let shape = editor.array(path).await.unwrap().spec.shape().to_vec();
    let elements =
        editor.reader(path).await.unwrap().read_elements(&Region::whole(&shape)).await.unwrap();
    Naive::from_elements(&shape, &elements, Some(1))
}

/// Writes rows 3 and 4 of columns 1 to 4, which are parts of four chunks or of two.
async fn change(editor: &dyn Editor) {
    let region = Region::new([3, 1], [2, 4]).unwrap();
    let writer = editor.writer(PATH).await.unwrap();
    writer.write_region(&region, vec![200; 8].into()).await.unwrap();
}

/// The sample with that change.
fn changed(sample: &Sample) -> Naive {
    let mut array = sample.array.clone();
    array.put(&[3, 1], &Naive::filled(&[2, 4], &[200]));
    array
}

#[tokio::test]
async fn a_region_is_seen_by_its_editor_at_once_and_by_others_after_the_commit() {
    for bench in Bench::all().await {
        let (label, editor) = (bench.label(), bench.editor().await);
        assert!(mine(&*editor, PATH).await == bench.sample.array, "{label}");
        change(&*editor).await;
        assert!(mine(&*editor, PATH).await == changed(&bench.sample), "{label}");
        if !bench.is_in_place() {
            assert!(bench.seen(PATH).await == bench.sample.array, "{label}: seen too early");
        }
        let committed = editor.commit(Some("mask a sensor")).await.unwrap();
        assert!(bench.seen(PATH).await == changed(&bench.sample), "{label}");
        let keeps = bench.format.versions() != Versions::One;
        assert_eq!(committed.version.is_some(), keeps, "{label}");
        if let Some(version) = committed.version {
            let seen = opened(&bench.yard.at(&bench.name)).await.version();
            assert_eq!(seen, Some(version), "{label}");
        }
        // Without a change there is nothing to commit.
        let again = editor.commit(None).await.unwrap();
        assert_eq!((again.version, again.cautions), (None, vec![]), "{label}");
        // The editor goes on after a commit.
        let region = Region::new([0, 0], [1, 1]).unwrap();
        let writer = editor.writer(PATH).await.unwrap();
        writer.write_region(&region, vec![77].into()).await.unwrap();
        editor.commit(None).await.unwrap();
        assert_eq!(bench.seen(PATH).await.cells[0], [77], "{label}");
    }
}

#[tokio::test]
async fn what_is_discarded_was_never_there() {
    for bench in Bench::all().await.into_iter().filter(|bench| !bench.is_in_place()) {
        let (label, editor) = (bench.label(), bench.editor().await);
        change(&*editor).await;
        editor.discard().await.unwrap();
        assert!(mine(&*editor, PATH).await == bench.sample.array, "{label}");
        editor.commit(None).await.unwrap();
        assert!(bench.seen(PATH).await == bench.sample.array, "{label}");
        if bench.can(Edit::Create) {
            editor.create_group("/g", Attributes::new()).await.unwrap();
            editor.discard().await.unwrap();
            assert!(editor.node("/g").await.unwrap().is_none(), "{label}");
        }
    }
}

#[tokio::test]
async fn arrays_grow_by_the_fill_value_and_shrink() {
    // The sample is a column of a table in BLZ, which has a test of its own.
    let all = Bench::all().await.into_iter();
    for bench in all.filter(|bench| bench.to.format != "blz") {
        let (label, editor) = (bench.label(), bench.editor().await);
        editor.resize(PATH, &[20, 6]).await.unwrap();
        let mut grown = Naive::filled(&[20, 6], &[0]);
        grown.put(&[0, 0], &bench.sample.array);
        assert!(mine(&*editor, PATH).await == grown, "{label}");
        // What was added can be written.
        let region = Region::new([19, 0], [1, 6]).unwrap();
        let writer = editor.writer(PATH).await.unwrap();
        writer.write_region(&region, vec![9; 6].into()).await.unwrap();
        grown.put(&[19, 0], &Naive::filled(&[1, 6], &[9]));
        editor.commit(None).await.unwrap();
        assert!(bench.seen(PATH).await == grown, "{label}");
        editor.resize(PATH, &[5, 6]).await.unwrap();
        editor.commit(None).await.unwrap();
        let kept = grown.region(&Region::whole(&[5, 6]), &[0]);
        assert!(bench.seen(PATH).await == kept, "{label}");
        for shape in [&[5][..], &[5, 6, 7]] {
            let error = editor.resize(PATH, shape).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{label}: {error}");
        }
    }
}

#[tokio::test]
async fn attributes_are_replaced_and_keep_numbers_that_are_not_finite() {
    // The sample is a column of a table in BLZ, which has a test of its own.
    let all = Bench::all().await.into_iter();
    for bench in all.filter(|bench| bench.to.format != "blz") {
        let (label, editor) = (bench.label(), bench.editor().await);
        let wished = non_finite::parse(br#"{"units": "K", "n": 3, "scale": 0.5, "bad": NaN}"#);
        let wished = attributes(wished.unwrap());
        editor.set_attributes(PATH, wished.clone()).await.unwrap();
        assert_eq!(editor.attributes(PATH).await.unwrap(), wished, "{label}");
        editor.commit(Some("describe")).await.unwrap();
        let Some(Node::Array(seen)) = bench.node_seen(PATH).await else { panic!("{label}") };
        assert_eq!(seen.spec.plain_attributes(), wished, "{label}");
        assert!(bench.seen(PATH).await == bench.sample.array, "{label}");
        editor.set_attributes(PATH, Attributes::new()).await.unwrap();
        editor.commit(None).await.unwrap();
        assert_eq!(editor.attributes(PATH).await.unwrap(), Attributes::new(), "{label}");
    }
}

#[tokio::test]
async fn nodes_are_created_and_removed_where_the_format_can() {
    for bench in Bench::all().await {
        let (label, editor) = (bench.label(), bench.editor().await);
        let small = spec(&[4, 6], &[2, 6]);
        if !bench.can(Edit::Create) {
            let created = [
                editor.create_array("/new/x", &small).await.unwrap_err(),
                editor.create_group("/new", Attributes::new()).await.unwrap_err(),
                editor.remove(PATH).await.unwrap_err(),
            ];
            for error in created {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{label}");
                assert!(error.to_string().contains("can change by writing, resizing"), "{error}");
            }
            continue;
        }
        editor.create_array("/new/x", &small).await.unwrap();
        let writer = editor.writer("/new/x").await.unwrap();
        let region = Region::new([1, 0], [1, 6]).unwrap();
        writer.write_region(&region, vec![5; 6].into()).await.unwrap();
        editor.create_group("/new/g", attributes(json!({"title": "t"}))).await.unwrap();
        for (path, wrong) in [(PATH, ErrorKind::Conflict), ("/new/x/below", ErrorKind::Invalid)] {
            let error = editor.create_array(path, &small).await.unwrap_err();
            assert_eq!(error.kind(), wrong, "{label}: {error}");
        }
        editor.commit(None).await.unwrap();
        let mut written = Naive::filled(&[4, 6], &[0]);
        written.put(&[1, 0], &Naive::filled(&[1, 6], &[5]));
        assert!(bench.seen("/new/x").await == written, "{label}");
        let Some(Node::Group(group)) = bench.node_seen("/new/g").await else { panic!("{label}") };
        assert_eq!(group.attributes()["title"], "t", "{label}");

        editor.remove("/new").await.unwrap();
        assert!(editor.node("/new/x").await.unwrap().is_none(), "{label}");
        editor.commit(None).await.unwrap();
        for path in ["/new", "/new/x", "/new/g"] {
            assert!(bench.node_seen(path).await.is_none(), "{label}");
        }
        assert!(bench.seen(PATH).await == bench.sample.array, "{label}");
        let error = editor.remove("/").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{label}: {error}");
    }
}

#[tokio::test]
async fn wrong_paths_and_regions_are_refused_and_change_nothing() {
    for bench in Bench::all().await {
        let (label, editor) = (bench.label(), bench.editor().await);
        for path in ["/none", "/group/t/none"] {
            assert!(editor.node(path).await.unwrap().is_none(), "{label}");
            for error in [
                editor.reader(path).await.unwrap_err(),
                editor.writer(path).await.unwrap_err(),
                editor.array(path).await.unwrap_err(),
                editor.attributes(path).await.unwrap_err(),
                editor.set_attributes(path, Attributes::new()).await.unwrap_err(),
                editor.resize(path, &[1, 1]).await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{label}: {error}");
            }
            if bench.can(Edit::Remove) {
                let error = editor.remove(path).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound, "{label}: {error}");
            }
        }
        let writer = editor.writer(PATH).await.unwrap();
        let outside = Region::new([12, 0], [2, 6]).unwrap();
        let error = writer.write_region(&outside, vec![1; 12].into()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{label}: {error}");
        let few = Region::new([0, 0], [2, 6]).unwrap();
        let error = writer.write_region(&few, vec![1; 11].into()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{label}: {error}");
        assert!(bench.seen(PATH).await == bench.sample.array, "{label}");
    }
}

#[tokio::test]
async fn only_the_newest_version_changes_and_only_on_branches_that_exist() {
    for bench in Bench::all().await {
        let label = bench.label();
        let mut old = edit_options();
        old.open.version = Some(repo::Version::Snapshot("1".into()));
        let error = bench.format.edit(&bench.place(), &old).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{label}: {error}");
        let branch = EditOptions { branch: Some("none".into()), ..edit_options() };
        let error = bench.format.edit(&bench.place(), &branch).await.unwrap_err();
        let wrong = match bench.format.versions() {
            Versions::Commits => ErrorKind::NotFound,
            _ => ErrorKind::Invalid,
        };
        assert_eq!(error.kind(), wrong, "{label}: {error}");
    }
}

#[tokio::test]
async fn an_empty_dataset_is_created_only_if_the_caller_asks_for_it() {
    for format in FORMATS.iter().filter(|format| !format.edits().is_empty()) {
        let yard = Yard::directory();
        let ending = format.extensions()[0];
        let place = Place::new(&yard.at(&format!("new.{ending}")), &options()).unwrap();
        let error = format.edit(&place, &edit_options()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{}: {error}", format.name());
        yard.holds_only(&[] as &[&str]);
        let create = EditOptions { create: true, ..edit_options() };
        let created = format.edit(&place, &create).await;
        if !format.edits().contains(&Edit::Create) {
            assert_eq!(created.unwrap_err().kind(), ErrorKind::Unsupported, "{}", format.name());
            continue;
        }
        let editor = created.unwrap();
        editor.create_array("/x", &spec(&[4], &[2])).await.unwrap();
        editor.commit(None).await.unwrap();
        // What exists is opened, not created.
        let again = format.edit(&place, &create).await.unwrap();
        assert_eq!(again.array("/x").await.unwrap().spec.shape(), [4], "{}", format.name());
    }
}

#[tokio::test]
async fn a_commit_to_a_branch_of_a_repository_keeps_its_message() {
    let yard = Yard::memory();
    let url = yard.at("r");
    let open = repo::OpenOptions { store: options(), ..Default::default() };
    let repository = Repository::create(&url, open, Default::default()).await.unwrap();
    let tip = repository.state().await.unwrap().tip("main").unwrap().snapshot_id.clone();
    repository.create_branch("dev", &repo::Version::Snapshot(tip)).await.unwrap();
    let on_dev = EditOptions { branch: Some("dev".into()), ..edit_options() };
    let place = Place::new(&url, &options()).unwrap();
    let editor = repo::RepoFormat.edit(&place, &on_dev).await.unwrap();
    editor.create_array("/x", &spec(&[4], &[2])).await.unwrap();
    editor.commit(Some("a first array")).await.unwrap();
    let state = repository.state().await.unwrap();
    assert_eq!(state.tip("dev").unwrap().message, "a first array");
    assert_ne!(state.tip("main").unwrap().message, "a first array");
}

#[tokio::test]
async fn a_format_that_is_only_read_says_so() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hdf5/netcdf.nc");
    let place = Place::new(file, &options()).unwrap();
    let format = format_named("hdf5").unwrap();
    let error = format.edit(&place, &edit_options()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("hdf5 is only read; convert it"), "{error}");
}

#[tokio::test]
async fn a_table_has_one_length_and_one_set_of_attributes() {
    use bytes::Bytes;
    use chunkyard_engine::format::superchunk::{Blz, BlzFormat, BlzOptions, Wanted};

    let yard = Yard::directory();
    let place = Place::new(&yard.at("t.blz"), &options()).unwrap();
    let wanted = Wanted { dtype: "[('a', '<u1'), ('b', '<u2')]".into(), ..Wanted::default() };
    let creation = wanted.creation().unwrap();
    let table = Blz::create(&place, &creation, BlzOptions::default()).await.unwrap();
    table.append(vec![Bytes::from(vec![1; 3]), Bytes::from(vec![2; 6])]).await.unwrap();
    table.flush().await.unwrap();

    let editor = BlzFormat.edit(&place, &edit_options()).await.unwrap();
    editor.resize("/", &[5]).await.unwrap();
    let writer = editor.writer("/b").await.unwrap();
    writer.write_region(&Region::new([4], [1]).unwrap(), vec![7, 0].into()).await.unwrap();
    editor.set_attributes("/", attributes(json!({"n": 1}))).await.unwrap();
    editor.commit(None).await.unwrap();
    let seen = opened(place.url()).await;
    assert_eq!(seen.dataset().array("/a").unwrap().spec.shape(), [5]);
    assert_eq!(read(&seen, "/b").await.cells.last().unwrap(), &[7, 0]);
    for error in [
        editor.resize("/a", &[6]).await.unwrap_err(),
        editor.set_attributes("/a", Attributes::new()).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    assert_eq!(editor.resize("/", &[5, 2]).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(editor.resize("/c", &[6]).await.unwrap_err().kind(), ErrorKind::NotFound);
}
