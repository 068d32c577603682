//! Create, write, commit, read back.

use chunkyard_repo::{
    CommitOptions, Config, CreateOptions, Level, OpenOptions, Repository, Version,
};
use chunkyard_store::ErrorKind;

use super::support::{
    bytes_spec, create, directory, history, memory, read_all, read_at, reopen, write,
};

#[tokio::test]
async fn a_commit_is_readable_after_reopening_on_every_kind_of_store() {
    let (_guard, local) = directory();
    for store in [memory(), local] {
        let repo = create(&store, Config::default()).await;
        let session = repo.writable_session("main").await.unwrap();
        session.create_array("/a/b", bytes_spec(&[10, 10], &[4, 4])).await.unwrap();
        write(&session, "/a/b", "2:9,1:10", 7).await.unwrap();
        let own = read_all(&session, "/a/b").await.unwrap();
        session.commit(CommitOptions::message("one")).await.unwrap();

        let repo = reopen(&store).await;
        let values = read_at(&repo, &Version::branch("main"), "/a/b").await.unwrap();
        assert_eq!(values, own);
        for row in 0..10 {
            for column in 0..10 {
                let inside = (2..9).contains(&row) && (1..10).contains(&column);
                assert_eq!(values[row * 10 + column], if inside { 7 } else { 0 }, "{row},{column}");
            }
        }
        assert_eq!(history(&repo, "main").await.len(), 2);
        let report = repo.verify(Level::Bytes).await.unwrap();
        assert_eq!(report.findings, [], "{:?}", report.findings);
        assert_eq!(report.orphan_files, 0);
    }
}

#[tokio::test]
async fn creating_a_repository_twice_is_refused_and_changes_nothing() {
    let (_guard, local) = directory();
    for store in [memory(), local] {
        let repo = create(&store, Config::default()).await;
        let before = repo.state().await.unwrap();
        let again = Repository::create_in(
            store.clone(),
            OpenOptions::default(),
            CreateOptions { force: true, ..CreateOptions::default() },
        );
        assert_eq!(again.await.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(repo.state().await.unwrap(), before);
    }
}
