//! Keeping the number of runs bounded.
//!
//! Runs have levels. A commit's own run starts at the level of its size; when a node has four
//! runs on a level they become one on the next, together with the smaller ones between them. So a
//! row is rewritten at most once per level it climbs, and a node has fewer than four runs per
//! level, except for runs over the merge budget.

use super::runs;
use crate::config::Config;
use crate::node::Inventory;

/// Runs of one level that make a merge.
const FAN_IN: usize = 4;
/// Rows that level 0 holds.
const LEVEL_ROWS: u64 = 4096;

/// The lowest level for a run of this many rows: level L holds about 4^L × 4,096.
pub(crate) fn level_of(rows: u64) -> u32 {
    let mut level = 0;
    while level < 20 && rows > LEVEL_ROWS << (2 * level) {
        level += 1;
    }
    level
}

/// Runs of one node to be replaced by one.
#[derive(Debug)]
pub(crate) struct Merge {
    /// The entries before the merged runs, kept.
    older: Vec<Inventory>,
    merged: Vec<Vec<Inventory>>,
    /// Level of the result.
    pub(crate) level: u32,
    rows: u64,
}

/// Decides whether a node's runs need merging, within the budget of rows.
pub(crate) fn plan(inventories: &[Inventory], config: &Config) -> Option<Merge> {
    let all = runs(inventories);
    let level = |run: &Vec<Inventory>| run.first().map_or(0, Inventory::level);
    // The newest stretch of runs at or below a level: merged runs must be adjacent in age, or a
    // newer row could sink below an older one.
    let highest = all.iter().map(level).max()?;
    // Where the merge starts, the level of its result and its rows.
    let mut planned: Option<(usize, u32, u64)> = None;
    for at_level in 0..=highest {
        let start = all.iter().rposition(|run| level(run) > at_level).map_or(0, |at| at + 1);
        let stretch = all.get(start..).unwrap_or_default();
        // Runs merged so far count as the one run they become, which may fill the next level.
        let (rest, result) = match planned {
            Some((_, result, _)) if result > at_level => continue,
            Some((from, result, _)) => (all.get(start..from).unwrap_or_default(), Some(result)),
            None => (stretch, None),
        };
        let on_level = rest.iter().filter(|run| level(run) == at_level).count();
        let full = on_level + usize::from(result == Some(at_level)) >= FAN_IN;
        // Small runs that lie between larger ones are counted here: nothing else bounds them.
        let count = rest.len() + usize::from(result.is_some());
        let crowded = count >= FAN_IN * (at_level as usize + 1);
        if !full && !crowded {
            continue;
        }
        let rows = stretch.iter().flatten().map(|entry| entry.rows.unwrap_or(0)).sum();
        if rows <= config.merge_budget {
            planned = Some((start, (at_level + 1).max(level_of(rows)), rows));
        }
    }
    let (start, level, rows) = planned?;
    let older = all.get(..start).unwrap_or_default().concat();
    let merged = all.get(start..).unwrap_or_default().to_vec();
    Some(Merge { older, merged, level, rows })
}

/// A merge of everything into one run, or `None` when there is one run without removals already.
pub(crate) fn plan_all(inventories: &[Inventory]) -> Option<Merge> {
    let merged = runs(inventories);
    let settled = merged.len() <= 1
        && inventories.iter().all(|entry| entry.flags & Inventory::REMOVALS == 0)
        && inventories.iter().all(|entry| entry.rows.is_some());
    if settled {
        return None;
    }
    let rows = inventories.iter().map(|entry| entry.rows.unwrap_or(0)).sum();
    let level = level_of(rows);
    Some(Merge { older: Vec::new(), merged, level, rows })
}

impl Merge {
    /// An upper bound of the rows of the result.
    pub(crate) fn rows_max(&self) -> usize {
        usize::try_from(self.rows).unwrap_or(usize::MAX)
    }

    /// Whether nothing older remains, so that removals can be dropped.
    pub(crate) fn is_oldest(&self) -> bool {
        self.older.is_empty()
    }

    /// The runs to merge, oldest first.
    pub(crate) fn merged(&self) -> &[Vec<Inventory>] {
        &self.merged
    }

    /// The node's entries once the merged run is written.
    pub(crate) fn result(&self, mut merged: Vec<Inventory>) -> Vec<Inventory> {
        if !self.is_oldest() {
            for entry in &mut merged {
                entry.flags |= Inventory::OVERRIDES;
            }
        }
        let mut entries = self.older.clone();
        entries.append(&mut merged);
        entries
    }
}
