//! Files of array-format 0.9.

use chunkyard_array_format::{Definition, Script, cases, visible};
use chunkyard_engine::format::container::model::{AttributeValue, DType};

mod mixed;

use crate::matrix::{every, with_all};
use crate::own::Own;
use crate::peer::Peer;

/// So the scripts' model is right.
#[tokio::test]
async fn array_format_reads_what_it_wrote() {
    for case in every() {
        let peer = Peer::of(&case);
        peer.play(&case.script).await;
        peer.check(&case.name, &visible(&case.script)).await;
    }
}

#[tokio::test]
async fn we_read_what_array_format_wrote() {
    for case in every() {
        Peer::of(&case).play(&case.script).await;
        Own::of(&case).check(&case.name, &visible(&case.script)).await;
    }
}

#[tokio::test]
async fn both_read_lists_that_array_format_wrote() {
    let arrays = visible(&cases::lists());
    for case in with_all("lists", &Script::new()) {
        let peer = Peer::of(&case);
        peer.play_raw(&arrays).await;
        peer.check_raw(&case.name, &arrays).await;
        Own::of(&case).check_raw(&case.name, &arrays).await;
    }
}

/// array-format stores an extent of 0 for a chunk of such an array, which no grid can have.
#[tokio::test]
async fn we_read_chunks_without_extent() {
    let script = Script::new().define(Definition::new("a", DType::Float32, &[0, 3])).flush();
    for case in with_all("no extent", &script) {
        Peer::of(&case).play(&script).await;
        let container = Own::of(&case).open().await;
        let described = container.describe("a").await.unwrap();
        assert_eq!(described.meta.shape, [0, 3]);
        let reader = container.array("a").await.unwrap().reader().unwrap().clone();
        let whole = chunkyard_array::Region::whole(&[0, 3]);
        assert_eq!(reader.read_region(&whole).await.unwrap().len(), 0);
    }
}

#[tokio::test]
async fn we_go_on_where_array_format_stopped() {
    for (name, script) in [("layers", cases::layers()), ("deleted", cases::deleted())] {
        for case in with_all(name, &script) {
            let (peer, own) = (Peer::of(&case), Own::of(&case));
            peer.play(&Script::new()).await;
            for (at, layer) in script.layers().iter().enumerate() {
                match at % 2 {
                    0 => peer.go_on(layer).await,
                    _ => own.go_on(layer).await,
                }
            }
            own.check(&case.name, &visible(&script)).await;
            peer.check(&case.name, &visible(&script)).await;
        }
    }
}

/// Compaction of ours makes one consistent file of layers of theirs.
#[tokio::test]
async fn we_compact_what_array_format_wrote() {
    for case in every() {
        let (peer, own) = (Peer::of(&case), Own::of(&case));
        peer.play(&case.script).await;
        let compact = Script::new()
            .define(Definition::new("zzz", DType::Int8, &[1]))
            .attribute("zzz", "units", AttributeValue::Bool(true))
            .flush()
            .compact();
        own.go_on(&compact).await;
        let mut script = case.script.clone();
        script.steps.extend(compact.steps);
        own.check(&case.name, &visible(&script)).await;
        peer.check(&case.name, &visible(&script)).await;
    }
}
