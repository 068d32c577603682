//! What array-format 0.9 gets wrong, and what happens here instead: a test per defect.
//!
//! | array-format 0.9 | here |
//! |---|---|
//! | chunks of a deleted array come back when its name is used again | a tombstone ends the search |
//! | two writers overwrite each other's layer, the last one wins | the second gets a conflict |
//! | the next layer is numbered by how many there are: a gap lets it overwrite one | by the highest |
//! | any file that is named like a layer is one | it must say that it is |
//! | extents, chunks and offsets lose what 32 bits do not hold | refused |
//! | a sidecar's attributes point into the dictionary of another layer; merging mixes them | own dictionary |
//! | the 65 537th key gets the value of the first | wide enough indices |
//! | blocks of a user's codec are written and never read again | codecs are registered |
//! | a chunk outside of its block panics | corrupt |
//! | creating over a container keeps its old sidecars | refused |
//! | a failed flush drops the changes | they stay |
//! | compaction deletes layers before the base is written | after |
//! | a torn newest layer makes the container unreadable | readers go on below it |
//! | a flipped bit is read as data | checksums |
//! | a path that was written again is served from the cache | caches know which file it was |
//! | compacting with changes pending writes stale layer numbers | they are flushed first |
//! | writing to an array with a zero-length axis panics | nothing to write |
//! | a chunk written twice leaves the first copy as dead bytes | only the last is kept |
//! | a footer longer than its file wraps around | corrupt |
//! | the fill value of strings is ignored | it is what was never written |
//! | strings that are no UTF-8 are changed on reading | corrupt |
//!
//! Opening costs 3 n + 4 requests there; `requests` counts ours. Crashes and writers at the same time
//! have modules of their own.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_engine::format::container::footer::{NewArray, NewFooter};
use chunkyard_engine::format::container::model::{
    ArrayMeta, AttributeValue, BlockMeta, ChunkAddress, DType, FillValue, IndexWidth,
};
use chunkyard_engine::format::container::{
    CompactOptions, Container, ContainerOptions, Definition, Reason,
};
use chunkyard_engine::store::fault::{Fault, Mode, Plan};
use chunkyard_engine::store::{BlockCodec, Store, register_block_codec};
use chunkyard_engine::{Error, ErrorKind, Result};

use super::support::{
    contents, create, definition, directory, empty_footer, files, furnished, layer_file, memory,
    open, place, read, read_text, try_read, write, write_text,
};

pub(super) fn text(value: &str) -> AttributeValue {
    AttributeValue::String(value.to_owned())
}

#[tokio::test]
async fn a_deleted_array_does_not_come_back_when_its_name_is_used_again() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[6], &[2])).await.unwrap();
    write(&container, "a", &[0], vec![1; 6]).await;
    container.flush().await.unwrap();
    container.delete("a").await.unwrap();
    container.flush().await.unwrap();
    assert!(open(&store).await.names().await.unwrap().is_empty());
    container.define(definition("a", &[6], &[2])).await.unwrap();
    write(&container, "a", &[2], vec![7]).await;
    assert_eq!(read(&container, "a").await, [0, 0, 7, 0, 0, 0]);
    container.flush().await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [0, 0, 7, 0, 0, 0]);
    // Deleted and made anew within one layer, for which there is no tombstone.
    container.delete("a").await.unwrap();
    container.define(definition("a", &[6], &[2])).await.unwrap();
    container.flush().await.unwrap();
    let again = open(&store).await;
    assert_eq!(read(&again, "a").await, [0; 6]);
    assert_eq!(again.statistics("a").await.unwrap().unwrap().null_count, 6);
    again.compact(&CompactOptions::default()).await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [0; 6]);
}

