//! Steps, and taking them in the repository and in the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_repo::{
    ChangeSet, CommitOptions, ExpireOptions, Fork, Rebase, RepackOptions, Repository, Session,
    Version as At,
};
use chunkyard_store::{Error, ErrorKind};
use serde_json::{Map, Value};

use super::super::support::{Place, bytes_spec, collect, create, reopen, sound, tiny};
use super::naive::{CHUNK, Draft, Model, Node, Nodes, Version, chunk_count};

/// One step. Numbers choose among existing things, so that most steps do something.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Open { who: usize, branch: usize },
    CreateArray { who: usize, path: usize, shape: u64 },
    CreateGroup { who: usize, path: usize },
    Write { who: usize, array: usize, start: u64, length: u64, value: u8 },
    ForkWrite { who: usize, array: usize, start: u64, length: u64, value: u8 },
    Erase { who: usize, array: usize, chunk: u64 },
    Resize { who: usize, array: usize, shape: u64 },
    Attributes { who: usize, node: usize, large: bool, value: u8 },
    Delete { who: usize, node: usize },
    Move { who: usize, node: usize, path: usize },
    Commit { who: usize, rebase: bool },
    Amend { who: usize },
    Detach { who: usize },
    Branch { name: usize, at: usize },
    Reset { name: usize, at: usize },
    DeleteBranch { name: usize },
    Tag { name: usize, at: usize },
    DeleteTag { name: usize },
    Expire { keep: usize },
    Collect,
    Optimise { branch: usize },
    Repack { branch: usize },
    Reopen,
}

const PATHS: [&str; 8] = ["/a", "/b", "/g/a", "/g/b", "/g/h/a", "/h/a", "/g", "/h"];
const BRANCHES: [&str; 3] = ["main", "side", "other"];
const SESSIONS: usize = 3;

struct Writer {
    session: Arc<Session>,
    branch: String,
    draft: Draft,
    /// A collection or an expiry came after it was opened, so it may be refused.
    outlived: bool,
}

/// A repository and its model.
pub(super) struct Runner {
    _guard: Option<tempfile::TempDir>,
    repo: Repository,
    model: Model,
    writers: BTreeMap<usize, Writer>,
    uids: u64,
    compared: BTreeMap<String, Nodes>,
}

impl Runner {
    pub(super) async fn new(place: Place) -> Self {
        let (guard, store) = place.open();
        let mut config = tiny();
        config.merge_budget = 6;
        let repo = create(&store, config).await;
        let first = repo.state().await.unwrap().snapshots[0].snapshot_id.clone();
        let root = Node { uid: 0, attributes: "{}".into(), array: None };
        let nodes = Nodes::from([("/".to_owned(), root)]);
        let model = Model {
            versions: vec![Version { id: first.clone(), parent: None, nodes }],
            branches: BTreeMap::from([("main".to_owned(), first)]),
            ..Model::default()
        };
        let (writers, compared) = (BTreeMap::new(), BTreeMap::new());
        Self { _guard: guard, repo, model, writers, uids: 0, compared }
    }

    pub(super) async fn take(&mut self, step: &Step) {
        match *step {
            Step::Open { who, branch } => self.open(who, branch).await,
            Step::Commit { who, rebase } => self.commit(who, rebase).await,
            Step::Amend { who } => self.amend(who).await,
            Step::Detach { who } => self.detach(who).await,
            Step::Branch { .. }
            | Step::Reset { .. }
            | Step::DeleteBranch { .. }
            | Step::Tag { .. }
            | Step::DeleteTag { .. } => self.reference(step).await,
            Step::Expire { keep } => {
                let options = ExpireOptions { keep_last: Some(keep), ..ExpireOptions::default() };
                self.repo.expire(&options).await.unwrap();
                self.model.expire(keep);
                self.outlive();
            }
            Step::Collect => {
                collect(&self.repo).await.unwrap();
                self.outlive();
            }
            Step::Optimise { branch } => {
                let Some((branch, tip)) = self.branch(branch) else { return };
                let report = self.repo.optimise(&branch).await.unwrap();
                self.rewritten(&branch, &tip, report.snapshot);
            }
            Step::Repack { branch } => {
                let Some((branch, tip)) = self.branch(branch) else { return };
                let report = self.repo.repack(&branch, &RepackOptions::default()).await.unwrap();
                self.rewritten(&branch, &tip, report.snapshot);
            }
            Step::Reopen => {
                self.repo = reopen(self.repo.store()).await;
                self.compared.clear();
            }
            _ => self.edit(step).await,
        }
        self.compare().await;
    }

