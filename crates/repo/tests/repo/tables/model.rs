//! Random work on a table against a map of rows, with branches, rebases, merges of runs and collections.

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_repo::{
    CommitOptions, Config, ExpireOptions, KeyRange, OpenOptions, Rebase, Repository, Session,
    Version,
};
use chunkyard_store::{Error, Store};
use chunkyard_test_support::cases;
use proptest::prelude::*;

use super::{differences, keys, numbers, rows, scan};
use crate::repo::support::{collect, create, memory, repetitions, sound};

type Rows = BTreeMap<u64, u64>;

#[derive(Debug, Clone)]
enum Step {
    Open(usize, usize),
    Upsert(usize, Vec<(u64, u64)>),
    Delete(usize, Vec<u64>),
    DeleteRange(usize, u64, u64),
    Commit(usize, bool),
    Branch,
    Optimise(usize),
    Expire,
    Collect,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0usize..3;
    let key = 0u64..40;
    let some = prop::collection::vec((key.clone(), any::<u64>()), 1..8);
    let step = prop_oneof![
        4 => (who.clone(), 0usize..2).prop_map(|(who, branch)| Step::Open(who, branch)),
        8 => (who.clone(), some).prop_map(|(who, rows)| Step::Upsert(who, rows)),
        3 => (who.clone(), prop::collection::vec(key.clone(), 1..5)).prop_map(|(w, k)| Step::Delete(w, k)),
        1 => (who.clone(), key.clone(), key).prop_map(|(w, a, b)| Step::DeleteRange(w, a, b)),
        8 => (who, any::<bool>()).prop_map(|(who, rebase)| Step::Commit(who, rebase)),
        1 => Just(Step::Branch),
        1 => (0usize..2).prop_map(Step::Optimise),
        1 => Just(Step::Expire),
        1 => Just(Step::Collect),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..50)
}

struct Open {
    session: Arc<Session>,
    branch: usize,
    rows: Rows,
    changes: BTreeMap<u64, Option<u64>>,
}

struct Runner {
    store: Store,
    repo: Repository,
    branches: Vec<Rows>,
    /// Every version that was committed, while it is kept.
    versions: BTreeMap<String, Rows>,
    open: BTreeMap<usize, Open>,
}

const NAMES: [&str; 2] = ["main", "side"];