#[tokio::test]
async fn two_writers_cannot_overwrite_each_others_layer() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        create(&store).await;
        let (one, two) = (open(&store).await, open(&store).await);
        one.define(definition("one", &[2], &[2])).await.unwrap();
        two.define(definition("two", &[2], &[2])).await.unwrap();
        write(&two, "two", &[0], vec![2, 2]).await;
        assert_eq!(one.flush().await.unwrap().unwrap().layer, 1);
        let lost = two.flush().await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Conflict, "{lost}");
        assert!(two.is_changed());
        two.refresh().await.unwrap();
        assert_eq!(two.flush().await.unwrap().unwrap().layer, 2);
        let both = open(&store).await;
        assert_eq!(both.names().await.unwrap(), ["one", "two"]);
        assert_eq!(read(&both, "two").await, [2, 2]);
    }
}

#[tokio::test]
async fn a_number_of_a_layer_is_never_used_twice() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[2], &[2])).await.unwrap();
    container.flush().await.unwrap();
    // Layers of another program: one, then a gap.
    let other = layer_file(&[], &empty_footer(7, "x.af"));
    store.put("x.7.af", vec![other.clone()]).await.unwrap();
    let container = open(&store).await;
    write(&container, "a", &[0], vec![1, 2]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 8);
    assert_eq!(store.get("x.7.af").await.unwrap().bytes, other);
    container.compact(&CompactOptions::default()).await.unwrap();
    assert_eq!(files(&store).await, ["x.af", "x.stats"]);
    let container = open(&store).await;
    write(&container, "a", &[0], vec![3]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 9);
    assert_eq!(read(&open(&store).await, "a").await, [3, 2]);
}

/// Its name is free again once its layer was merged, so that creating it tells nothing.
#[tokio::test]
async fn whoever_slept_through_a_compaction_cannot_write_under_a_number_that_was_merged() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        for compactions in 1..=3 {
            let store = store.below(&format!("{compactions}")).unwrap();
            furnished(&store).await;
            let (asleep, other) = (open(&store).await, open(&store).await);
            write(&asleep, "c", &[0], vec![100]).await;
            other.define(definition("d", &[1], &[1])).await.unwrap();
            let awake = open(&store).await;
            for value in 0..compactions {
                write(&awake, "c", &[0], vec![10 + value]).await;
                awake.flush().await.unwrap();
                awake.compact(&CompactOptions::default()).await.unwrap();
            }
            let expected = contents(&awake).await.unwrap();
            for writer in [&asleep, &other] {
                let refused = writer.flush().await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
                assert!(writer.is_changed());
            }
            assert_eq!(files(&store).await, ["x.af", "x.stats"]);
            assert_eq!(contents(&open(&store).await).await.unwrap(), expected);
            // It changed what others changed too, and is told so again.
            assert_eq!(asleep.refresh().await.unwrap_err().kind(), ErrorKind::Conflict);
            asleep.discard().await;
            asleep.refresh().await.unwrap();
            write(&asleep, "c", &[0], vec![100]).await;
            asleep.flush().await.unwrap();
            assert_eq!(read(&open(&store).await, "c").await, [100, 2, 3, 4]);
        }
    }
}

/// It dies before it could take back what it wrote in vain.
#[tokio::test]
async fn a_layer_that_was_written_in_vain_does_not_count() {
    let store = memory();
    furnished(&store).await;
    let (faulty, fault) = Fault::wrap(&store, Plan::new(1, Mode::Die));
    let asleep = open(&faulty).await;
    asleep.define(definition("d", &[1], &[1])).await.unwrap();
    let awake = open(&store).await;
    for value in [8, 9] {
        write(&awake, "c", &[0], vec![value]).await;
        awake.flush().await.unwrap();
        awake.compact(&CompactOptions::default()).await.unwrap();
    }
    asleep.flush().await.unwrap_err();
    assert!(fault.dead(), "{:?}", fault.log());
    assert!(files(&store).await.contains(&"x.3.af".to_owned()));
    let container = open(&store).await;
    assert_eq!(read(&container, "c").await, [9, 2, 3, 4]);
    assert_eq!(container.ignored()[0].reason, Reason::Foreign);
    write(&container, "c", &[0], vec![5]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 5);
    assert_eq!(read(&open(&store).await, "c").await, [5, 2, 3, 4]);
}

