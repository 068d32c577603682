//! What a worker knows of all tasks: which are free, which are done, and which to look at.

use std::collections::BTreeSet;

use super::steps::Listed;

/// A task, as far as it is known. Knowledge may be old, and never runs ahead: a task that is done stays so, and one with
/// a claim is never free again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Free,
    /// Its last known step.
    Open(u32),
    Done,
}

/// The tasks of a job, and the end as the last of them.
#[derive(Debug)]
pub(super) struct Board {
    marks: Vec<Mark>,
    free: u64,
    /// Open tasks.
    open: BTreeSet<u64>,
    /// Where the next search for a free task begins.
    cursor: u64,
    /// Where the next look at open tasks begins.
    glance: u64,
    /// The tasks that this worker holds, or is about to claim.
    held: BTreeSet<u64>,
}

impl Board {
    /// A board for a number of tasks, without the end.
    pub(super) fn new(tasks: u64) -> Self {
        let count = usize::try_from(tasks).unwrap_or(usize::MAX);
        Self {
            marks: vec![Mark::Free; count],
            free: tasks,
            open: BTreeSet::new(),
            cursor: 0,
            glance: 0,
            held: BTreeSet::new(),
        }
    }

    fn tasks(&self) -> u64 {
        self.marks.len() as u64
    }

    pub(super) fn mark(&self, task: u64) -> Option<Mark> {
        usize::try_from(task).ok().and_then(|at| self.marks.get(at)).copied()
    }

    /// Learns about a task. What is known already is never unlearnt; only the caller's own mistake is, by
    /// [`Board::free_again`].
    pub(super) fn learn(&mut self, task: u64, mark: Mark) {
        let Some(old) = self.mark(task) else { return };
        let newer = match (old, mark) {
            (Mark::Done, _) | (_, Mark::Free) => return,
            (Mark::Open(known), Mark::Open(step)) => Mark::Open(known.max(step)),
            (_, mark) => mark,
        };
        self.set(task, newer);
    }

    /// A task that was taken for claimed turns out to have no step.
    pub(super) fn free_again(&mut self, task: u64) {
        if self.mark(task) == Some(Mark::Open(0)) && !self.held.contains(&task) {
            self.set(task, Mark::Free);
        }
    }

    fn set(&mut self, task: u64, mark: Mark) {
        let Some(slot) = usize::try_from(task).ok().and_then(|at| self.marks.get_mut(at)) else {
            return;
        };
        self.free -= u64::from(*slot == Mark::Free);
        self.free += u64::from(mark == Mark::Free);
        match mark {
            Mark::Open(_) => self.open.insert(task),
            _ => self.open.remove(&task),
        };
        *slot = mark;
    }

    pub(super) fn learn_all(&mut self, listed: &Listed) {
        for (&task, &last) in &listed.last {
            let done = listed.is_done(task, last);
            self.learn(task, if done { Mark::Done } else { Mark::Open(last) });
        }
    }

    /// Takes a free task, which counts as claimed from now on.
    pub(super) fn pick(&mut self) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        let tasks = self.tasks();
        let order = (self.cursor..tasks).chain(0..self.cursor.min(tasks));
        let found = order.into_iter().find(|&task| self.mark(task) == Some(Mark::Free))?;
        self.set(found, Mark::Open(0));
        self.cursor = found + 1;
        Some(found)
    }

    /// Goes on elsewhere: at a free task that `random` chooses. Workers that meet part ways.
    pub(super) fn scatter(&mut self, random: u64) {
        if self.free == 0 {
            return;
        }
        let wanted = random % self.free;
        let mut free = (0..self.tasks()).filter(|&task| self.mark(task) == Some(Mark::Free));
        if let Some(task) = usize::try_from(wanted).ok().and_then(|at| free.nth(at)) {
            self.cursor = task;
        }
    }

    /// Some open tasks that this worker does not hold, others every time.
    pub(super) fn open_tasks(&mut self, most: usize) -> Vec<u64> {
        let after = self.open.range(self.glance..).chain(self.open.range(..self.glance));
        let others = after.copied().filter(|task| !self.held.contains(task));
        let chosen: Vec<u64> = others.take(most).collect();
        self.glance = chosen.last().map_or(0, |task| task.saturating_add(1));
        chosen
    }

    /// How many open tasks other workers seem to hold.
    pub(super) fn open_elsewhere(&self) -> usize {
        self.open.len().saturating_sub(self.held.len())
    }

    pub(super) fn all_done(&self) -> bool {
        self.free == 0 && self.open.is_empty()
    }

    /// Holds a task, unless it is held already. The step itself may still be on its way.
    pub(super) fn hold(&mut self, task: u64) -> bool {
        self.learn(task, Mark::Open(0));
        self.held.insert(task)
    }

    pub(super) fn holds(&self, task: u64) -> bool {
        self.held.contains(&task)
    }

    pub(super) fn let_go(&mut self, task: u64) {
        self.held.remove(&task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_free_task_is_picked_once_wherever_the_search_begins() {
        for start in 0..7 {
            let mut board = Board::new(7);
            board.learn(3, Mark::Done);
            board.scatter(start);
            let mut picked: Vec<u64> = std::iter::from_fn(|| board.pick()).collect();
            picked.sort_unstable();
            assert_eq!(picked, [0, 1, 2, 4, 5, 6]);
            assert!(!board.all_done());
        }
    }

    #[test]
    fn knowledge_does_not_go_backwards() {
        let mut board = Board::new(2);
        board.learn(0, Mark::Open(3));
        board.learn(0, Mark::Open(1));
        assert_eq!(board.mark(0), Some(Mark::Open(3)));
        board.free_again(0);
        assert_eq!(board.mark(0), Some(Mark::Open(3)));
        board.learn(0, Mark::Done);
        board.learn(0, Mark::Open(9));
        assert_eq!(board.mark(0), Some(Mark::Done));
        board.learn(77, Mark::Done);
        assert_eq!(board.pick(), Some(1));
        board.free_again(1);
        assert_eq!(board.pick(), Some(1));
    }

    #[test]
    fn all_open_tasks_get_their_turn() {
        let mut board = Board::new(10);
        while board.pick().is_some() {}
        assert!(board.hold(4));
        assert!(!board.hold(4));
        assert_eq!(board.open_elsewhere(), 9);
        let mut seen: Vec<u64> = (0..3).flat_map(|_| board.open_tasks(3)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    }
}
