//! The finished part of a conversion, so that a killed one is resumed and not repeated.
//!
//! ```text
//!  plan        the description of the plan, then a CRC-32C of it: only the same plan goes on
//!  00000000    records of packs that are durable, then a CRC-32C of the description and them
//!  00000001    …
//! ```
//!
//! A record is written after its pack is durable and never before. A segment that is damaged by a
//! power cut, or that belongs to another plan, counts for nothing: its packs are written again, to
//! the same bytes. So does a damaged plan, since nothing is moved before the plan is durable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chunkyard_format::{JOURNAL_PLAN, Pack, Receipt, Sink, taken_away};
use chunkyard_store::{Error, Noun, Result, Store};
use tokio::sync::Mutex;

use super::plan::Plan;

/// Receipts are recorded once their packs have this many bytes,
const FLUSH_BYTES: u64 = 256 << 20;
/// or when they take this much memory themselves,
const FLUSH_RECEIPTS: usize = 16 << 20;
/// or this long after the last time.
const FLUSH_AFTER: Duration = Duration::from_secs(5);

/// The journal of one conversion.
#[derive(Debug)]
pub(super) struct Journal {
    store: Store,
    /// Checksum of the plan. The checksums of segments continue it.
    seed: u32,
    done: BTreeMap<Arc<str>, Numbers>,
    pending: Mutex<Pending>,
}

#[derive(Debug)]
struct Pending {
    records: Vec<(Pack, Receipt)>,
    bytes: u64,
    /// Bytes of the receipts themselves.
    held: usize,
    since: Instant,
    segment: u64,
}

/// The work of an earlier attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Resumed {
    pub(super) packs: u64,
    pub(super) chunks: u64,
    pub(super) bytes: u64,
}