#[tokio::test]
async fn a_layer_made_on_a_base_that_was_packed_anew_since_counts() {
    let store = memory();
    furnished(&store).await.compact(&CompactOptions::default()).await.unwrap();
    let writer = open(&store).await;
    write(&writer, "c", &[0], vec![100]).await;
    for _ in 0..3 {
        let repack = CompactOptions { repack: true, ..CompactOptions::default() };
        open(&store).await.compact(&repack).await.unwrap();
    }
    // What it read is gone, what it wrote is not.
    if let Err(error) = writer.flush().await {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        writer.refresh().await.unwrap();
        writer.flush().await.unwrap();
    }
    assert_eq!(read(&open(&store).await, "c").await, [100, 2, 3, 4]);
}

#[tokio::test]
async fn a_file_named_like_a_layer_is_not_adopted() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[2], &[2])).await.unwrap();
    container.flush().await.unwrap();
    // A container of its own, ours or not, and a layer of yet another one.
    store.put("x.5.af", vec![layer_file(&[], &empty_footer(0, ""))]).await.unwrap();
    let other = memory();
    create(&other).await.define(definition("b", &[1], &[1])).await.unwrap();
    store.put("x.6.af", vec![other.get("x.af").await.unwrap().bytes]).await.unwrap();
    let theirs = open(&other).await;
    theirs.define(definition("b", &[1], &[1])).await.unwrap();
    theirs.flush().await.unwrap();
    store.put("x.7.af", vec![other.get("x.1.af").await.unwrap().bytes]).await.unwrap();
    let container = open(&store).await;
    assert_eq!(container.names().await.unwrap(), ["a"]);
    let ignored: Vec<_> =
        container.ignored().iter().map(|file| (file.number, file.reason)).collect();
    assert_eq!(ignored, [5, 6, 7].map(|number| (number, Reason::Foreign)));
    write(&container, "a", &[0], vec![1, 2]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 8);
    container.compact(&CompactOptions::default()).await.unwrap();
    let left = files(&store).await;
    assert_eq!(left, ["x.5.af", "x.6.af", "x.7.af", "x.af", "x.stats"]);
    assert_eq!(read(&open(&store).await, "a").await, [1, 2]);
    // One that says it is a layer, but of another base: somebody must say what it is.
    store.put("x.9.af", vec![layer_file(&[], &empty_footer(9, "d/y.af"))]).await.unwrap();
    let error = Container::open(&place(&store), ContainerOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let renamed = ContainerOptions { renamed: true, ..Default::default() };
    Container::open(&place(&store), renamed).await.unwrap();
}

#[tokio::test]
async fn an_extent_beyond_32_bits_is_refused() {
    let container = create(&memory()).await;
    let large = (1 << 32) + 5;
    for refused in [definition("a", &[large], &[8]), definition("a", &[8], &[large])] {
        let error = container.define(refused).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("4294967301"), "{error}");
    }
    container.define(definition("a", &[u32::MAX.into()], &[8])).await.unwrap();
    let error = container.resize("a", &[large]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    write(&container, "a", &[u64::from(u32::MAX) - 1], vec![3]).await;
    container.flush().await.unwrap();
}

#[tokio::test]
async fn attributes_of_two_layers_do_not_mix() {
    let store = memory();
    let container = create(&store).await;
    for name in ["a", "b"] {
        container.define(definition(name, &[1], &[1])).await.unwrap();
    }
    container.set_attribute("a", "units", text("K")).await.unwrap();
    container.set_attribute("a", "scale", AttributeValue::Float64(0.5)).await.unwrap();
    container.set_attribute("b", "units", text("m")).await.unwrap();
    container.flush().await.unwrap();
    container.set_attribute("b", "offset", AttributeValue::Int64(3)).await.unwrap();
    container.flush().await.unwrap();
    container.set_attribute("a", "offset", AttributeValue::Int64(4)).await.unwrap();
    container.remove_attribute("a", "scale").await.unwrap();
    container.flush().await.unwrap();
    let expected = [
        ("a", "units", Some(text("K"))),
        ("a", "scale", None),
        ("a", "offset", Some(AttributeValue::Int64(4))),
        ("b", "units", Some(text("m"))),
        ("b", "offset", Some(AttributeValue::Int64(3))),
    ];
    for compacted in [false, true] {
        if compacted {
            open(&store).await.compact(&CompactOptions::default()).await.unwrap();
        }
        let container = open(&store).await;
        for (array, key, value) in &expected {
            let found = container.attribute(array, key).await.unwrap();
            assert_eq!(found, *value, "{array} {key}, compacted: {compacted}");
        }
    }
}

