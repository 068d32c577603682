//! Random work on two branches, compared after each step with a segmentation of two plain arrays.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_labels::{Author, Edit, Labelmap, Layout, Mutation, Resolution, Side, merge_branch};
use chunkyard_repo::{Repository, Version};
use chunkyard_store::{ErrorKind, Result, Store};
use chunkyard_test_support::{cases, memory};
use proptest::prelude::*;

use super::naive::{Delta, Naive};
use super::support::{PATH, Voxels, create, edit, import, tip};

#[derive(Debug, Clone, Copy)]
enum Step {
    Merge(usize, usize),
    Cleave(usize, usize),
    SplitSupervoxel(usize, u64),
    SplitBody(usize, u64),
    Renumber(usize),
    Map(usize, usize),
    Revert,
    /// Edits from here on are one commit, until something needs a version.
    Begin,
    Switch,
    Join(Option<Side>),
    Reopen,
    Optimise,
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0..1000usize;
    prop_oneof![
        3 => (number.clone(), number.clone()).prop_map(|(a, b)| Step::Merge(a, b)),
        2 => (number.clone(), number.clone()).prop_map(|(a, b)| Step::Cleave(a, b)),
        2 => (number.clone(), any::<u64>()).prop_map(|(a, b)| Step::SplitSupervoxel(a, b)),
        2 => (number.clone(), any::<u64>()).prop_map(|(a, b)| Step::SplitBody(a, b)),
        1 => number.clone().prop_map(Step::Renumber),
        1 => (number.clone(), number).prop_map(|(a, b)| Step::Map(a, b)),
        2 => Just(Step::Revert),
        1 => Just(Step::Begin),
        2 => Just(Step::Switch),
        1 => prop_oneof![Just(None), Just(Some(Side::Ours)), Just(Some(Side::Theirs))]
            .prop_map(Step::Join),
        1 => Just(Step::Reopen),
        1 => Just(Step::Optimise),
    ]
}

/// Boxes of labels over one another, some voxels left empty.
fn volume() -> impl Strategy<Value = Voxels> {
    let shape = [20u64, 24, 40];
    let corner = (0..20u64, 0..24u64, 0..40u64);
    proptest::collection::vec((corner.clone(), corner), 4..14).prop_map(move |boxes| {
        let mut labels = vec![0; shape.iter().product::<u64>() as usize];
        for (number, (a, b)) in boxes.into_iter().enumerate() {
            let range = |a: u64, b: u64| a.min(b)..=a.max(b);
            for z in range(a.0, b.0) {
                for y in range(a.1, b.1) {
                    for x in range(a.2, b.2) {
                        let place = ((z * shape[1] + y) * shape[2] + x) as usize;
                        labels[place] = (number as u64 + 1) * 1_000_000_007;
                    }
                }
            }
        }
        Voxels { shape, labels }
    })
}

/// A branch: what it should be, and the edits since both were one.
#[derive(Debug, Clone)]
struct Branch {
    name: String,
    now: Naive,
    done: Vec<Delta>,
}

struct World {
    store: Store,
    repo: Repository,
    base: Naive,
    branches: [Branch; 2],
    at: usize,
    next: u64,
    /// Edits of the branch that are not committed.
    open: Option<Labelmap>,
    /// Number of the last commit, or of the one that is open.
    commits: u64,
}

impl World {
    async fn new(voxels: Voxels) -> Self {
        let store = memory();
        let repo = create(&store).await;
        import(&repo, Layout::new(voxels.shape).with_block([16; 3]), &voxels).await;
        repo.create_branch("other", &Version::branch("main")).await.unwrap();
        let base = Naive::new(&voxels);
        let branch = |name: &str| Branch { name: name.into(), now: base.clone(), done: vec![] };
        let branches = [branch("main"), branch("other")];
        Self { store, repo, base: base.clone(), branches, at: 0, next: 0, open: None, commits: 0 }
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        10 + self.next
    }

    async fn edit(&mut self, wanted: Edit) -> Mutation {
        self.try_edit(wanted.clone()).await.unwrap_or_else(|e| panic!("{wanted:?}: {e}"))
    }

    async fn try_edit(&mut self, wanted: Edit) -> Result<Mutation> {
        match &self.open {
            Some(map) => map.apply(&wanted, &Author::default()).await,
            None => {
                self.commits += 1;
                edit(&self.repo, &self.branches[self.at].name, wanted).await
            }
        }
    }

    async fn begin(&mut self) {
        if self.open.is_none() {
            let session = self.repo.writable_session(&self.branches[self.at].name).await.unwrap();
            self.open = Some(Labelmap::open(&session, PATH).await.unwrap());
            self.commits += 1;
        }
    }

    async fn commit(&mut self) {
        if let Some(map) = self.open.take() {
            let before = map.session().snapshot().snapshot_id.clone();
            let committed = map.session().is_changed();
            if committed {
                let after = map.commit("several edits").await.unwrap();
                assert_ne!(after.snapshot_id, before);
            }
        }
    }

