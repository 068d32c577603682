//! Files of a repository's history: the index, and runs of write ids and snapshots.

use chunkyard_engine::Result;
use chunkyard_engine::repo::hostile;

use crate::error::is_about_bytes;

/// The first byte is how many entries the index promises for a run; the rest is the file.
pub(crate) fn check(data: &[u8]) {
    let Some((count, file)) = data.split_first() else { return };
    let dataset = dataset_id(file);
    let count = u64::from(*count);
    same_again(file, |bytes| hostile::reread_history_index(&dataset, bytes));
    same_again(file, |bytes| hostile::reread_history_writes(&dataset, count, bytes));
    same_again(file, |bytes| hostile::reread_history_snapshots(&dataset, count, bytes));
}

/// The dataset that the file says it belongs to, so that more than the first check is reached.
fn dataset_id(file: &[u8]) -> String {
    let said = serde_json::from_slice::<serde_json::Value>(file).ok();
    let id = said.as_ref().and_then(|said| said.get("dataset-id")?.as_str());
    id.unwrap_or("66f08abx07q8mbwfg5r7fb72rw").to_owned()
}

fn same_again(file: &[u8], reread: impl Fn(&[u8]) -> Result<bytes::Bytes>) {
    match reread(file) {
        Err(error) => is_about_bytes(&error),
        Ok(rendered) => {
            let again = reread(&rendered).expect("what was rendered can be parsed");
            assert_eq!(again, rendered);
        }
    }
}