    /// Everything from the beginning, through fresh caches; then without garbage.
    pub(super) async fn finish(&mut self) {
        self.take(&Step::Reopen).await;
        sound(&self.repo).await;
        self.take(&Step::Collect).await;
        self.take(&Step::Reopen).await;
        assert_eq!(sound(&self.repo).await, 0);
    }

    fn outlive(&mut self) {
        self.writers.values_mut().for_each(|writer| writer.outlived = true);
    }

    fn branch(&self, number: usize) -> Option<(String, String)> {
        let name = BRANCHES[number % BRANCHES.len()];
        self.model.branches.get_key_value(name).map(|(n, id)| (n.clone(), id.clone()))
    }

    fn rewritten(&mut self, branch: &str, tip: &str, snapshot: Option<String>) {
        let Some(id) = snapshot else { return };
        let nodes = self.model.version(tip).unwrap().nodes.clone();
        self.model.versions.push(Version { id: id.clone(), parent: Some(tip.to_owned()), nodes });
        self.model.branches.insert(branch.to_owned(), id);
    }

    async fn open(&mut self, who: usize, branch: usize) {
        let Some((branch, tip)) = self.branch(branch) else { return };
        let session = self.repo.writable_session(&branch).await.unwrap();
        assert_eq!(session.snapshot().snapshot_id, tip);
        let nodes = self.model.version(&tip).unwrap().nodes.clone();
        let draft = Draft { base: tip, before: nodes.clone(), nodes, chunks: Default::default() };
        self.writers.insert(who % SESSIONS, Writer { session, branch, draft, outlived: false });
    }

    async fn edit(&mut self, step: &Step) {
        use Step::*;
        let (CreateArray { who, .. }
        | CreateGroup { who, .. }
        | Write { who, .. }
        | ForkWrite { who, .. }
        | Erase { who, .. }
        | Resize { who, .. }
        | Attributes { who, .. }
        | Delete { who, .. }
        | Move { who, .. }) = *step
        else {
            return;
        };
        let Some(writer) = self.writers.get_mut(&(who % SESSIONS)) else { return };
        let result = edit(&self.repo, writer, step, &mut self.uids).await;
        match result {
            Ok(()) => {
                let found = nodes_of(&writer.session).await;
                match found {
                    Ok(found) => assert_same(&found, &writer.draft.nodes, step),
                    Err(error) => refused(writer, &error),
                }
            }
            Err(error) => refused(writer, &error),
        }
    }

