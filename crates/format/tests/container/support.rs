//! A container somewhere, and small arrays in it.

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_array::{ElementsBuf, Region};
use chunkyard_format::Place;
use chunkyard_format::container::model::{AttributeValue, DType};
use chunkyard_format::container::{Container, ContainerOptions, Definition};
use chunkyard_format::hostile::container::footer::{NewFooter, render};
use chunkyard_format::hostile::container::trailer::render_trailer;
use chunkyard_store::{Options, Store};

/// A place for a container in a store.
pub(crate) fn place(store: &Store) -> Place {
    Place::within(store.clone(), "x.af").unwrap()
}

/// A store in memory of its own.
pub(crate) fn memory() -> Store {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let url = format!("memory://container-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Store::open(&url, &Options::default()).unwrap()
}

/// A store in a temporary directory.
pub(crate) fn directory() -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(temp.path().to_str().unwrap(), &Options::default()).unwrap();
    (temp, store)
}

pub(crate) async fn create(store: &Store) -> Container {
    Container::create(&place(store), ContainerOptions::default()).await.unwrap()
}

pub(crate) async fn open(store: &Store) -> Container {
    Container::open(&place(store), ContainerOptions::default()).await.unwrap()
}

pub(crate) fn definition(name: &str, shape: &[u64], chunk_shape: &[u64]) -> Definition {
    Definition {
        chunk_shape: Some(chunk_shape.to_vec()),
        ..Definition::new(name, DType::Int32, shape)
    }
}

pub(crate) async fn write(container: &Container, name: &str, origin: &[u64], values: Vec<i32>) {
    write_box(container, name, origin, &[values.len() as u64], values).await;
}

pub(crate) async fn write_box(
    container: &Container,
    name: &str,
    origin: &[u64],
    shape: &[u64],
    values: Vec<i32>,
) {
    let array = container.array(name).await.unwrap();
    let region = Region::new(origin, shape).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    array.writer().unwrap().write_region(&region, bytes.into()).await.unwrap();
}

pub(crate) async fn read(container: &Container, name: &str) -> Vec<i32> {
    try_read(container, name).await.unwrap()
}

pub(crate) async fn try_read(
    container: &Container,
    name: &str,
) -> chunkyard_store::Result<Vec<i32>> {
    let array = container.array(name).await?;
    let shape: Vec<u64> = array.described().meta.shape.iter().map(|&n| n.into()).collect();
    let bytes = array.reader()?.read_region(&Region::whole(&shape)).await?;
    Ok(bytes.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect())
}

/// The content of a container, by array: description and elements.
pub(crate) type Contents = BTreeMap<String, String>;

/// Reads everything.
pub(crate) async fn contents(container: &Container) -> chunkyard_store::Result<Contents> {
    let mut contents = Contents::new();
    for name in container.names().await? {
        let array = container.array(&name).await?;
        let described = array.described();
        let mut attributes = described.attributes.clone();
        attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let meta = &described.meta;
        let shape: Vec<u64> = meta.shape.iter().map(|&n| n.into()).collect();
        let elements = array.reader()?.read_elements(&Region::whole(&shape)).await?;
        let what = (&meta.dtype, &meta.shape, &meta.chunk_shape, &meta.fill_value, attributes);
        contents.insert(name, format!("{what:?} {elements:?}"));
    }
    Ok(contents)
}

/// A layer as another program writes it: blocks and footer, without a seal.
pub(crate) fn layer_file(blocks: &[u8], footer: &NewFooter<'_>) -> Bytes {
    let payload = render(footer).unwrap();
    let trailer = render_trailer(payload.len() as u64);
    [blocks, &payload, &trailer].concat().into()
}

/// A footer without arrays: the base of an empty container, or a layer of one.
pub(crate) fn empty_footer(overlay_index: u32, base_file_hint: &str) -> NewFooter<'_> {
    NewFooter {
        blocks: &[],
        arrays: &[],
        attr_keys: &[],
        attr_values: &[],
        overlay_index,
        base_file_hint,
    }
}

/// The names of all files beside a container, sorted.
pub(crate) async fn files(store: &Store) -> Vec<String> {
    let found = store.list_dir("").await.unwrap().objects;
    let mut names: Vec<String> = found.into_iter().map(|meta| meta.path).collect();
    names.sort();
    names
}

/// A container with two layers over its base: chunks of two arrays, strings, attributes.
pub(crate) async fn furnished(store: &Store) -> Container {
    let container = create(store).await;
    container.define(definition("a/b", &[5, 5], &[2, 3])).await.unwrap();
    container.define(definition("c", &[4], &[2])).await.unwrap();
    container
        .define(Definition {
            chunk_shape: Some(vec![2]),
            ..Definition::new("text", DType::String, &[3])
        })
        .await
        .unwrap();
    container.set_attribute("c", "units", AttributeValue::String("K".into())).await.unwrap();
    write_box(&container, "a/b", &[0, 0], &[5, 5], (1..26).collect()).await;
    write(&container, "c", &[0], vec![1, 2, 3, 4]).await;
    write_text(&container, "text", 0, &["one", "", "three"]).await;
    container.flush().await.unwrap();
    write_box(&container, "a/b", &[1, 1], &[2, 2], vec![-1, -2, -3, -4]).await;
    container.set_attribute("a/b", "offset", AttributeValue::Int64(7)).await.unwrap();
    container.flush().await.unwrap();
    container
}

/// Writes strings into an array of one dimension.
pub(crate) async fn write_text(container: &Container, name: &str, at: u64, values: &[&str]) {
    let array = container.array(name).await.unwrap();
    let region = Region::new([at], [values.len() as u64]).unwrap();
    array.writer().unwrap().write_elements(&region, text(values)).await.unwrap();
}

/// Strings as elements.
pub(crate) fn text(values: &[&str]) -> ElementsBuf {
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend(value.as_bytes());
        offsets.push(bytes.len() as u64);
    }
    ElementsBuf::Variable { bytes, offsets }
}

/// Reads strings of an array of one dimension.
pub(crate) async fn read_text(container: &Container, name: &str) -> Vec<String> {
    let array = container.array(name).await.unwrap();
    let region = Region::whole(&[array.described().meta.shape[0].into()]);
    match array.reader().unwrap().read_elements(&region).await.unwrap() {
        ElementsBuf::Variable { bytes, offsets } => offsets
            .windows(2)
            .map(|pair| {
                String::from_utf8(bytes[pair[0] as usize..pair[1] as usize].to_vec()).unwrap()
            })
            .collect(),
        fixed => panic!("{fixed:?}"),
    }
}