#[tokio::test]
async fn more_than_65535_attribute_keys_are_kept_apart() {
    let store = memory();
    let container = create(&store).await;
    let attributes = (0..65_600).map(|n| (format!("key {n}"), AttributeValue::Int64(n)));
    let attributes = attributes.collect();
    let definition = Definition { attributes, ..definition("a", &[1], &[1]) };
    container.define(definition).await.unwrap();
    container.flush().await.unwrap();
    let container = open(&store).await;
    for n in [0, 1, 65_535, 65_536, 65_537, 65_599] {
        let found = container.attribute("a", &format!("key {n}")).await.unwrap();
        assert_eq!(found, Some(AttributeValue::Int64(n)));
    }
}

/// Turns all bits around.
#[derive(Debug)]
struct Inverted;

impl BlockCodec for Inverted {
    fn name(&self) -> &str {
        "inverted"
    }

    fn pack(&self, plain: &[u8]) -> Result<Vec<u8>> {
        Ok(plain.iter().map(|byte| !byte).collect())
    }

    fn unpack(&self, packed: &[u8], into: &mut [u8]) -> Result<()> {
        if packed.len() != into.len() {
            return Err(Error::invalid("other lengths"));
        }
        into.iter_mut().zip(packed).for_each(|(to, from)| *to = !from);
        Ok(())
    }
}

#[tokio::test]
async fn a_registered_codec_reads_what_it_wrote() {
    let store = memory();
    let codec: Arc<dyn BlockCodec> = Arc::new(Inverted);
    register_block_codec(codec.clone()).unwrap();
    let options = ContainerOptions { codec, ..Default::default() };
    let container = Container::create(&place(&store), options).await.unwrap();
    container.define(definition("a", &[40_000], &[20_000])).await.unwrap();
    write(&container, "a", &[0], (0..40_000).collect()).await;
    container.flush().await.unwrap();
    // Written again by a handle that packs otherwise; statistics read what was there.
    let other = open(&store).await;
    write(&other, "a", &[5], vec![-1]).await;
    other.flush().await.unwrap();
    let stats = other.statistics("a").await.unwrap().unwrap();
    assert_eq!((stats.null_count, stats.row_count), (0, 40_000));
    other.compact(&CompactOptions::default()).await.unwrap();
    let found = read(&open(&store).await, "a").await;
    assert_eq!((found[4], found[5], found[39_999]), (4, -1, 39_999));
}

/// An array of four numbers in one chunk, in one block.
struct Crafted {
    block: BlockMeta,
    address: ChunkAddress,
}

impl Crafted {
    fn new() -> Self {
        let sizes = 16;
        Self {
            block: BlockMeta {
                id: 0,
                file_offset: 0,
                compressed_size: sizes,
                uncompressed_size: sizes,
                codec: None,
            },
            address: ChunkAddress { block: 0, offset: 0, size: 16 },
        }
    }

    fn file(&self) -> Bytes {
        let meta = ArrayMeta {
            name: "a".to_owned(),
            dtype: DType::Int32,
            shape: vec![4],
            dimension_names: Vec::new(),
            chunk_shape: vec![4],
            fill_value: None,
            deleted: false,
            attributes: Vec::new(),
            index_width: IndexWidth::default(),
        };
        let blocks: Vec<u8> = [1_i32, 2, 3, 4].iter().flat_map(|n| n.to_le_bytes()).collect();
        let array = NewArray { meta: &meta, coords: &[0], addresses: &[self.address] };
        let empty = empty_footer(0, "");
        layer_file(
            &blocks,
            &NewFooter { blocks: std::slice::from_ref(&self.block), arrays: &[array], ..empty },
        )
    }