    fn record(&mut self, delta: Delta, mutation: &Mutation) {
        let touched: BTreeSet<u64> = mutation.bodies.iter().copied().collect();
        assert_eq!(touched, delta.bodies.iter().copied().filter(|body| *body != 0).collect());
        let branch = &mut self.branches[self.at];
        branch.now.apply(&delta);
        branch.done.push(Delta { mutation: mutation.mutation, commit: self.commits, ..delta });
    }

    async fn take(&mut self, step: Step) {
        if matches!(step, Step::Switch | Step::Join(_) | Step::Optimise | Step::Reopen) {
            self.commit().await;
        }
        let now = self.branches[self.at].now.clone();
        let found = now.by_body();
        let bodies: Vec<u64> = found.keys().copied().collect();
        let pick = |number: usize| bodies[number % bodies.len()];
        match step {
            Step::Merge(a, b) if bodies.len() > 1 => {
                let target = pick(a);
                let body = *bodies.iter().cycle().skip(b).find(|body| **body != target).unwrap();
                let mutation = self.edit(Edit::Merge { target, bodies: vec![body] }).await;
                self.record(now.moved(0, &now.supervoxels(body), target), &mutation);
            }
            Step::Cleave(a, b) => {
                let Some(body) = bodies
                    .iter()
                    .cycle()
                    .skip(a)
                    .take(bodies.len())
                    .find(|body| found[body].len() > 1)
                else {
                    return;
                };
                let ids = now.supervoxels(*body);
                let going = &ids[..1 + b % (ids.len() - 1)];
                let new_body = self.fresh();
                let cleave = Edit::Cleave {
                    body: *body,
                    supervoxels: going.to_vec(),
                    new_body: Some(new_body),
                };
                let mutation = self.edit(cleave).await;
                self.record(now.moved(0, going, new_body), &mutation);
            }
            Step::SplitSupervoxel(a, seed) => {
                let parts: Vec<(&u64, &Vec<usize>)> = found.values().flatten().collect();
                let (id, places) = parts[a % parts.len()];
                let Some(inside) = some_of(places, seed) else { return };
                let halves = [self.fresh(), self.fresh()];
                let split = Edit::SplitSupervoxel {
                    supervoxel: *id,
                    voxels: now.runs(&inside),
                    part: Some(halves[0]),
                    rest: Some(halves[1]),
                };
                let mutation = self.edit(split).await;
                self.record(now.cut(0, *id, &inside, halves), &mutation);
            }
            Step::SplitBody(a, seed) => self.split_body(pick(a), &now, seed).await,
            Step::Renumber(a) => {
                let (body, new_body) = (pick(a), self.fresh());
                let mutation = self.edit(Edit::Renumber { body, new_body }).await;
                self.record(now.moved(0, &now.supervoxels(body), new_body), &mutation);
            }
            Step::Map(a, b) => {
                let (body, target) = (pick(a), pick(b));
                let id = now.supervoxels(body)[0];
                let mutation = self.edit(Edit::Map { mapping: vec![(id, target)] }).await;
                self.record(now.moved(0, &[id], target), &mutation);
            }
            Step::Revert => self.revert().await,
            Step::Begin => self.begin().await,
            Step::Switch => self.at = 1 - self.at,
            Step::Join(side) => self.join(side).await,
            Step::Optimise => {
                let name = self.branches[self.at].name.clone();
                self.repo.optimise(&name).await.unwrap();
            }
            Step::Reopen => {
                self.repo =
                    Repository::open_in(self.store.clone(), Default::default()).await.unwrap()
            }
            Step::Merge(..) => {}
        }
    }

    async fn split_body(&mut self, body: u64, now: &Naive, seed: u64) {
        let found = now.by_body();
        let places: Vec<usize> = found[&body].values().flatten().copied().collect();
        let Some(inside) = some_of(&places, seed) else { return };
        let new_body = self.fresh();
        let mut halves = Vec::new();
        for (id, places) in &found[&body] {
            let count = places.iter().filter(|place| inside.contains(place)).count();
            if count > 0 && count < places.len() {
                halves.push((*id, self.fresh(), self.fresh()));
            }
        }
        let split = Edit::SplitBody {
            body,
            voxels: now.runs(&inside),
            new_body: Some(new_body),
            halves: halves.clone(),
        };
        let mutation = self.edit(split).await;
        let mut delta = now.moved(0, &[], new_body);
        delta.bodies.extend([body, new_body]);
        for (id, places) in &found[&body] {
            let cut = halves.iter().find(|(cut, ..)| cut == id);
            let count = places.iter().filter(|place| inside.contains(place)).count();
            if let Some((_, part, rest)) = cut {
                let one = now.cut(0, *id, &inside, [*part, *rest]);
                delta.voxels.extend(one.voxels);
                delta.mapping.extend([
                    (*id, body, 0),
                    (*part, *part, new_body),
                    (*rest, *rest, body),
                ]);
            } else if count > 0 {
                delta.mapping.push((*id, body, new_body));
            }
        }
        self.record(delta, &mutation);
    }

