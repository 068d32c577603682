//! The description itself: array-format 0.9 does what the scripts' model says.

use chunkyard_array_format::{cases, visible};

use crate::peer::{CODECS, Peer};

#[tokio::test]
async fn array_format_reads_what_it_wrote() {
    for (case, script) in cases::all() {
        for codec in CODECS {
            for block in [1, 64, 8 << 20] {
                let directory = tempfile::tempdir().unwrap();
                let peer = Peer::new(directory.path(), codec, block);
                peer.play(&script).await;
                peer.check(&format!("{case}, {codec}, blocks of {block}"), &visible(&script)).await;
            }
        }
    }
}
