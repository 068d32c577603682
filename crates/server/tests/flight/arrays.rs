//! Regions of arrays as record batches.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::repo::{CommitOptions, CreateOptions, OpenOptions, Repository};
use serde_json::{Value, json};
use tonic::Code;

use super::support::{Fetched, Server};

const SHAPE: [u64; 3] = [30, 50, 70];

fn element(z: u64, y: u64, x: u64) -> u16 {
    (z * 3500 + y * 70 + x) as u16
}

/// A repository with an array and a scalar.
async fn weather(directory: &Path) {
    let url = directory.to_str().unwrap();
    let (open, create) = (OpenOptions::default(), CreateOptions::default());
    let repo = Repository::create(url, open, create).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&SHAPE, &[7, 16, 32], "uint16").build().unwrap();
    let array = session.create_array("/temperature", spec).await.unwrap();
    let mut bytes = Vec::new();
    for z in 0..SHAPE[0] {
        for y in 0..SHAPE[1] {
            (0..SHAPE[2]).for_each(|x| bytes.extend(element(z, y, x).to_le_bytes()));
        }
    }
    array.write_region(&Region::whole(&SHAPE), bytes.into()).await.unwrap();
    let spec = ArraySpec::builder(&[], &[], "uint16").build().unwrap();
    let scalar = session.create_array("/scalar", spec).await.unwrap();
    scalar.write_region(&Region::whole(&[]), vec![7, 0].into()).await.unwrap();
    session.commit(CommitOptions::message("values")).await.unwrap();
}

fn numbers(list: &dyn arrow_array::Array) -> Vec<u64> {
    list.as_primitive::<UInt64Type>().values().to_vec()
}

/// Puts boxes together, each element once.
fn together(fetched: &Fetched, region: &Region) -> Vec<u16> {
    let mut found = vec![None; region.num_elements() as usize];
    for batch in &fetched.batches {
        for row in 0..batch.num_rows() {
            let origin = numbers(&*batch["origin"].as_list::<i32>().value(row));
            let shape = numbers(&*batch["shape"].as_list::<i32>().value(row));
            let data = batch["data"].as_binary::<i32>().value(row);
            let one = Region::new(origin.clone(), shape.clone()).unwrap();
            assert_eq!(data.len() as u64, one.num_elements() * 2);
            for (number, element) in data.chunks(2).enumerate() {
                let (mut rest, mut at) = (number as u64, vec![0; shape.len()]);
                for axis in (0..shape.len()).rev() {
                    at[axis] = origin[axis] + rest % shape[axis] - region.origin()[axis];
                    rest /= shape[axis];
                }
                let place = at.iter().zip(region.shape()).fold(0, |all, (at, n)| all * n + at);
                let element = u16::from_le_bytes(element.try_into().unwrap());
                assert_eq!(found[place as usize].replace(element), None, "{one} twice");
            }
        }
    }
    found.into_iter().map(Option::unwrap).collect()
}

fn ticket(path: &str, region: &str) -> Vec<u8> {
    let wanted = json!({ "source": "weather", "at": "main", "path": path, "region": region });
    json!({ "array": wanted }).to_string().into_bytes()
}

#[tokio::test]
async fn any_region_arrives_and_its_schema_says_what_it_is() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("weather");
    weather(&source).await;
    let server = Server::with(&source, &place.path().join("jobs"), |config| {
        config.places = [("weather".to_owned(), source.to_str().unwrap().to_owned())].into();
    });
    let mut client = server.client().await;
    for (text, region) in [
        ("", Region::whole(&SHAPE)),
        ("3:28,:,5", Region::new([3, 0, 5], [25, 50, 1]).unwrap()),
        ("7:14,16:32,32:64", Region::new([7, 16, 32], [7, 16, 32]).unwrap()),
        ("5:5", Region::new([5, 0, 0], [0, 50, 70]).unwrap()),
    ] {
        let fetched = client.get(ticket("/temperature", text)).await.unwrap();
        let mut expected = Vec::new();
        let (start, end) = (region.origin(), region.end());
        for z in start[0]..end[0] {
            for y in start[1]..end[1] {
                expected.extend((start[2]..end[2]).map(|x| element(z, y, x)));
            }
        }
        assert!(together(&fetched, &region) == expected, "{text}");
        let [schema] = &fetched.schemas[..] else { panic!("one schema") };
        let about = |key: &str| schema.metadata()[key].clone();
        assert_eq!((about("dtype").as_str(), about("path").as_str()), ("uint16", "/temperature"));
        let list = |key: &str| serde_json::from_str::<Vec<u64>>(&about(key)).unwrap();
        assert_eq!((list("shape"), list("origin")), (region.shape().to_vec(), start.to_vec()));
        assert_eq!(list("array_shape"), SHAPE);
    }
    let scalar = client.get(ticket("/scalar", "")).await.unwrap();
    assert_eq!(together(&scalar, &Region::whole(&[])), [7]);
    for (wanted, code) in [
        (json!({ "source": "elsewhere", "path": "/temperature" }), Code::NotFound),
        (json!({ "source": "weather", "path": "/none" }), Code::NotFound),
        (json!({ "source": "weather" }), Code::InvalidArgument),
        (
            json!({ "source": "weather", "path": "/temperature", "region": "0:31" }),
            Code::InvalidArgument,
        ),
        (
            json!({ "source": "weather", "path": "/temperature", "region": "a" }),
            Code::InvalidArgument,
        ),
        (json!({ "source": "weather", "path": "/temperature", "at": "none" }), Code::NotFound),
    ] {
        let body = json!({ "array": wanted }).to_string().into_bytes();
        let status = client.get(body).await.err().unwrap();
        assert_eq!(status.code(), code, "{wanted}: {}", status.message());
    }
    let descriptor = arrow_flight::FlightDescriptor::new_cmd(ticket("/temperature", "3:28,:,5"));
    let info = client.inner.get_flight_info(descriptor).await.unwrap().into_inner();
    assert_eq!(info.total_bytes, 25 * 50 * 2);
    let [endpoint] = &info.endpoint[..] else { panic!("one endpoint") };
    let ticket = endpoint.ticket.clone().unwrap().ticket.to_vec();
    let again: Value = serde_json::from_slice(&ticket).unwrap();
    assert_eq!(again["array"]["region"], "3:28,:,5");
    let region = Region::new([3, 0, 5], [25, 50, 1]).unwrap();
    assert_eq!(together(&client.get(ticket).await.unwrap(), &region).len(), 1250);
}
