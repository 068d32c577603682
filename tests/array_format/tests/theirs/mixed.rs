//! Attributes that are set in more than one layer, whose dictionaries array-format 0.9 mixes.

use chunkyard_array_format::{Definition, Script};
use chunkyard_engine::format::container::model::{AttributeValue, DType};

use crate::matrix::with_all;
use crate::own::Own;
use crate::peer::Peer;

fn text(text: &str) -> AttributeValue {
    AttributeValue::String(text.to_owned())
}

/// Arrays a, b and c without attributes.
fn arrays() -> Script {
    let define = |script: Script, name| script.define(Definition::new(name, DType::Int8, &[2]));
    ["a", "b", "c"].into_iter().fold(Script::new(), define)
}

/// The value that we read of an attribute, our warnings about it, and whether array-format reads
/// the same.
async fn read(script: &Script, array: &str, key: &str) -> (AttributeValue, Vec<String>, bool) {
    let case = with_all("mixed", script).into_iter().next().unwrap();
    let (peer, own) = (Peer::of(&case), Own::of(&case));
    peer.play(script).await;
    let container = own.open().await;
    let value = container.attribute(array, key).await.unwrap().unwrap();
    let of_key = format!("attribute {key:?} ");
    let mut said = container.mixed(array).await.unwrap();
    said.retain(|said| said.contains(&of_key));
    let alike = peer.reads(array, key, &value).await;
    (value, said, alike)
}

#[tokio::test]
async fn an_attribute_that_is_set_again_is_read_as_it_was_set_last() {
    let script = arrays().attribute("a", "units", text("K")).flush();
    let script = script.attribute("a", "units", text("m")).flush();
    assert_eq!(read(&script, "a", "units").await, (text("m"), vec![], true));
}

/// The key of b has the same number as the key of a in the layer below.
#[tokio::test]
async fn an_attribute_that_may_belong_to_another_array_is_reported() {
    let script = arrays().attribute("a", "units", text("K")).flush();
    let script = script
        .attribute("b", "units", text("m"))
        .attribute("a", "offset", AttributeValue::Int8(5))
        .flush();
    let (value, said, alike) = read(&script, "a", "units").await;
    assert_eq!((value, alike), (text("m"), true));
    assert!(said.len() == 1 && said[0].contains("\"K\""), "{said:?}");
}

/// array-format looks up the number of a value in the newest layer that has so many values.
#[tokio::test]
async fn an_attribute_that_array_format_reads_wrongly_is_reported() {
    let script = arrays().attribute("a", "units", text("K")).flush();
    let script = script.attribute("b", "title", text("north")).flush();
    let (value, said, alike) = read(&script, "a", "units").await;
    assert_eq!((value, alike), (text("K"), false));
    assert!(said.len() == 1 && said[0].contains("0.9 reads \"north\""), "{said:?}");
}

#[tokio::test]
async fn both_read_the_same_attributes_or_the_difference_is_reported() {
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut differences = 0;
    for round in 0..24 {
        let mut script = arrays();
        for layer in 0..2 + round % 4 {
            for _ in 0..1 + next(4) {
                let array = ["a", "b", "c"][next(3) as usize];
                let key = format!("k{}", next(4));
                script = script.attribute(
                    array,
                    &key,
                    AttributeValue::Int64(layer * 100 + next(9) as i64),
                );
            }
            script = script.flush();
        }
        let case = with_all("mixed", &script).into_iter().next().unwrap();
        let peer = Peer::of(&case);
        peer.play(&script).await;
        let container = Own::of(&case).open().await;
        for array in ["a", "b", "c"] {
            let said = container.mixed(array).await.unwrap();
            for (key, value) in &container.describe(array).await.unwrap().attributes {
                let of_key = format!("attribute {key:?} ");
                let is_said = said.iter().any(|said| said.contains(&of_key));
                let alike = peer.reads(array, key, value).await;
                assert!(alike || is_said, "{round}: {array} {key} {value:?}");
                differences += usize::from(!alike);
            }
        }
    }
    assert!(differences > 0, "nothing was mixed");
}