    async fn commit(&mut self, who: usize, rebase: bool) {
        let Some(writer) = self.writers.remove(&(who % SESSIONS)) else { return };
        let mut options = CommitOptions::message("commit");
        options.rebase = rebase.then(Rebase::default);
        let outcome = writer.session.commit(options).await;
        let Some(tip) = self.model.branches.get(&writer.branch).cloned() else {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound);
            return;
        };
        match outcome {
            Ok(snapshot) => {
                assert!(rebase || tip == writer.draft.base, "a lost update");
                let theirs = &self.model.version(&tip).unwrap().nodes;
                let nodes = writer.draft.onto(theirs);
                let id = snapshot.snapshot_id.clone();
                self.model.versions.push(Version { id: id.clone(), parent: Some(tip), nodes });
                self.model.branches.insert(writer.branch, id);
            }
            Err(Error::Conflict { .. }) => assert_ne!(tip, writer.draft.base, "with whom?"),
            Err(error) => not_committed(&writer, &error),
        }
    }

    async fn amend(&mut self, who: usize) {
        let Some(writer) = self.writers.remove(&(who % SESSIONS)) else { return };
        let options = CommitOptions { amend: true, ..CommitOptions::message("amend") };
        let outcome = writer.session.commit(options).await;
        let Some(tip) = self.model.branches.get(&writer.branch).cloned() else {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound);
            return;
        };
        let Some(old) = self.model.version(&tip).cloned() else { return };
        match outcome {
            Ok(snapshot) => {
                assert_eq!(tip, writer.draft.base);
                let others = self.model.branches.iter().filter(|(name, _)| **name != writer.branch);
                let mut others = others.map(|(_, id)| id).chain(self.model.tags.values());
                assert!(others.all(|id| *id != tip) && old.parent.is_some());
                let id = snapshot.snapshot_id.clone();
                let nodes = writer.draft.nodes;
                self.model.versions.push(Version { id: id.clone(), parent: old.parent, nodes });
                self.model.branches.insert(writer.branch, id);
                self.model.forget(&tip);
                self.outlive();
            }
            Err(Error::Conflict { .. }) => {}
            Err(Error::Invalid { .. }) => assert!(old.parent.is_none()),
            Err(error) => not_committed(&writer, &error),
        }
    }

    async fn detach(&mut self, who: usize) {
        let Some(writer) = self.writers.remove(&(who % SESSIONS)) else { return };
        let options = CommitOptions { detached: true, ..CommitOptions::message("detached") };
        match writer.session.commit(options).await {
            Ok(snapshot) => {
                let id = snapshot.snapshot_id.clone();
                let (parent, nodes) = (Some(writer.draft.base), writer.draft.nodes);
                self.model.versions.push(Version { id, parent, nodes });
            }
            Err(Error::NotFound { .. }) => {
                assert!(!self.model.branches.contains_key(&writer.branch));
            }
            Err(error) => not_committed(&writer, &error),
        }
    }

    async fn reference(&mut self, step: &Step) {
        let at = |number: usize| self.model.versions[number % self.model.versions.len()].id.clone();
        match *step {
            Step::Branch { name, at: target } => {
                let (name, target) = (BRANCHES[name].to_owned(), at(target));
                let made = self.repo.create_branch(&name, &At::Snapshot(target.clone())).await;
                assert_eq!(made.is_ok(), !self.model.branches.contains_key(&name));
                self.model.branches.entry(name).or_insert(target);
            }
            Step::Reset { name, at: target } => {
                let target = at(target);
                let Some((name, _)) = self.branch(name) else { return };
                let to = At::Snapshot(target.clone());
                self.repo.reset_branch(&name, &to, None).await.unwrap();
                self.model.branches.insert(name, target);
            }
            Step::DeleteBranch { name } => {
                let Some((name, _)) = self.branch(name) else { return };
                let deleted = self.repo.delete_branch(&name).await;
                assert_eq!(deleted.is_ok(), name != "main");
                self.model.branches.retain(|branch, _| *branch != name || name == "main");
            }
            Step::Tag { name, at: target } => {
                let (name, target) = (format!("v{name}"), at(target));
                let made = self.repo.create_tag(&name, &At::Snapshot(target.clone()), false).await;
                let used =
                    self.model.tags.contains_key(&name) || self.model.retired.contains(&name);
                assert_eq!(made.is_ok(), !used);
                if !used {
                    self.model.tags.insert(name, target);
                }
            }
            Step::DeleteTag { name } => {
                let name = format!("v{name}");
                let known = self.model.tags.remove(&name).is_some();
                assert_eq!(self.repo.delete_tag(&name).await.is_ok(), known);
                if known {
                    self.model.retired.insert(name);
                }
            }
            _ => {}
        }
    }

    /// The repository lists exactly the model's versions, and each reads the same.
    async fn compare(&mut self) {
        let state = self.repo.state().await.unwrap();
        let found: BTreeMap<_, _> = state
            .snapshots
            .iter()
            .map(|s| (s.snapshot_id.clone(), s.parent_snapshot_id.clone()))
            .collect();
        let expected: BTreeMap<_, _> =
            self.model.versions.iter().map(|v| (v.id.clone(), v.parent.clone())).collect();
        assert_eq!(found, expected);
        let references = self.model.branches.iter().chain(&self.model.tags);
        let references: BTreeMap<_, _> = references.collect();
        let found: BTreeMap<_, _> =
            state.refs.values().map(|r| (&r.name, &r.snapshot_id)).collect();
        assert_eq!(found, references);
        for version in &self.model.versions {
            // These caches keep what was read once; a reopened repository reads everything again.
            if self.compared.get(&version.id) == Some(&version.nodes) {
                continue;
            }
            let at = At::Snapshot(version.id.clone());
            let session = self.repo.readonly_session(&at).await.unwrap();
            let found = nodes_of(&session).await.unwrap();
            assert_same(&found, &version.nodes, &Step::Reopen);
            self.compared.insert(version.id.clone(), version.nodes.clone());
        }
    }
}

