//! Workers that do anything in any order, against a model of one variable per task.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const TASKS: u64 = 5;
const WORKERS: usize = 4;

#[derive(Debug, Clone)]
enum Action {
    /// Asks for something to do.
    Next(usize),
    /// Notes one of the claims that it believes it holds.
    Note(usize, usize),
    /// Gives one of them back.
    Fail(usize, usize),
    Beat(usize),
    /// Says that it ends; another worker takes its place.
    Leave(usize),
    /// Ends without a word. What it was about to note comes later, from a ghost.
    Die(usize),
    /// A request of a dead worker arrives at last.
    Ghost(usize),
    /// Time passes, in tenths of a lease.
    Sleep(u32),
}

fn action() -> impl Strategy<Value = Action> {
    let worker = 0..WORKERS;
    prop_oneof![
        8 => worker.clone().prop_map(Action::Next),
        4 => (worker.clone(), 0..3_usize).prop_map(|(worker, at)| Action::Note(worker, at)),
        1 => (worker.clone(), 0..3_usize).prop_map(|(worker, at)| Action::Fail(worker, at)),
        4 => worker.clone().prop_map(Action::Beat),
        1 => worker.clone().prop_map(Action::Leave),
        1 => worker.clone().prop_map(Action::Die),
        2 => (0..8_usize).prop_map(Action::Ghost),
        4 => (1..12_u32).prop_map(Action::Sleep),
    ]
}

/// What the rules say about a task.
#[derive(Debug, Default)]
struct Model {
    /// The claims in their order: epoch and worker.
    claims: Vec<(u32, usize)>,
    /// The last claim was given back.
    failed: bool,
    result: Option<String>,
}

/// A worker under test, with a number of its own.
struct Player {
    number: usize,
    worker: Worker,
    claims: Vec<Claim>,
    /// When others last had a sign of it.
    sign: Duration,
    /// It has left.
    gone: bool,
}

async fn player(job: &Job, clock: &Clock, number: usize) -> Player {
    let worker = Worker::join_with(job, clock.clone()).await.unwrap();
    Player { number, worker, claims: Vec::new(), sign: clock.now(), gone: false }
}

struct Game {
    job: Job,
    clock: Clock,
    tasks: BTreeMap<u64, Model>,
    players: Vec<Player>,
    /// Workers that left or died, with the claims they had.
    former: Vec<Player>,
    next_number: usize,
}

impl Game {
    async fn new() -> Self {
        let job = new_job(&Store::unnamed(&Options::default()).unwrap(), TASKS).await;
        let (clock, mut players) = (Clock::start(), Vec::new());
        for number in 0..WORKERS {
            players.push(player(&job, &clock, number).await);
        }
        Self {
            job,
            clock,
            tasks: BTreeMap::new(),
            players,
            former: Vec::new(),
            next_number: WORKERS,
        }
    }

    fn claimed(&mut self, at: usize, claim: Claim) {
        let model = self.tasks.entry(claim.task).or_default();
        assert!(model.result.is_none(), "{claim:?} of a task that is done");
        if claim.task == TASKS {
            let is_done = |task| self.tasks.get(&task).is_some_and(|model| model.result.is_some());
            assert!((0..TASKS).all(is_done), "the end before the end");
        }
        let model = self.tasks.entry(claim.task).or_default();
        if let Some(&(epoch, holder)) = model.claims.last() {
            assert!(claim.epoch > epoch, "{claim:?} after {epoch}");
            if !model.failed {
                let all = self.players.iter().chain(&self.former);
                let holder = all.into_iter().find(|player| player.number == holder).unwrap();
                let silent = self.clock.now() - holder.sign > LEASE;
                assert!(holder.gone || silent, "{claim:?}, and its worker lives");
            }
        } else {
            assert_eq!(claim.epoch, 0);
        }
        let player = &mut self.players[at];
        model.claims.push((claim.epoch, player.number));
        model.failed = false;
        player.claims.push(claim);
    }