    /// Undoes the last edit. What it joined is cut again, if there is a version in which it was apart.
    async fn revert(&mut self) {
        let Some(last) = self.branches[self.at].done.last().cloned() else { return };
        let wanted = Edit::Revert { mutation: last.mutation };
        let done = &self.branches[self.at].done;
        let apart = done.iter().rev().nth(1).map(|cut| cut.commit);
        if last.joins() && apart == Some(last.commit) {
            let error = self.try_edit(wanted).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            return;
        }
        let mutation = self.edit(wanted).await;
        let is_split = !last.voxels.is_empty();
        let back = |(id, before, after): &(u64, u64, u64)| match is_split && before == id {
            // A half that the split made is retired again, unless it is the supervoxel that was there.
            true if last.voxels.iter().any(|(.., made)| made == id) => (*id, *after, 0),
            _ => (*id, *after, *before),
        };
        let delta = Delta {
            mutation: 0,
            commit: 0,
            bodies: last.bodies.clone(),
            voxels: last.voxels.iter().map(|(place, a, b)| (*place, *b, *a)).collect(),
            mapping: last.mapping.iter().map(back).collect(),
        };
        self.record(delta, &mutation);
    }

    /// Brings the other branch into this one.
    async fn join(&mut self, side: Option<Side>) {
        let (ours, theirs) = (self.branches[self.at].clone(), self.branches[1 - self.at].clone());
        let resolution = Resolution { bodies: BTreeMap::new(), others: side };
        let version = Version::branch(&theirs.name);
        let author = Author::default();
        let joined =
            merge_branch(&self.repo, &ours.name, &version, PATH, &resolution, &author).await;
        let touched = |done: &[Delta]| -> BTreeSet<u64> {
            done.iter().flat_map(|delta| delta.bodies.iter().copied()).filter(|b| *b != 0).collect()
        };
        let (our_bodies, their_bodies) = (touched(&ours.done), touched(&theirs.done));
        let conflict = our_bodies.intersection(&their_bodies).next().is_some();
        let now = match (conflict, side) {
            (true, None) => {
                let error = joined.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                ours.now.assert_equals(&tip(&self.repo, &ours.name).await).await;
                return;
            }
            (_, side) => {
                joined.unwrap();
                let both = in_conflict(&ours.done, &theirs.done);
                let side = side.unwrap_or(Side::Ours);
                let stays =
                    |delta: &&Delta, own: Side| own == side || delta.bodies.is_disjoint(&both);
                let mut now = self.base.clone();
                ours.done.iter().filter(|d| stays(d, Side::Ours)).for_each(|d| now.apply(d));
                theirs.done.iter().filter(|d| stays(d, Side::Theirs)).for_each(|d| now.apply(d));
                now
            }
        };
        // Both go on from here.
        let name = format!("after-{}", self.fresh());
        self.repo.create_branch(&name, &Version::branch(&ours.name)).await.unwrap();
        self.base = now.clone();
        self.branches[self.at] = Branch { now: now.clone(), done: vec![], ..ours };
        self.branches[1 - self.at] = Branch { name, now, done: vec![] };
    }

    async fn check(&self) {
        let branch = &self.branches[self.at];
        match &self.open {
            // Edits that are not committed are seen by their session.
            Some(map) => branch.now.assert_equals(map).await,
            None => branch.now.assert_equals(&tip(&self.repo, &branch.name).await).await,
        }
    }
}

/// Bodies that hang together by edits of which both sides have some.
fn in_conflict(ours: &[Delta], theirs: &[Delta]) -> BTreeSet<u64> {
    let real = |delta: &Delta| -> BTreeSet<u64> {
        delta.bodies.iter().copied().filter(|body| *body != 0).collect()
    };
    let all: Vec<(bool, BTreeSet<u64>)> = ours
        .iter()
        .map(|delta| (true, real(delta)))
        .chain(theirs.iter().map(|delta| (false, real(delta))))
        .collect();
    let mut both = BTreeSet::new();
    for (_, start) in &all {
        let mut group = start.clone();
        loop {
            let size = group.len();
            for (_, bodies) in &all {
                if !bodies.is_disjoint(&group) {
                    group.extend(bodies);
                }
            }
            if group.len() == size {
                break;
            }
        }
        let has = |own: bool| all.iter().any(|(side, b)| *side == own && !b.is_disjoint(&group));
        if has(true) && has(false) {
            both.extend(group);
        }
    }
    both
}

/// Some of the places, not none and not all.
fn some_of(places: &[usize], seed: u64) -> Option<BTreeSet<usize>> {
    let chosen: BTreeSet<usize> = match seed % 3 {
        0 => places.iter().take(1 + seed as usize % places.len()).copied().collect(),
        1 => {
            places.iter().filter(|place| *place % 40 < (seed >> 8) as usize % 40).copied().collect()
        }
        _ => places
            .iter()
            .filter(|place| (**place as u64 ^ seed).is_multiple_of(3))
            .copied()
            .collect(),
    };
    (!chosen.is_empty() && chosen.len() < places.len()).then_some(chosen)
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn random_work_equals_two_plain_arrays(
        voxels in volume(),
        steps in proptest::collection::vec(step(), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(voxels).await;
            for step in steps {
                world.take(step).await;
                world.check().await;
            }
            world.commit().await;
            world.check().await;
        });
    }
}
