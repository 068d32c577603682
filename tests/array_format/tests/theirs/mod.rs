//! Files of array-format 0.9.

use chunkyard_array_format::{cases, visible};

use crate::peer::{CODECS, Peer};

/// Target sizes of blocks: one per chunk, a few chunks each, all in one.
const BLOCKS: [usize; 3] = [1, 64, 8 << 20];

/// So the scripts' model is right.
#[tokio::test]
async fn array_format_reads_what_it_wrote() {
    for (case, script) in cases::all() {
        for codec in CODECS {
            for block in BLOCKS {
                let directory = tempfile::tempdir().unwrap();
                let peer = Peer::new(directory.path(), codec, block);
                peer.play(&script).await;
                peer.check(&format!("{case}, {codec}, blocks of {block}"), &visible(&script)).await;
            }
        }
    }
}

#[tokio::test]
async fn array_format_reads_raw_chunks_that_it_wrote() {
    let arrays = visible(&cases::lists());
    for codec in CODECS {
        let directory = tempfile::tempdir().unwrap();
        let peer = Peer::new(directory.path(), codec, 64);
        peer.play_raw(&arrays).await;
        peer.check_raw(codec, &arrays).await;
    }
}
