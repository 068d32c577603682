//! Runs of references: they stay few however many commits there are, and no merge changes what a
//! reader sees.

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_repo::{CommitOptions, Config, Inventory, Repository, Version};
use futures::TryStreamExt;

use super::support::{
    bytes_spec, collect, create, memory, read_at, reopen, repetitions, sound, tiny, write,
};

/// Runs of an array by their level.
async fn runs(repo: &Repository, path: &str) -> BTreeMap<u32, usize> {
    let session = repo.readonly_session(&Version::Default).await.unwrap();
    let mut levels = BTreeMap::new();
    for entry in &session.node(path).unwrap().inventories {
        if entry.flags & Inventory::CONTINUES == 0 {
            *levels.entry(entry.level()).or_default() += 1;
        }
    }
    levels
}

/// Deterministic steps through an array of 40 chunks of one element: writes, overwrites, removals.
#[tokio::test]
async fn runs_stay_few_over_many_commits_and_nothing_is_lost() {
    let store = memory();
    let repo = create(&store, tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[40], &[1])).await.unwrap();
    session.create_array("/rare", bytes_spec(&[4], &[1])).await.unwrap();
    write(&session, "/rare", "0:4", 9).await.unwrap();
    session.commit(CommitOptions::message("base")).await.unwrap();
    let mut model = vec![0u8; 40];
    for n in 0..repetitions(500u64, 130) {
        let at = (n * 17 + n / 7) % 40;
        let value = if n % 5 == 3 { 0 } else { 1 + (n % 250) as u8 };
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/a", &format!("{at}:{}", at + 1), value).await.unwrap();
        let options = CommitOptions { allow_empty: true, ..CommitOptions::message("x") };
        session.commit(options).await.unwrap();
        model[at as usize] = value;
        if n % 25 == 0 {
            let levels = runs(&repo, "/a").await;
            assert!(levels.values().all(|count| *count < 4), "after {n}: {levels:?}");
            assert!(levels.len() < 8, "after {n}: {levels:?}");
            let fresh = reopen(&store).await;
            assert_eq!(read_at(&fresh, &Version::Default, "/a").await.unwrap(), model, "{n}");
            let session = fresh.readonly_session(&Version::Default).await.unwrap();
            let live = model.iter().filter(|value| **value != 0).count() as u64;
            assert_eq!(session.node("/a").unwrap().refs_count, live, "after {n}");
        }
    }
    assert_eq!(runs(&repo, "/rare").await.values().sum::<usize>(), 1, "untouched");
    let levels = runs(&repo, "/a").await;
    let report = repo.optimise("main").await.unwrap();
    assert_eq!(report.arrays, 1);
    assert_eq!(report.entries_before as usize, levels.values().sum::<usize>() + 1);
    assert_eq!(report.entries_after, 2);
    assert_eq!(repo.optimise("main").await.unwrap().snapshot, None, "nothing left to merge");
    let repo = reopen(&store).await;
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), model);
    sound(&repo).await;
}

#[tokio::test]
async fn an_array_whose_chunks_are_all_removed_has_no_references_left() {
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[4], &[1])).await.unwrap();
    write(&session, "/a", "0:4", 1).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    write(&session, "/a", "0:4", 0).await.unwrap();
    session.commit(CommitOptions::message("y")).await.unwrap();
    repo.optimise("main").await.unwrap();
    let repo = reopen(repo.store()).await;
    let session = repo.writable_session("main").await.unwrap();
    let node = session.node("/a").unwrap();
    assert_eq!((node.refs_count, node.inventories.len()), (0, 0));
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), [0; 4]);
    sound(&repo).await;
    write(&session, "/a", "1:3", 5).await.unwrap();
    session.commit(CommitOptions::message("z")).await.unwrap();
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), [0, 5, 5, 0]);
    sound(&repo).await;
}

#[tokio::test]
async fn a_merge_above_the_budget_is_left_to_optimise() {
    let config = Config { merge_budget: 10, ..tiny() };
    let repo = create(&memory(), config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[40], &[1])).await.unwrap();
    session.commit(CommitOptions::message("base")).await.unwrap();
    for n in 0..8u8 {
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/a", "0:40", n + 1).await.unwrap();
        session.commit(CommitOptions::message("x")).await.unwrap();
    }
    assert_eq!(runs(&repo, "/a").await.values().sum::<usize>(), 8);
    repo.optimise("main").await.unwrap();
    assert_eq!(runs(&repo, "/a").await.values().sum::<usize>(), 1);
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), [8; 40]);
    sound(&repo).await;
}

/// Enough references that the manifest is read page by page.
#[tokio::test]
async fn chunks_of_a_large_manifest_are_found_through_its_pages() {
    let (rows, columns) = (400u64, 500u64);
    let store = memory();
    let config = Config { inline_chunk_max: 16, inline_total_max: 1 << 30, ..Config::default() };
    let repo = create(&store, config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[rows, columns], &[1, 1])).await.unwrap();
    let bytes = |row: u64, column: u64| {
        let number = (row * columns + column).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Bytes::copy_from_slice(&number.to_le_bytes())
    };
    for row in 0..rows {
        for column in 0..columns {
            session.set_chunk("/a", &[row, column], bytes(row, column)).await.unwrap();
        }
    }
    session.commit(CommitOptions::message("many")).await.unwrap();
    let files: Vec<_> = store.list("i").await.unwrap().try_collect().await.unwrap();
    assert!(files.iter().any(|meta| meta.size > 1 << 20), "{files:?}");

    let session = repo.writable_session("main").await.unwrap();
    session.set_chunk("/a", &[7, 7], "new".into()).await.unwrap();
    session.erase_chunk("/a", &[399, 499]).unwrap();
    session.commit(CommitOptions::message("two more")).await.unwrap();
    for optimised in [false, true] {
        if optimised {
            repo.optimise("main").await.unwrap();
        }
        let fresh = reopen(&store).await;
        let session = fresh.readonly_session(&Version::Default).await.unwrap();
        assert_eq!(session.node("/a").unwrap().refs_count, rows * columns - 1);
        for n in 0..300u64 {
            let (row, column) = (n * 131 % rows, n * 197 % columns);
            let found = session.get_chunk("/a", &[row, column]).await.unwrap();
            assert_eq!(found, Some(bytes(row, column)), "{row},{column}");
        }
        for (row, column) in [(0, 0), (0, 499), (399, 0), (399, 498), (131, 71), (131, 72)] {
            let found = session.get_chunk("/a", &[row, column]).await.unwrap();
            assert_eq!(found, Some(bytes(row, column)), "{row},{column}");
        }
        assert_eq!(session.get_chunk("/a", &[7, 7]).await.unwrap().unwrap(), "new");
        assert_eq!(session.get_chunk("/a", &[399, 499]).await.unwrap(), None);
    }
    collect(&repo).await.unwrap();
    sound(&reopen(&store).await).await;
}