/// The only error allowed for a session that another writer overtook.
fn refused(writer: &Writer, error: &Error) {
    assert!(writer.outlived, "{error}");
    let expected = matches!(error, Error::SnapshotExpired { .. } | Error::SessionCollected { .. });
    assert!(expected, "{error}");
}

fn not_committed(writer: &Writer, error: &Error) {
    match error {
        Error::BaseExpired { .. }
        | Error::SessionCollected { .. }
        | Error::SnapshotExpired { .. } => assert!(writer.outlived, "{error}"),
        Error::Invalid { .. } => assert_eq!(writer.draft.nodes, writer.draft.before, "{error}"),
        _ => panic!("{error:?}"),
    }
}

fn pick(nodes: &Nodes, number: usize, arrays: bool) -> Option<&String> {
    let wanted: Vec<_> = nodes
        .iter()
        .filter(|(path, node)| *path != "/" && (!arrays || node.array.is_some()))
        .map(|(path, _)| path)
        .collect();
    (!wanted.is_empty()).then(|| wanted[number % wanted.len()])
}

/// The groups above a path, if the path can be created.
fn groups_above(nodes: &Nodes, path: &str) -> Option<Vec<String>> {
    let mut missing = Vec::new();
    let mut rest = path;
    while let Some((above, _)) = rest.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
        match nodes.get(above) {
            Some(node) if node.array.is_some() => return None,
            Some(_) => {}
            None => missing.push(above.to_owned()),
        }
        rest = above;
    }
    (!nodes.contains_key(path)).then_some(missing)
}

fn make_groups(draft: &mut Draft, groups: Vec<String>, uids: &mut u64) {
    for path in groups {
        *uids += 1;
        let node = Node { uid: *uids, attributes: "{}".into(), array: None };
        draft.nodes.insert(path, node);
    }
}

