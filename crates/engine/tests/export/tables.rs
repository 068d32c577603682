//! From tables to a volume: the volume that is made of block tables is the one that is made of the source.

use std::path::Path;
use std::sync::Arc;

use chunkyard_array::codec::label_block::NAME;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::export::{ArrowOptions, Codec, Emit, Request};
use chunkyard_engine::format::precomputed::Info;
use chunkyard_engine::format::{MemorySource, OpenOptions, Reader, SPACE_KEY, Source};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::store::Store;
use chunkyard_engine::{ErrorKind, Result, open};
use chunkyard_test_support::directory;
use serde_json::json;

use super::support::{export, spec, volume};

const SHAPE: [u64; 3] = [100, 70, 200];

/// A volume with a first voxel of its own, and blocks of nothing but label 0.
fn segmentation() -> Arc<dyn Source> {
    let [z, y, x] = SHAPE;
    let mut voxels = Vec::new();
    for n in 0..z * y * x {
        let (x, y, z) = (n % x, n / x % y, n / x / y);
        let label = 1 + x / 9 + 100 * (y / 7) + 10_000 * (z / 11);
        voxels.extend(if x > 150 { 0 } else { label }.to_le_bytes());
    }
    let codecs = vec![json!({"name": "bytes", "configuration": {"endian": "little"}})];
    let spec = ArraySpec::builder(&SHAPE, &SHAPE, "uint64").fill_value(0).codecs(codecs);
    let spec = spec.build().unwrap();
    let mut attributes = spec.attributes().clone();
    attributes.insert(SPACE_KEY.to_owned(), json!({"origin": [-64, 0, 64]}));
    let spec = spec.with_attributes(attributes).unwrap();
    Arc::new(MemorySource::new("/seg", &spec, voxels.into()).unwrap())
}

/// Shards of 2 × 2 × 1 blocks.
fn wanted() -> Vec<u8> {
    spec(&[([300, 70, 100], [0, 0, -64], [1, 1, 3])])
}

fn tables_with(arrow: ArrowOptions) -> Request {
    let emit = vec![Emit::Table, Emit::Precomputed];
    Request { spec: Some(wanted()), emit, arrow, ..Request::default() }
}

/// Tables, and the volume that was written beside them.
async fn tables(arrow: ArrowOptions) -> (tempfile::TempDir, Info) {
    let (out, target) = directory();
    export(&segmentation(), &tables_with(arrow), &target).await.unwrap();
    (out, Info::parse("spec", &wanted()).unwrap())
}

async fn table(path: &Path) -> Result<Arc<dyn Source>> {
    let url = format!("table:{}", path.display());
    Ok(open::open(&url, &OpenOptions::default()).await?.source)
}

/// The volume of the tables of a directory.
async fn from_tables(path: &Path, request: Request, target: &Store) -> Result<()> {
    let source = table(path).await?;
    let url = format!("table:{}", path.display());
    export(&source, &Request { source: url, ..request }, target).await.map(drop)
}

fn precomputed() -> Request {
    Request { emit: vec![Emit::Precomputed], ..Request::default() }
}

