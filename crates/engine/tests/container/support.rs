//! A container somewhere, and small arrays in it.

use chunkyard_array::Region;
use chunkyard_engine::format::Place;
use chunkyard_engine::format::container::model::DType;
use chunkyard_engine::format::container::{Container, ContainerOptions, Definition};
use chunkyard_engine::store::{Options, Store};

/// A place for a container in a store.
pub(crate) fn place(store: &Store) -> Place {
    Place::within(store.clone(), "x.af").unwrap()
}

/// A store in memory that nobody else uses.
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
) -> chunkyard_engine::Result<Vec<i32>> {
    let array = container.array(name).await?;
    let shape: Vec<u64> = array.described().meta.shape.iter().map(|&n| n.into()).collect();
    let bytes = array.reader()?.read_region(&Region::whole(&shape)).await?;
    Ok(bytes.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect())
}