    async fn read(&self) -> Result<Vec<i32>> {
        let store = memory();
        store.put("x.af", vec![self.file()]).await.unwrap();
        try_read(&open(&store).await, "a").await
    }
}

#[tokio::test]
async fn a_block_of_an_unknown_codec_is_named_in_the_error() {
    assert_eq!(Crafted::new().read().await.unwrap(), [1, 2, 3, 4]);
    let mut crafted = Crafted::new();
    crafted.block.codec = Some("middle-out".to_owned());
    let error = crafted.read().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("middle-out"), "{error}");
}

#[tokio::test]
async fn a_chunk_address_outside_its_block_is_an_error_not_a_panic() {
    let whole = Crafted::new();
    for address in [
        ChunkAddress { offset: 1, ..whole.address },
        ChunkAddress { offset: u32::MAX, ..whole.address },
        ChunkAddress { size: 17, ..whole.address },
        ChunkAddress { size: u32::MAX, ..whole.address },
        ChunkAddress { size: 12, ..whole.address },
        ChunkAddress { block: 1, ..whole.address },
        ChunkAddress { block: u32::MAX, ..whole.address },
    ] {
        let error = Crafted { address, ..Crafted::new() }.read().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{address:?}: {error}");
    }
    for (file_offset, compressed_size) in [(1, 1000), (u64::MAX, 16), (0, u64::MAX), (900, 16)] {
        let block = BlockMeta { file_offset, compressed_size, ..Crafted::new().block };
        let error = Crafted { block, ..Crafted::new() }.read().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{file_offset} {compressed_size}: {error}");
    }
    let block = BlockMeta { uncompressed_size: 20, ..Crafted::new().block };
    let error = Crafted { block, ..Crafted::new() }.read().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[tokio::test]
async fn a_footer_longer_than_its_file_is_corrupt() {
    let file = Crafted::new().file();
    let len = file.len() as u64;
    for footer_len in [len - 11, len, 1 << 40, i64::MAX as u64, u64::MAX - 11, u64::MAX] {
        let mut bytes = file.to_vec();
        let at = bytes.len() - 12;
        bytes[at..at + 8].copy_from_slice(&footer_len.to_le_bytes());
        let store = memory();
        store.put("x.af", vec![bytes.into()]).await.unwrap();
        let error = Container::open(&place(&store), ContainerOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{footer_len}: {error}");
    }
}

#[tokio::test]
async fn creating_over_a_container_is_refused() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        let before = contents(&furnished(&store).await).await.unwrap();
        let create = || async {
            let created = Container::create(&place(&store), ContainerOptions::default()).await;
            created.map(drop)
        };
        let error = create().await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        assert_eq!(contents(&open(&store).await).await.unwrap(), before);
        // The base alone is gone: its sidecars would be those of the new one.
        store.delete(&["x.af".to_owned()]).await.unwrap();
        let error = create().await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        store.delete(&["x.1.af".to_owned(), "x.2.af".to_owned()]).await.unwrap();
        create().await.unwrap();
        assert!(open(&store).await.names().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_failed_flush_keeps_what_was_written() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        let container = create(&store).await;
        container.define(definition("c", &[4], &[2])).await.unwrap();
        container.flush().await.unwrap();
        let (faulty, _fault) = Fault::wrap(&store, Plan::new(0, Mode::FailOnce));
        let container = open(&faulty).await;
        write(&container, "c", &[0], vec![8, 9]).await;
        container.set_attribute("c", "units", text("m")).await.unwrap();
        container.flush().await.unwrap_err();
        assert!(container.is_changed());
        assert_eq!(read(&container, "c").await, [8, 9, 0, 0]);
        // More can be written; then all of it is flushed.
        write(&container, "c", &[3], vec![7]).await;
        container.flush().await.unwrap();
        assert!(!container.is_changed());
        let again = open(&store).await;
        assert_eq!(read(&again, "c").await, [8, 9, 0, 7]);
        assert_eq!(again.attribute("c", "units").await.unwrap(), Some(text("m")));
    }
}

async fn cut(store: &Store, path: &str, keep: usize) {
    let bytes = store.get(path).await.unwrap().bytes;
    store.delete(&[path.to_owned()]).await.unwrap();
    store.put(path, vec![bytes.slice(..keep)]).await.unwrap();
}

#[tokio::test]
async fn a_torn_newest_layer_is_left_out_and_said() {
    let store = memory();
    let container = furnished(&store).await;
    let before = contents(&container).await.unwrap();
    write(&container, "c", &[0], vec![9, 9, 9, 9]).await;
    container.flush().await.unwrap();
    let size = store.head("x.3.af").await.unwrap().size as usize;
    cut(&store, "x.3.af", size - 5).await;
    let container = open(&store).await;
    assert_eq!(contents(&container).await.unwrap(), before);
    let ignored = container.ignored();
    assert_eq!((ignored[0].number, ignored[0].reason), (3, Reason::Torn));
    // Whoever writes must not build on what nobody knows.
    let strict = ContainerOptions { strict: true, ..Default::default() };
    let error = Container::open(&place(&store), strict).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let array = container.array("c").await.unwrap();
    for error in [
        array.writer().map(drop).unwrap_err(),
        container.define(definition("d", &[1], &[1])).await.map(drop).unwrap_err(),
        container.compact(&CompactOptions::default()).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    assert_eq!(contents(&open(&store).await).await.unwrap(), before);
}

#[tokio::test]
async fn a_torn_layer_below_the_newest_is_an_error() {
    let store = memory();
    furnished(&store).await;
    let size = store.head("x.1.af").await.unwrap().size as usize;
    cut(&store, "x.1.af", size - 5).await;
    let error = Container::open(&place(&store), ContainerOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    store.delete(&["x.1.af".to_owned()]).await.unwrap();
    let error = Container::open(&place(&store), ContainerOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[tokio::test]
async fn a_flipped_bit_of_a_block_is_corrupt() {
    let store = memory();
    let codec = chunkyard_engine::store::block_codec("none").unwrap();
    let options = ContainerOptions { codec, ..Default::default() };
    let container = Container::create(&place(&store), options).await.unwrap();
    container.define(definition("a", &[4], &[4])).await.unwrap();
    write(&container, "a", &[0], vec![1, 2, 3, 4]).await;
    container.flush().await.unwrap();
    let mut bytes = store.get("x.1.af").await.unwrap().bytes.to_vec();
    assert_eq!(bytes[..4], [1, 0, 0, 0]);
    bytes[0] ^= 2;
    store.put("x.1.af", vec![bytes.into()]).await.unwrap();
    let error = try_read(&open(&store).await, "a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let error = open(&store).await.compact(&CompactOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[tokio::test]
async fn a_rewritten_path_is_never_served_from_a_cache() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        let container = create(&store).await;
        container.define(definition("a", &[2], &[2])).await.unwrap();
        for value in 1..4 {
            write(&container, "a", &[0], vec![value, value]).await;
            container.flush().await.unwrap();
            assert_eq!(read(&container, "a").await, [value, value]);
            container.compact(&CompactOptions::default()).await.unwrap();
            assert_eq!(read(&container, "a").await, [value, value]);
            assert_eq!(read(&open(&store).await, "a").await, [value, value]);
        }
        // Somebody else rewrites what this handle has read: it says so, or is right.
        let other = open(&store).await;
        write(&other, "a", &[0], vec![9, 9]).await;
        other.compact(&CompactOptions::default()).await.unwrap();
        match try_read(&container, "a").await {
            Ok(found) => assert_eq!(found, [3, 3]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        container.refresh().await.unwrap();
        assert_eq!(read(&container, "a").await, [9, 9]);
    }
}

#[tokio::test]
async fn compacting_with_changes_pending_keeps_them() {
    let store = memory();
    let container = furnished(&store).await;
    write(&container, "c", &[1], vec![20]).await;
    container.define(definition("d", &[1], &[1])).await.unwrap();
    container.compact(&CompactOptions::default()).await.unwrap();
    assert!(!container.is_changed());
    write(&container, "c", &[2], vec![30]).await;
    let flushed = container.flush().await.unwrap().unwrap();
    assert_eq!(flushed.layer, 4);
    let again = open(&store).await;
    assert_eq!(read(&again, "c").await, [1, 20, 30, 4]);
    assert_eq!(again.names().await.unwrap(), ["a/b", "c", "d", "text"]);
    assert_eq!(contents(&again).await.unwrap(), contents(&container).await.unwrap());
}

#[tokio::test]
async fn a_zero_length_axis_can_be_written() {
    let store = memory();
    let container = create(&store).await;
    container.define(Definition::new("a", DType::Int32, &[0, 3])).await.unwrap();
    container.define(definition("b", &[2, 0], &[1, 4])).await.unwrap();
    for name in ["a", "b"] {
        let array = container.array(name).await.unwrap();
        let shape: Vec<u64> = array.described().meta.shape.iter().map(|&n| n.into()).collect();
        let nothing = chunkyard_array::Region::whole(&shape);
        array.writer().unwrap().write_region(&nothing, Bytes::new()).await.unwrap();
    }
    container.flush().await.unwrap();
    let container = open(&store).await;
    assert!(read(&container, "a").await.is_empty());
    // It can grow from there.
    container.resize("a", &[2, 3]).await.unwrap();
    super::support::write_box(&container, "a", &[1, 0], &[1, 3], vec![1, 2, 3]).await;
    container.flush().await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [0, 0, 0, 1, 2, 3]);
}

#[tokio::test]
async fn rewriting_a_chunk_leaves_no_dead_bytes() {
    let sizes = [1, 10].map(|times| async move {
        let store = memory();
        let codec = chunkyard_engine::store::block_codec("none").unwrap();
        let options = ContainerOptions { codec, ..Default::default() };
        let container = Container::create(&place(&store), options).await.unwrap();
        container.define(definition("a", &[1000], &[1000])).await.unwrap();
        for time in 0..times {
            write(&container, "a", &[time], vec![1]).await;
        }
        container.flush().await.unwrap().unwrap().bytes
    });
    let [once, often] = sizes;
    assert_eq!(once.await, often.await);
}

#[tokio::test]
async fn a_fill_value_of_strings_is_what_was_never_written() {
    let store = memory();
    let container = create(&store).await;
    let definition = Definition {
        chunk_shape: Some(vec![2]),
        fill_value: Some(FillValue::String("n/a".to_owned())),
        ..Definition::new("s", DType::String, &[5])
    };
    container.define(definition).await.unwrap();
    write_text(&container, "s", 3, &["", "x"]).await;
    container.flush().await.unwrap();
    for compacted in [false, true] {
        if compacted {
            open(&store).await.compact(&CompactOptions::default()).await.unwrap();
        }
        let container = open(&store).await;
        assert_eq!(read_text(&container, "s").await, ["n/a", "n/a", "n/a", "", "x"]);
        let stats = container.statistics("s").await.unwrap().unwrap();
        assert_eq!((stats.null_count, stats.row_count), (3, 5));
    }
}

#[tokio::test]
async fn a_string_that_is_no_text_is_corrupt() {
    let container = create(&memory()).await;
    container.define(Definition::new("s", DType::String, &[1])).await.unwrap();
    let array = container.array("s").await.unwrap();
    let chunk = [0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
    let written = array.write_chunk(&[0], [&chunk[..], &[0xff]].concat().into()).await;
    let region = chunkyard_array::Region::whole(&[1]);
    let read = match written {
        Err(error) => Err(error),
        Ok(()) => array.reader().unwrap().read_elements(&region).await,
    };
    let error = read.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error}");
}