#[tokio::test]
async fn the_volume_of_tables_is_that_of_their_source() {
    for strip_labels in [false, true] {
        let (tables, info) = tables(ArrowOptions { strip_labels, ..ArrowOptions::default() }).await;
        let direct = volume(tables.path(), &info.scales[0]);
        assert_eq!(direct.len(), 12);
        let (out, target) = directory();
        from_tables(tables.path(), precomputed(), &target).await.unwrap();
        assert!(volume(out.path(), &info.scales[0]) == direct);
        // In the shards of the table, unless others are wanted.
        let shards = |path: &Path| {
            let names = std::fs::read_dir(path.join("8_8_8")).unwrap();
            let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(shards(out.path()), shards(tables.path()));
        let other = spec(&[([300, 70, 100], [0, 0, -64], [0, 2, 3])]);
        let (out, target) = directory();
        let request = Request { spec: Some(other.clone()), ids: Ids::Supervoxels, ..precomputed() };
        from_tables(tables.path(), request, &target).await.unwrap();
        let other = Info::parse("spec", &other).unwrap();
        assert!(volume(out.path(), &other.scales[0]) == direct);
    }
}

#[tokio::test]
async fn tables_are_arrays_like_any_others() {
    let (tables, _) = tables(ArrowOptions::default()).await;
    let source = table(tables.path()).await.unwrap();
    let paths: Vec<&str> = source.dataset().arrays().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/labels/s0", "/supervoxels/s0"]);
    let region = Region::parse("60:70,60:70,0:130", &[100, 70, 300]).unwrap();
    let reader = Reader::new(&source, "/labels/s0").unwrap();
    let found = reader.read_region(&region).await.unwrap();
    let original = segmentation();
    // The volume begins at voxel 0 along x, and its source at 64.
    let within = Region::parse("60:70,60:70,0:66", &SHAPE).unwrap();
    let expected = Reader::new(&original, "/seg").unwrap().read_region(&within).await.unwrap();
    for (row, wanted) in found.chunks(130 * 8).zip(expected.chunks(66 * 8)) {
        assert!(row[..64 * 8].iter().all(|byte| *byte == 0));
        assert!(&row[64 * 8..] == wanted);
    }
    // Any other format can be made of them; chunks are listed as they are located.
    let whole = Region::whole(&[100, 70, 300]);
    let chunks = futures::TryStreamExt::try_collect::<Vec<_>>(source.chunks("/labels/s0", &whole));
    for (index, chunk) in chunks.await.unwrap() {
        let located = source.locate("/labels/s0", &[index]).await.unwrap();
        assert_eq!(located, [Some(chunk)]);
    }
    assert_eq!(source.dataset().array("/labels/s0").unwrap().spec.codecs_json()[0]["name"], NAME);
}

#[tokio::test]
async fn a_table_that_is_written_again_can_be_read_without_its_metadata() {
    // As DuckDB or Spark write it: nothing but columns.
    let (tables, info) =
        tables(ArrowOptions { strip_labels: true, ..ArrowOptions::default() }).await;
    let direct = volume(tables.path(), &info.scales[0]);
    for entry in std::fs::read_dir(tables.path().join("blocks_s0")).unwrap() {
        rewrite(&entry.unwrap().path(), |batch| vec![batch]);
    }
    let (out, target) = directory();
    from_tables(tables.path(), precomputed(), &target).await.unwrap();
    assert!(volume(out.path(), &info.scales[0]) == direct);
}

/// Writes a Parquet file anew, with other rows and without metadata.
fn rewrite(
    path: &Path,
    change: impl Fn(arrow_array::RecordBatch) -> Vec<arrow_array::RecordBatch>,
) {
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let content = bytes::Bytes::from(std::fs::read(path).unwrap());
    let reader = ParquetRecordBatchReaderBuilder::try_new(content).unwrap();
    let schema = reader.schema().clone();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    for batch in reader.build().unwrap() {
        for batch in change(batch.unwrap()) {
            writer.write(&batch).unwrap();
        }
    }
    std::fs::write(path, writer.into_inner().unwrap()).unwrap();
}

/// The error of making a volume of tables that were changed.
async fn refused(change: impl Fn(&Path)) -> chunkyard_engine::Error {
    let (tables, _) = tables(ArrowOptions::default()).await;
    change(tables.path());
    let (_out, target) = directory();
    from_tables(tables.path(), precomputed(), &target).await.unwrap_err()
}

#[tokio::test]
async fn tables_that_are_not_whole_are_refused() {
    let shard =
        |path: &Path, number: u64| path.join(format!("blocks_s0/shard={number:08x}.parquet"));
    let swapped = refused(|path| {
        std::fs::copy(shard(path, 0), shard(path, 1)).unwrap();
    });
    let swapped = swapped.await;
    assert_eq!(swapped.kind(), ErrorKind::Corrupt, "{swapped}");
    assert!(swapped.to_string().contains("shard=00000001.parquet"), "{swapped}");
    let outside = refused(|path| {
        std::fs::copy(shard(path, 0), shard(path, 4096)).unwrap();
    });
    assert_eq!(outside.await.kind(), ErrorKind::Corrupt);
    let cut = refused(|path| {
        let content = std::fs::read(shard(path, 0)).unwrap();
        std::fs::write(shard(path, 0), &content[..content.len() - 9]).unwrap();
    });
    assert_eq!(cut.await.kind(), ErrorKind::Corrupt);
    let doubled = refused(|path| {
        rewrite(&shard(path, 0), |batch| vec![batch.clone(), batch.slice(1, 1)]);
    });
    let doubled = doubled.await;
    assert_eq!(doubled.kind(), ErrorKind::Corrupt, "{doubled}");
    assert!(doubled.to_string().contains("rows of a block"), "{doubled}");
    let narrow = refused(|path| {
        rewrite(&shard(path, 0), |batch| vec![batch]);
        let columns = |batch: arrow_array::RecordBatch| batch.project(&[0, 1, 2]).unwrap();
        let content = bytes::Bytes::from(std::fs::read(shard(path, 0)).unwrap());
        let reader =
            parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(content);
        let first = reader.unwrap().build().unwrap().next().unwrap().unwrap();
        let few = columns(first);
        let mut writer =
            parquet::arrow::ArrowWriter::try_new(Vec::new(), few.schema(), None).unwrap();
        writer.write(&few).unwrap();
        std::fs::write(shard(path, 0), writer.into_inner().unwrap()).unwrap();
    });
    assert_eq!(narrow.await.kind(), ErrorKind::Corrupt);
    let counted = refused(|path| {
        std::fs::write(path.join("table.json"), br#"{"shards": {"0": 999}}"#).unwrap();
    });
    let counted = counted.await;
    assert_eq!(counted.kind(), ErrorKind::Corrupt);
    assert!(counted.to_string().contains("999"), "{counted}");
    let bare = refused(|path| std::fs::remove_file(path.join("spec.json")).unwrap());
    let bare = bare.await;
    assert_eq!(bare.kind(), ErrorKind::NotFound);
    assert!(bare.to_string().contains("spec.json"), "{bare}");
    // The volume is not written into the tables.
    let (tables, _) = tables(ArrowOptions::default()).await;
    let target = Store::open(tables.path().join("new").to_str().unwrap(), &Default::default());
    let error = from_tables(tables.path(), precomputed(), &target.unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("overlap"), "{error}");
}

#[tokio::test]
async fn no_flipped_bit_of_a_table_makes_other_supervoxels() {
    let arrow = ArrowOptions { codec: Codec::Zstd(1), ..ArrowOptions::default() };
    let (tables, _) = tables(arrow).await;
    let name = "blocks_s0/shard=00000001.parquet";
    for entry in std::fs::read_dir(tables.path().join("blocks_s0")).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with(name) {
            std::fs::remove_file(path).unwrap();
        }
    }
    let whole = Region::whole(&[100, 70, 300]);
    let read = async || {
        let source = table(tables.path()).await?;
        let chunks = source.chunks("/supervoxels/s0", &whole);
        futures::TryStreamExt::try_collect::<Vec<_>>(chunks).await
    };
    let direct = read().await.unwrap();
    assert_eq!(direct.len(), 2);
    let sound = std::fs::read(tables.path().join(name)).unwrap();
    let mut harmless = 0;
    // Some bytes of pages, then the end, where all that the library believes is.
    let pages = (0..sound.len()).step_by(sound.len() / 300);
    let flips: Vec<usize> = pages.chain((sound.len() - 600..sound.len()).step_by(2)).collect();
    for at in &flips {
        let mut content = sound.clone();
        content[*at] ^= 1 << (at % 8);
        std::fs::write(tables.path().join(name), &content).unwrap();
        match read().await {
            Ok(found) => {
                assert!(found == direct, "byte {at}");
                harmless += 1;
            }
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
                "byte {at}: {error}"
            ),
        }
    }
    // Not seen are statistics that are not used, other metadata, and the numbers of bodies, which have no checksum.
    assert!(
        harmless + 100 < flips.len(),
        "{harmless} of {} flipped bits were not seen",
        flips.len()
    );
}
