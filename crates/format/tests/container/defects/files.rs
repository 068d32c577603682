//! Files that are damaged, or whose content is impossible.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_format::container::model::{
    ArrayMeta, AttributeValue, BlockMeta, ChunkAddress, DType, IndexWidth,
};
use chunkyard_format::container::{CompactOptions, Container, ContainerOptions, Reason};
use chunkyard_format::hostile::container::footer::{NewArray, NewFooter};
use chunkyard_store::{BlockCodec, Error, ErrorKind, Result, Store, register_block_codec};

use crate::container::support::{
    contents, definition, empty_footer, furnished, layer_file, memory, open, place, read, try_read,
    write,
};

/// Inverts all bits.
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
    // Written again by a handle with another codec; the statistics need the old chunk.
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

async fn cut(store: &Store, path: &str, keep: usize) {
    let bytes = store.get(path).await.unwrap().bytes;
    store.delete(&[path.to_owned()]).await.unwrap();
    store.put(path, vec![bytes.slice(..keep)]).await.unwrap();
}

#[tokio::test]
async fn a_torn_newest_layer_is_left_out_and_reported() {
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
    // A writer must not build on an unknown state.
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
    let codec = chunkyard_store::block_codec("none").unwrap();
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

/// Three arrays of another program: the chunks of the first two share a block with an unknown codec,
/// the block of the third has no codec.
fn with_unknown_codec() -> Bytes {
    let meta = |name: &str| ArrayMeta {
        name: name.to_owned(),
        dtype: DType::Int32,
        shape: vec![2],
        dimension_names: Vec::new(),
        chunk_shape: vec![2],
        fill_value: None,
        deleted: false,
        attributes: Vec::new(),
        index_width: IndexWidth::default(),
    };
    let block = |id: u32, file_offset, codec: Option<&str>| BlockMeta {
        id,
        file_offset,
        compressed_size: 8,
        uncompressed_size: if codec.is_some() { 16 } else { 8 },
        codec: codec.map(str::to_owned),
    };
    let blocks = [block(0, 0, Some("middle-out")), block(1, 8, None)];
    let (a, b, c) = (meta("a"), meta("b"), meta("c"));
    let chunk = |block, offset| [ChunkAddress { block, offset, size: 8 }];
    let addresses = [chunk(0, 0), chunk(0, 8), chunk(1, 0)];
    let array = |meta, at: usize| NewArray { meta, coords: &[0], addresses: &addresses[at] };
    let bytes: Vec<u8> = [77_i32, 78, 3, 4].iter().flat_map(|n| n.to_le_bytes()).collect();
    let arrays = [array(&a, 0), array(&b, 1), array(&c, 2)];
    layer_file(&bytes, &NewFooter { blocks: &blocks, arrays: &arrays, ..empty_footer(0, "") })
}

#[tokio::test]
async fn an_unknown_codec_does_not_stop_work_that_needs_no_elements() {
    let store = memory();
    store.put("x.af", vec![with_unknown_codec()]).await.unwrap();
    let container = open(&store).await;
    // Attributes of the array itself, and of another one.
    for name in ["a", "c"] {
        container.set_attribute(name, "units", AttributeValue::Int8(5)).await.unwrap();
    }
    container.flush().await.unwrap();
    write(&container, "c", &[0], vec![9]).await;
    container.flush().await.unwrap();
    container.compact(&CompactOptions::default()).await.unwrap();
    let container = open(&store).await;
    assert_eq!(container.layers().await.unwrap().len(), 1);
    assert_eq!(read(&container, "c").await, [9, 4]);
    assert_eq!(container.attribute("a", "units").await.unwrap(), Some(AttributeValue::Int8(5)));
    for name in ["a", "b"] {
        let error = try_read(&container, name).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert_eq!(container.statistics(name).await.unwrap(), None);
    }
    // Its bytes are there, once.
    let bytes = store.get("x.af").await.unwrap().bytes;
    let packed: Vec<u8> = [77_i32, 78].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(bytes.windows(8).filter(|window| *window == packed).count(), 1);
    let repack = CompactOptions { repack: true, ..CompactOptions::default() };
    let error = container.compact(&repack).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    for part in ["middle-out", "\"a\""] {
        assert!(error.to_string().contains(part), "{part} in {error}");
    }
}