async fn edit(
    repo: &Repository,
    writer: &mut Writer,
    step: &Step,
    uids: &mut u64,
) -> Result<(), Error> {
    let (session, draft) = (&writer.session, &mut writer.draft);
    match *step {
        Step::CreateArray { path, shape, .. } => {
            let path = PATHS[path];
            let made = session.create_array(path, bytes_spec(&[shape], &[CHUNK])).await;
            let groups = groups_above(&draft.nodes, path);
            assert_eq!(made.is_ok(), groups.is_some());
            let Some(groups) = groups else { return Ok(()) };
            make_groups(draft, groups, uids);
            *uids += 1;
            let cells = vec![0; (chunk_count(shape) * CHUNK) as usize];
            let array = Some((shape, cells));
            draft.nodes.insert(path.into(), Node { uid: *uids, attributes: "{}".into(), array });
        }
        Step::CreateGroup { path, .. } => {
            let path = PATHS[path];
            let made = session.create_group(path, Map::new());
            let groups = groups_above(&draft.nodes, path);
            assert_eq!(made.is_ok(), groups.is_some());
            let Some(mut groups) = groups else { return Ok(()) };
            groups.push(path.to_owned());
            make_groups(draft, groups, uids);
        }
        Step::Write { array, start, length, value, .. } => {
            let Some((path, start, end)) = span(&draft.nodes, array, start, length) else {
                return Ok(());
            };
            write(session, &path, start, end, value).await?;
            draft.write(&path, start, end, value);
        }
        Step::ForkWrite { array, start, length, value, .. } => {
            let Some((path, start, end)) = span(&draft.nodes, array, start, length) else {
                return Ok(());
            };
            let fork = serde_json::to_string(&session.fork().await?).unwrap();
            let fork: Fork = serde_json::from_str(&fork).unwrap();
            let fork = match repo.open_fork(fork).await {
                Err(Error::BaseExpired { id }) => return Err(Error::SnapshotExpired { id }),
                other => other?,
            };
            write(&fork, &path, start, end, value).await?;
            let changes = serde_json::to_string(&fork.into_changes().await?).unwrap();
            let changes: ChangeSet = serde_json::from_str(&changes).unwrap();
            session.merge(changes.clone())?;
            session.merge(changes)?;
            draft.write(&path, start, end, value);
        }
        Step::Erase { array, chunk, .. } => {
            let Some(path) = pick(&draft.nodes, array, true).cloned() else { return Ok(()) };
            let shape = draft.nodes[&path].array.as_ref().map_or(0, |(shape, _)| *shape);
            let erased = session.erase_chunk(&path, &[chunk]);
            assert_eq!(erased.is_ok(), chunk < chunk_count(shape));
            if erased.is_ok() {
                draft.erase(&path, chunk);
            }
        }
        Step::Resize { array, shape, .. } => {
            let Some(path) = pick(&draft.nodes, array, true).cloned() else { return Ok(()) };
            session.resize(&path, &[shape]).await?;
            draft.resize(&path, shape);
        }
        Step::Attributes { node, large, value, .. } => {
            let Some(path) = pick(&draft.nodes, node, false).cloned() else { return Ok(()) };
            let text = value.to_string().repeat(if large { 100 } else { 1 });
            let attributes = Map::from_iter([("note".to_owned(), Value::String(text))]);
            let rendered = serde_json::to_string(&attributes).unwrap();
            session.set_attributes(&path, attributes)?;
            draft.nodes.entry(path).and_modify(|node| node.attributes = rendered);
        }
        Step::Delete { node, .. } => {
            let Some(path) = pick(&draft.nodes, node, false).cloned() else { return Ok(()) };
            session.delete(&path)?;
            draft.nodes.retain(|other, _| !within(other, &path));
        }
        Step::Move { node, path: to, .. } => {
            let Some(from) = pick(&draft.nodes, node, false).cloned() else { return Ok(()) };
            let to = PATHS[to];
            let groups = groups_above(&draft.nodes, to).filter(|_| !within(to, &from));
            let moved = session.move_node(&from, to);
            assert_eq!(moved.is_ok(), groups.is_some(), "{from} to {to}");
            let Some(groups) = groups else { return Ok(()) };
            make_groups(draft, groups, uids);
            let moving: Vec<_> =
                draft.nodes.keys().filter(|path| within(path, &from)).cloned().collect();
            for path in moving {
                if let Some(node) = draft.nodes.remove(&path) {
                    draft.nodes.insert(format!("{to}{}", &path[from.len()..]), node);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn within(path: &str, group: &str) -> bool {
    path == group || path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

fn span(nodes: &Nodes, array: usize, start: u64, length: u64) -> Option<(String, u64, u64)> {
    let path = pick(nodes, array, true)?.clone();
    let shape = nodes[&path].array.as_ref()?.0;
    let start = start % shape;
    Some((path, start, (start + length).min(shape)))
}

async fn write(
    session: &Arc<Session>,
    path: &str,
    start: u64,
    end: u64,
    value: u8,
) -> Result<(), Error> {
    let region = Region::new(vec![start], vec![end - start])?;
    let bytes = Bytes::from(vec![value; (end - start) as usize]);
    session.array(path).await?.write_region(&region, bytes).await
}

/// What a session sees, in the model's terms, without identities and padding.
async fn nodes_of(session: &Arc<Session>) -> Result<Nodes, Error> {
    let mut nodes = Nodes::new();
    for node in session.tree().nodes() {
        let attributes = session.attributes(&node.path).await?;
        let attributes = serde_json::to_string(&*attributes).unwrap();
        let array = if node.is_array() {
            let array = session.array(&node.path).await?;
            let shape = array.spec().shape()[0];
            let cells = array.read_region(&Region::whole(&[shape])).await?.to_vec();
            Some((shape, cells))
        } else {
            None
        };
        nodes.insert(node.path.clone(), Node { uid: 0, attributes, array });
    }
    Ok(nodes)
}

fn assert_same(found: &Nodes, model: &Nodes, step: &Step) {
    let visible = |node: &Node| Node {
        uid: 0,
        attributes: node.attributes.clone(),
        array: node
            .array
            .as_ref()
            .map(|(shape, cells)| (*shape, cells[..*shape as usize].to_vec())),
    };
    let model: Nodes = model.iter().map(|(path, node)| (path.clone(), visible(node))).collect();
    assert_eq!(*found, model, "after {step:?}");
}