impl Runner {
    async fn new() -> Self {
        let store = memory();
        create(&store, Config::default()).await;
        let repo = open(&store).await;
        let session = repo.writable_session("main").await.unwrap();
        session.create_table("/t", numbers()).await.unwrap();
        session.commit(CommitOptions::message("base")).await.unwrap();
        let versions = BTreeMap::new();
        Self { store, repo, branches: vec![Rows::new()], versions, open: BTreeMap::new() }
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Open(who, branch) => {
                let branch = branch % self.branches.len();
                let session = self.repo.writable_session(NAMES[branch]).await.unwrap();
                let rows = self.branches[branch].clone();
                let changes = BTreeMap::new();
                self.open.insert(*who, Open { session, branch, rows, changes });
            }
            Step::Upsert(who, pairs) => {
                let Some(open) = self.open.get_mut(who) else { return };
                open.session.table("/t").await.unwrap().upsert(rows(pairs)).await.unwrap();
                open.rows.extend(pairs.iter().copied());
                open.changes.extend(pairs.iter().map(|(key, value)| (*key, Some(*value))));
            }
            Step::Delete(who, gone) => {
                let Some(open) = self.open.get_mut(who) else { return };
                open.session.table("/t").await.unwrap().delete(keys(gone)).await.unwrap();
                open.rows.retain(|key, _| !gone.contains(key));
                open.changes.extend(gone.iter().map(|key| (*key, None)));
            }
            Step::DeleteRange(who, from, to) => {
                let Some(open) = self.open.get_mut(who) else { return };
                let table = open.session.table("/t").await.unwrap();
                let range = KeyRange::Between(vec![(*from).into()], vec![(*to).into()]);
                table.delete_range(&range).await.unwrap();
                let gone: Vec<u64> =
                    open.rows.keys().copied().filter(|key| (*from..*to).contains(key)).collect();
                open.rows.retain(|key, _| !gone.contains(key));
                open.changes.extend(gone.into_iter().map(|key| (key, None)));
            }
            Step::Commit(who, rebase) => self.commit(*who, *rebase).await,
            Step::Branch => {
                if self.branches.len() == 1 {
                    self.repo.create_branch("side", &Version::branch("main")).await.unwrap();
                    self.branches.push(self.branches[0].clone());
                }
            }
            Step::Optimise(branch) => {
                let branch = branch % self.branches.len();
                self.repo.optimise(NAMES[branch]).await.unwrap();
            }
            Step::Expire => {
                let options = ExpireOptions { keep_last: Some(2), ..ExpireOptions::default() };
                for id in self.repo.expire(&options).await.unwrap().snapshots {
                    self.versions.remove(&id);
                }
            }
            Step::Collect => drop(collect(&self.repo).await.unwrap()),
            Step::Reopen => {
                self.repo = open(&self.store).await;
                self.open.clear();
            }
        }
        for open in self.open.values() {
            if let Ok(table) = open.session.table("/t").await {
                match scan(&table, &KeyRange::All).await {
                    Ok(found) => assert_eq!(Rows::from_iter(found), open.rows),
                    // Collected or expired meanwhile.
                    Err(Error::SessionCollected { .. } | Error::SnapshotExpired { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    async fn commit(&mut self, who: usize, rebase: bool) {
        let Some(open) = self.open.remove(&who) else { return };
        let policy = rebase.then(Rebase::default);
        let options = CommitOptions { rebase: policy, ..CommitOptions::message("x") };
        match open.session.commit(options).await {
            Ok(snapshot) => {
                let branch = &mut self.branches[open.branch];
                for (key, value) in open.changes {
                    match value {
                        Some(value) => branch.insert(key, value),
                        None => branch.remove(&key),
                    };
                }
                self.versions.insert(snapshot.snapshot_id.clone(), branch.clone());
            }
            Err(Error::Invalid { .. }) => assert!(open.changes.is_empty()),
            Err(
                Error::Conflict { .. } | Error::BaseExpired { .. } | Error::SessionCollected { .. },
            ) => {}
            Err(error) => panic!("{error}"),
        }
        for (name, rows) in NAMES.iter().zip(&self.branches) {
            let session = self.repo.readonly_session(&Version::branch(name)).await.unwrap();
            let found = scan(&session.table("/t").await.unwrap(), &KeyRange::All).await.unwrap();
            assert_eq!(Rows::from_iter(found), *rows, "{name}");
        }
    }

    async fn finish(self) {
        let repo = open(&self.store).await;
        let mut last: Option<(Version, &Rows)> = None;
        for (id, rows) in &self.versions {
            let version = Version::Snapshot(id.clone());
            let session = repo.readonly_session(&version).await.unwrap();
            let found = scan(&session.table("/t").await.unwrap(), &KeyRange::All).await.unwrap();
            assert_eq!(&Rows::from_iter(found), rows, "{id}");
            if let Some((before, old)) = &last {
                let found = differences(&repo, before, &version).await;
                let all = old.keys().chain(rows.keys());
                let expected =
                    all.map(|key| (*key, (old.get(key).copied(), rows.get(key).copied())));
                let expected = expected.filter(|(_, (a, b))| a != b).collect();
                assert_eq!(found, expected);
            }
            last = Some((version, rows));
        }
        sound(&repo).await;
    }
}

/// Rows leave memory early, so that runs are read and merged as well.
async fn open(store: &Store) -> Repository {
    let options = OpenOptions { table_bytes_max: 2000, ..OpenOptions::default() };
    Repository::open_in(store.clone(), options).await.unwrap()
}

proptest! {
    #![proptest_config(cases(repetitions(200, 40)))]

    #[test]
    fn a_table_does_what_a_map_does(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut runner = Runner::new().await;
            for step in &steps {
                runner.take(step).await;
            }
            runner.finish().await;
        });
    }
}