impl Journal {
    /// Opens the journal of a plan, and lets the sink adopt the packs recorded there.
    pub(super) async fn open(sink: &dyn Sink, plan: &Plan) -> Result<(Self, Resumed)> {
        let store = sink.journal().clone();
        let description = plan.description.as_bytes();
        let seed = plan.seed();
        let known = match store.get(JOURNAL_PLAN).await {
            Ok(object) => Some(object.bytes),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        match known.as_deref().and_then(|bytes| checked(bytes, 0)) {
            Some(found) if found == description => {}
            Some(_) => return Err(other_plan(&store)),
            None => begin(&store, description, seed).await?,
        }
        let mut names: Vec<String> =
            store.list_dir("").await?.objects.into_iter().map(|meta| meta.path).collect();
        names.retain(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        names.sort();
        let segment = names.last().and_then(|name| name.parse::<u64>().ok()).map_or(0, |n| n + 1);
        let (mut done, mut resumed) = (BTreeMap::<Arc<str>, Numbers>::new(), Resumed::default());
        for name in names {
            let bytes = store.get(&name).await.map_err(|error| taken_away(&store, error))?.bytes;
            for (array, number, receipt) in parse(&bytes, seed).unwrap_or_default() {
                let Some(pack) = pack_of(plan, &array, number) else { continue };
                if !sink.adopt(&pack, &receipt).await? {
                    continue;
                }
                if done.entry(pack.array.clone()).or_default().insert(number) {
                    resumed.packs += 1;
                    resumed.chunks += receipt.chunks;
                    resumed.bytes += receipt.bytes;
                }
            }
        }
        let since = Instant::now();
        let pending =
            Mutex::new(Pending { records: Vec::new(), bytes: 0, held: 0, since, segment });
        Ok((Self { store, seed, done, pending }, resumed))
    }

    /// Whether a pack is done.
    pub(super) fn has(&self, pack: &Pack) -> bool {
        self.done.get(&pack.array).is_some_and(|numbers| numbers.contains(pack.number))
    }

    /// Marks a pack as done; `false` if it was done before.
    pub(super) fn mark(&mut self, pack: &Pack) -> bool {
        self.done.entry(pack.array.clone()).or_default().insert(pack.number)
    }

    /// The packs that are done, by array.
    pub(super) fn done(&self) -> &BTreeMap<Arc<str>, Numbers> {
        &self.done
    }

    /// Notes a complete pack; from time to time makes the noted packs durable and records them.
    pub(super) async fn note(&self, sink: &dyn Sink, pack: Pack, receipt: Receipt) -> Result<()> {
        let mut pending = self.pending.lock().await;
        pending.bytes += receipt.bytes;
        pending.held += receipt.body.len();
        pending.records.push((pack, receipt));
        let is_little = pending.bytes < FLUSH_BYTES && pending.held < FLUSH_RECEIPTS;
        if is_little && pending.since.elapsed() < FLUSH_AFTER {
            return Ok(());
        }
        let (records, segment) = pending.take();
        // Other tasks keep noting packs meanwhile.
        drop(pending);
        self.write(sink, &records, segment).await
    }

    /// Makes all noted packs durable and records them.
    pub(super) async fn flush(&self, sink: &dyn Sink) -> Result<()> {
        let (records, segment) = self.pending.lock().await.take();
        self.write(sink, &records, segment).await
    }

    async fn write(
        &self,
        sink: &dyn Sink,
        records: &[(Pack, Receipt)],
        segment: u64,
    ) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let receipts: Vec<Receipt> = records.iter().map(|(_, receipt)| receipt.clone()).collect();
        sink.sync(&receipts).await.map_err(|error| taken_away(&self.store, error))?;
        let path = format!("{segment:08}");
        self.store.put(&path, vec![render(records, self.seed)]).await?;
        self.store.sync(&[path]).await.map_err(|error| taken_away(&self.store, error))
    }
}

impl Pending {
    fn take(&mut self) -> (Vec<(Pack, Receipt)>, u64) {
        let segment = self.segment;
        self.segment += 1;
        (self.bytes, self.held) = (0, 0);
        self.since = Instant::now();
        (std::mem::take(&mut self.records), segment)
    }
}

/// Records the plan that owns this journal. Files without it come from an abandoned attempt.
async fn begin(store: &Store, description: &[u8], crc: u32) -> Result<()> {
    let left = store.list_dir("").await?.objects.into_iter().map(|meta| meta.path);
    store.delete(&left.filter(|path| path != JOURNAL_PLAN).collect::<Vec<_>>()).await?;
    let bytes = [description, &crc.to_le_bytes()].concat();
    store.put(JOURNAL_PLAN, vec![bytes.into()]).await?;
    store.sync(&[JOURNAL_PLAN.to_owned()]).await.map_err(|error| taken_away(store, error))
}

fn other_plan(store: &Store) -> Error {
    Error::AlreadyExists { what: Noun::UnfinishedConversion, name: store.url().to_owned() }
}

/// The pack of a number, if the plan has it.
pub(super) fn pack_of(plan: &Plan, array: &str, number: u64) -> Option<Pack> {
    plan.array(array)?.pack(number)
}

/// A segment: records that only the same plan can read.
pub(super) fn render(records: &[(Pack, Receipt)], seed: u32) -> Bytes {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, part: &[u8]| {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    };
    for (pack, receipt) in records {
        text(&mut bytes, pack.array.as_bytes());
        for number in [pack.number, receipt.chunks, receipt.bytes] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        text(&mut bytes, &receipt.body);
    }
    let crc = crc32c::crc32c_append(seed, &bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.into()
}

/// The bytes before a CRC-32C at the end, which continues `seed`, if it matches.
fn checked(bytes: &[u8], seed: u32) -> Option<&[u8]> {
    let (content, crc) = bytes.split_last_chunk::<4>()?;
    (crc32c::crc32c_append(seed, content) == u32::from_le_bytes(*crc)).then_some(content)
}

/// The records of a segment; `None` if it is damaged or belongs to another plan.
pub(super) fn parse(bytes: &[u8], seed: u32) -> Option<Vec<(String, u64, Receipt)>> {
    let mut rest = checked(bytes, seed)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let array = String::from_utf8(text(&mut rest)?.to_vec()).ok()?;
        let (number, chunks, bytes) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
        let body = Bytes::copy_from_slice(text(&mut rest)?);
        records.push((array, number, Receipt { chunks, bytes, body }));
    }
    Some(records)
}

fn word(rest: &mut &[u8]) -> Option<u64> {
    let (word, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*word))
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(word(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(text)
}

/// A set of mostly consecutive numbers, as ranges: from each first number to one past the last.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers(BTreeMap<u64, u64>);

impl Numbers {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, &end)| number < end)
    }

    /// All of them, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|(&start, &end)| start..end)
    }

    /// Adds a number; `false` if it was in the set.
    fn insert(&mut self, number: u64) -> bool {
        if self.contains(number) {
            return false;
        }
        let end = self.0.remove(&(number + 1)).unwrap_or(number + 1);
        match self.0.range_mut(..number).next_back() {
            Some((_, before)) if *before == number => *before = end,
            _ => {
                self.0.insert(number, end);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use chunkyard_array::Region;

    use super::*;

    #[test]
    fn numbers_that_follow_one_another_are_one_range() {
        let mut numbers = Numbers::default();
        for number in [5, 3, 4, 0, 1, 9, 2] {
            assert!(numbers.insert(number));
            assert!(!numbers.insert(number));
        }
        assert_eq!(numbers.0, BTreeMap::from([(0, 6), (9, 10)]));
        assert!(numbers.contains(5) && !numbers.contains(6) && numbers.contains(9));
    }

    #[test]
    fn a_segment_round_trips_and_any_damage_makes_it_count_for_nothing() {
        let pack = Pack { array: "/a".into(), number: 7, region: Region::whole(&[3]) };
        let receipt = Receipt { chunks: 2, bytes: 99, body: Bytes::from_static(b"c/0\nc/1") };
        let bytes = render(&[(pack.clone(), receipt.clone()), (pack, Receipt::default())], 7);
        let parsed = parse(&bytes, 7).unwrap();
        assert!(parse(&bytes, 8).is_none(), "another plan");
        assert_eq!(parsed[0], ("/a".to_owned(), 7, receipt));
        assert_eq!(parsed.len(), 2);
        for at in 0..bytes.len() {
            assert!(parse(&bytes[..at], 7).is_none());
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1;
            assert!(parse(&damaged, 7).is_none());
        }
    }
}
