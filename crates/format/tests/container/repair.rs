//! A torn newest layer is set aside, wherever the container is.

use chunkyard_format::container::{CompactOptions, Container, ContainerOptions, Reason, Repaired};
use chunkyard_store::{ErrorKind, Store};

use super::support::{contents, directory, files, furnished, memory, open, place, write};

async fn replace(store: &Store, path: &str, bytes: Vec<u8>) {
    store.put(path, vec![bytes.into()]).await.unwrap();
}

async fn bytes_of(store: &Store, path: &str) -> Vec<u8> {
    store.get(path).await.unwrap().bytes.to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_layer_keeps_its_bytes_under_another_name() {
    let (_temp, local) = directory();
    for store in [local, memory()] {
        furnished(&store).await;
        assert_eq!(Container::repair(&place(&store)).await.unwrap(), []);
        let mut torn = bytes_of(&store, "x.2.af").await;
        torn.truncate(torn.len() - 1);
        replace(&store, "x.2.af", torn.clone()).await;
        let before = contents(&open(&store).await).await.unwrap();
        let strict = ContainerOptions { strict: true, ..ContainerOptions::default() };
        let refused = Container::open(&place(&store), strict.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);

        let repaired = Container::repair(&place(&store)).await.unwrap();
        let [Repaired { file, renamed }] = repaired.as_slice() else { panic!("{repaired:?}") };
        assert_eq!((file.reason, renamed.as_deref()), (Reason::Torn, Some("x.2.torn")));
        assert_eq!(bytes_of(&store, "x.2.torn").await, torn);
        assert!(!files(&store).await.contains(&"x.2.af".to_owned()));
        let again = Container::open(&place(&store), strict).await.unwrap();
        assert_eq!(contents(&again).await.unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_was_interrupted_is_done_again_and_another_torn_layer_is_not_lost() {
    let store = memory();
    furnished(&store).await;
    replace(&store, "x.2.af", b"torn".to_vec()).await;
    replace(&store, "x.2.torn", b"torn".to_vec()).await;
    assert_eq!(Container::repair(&place(&store)).await.unwrap().len(), 1);
    replace(&store, "x.2.af", b"rent".to_vec()).await;
    let refused = Container::repair(&place(&store)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert_eq!(bytes_of(&store, "x.2.af").await, b"rent");
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_that_a_compaction_left_behind_are_deleted() {
    let store = memory();
    let container = furnished(&store).await;
    let left = bytes_of(&store, "x.2.af").await;
    container.compact(&CompactOptions::default()).await.unwrap();
    let before = contents(&container).await.unwrap();
    replace(&store, "x.2.af", left).await;
    let repaired = Container::repair(&place(&store)).await.unwrap();
    assert_eq!(repaired.len(), 1);
    assert_eq!((repaired[0].file.reason, &repaired[0].renamed), (Reason::Merged, &None));
    assert_eq!(files(&store).await, ["x.af", "x.stats"]);
    assert_eq!(contents(&open(&store).await).await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_of_an_unknown_version_is_not_torn() {
    let store = memory();
    furnished(&store).await;
    let mut newer = bytes_of(&store, "x.2.af").await;
    // The version stands before the checksum and the magic at the end of the seal.
    let magic = b"CYARDAF1";
    let at = newer.windows(magic.len()).position(|bytes| bytes == magic).unwrap();
    newer[at - 8] = 2;
    // With the right checksum: anything else would be damage.
    let crc = checksum(&newer[at + 8 - 116..at - 4]);
    newer[at - 4..at].copy_from_slice(&crc.to_le_bytes());
    replace(&store, "x.2.af", newer.clone()).await;
    let refused = Container::repair(&place(&store)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    assert_eq!(bytes_of(&store, "x.2.af").await, newer);
}

/// CRC-32C, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_newest_layer_is_corrupt_until_it_is_set_aside() {
    let store = memory();
    let container = furnished(&store).await;
    let before = contents(&container).await.unwrap();
    write(&container, "c", &[0], vec![9]).await;
    container.flush().await.unwrap();
    let mut bytes = bytes_of(&store, "x.3.af").await;
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    replace(&store, "x.3.af", bytes.clone()).await;
    let error = Container::open(&place(&store), ContainerOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    for part in ["x.3.af", "--at 2", "--snapshot 2", "chunkyard af repair"] {
        assert!(error.to_string().contains(part), "{part} in {error}");
    }
    // An older state can be read by its number.
    let asked = ContainerOptions { as_of: Some(2), ..ContainerOptions::default() };
    let older = Container::open(&place(&store), asked).await.unwrap();
    assert_eq!(contents(&older).await.unwrap(), before);

    let repaired = Container::repair(&place(&store)).await.unwrap();
    let [Repaired { file, renamed }] = repaired.as_slice() else { panic!("{repaired:?}") };
    assert_eq!((file.reason, renamed.as_deref()), (Reason::Damaged, Some("x.3.damaged")));
    assert_eq!(bytes_of(&store, "x.3.damaged").await, bytes);
    assert_eq!(contents(&open(&store).await).await.unwrap(), before);
}
