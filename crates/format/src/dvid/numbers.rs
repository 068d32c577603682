//! The numbers that instances have in keys, where the metadata of a store does not say them.

use std::collections::BTreeSet;

use chunkyard_store::Result;
use futures::TryStreamExt;

use super::keys::{self, Key};
use super::repo::{Instance, Repo};
use crate::badger::{Badger, KeyRange};

/// Gives the only labelmap without a number the only number that owns blocks and is no other's. What remains open
/// is said in words.
pub(super) async fn settle(repos: &mut [Repo], badger: &Badger) -> Result<Option<String>> {
    let labelmaps =
        || repos.iter().flat_map(|repo| &repo.instances).filter(|one| one.is_labelmap());
    if labelmaps().all(|instance| instance.id.is_some()) {
        return Ok(None);
    }
    let taken: BTreeSet<u32> = labelmaps().filter_map(|instance| instance.id).collect();
    let owners = owners_of_blocks(badger).await?;
    let free: Vec<u32> = owners.into_iter().filter(|number| !taken.contains(number)).collect();
    let labelmaps = repos.iter_mut().flat_map(|repo| &mut repo.instances);
    let mut open: Vec<&mut Instance> =
        labelmaps.filter(|one| one.is_labelmap() && one.id.is_none()).collect();
    match (open.as_mut_slice(), free.as_slice()) {
        ([one], [number]) => {
            one.id = Some(*number);
            Ok(None)
        }
        (open, free) => {
            let names: Vec<&str> = open.iter().map(|instance| instance.name.as_str()).collect();
            let numbers: Vec<String> = free.iter().map(u32::to_string).collect();
            Ok(Some(format!(
                "which number in keys the data {} has is not known; those that own blocks are {}: say by data= \
                 and instance= which is which",
                names.join(", "),
                if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") }
            )))
        }
    }
}

/// The numbers of the instances that have label blocks. Costs a few blocks of keys for each instance.
async fn owners_of_blocks(badger: &Badger) -> Result<Vec<u32>> {
    let mut owners = Vec::new();
    let mut start = Some(0);
    while let Some(from) = start.take() {
        let range = KeyRange::within(keys::instance_prefix(from)..vec![keys::DATA + 1]);
        let Some(number) = first_instance(badger, range).await? else { break };
        let blocks = KeyRange::prefix(&keys::class_prefix(number, keys::BLOCK));
        if first_instance(badger, blocks).await?.is_some() {
            owners.push(number);
        }
        start = number.checked_add(1);
    }
    Ok(owners)
}

/// The instance of the first key of data in a range.
async fn first_instance(badger: &Badger, range: KeyRange) -> Result<Option<u32>> {
    let mut scan = badger.scan(range);
    while let Some(batch) = scan.try_next().await? {
        let instance = batch.iter().find_map(|entry| match Key::parse(&entry.key) {
            Some(Key::Data(key)) => Some(key.instance),
            _ => None,
        });
        if instance.is_some() {
            return Ok(instance);
        }
    }
    Ok(None)
}
