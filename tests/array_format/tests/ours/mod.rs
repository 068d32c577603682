//! Files of ours.

mod bytes;

use chunkyard_array_format::{Definition, Script, cases, visible};
use chunkyard_engine::format::container::model::{AttributeValue, DType, FillValue};

use crate::matrix::{every, with_all};
use crate::own::Own;
use crate::peer::Peer;

#[tokio::test]
async fn we_read_what_we_wrote() {
    for case in every() {
        let own = Own::of(&case);
        own.play(&case.script).await;
        own.check(&case.name, &visible(&case.script)).await;
    }
}

#[tokio::test]
async fn array_format_reads_what_we_wrote() {
    for case in every() {
        Own::of(&case).play(&case.script).await;
        Peer::of(&case).check(&case.name, &visible(&case.script)).await;
    }
}

#[tokio::test]
async fn both_read_lists_that_we_wrote() {
    let arrays = visible(&cases::lists());
    for case in with_all("lists", &Script::new()) {
        let own = Own::of(&case);
        own.play_raw(&arrays).await;
        own.check_raw(&case.name, &arrays).await;
        Peer::of(&case).check_raw(&case.name, &arrays).await;
    }
}

#[tokio::test]
async fn array_format_goes_on_where_we_stopped() {
    for (name, script) in [("layers", cases::layers()), ("deleted", cases::deleted())] {
        for case in with_all(name, &script) {
            let (peer, own) = (Peer::of(&case), Own::of(&case));
            own.play(&Script::new()).await;
            for (at, layer) in script.layers().iter().enumerate() {
                match at % 2 {
                    0 => own.go_on(layer).await,
                    _ => peer.go_on(layer).await,
                }
            }
            own.check(&case.name, &visible(&script)).await;
            peer.check(&case.name, &visible(&script)).await;
        }
    }
}

/// In this case array-format itself would bring back chunks of the deleted array.
#[tokio::test]
async fn array_format_sees_nothing_of_an_array_that_was_replaced() {
    let define = || Definition::new("a", DType::Int32, &[6]).chunks(&[2]);
    let script = Script::new()
        .whole(define(), 1)
        .flush()
        .delete("a")
        .flush()
        .define(define().fill(FillValue::Int(-1)))
        .write("a", &DType::Int32, &[2], &[1], 2)
        .flush();
    both_see("replaced", &script).await;
}

/// A chunk of nothing but the fill value hides chunks of older layers.
#[tokio::test]
async fn array_format_sees_chunks_that_were_emptied() {
    let definition = Definition::new("a", DType::UInt8, &[5]).chunks(&[2]);
    let zeros = |start, count| chunkyard_array_format::Step::Write {
        name: "a".into(),
        dtype: DType::UInt8,
        start: vec![start],
        shape: vec![count],
        elements: vec![vec![0]; count as usize],
    };
    let script =
        Script::new().whole(definition, 1).flush().then(zeros(0, 2)).then(zeros(4, 1)).flush();
    both_see("emptied", &script).await;
}

/// Attributes of several layers; array-format reads these correctly only from one file.
#[tokio::test]
async fn array_format_reads_attributes_of_several_layers_once_we_compacted() {
    let text = |text: &str| AttributeValue::String(text.into());
    let script = Script::new()
        .whole(Definition::new("a", DType::Int8, &[2]), 1)
        .whole(Definition::new("b", DType::Int8, &[2]), 2)
        .attribute("a", "units", text("K"))
        .attribute("a", "long_name", text("temperature"))
        .flush()
        .attribute("b", "units", text("Pa"))
        .attribute("a", "offset", AttributeValue::Float32(273.15))
        .flush()
        .attribute("a", "units", text("°C"))
        .flush()
        .compact();
    both_see("attributes", &script).await;
}

/// More keys than 16 bits count, which array-format can read but not write.
#[tokio::test]
async fn array_format_reads_wide_attribute_indices() {
    let of = |array: i32| format!("array {array}");
    let script = (0..656).fold(Script::new(), |script, array| {
        let script = script.define(Definition::new(&of(array), DType::Int8, &[2]));
        (array * 100..array * 100 + 100).fold(script, |script, at| {
            script.attribute(&of(array), &format!("{at}"), AttributeValue::Int32(at))
        })
    });
    let case = with_all("wide", &script.flush()).remove(0);
    let own = Own::of(&case);
    own.play(&case.script).await;
    own.check(&case.name, &visible(&case.script)).await;
    let file = Peer::of(&case).open().await;
    for at in [0, 1, 65_535, 65_536, 65_599] {
        let found = file.get_attribute(&of(at / 100), &format!("{at}")).unwrap();
        assert_eq!(found, Some(&array_format::AttributeValue::Int32(at)));
    }
}

async fn both_see(name: &str, script: &Script) {
    for case in with_all(name, script) {
        let own = Own::of(&case);
        own.play(script).await;
        own.check(&case.name, &visible(script)).await;
        Peer::of(&case).check(&case.name, &visible(script)).await;
    }
}
