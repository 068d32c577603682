//! The steps of all tasks, in a store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use chunkyard_store::atomic::{Content, Outcome, SameBytes, Step};
use chunkyard_store::{Error, Noun, Result, Store, TEMP_PREFIX, Uid, publish};
use futures::TryStreamExt;

use super::entry::Entry;

const STEPS: &str = "steps";
const AGAIN: &str = "again";

/// Creates and reads steps.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    store: Store,
}

/// What a list says about the tasks.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The number of the last step of each task that has any.
    pub(super) last: BTreeMap<u64, u32>,
    /// Steps that may be something else than the end of their task.
    again: BTreeSet<(u64, u32)>,
}

impl Listed {
    /// Whether the last step of a task is its end. Where this says no, only the step itself tells.
    pub(super) fn is_done(&self, task: u64, last: u32) -> bool {
        last > 0 && !self.again.contains(&(task, last))
    }
}

impl Steps {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    pub(super) async fn get(&self, task: u64, number: u32) -> Result<Option<Entry>> {
        let path = path(STEPS, task, number);
        match self.store.get(&path).await {
            Ok(object) => Entry::parse(&self.store.object_url(&path), &object.bytes).map(Some),
            Err(Error::NotFound { what: Noun::Object, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The last step from `number` on, if that one exists.
    pub(super) async fn last_from(&self, task: u64, number: u32) -> Result<Option<(u32, Entry)>> {
        let mut last = None;
        let mut next = number;
        while let Some(entry) = self.get(task, next).await? {
            let Some(after) = next.checked_add(1) else { break };
            let is_end = matches!(entry, Entry::Done { .. });
            last = Some((next, entry));
            if is_end {
                break;
            }
            next = after;
        }
        Ok(last)
    }

    /// Creates a step, if there is none of this number. The step before it must exist.
    pub(super) async fn create(
        &self,
        task: u64,
        number: u32,
        entry: &Entry,
    ) -> Result<Outcome<()>> {
        if number > 0 && !matches!(entry, Entry::Done { .. }) {
            // First the warning: a list that shows the step without it would call the task done.
            let note = Bytes::from_static(b"this step may be something else than the end\n");
            publish::publish(&self.store, vec![(path(AGAIN, task, number), note)]).await?;
        }
        let (path, bytes) = (path(STEPS, task, number), entry.render()?);
        let witness = SameBytes { store: &self.store, path: &path, expected: None, bytes: &bytes };
        let aside = format!("{STEPS}/{TEMP_PREFIX}{}", Uid::fresh()?);
        let step = Step::new(&self.store, &path, witness);
        Ok(match step.create(Content::Parts(vec![bytes.clone()]), &aside).await? {
            Outcome::Done(_) => Outcome::Done(()),
            Outcome::Lost => Outcome::Lost,
            Outcome::Unknown(error) => Outcome::Unknown(error),
        })
    }

    /// All that the names of the steps say: two lists, however many tasks there are.
    pub(super) async fn list(&self) -> Result<Listed> {
        let mut listed = Listed::default();
        let mut steps = self.store.list(STEPS).await?;
        while let Some(meta) = steps.try_next().await? {
            if let Some((task, number)) = parse(STEPS, &meta.path) {
                let last = listed.last.entry(task).or_default();
                *last = number.max(*last);
            }
        }
        // After the steps: the warning of every step that was listed is there by now.
        let mut again = self.store.list(AGAIN).await?;
        while let Some(meta) = again.try_next().await? {
            listed.again.extend(parse(AGAIN, &meta.path));
        }
        Ok(listed)
    }
}

fn path(folder: &str, task: u64, number: u32) -> String {
    format!("{folder}/{task:010}.{number}")
}

/// Task and number of a step, unless the object is something else, such as the rest of a crash.
fn parse(folder: &str, path: &str) -> Option<(u64, u32)> {
    let name = path.strip_prefix(folder)?.strip_prefix('/')?;
    let (task, number) = name.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let both = digits(task) && digits(number);
    both.then(|| Some((task.parse().ok()?, number.parse().ok()?))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_steps_are_read_back_and_others_are_not() {
        for (task, number) in [(0, 0), (42, 7), (u64::MAX, u32::MAX)] {
            assert_eq!(parse(STEPS, &path(STEPS, task, number)), Some((task, number)));
        }
        let others =
            ["steps/1", "steps/1.x", "steps/x.1", "steps/+1.1", "again/1.1", "1.1", "steps/1.1.1"];
        for other in others {
            assert_eq!(parse(STEPS, other), None, "{other}");
        }
        assert_eq!(parse(STEPS, &format!("steps/{TEMP_PREFIX}0.1")), None);
    }
}
