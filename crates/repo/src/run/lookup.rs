//! Finding many keys at once.

use chunkyard_store::Result;

use super::fetch::{Files, Part};
use super::{Block, Rows};
use crate::node::Inventory;

impl<R: Rows> Files<R> {
    /// Finds keys in the entries of a node; the newest entry that knows a key decides. `open` are the
    /// numbers of the keys that are looked for, in the order of the keys, so that neighbours share a
    /// page. `may_hold` excludes entries without a request; `hit` takes a key's number and its row.
    /// Returns the numbers of the keys that no entry knows.
    pub(crate) async fn find_all<'k>(
        &self,
        kind: &R,
        entries: &[Inventory],
        mut open: Vec<usize>,
        key: impl Fn(usize) -> &'k [u8] + Send + Sync,
        may_hold: impl Fn(&Inventory, usize) -> bool + Send + Sync,
        mut hit: impl FnMut(usize, &R::Block, usize) -> Result<()> + Send,
    ) -> Result<Vec<usize>> {
        for entry in entries.iter().rev() {
            if open.is_empty() {
                break;
            }
            let mut page: Option<Part<R::Block>> = None;
            let mut still_open = Vec::new();
            for &at in &open {
                if !may_hold(entry, at) {
                    still_open.push(at);
                    continue;
                }
                let key = key(at);
                if !page.as_ref().is_some_and(|page| page.covers(key)) {
                    page = self.page_for(kind, entry, key).await?;
                }
                let found = page.as_ref().and_then(|page| {
                    let found =
                        |(block, rows): (_, _)| Some((block, R::Block::find(block, rows, key)?));
                    page.pieces().find_map(found)
                });
                match found {
                    Some((block, row)) => hit(at, block, row)?,
                    None => still_open.push(at),
                }
            }
            open = still_open;
        }
        Ok(open)
    }
}