    /// Whether a claim still counts.
    fn holds(&self, player: &Player, claim: &Claim) -> bool {
        let model = &self.tasks[&claim.task];
        let last = model.claims.last() == Some(&(claim.epoch, player.number));
        last && !model.failed && model.result.is_none()
    }

    async fn note(&mut self, player: &Player, claim: &Claim) {
        // JSON, because the end's result is.
        let result = format!("\"task {} by {} at {}\"", claim.task, player.number, claim.epoch);
        let expected = self.holds(player, claim);
        let noted = player.worker.note(claim, result.clone().into()).await.unwrap();
        assert_eq!(noted, expected, "{claim:?}");
        if noted {
            self.tasks.get_mut(&claim.task).unwrap().result = Some(result);
        }
    }

    async fn play(&mut self, action: Action) {
        match action {
            Action::Next(at) => match self.players[at].worker.next().await.unwrap() {
                Next::Claimed(claim) => self.claimed(at, claim),
                Next::Wait => {}
                Next::Over => {
                    let end = self.tasks.get(&TASKS).and_then(|end| end.result.as_ref());
                    assert!(end.is_some(), "over, and it is not");
                }
            },
            Action::Note(at, which) => {
                if which < self.players[at].claims.len() {
                    let claim = self.players[at].claims.remove(which);
                    let player = self.players.remove(at);
                    self.note(&player, &claim).await;
                    self.players.insert(at, player);
                }
            }
            Action::Fail(at, which) => {
                if which < self.players[at].claims.len() {
                    let claim = self.players[at].claims.remove(which);
                    let player = &self.players[at];
                    let expected = self.holds(player, &claim);
                    let error = Error::invalid("no luck");
                    assert_eq!(player.worker.fail(&claim, &error).await.unwrap(), expected);
                    self.tasks.get_mut(&claim.task).unwrap().failed |= expected;
                }
            }
            Action::Beat(at) => {
                self.players[at].worker.beat().await.unwrap();
                self.players[at].sign = self.clock.now();
            }
            Action::Leave(at) | Action::Die(at) => {
                let new = player(&self.job, &self.clock, self.next_number).await;
                self.next_number += 1;
                let mut old = std::mem::replace(&mut self.players[at], new);
                if matches!(action, Action::Leave(_)) {
                    old.worker.leave().await.unwrap();
                    old.gone = true;
                }
                self.former.push(old);
            }
            Action::Ghost(which) => {
                let ghost = (!self.former.is_empty()).then(|| which % self.former.len());
                if let Some(at) = ghost
                    && let Some(claim) = self.former[at].claims.pop()
                {
                    let player = self.former.remove(at);
                    self.note(&player, &claim).await;
                    self.former.insert(at, player);
                }
            }
            Action::Sleep(tenths) => pass(&self.clock, LEASE * tenths / 10),
        }
    }

    /// One worker that lives does the rest.
    async fn end(mut self) {
        let number = self.next_number;
        self.players.push(player(&self.job, &self.clock, number).await);
        let at = self.players.len() - 1;
        loop {
            match self.players[at].worker.next().await.unwrap() {
                Next::Claimed(claim) => {
                    self.claimed(at, claim);
                    let claim = self.players[at].claims.pop().unwrap();
                    let player = self.players.remove(at);
                    self.note(&player, &claim).await;
                    self.players.insert(at, player);
                }
                Next::Wait => pass(&self.clock, LEASE / 3),
                Next::Over => break,
            }
        }
        let results: Vec<(u64, Bytes)> =
            self.job.results().await.unwrap().try_collect().await.unwrap();
        assert_eq!(results.len() as u64, TASKS);
        for (task, result) in results {
            assert_eq!(
                Some(std::str::from_utf8(&result).unwrap()),
                self.tasks[&task].result.as_deref()
            );
        }
        let status = self.job.status().await.unwrap();
        assert_eq!((status.done, status.free, status.open), (TASKS, 0, Vec::new()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_task_is_done_once_whatever_workers_do(
        actions in prop::collection::vec(action(), 0..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut game = Game::new().await;
            for action in actions {
                game.play(action).await;
            }
            game.end().await;
        });
    }
}
