//! A store holds bytes, a format says where each chunk is, a reader reads any part of any array.
//!
//! `cargo run -p chunkyard-engine --example read_any`

use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::format::{Level, Meter, OpenOptions, Reader, check};
use chunkyard_engine::open::open;
use chunkyard_engine::store::{Options, Store};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Plain Zarr is a document and a file for each chunk; it could as well be `s3://bucket/prefix` or a directory.
    let url = "memory://read-any/temperature.zarr";
    let plain = vec![serde_json::json!({"name": "bytes"})];
    let spec =
        ArraySpec::builder(&[4, 6], &[2, 3], "uint8").fill_value(255).codecs(plain).build()?;
    let store = Store::open(url, &Options::default())?;
    store.put("zarr.json", vec![spec.render().into()]).await?;
    store.put("c/0/0", vec![vec![1, 2, 3, 4, 5, 6].into()]).await?;

    let opened = open(url, &OpenOptions::default()).await?;
    for (path, node) in opened.source.dataset().arrays() {
        println!(
            "{} {path}: {} {:?}",
            opened.format,
            node.spec.data_type_name(),
            node.spec.shape()
        );
    }
    let located = opened.source.locate("/", &[vec![0, 0], vec![0, 1]]).await?;
    println!("chunk 0,0: {:?}\nchunk 0,1: {:?}", located[0], located[1]);

    // Only chunks that the region touches are fetched; an absent chunk is the fill value.
    let reader = Reader::new(&opened.source, "/")?;
    let values = reader.read_region(&Region::parse("1:3,1:4", &[4, 6])?).await?;
    println!("{:?}", &values[..]);
    assert_eq!(&values[..], [5, 6, 255, 255, 255, 255]);

    let report = check(&opened.source, Level::Bytes, &Meter::default()).await?;
    println!("{:?}: {} chunk(s) decoded", report.verdict, report.checked.chunks);
    assert_eq!((report.errors, report.checked.chunks), (0, 1));
    Ok(())
}
