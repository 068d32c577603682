//! Objects written piece by piece, with a fault at every step.

use chunkyard_store::fault::{Fault, Mode, Plan, Refusal, at_every_operation};
use chunkyard_store::{Durability, ErrorKind, Result, Store, TEMP_PREFIX};

use super::{buffers, content, deaths, memory, names, scratch};

/// Uploads in two pieces, and makes it durable.
async fn upload(store: &Store) -> Result<()> {
    let mut upload = store.begin("d/a").await?;
    upload.write(buffers(["new ", "and "])).await?;
    upload.write(buffers(["longer"])).await?;
    upload.finish().await?;
    store.sync(&["d/a".into()]).await
}

#[tokio::test]
async fn an_upload_is_all_or_nothing_wherever_it_dies() {
    for (mode, unsynced) in deaths() {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let n = attempt.at();
            let directory = scratch(Durability::None);
            directory.put("d/a", buffers(["old"])).await.unwrap();
            let plan = attempt.plan();
            let (store, fault) = attempt.wrap(&directory);
            let outcome = upload(&store).await;
            assert_eq!(outcome.is_err(), fault.fired(), "{plan:?}");
            let left = content(&directory, "d/a").await.unwrap();
            let log = fault.log();
            if outcome.is_ok() {
                let ops = ["begin d/a", "write d/a", "write d/a", "finish d/a", "sync d/a"];
                assert_eq!(log, ops);
                fault.die().await.unwrap();
                assert_eq!(content(&directory, "d/a").await.unwrap(), "new and longer");
                break;
            }
            assert!(left == "old" || left == "new and longer", "{plan:?}: {left:?}");
            assert!(left == "old" || n >= 3, "{plan:?}: visible before it was finished");
            // A killed process cleans up nothing; a later one recognises the leftovers by name.
            for name in names(&directory, "d").await {
                assert!(name == "d/a" || name.starts_with(&format!("d/{TEMP_PREFIX}")), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn an_upload_that_fails_on_a_live_machine_leaves_nothing() {
    let full = Mode::Refuse(Refusal::NoSpace);
    for mode in [full, Mode::FailOnce, Mode::LoseReply] {
        for n in 0..4 {
            let directory = scratch(Durability::None);
            let (store, fault) = Fault::wrap(&directory, Plan::new(n, mode));
            let error = upload(&store).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Store);
            assert!(fault.fired());
            let happened = mode == Mode::LoseReply && n == 3;
            assert_eq!(names(&directory, "").await.len(), usize::from(happened), "{mode:?} {n}");
        }
    }
}

#[tokio::test]
async fn nothing_is_written_after_a_piece_that_failed() {
    for store in [&scratch(Durability::None).store, &memory("spoilt-upload")] {
        let (faulty, _) = Fault::wrap(store, Plan::new(1, Mode::FailOnce));
        let mut upload = faulty.begin("a").await.unwrap();
        assert!(upload.write(buffers(["lost"])).await.is_err());
        assert!(upload.write(buffers(["rest"])).await.is_err());
        assert!(upload.finish().await.is_err());
        assert!(content(store, "a").await.is_none());
    }
}
