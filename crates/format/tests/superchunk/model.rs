//! After any steps, a dataset equals a naive model: a list of rows.

use chunkyard_array::{Attributes, Axis, ElementsBuf, Region, Selection};
use chunkyard_format::Place;
use chunkyard_format::superchunk::dtype::RowType;
use chunkyard_format::superchunk::{Blz, BlzOptions, Creation, Style};
use proptest::prelude::*;
use serde_json::json;

use super::support::{creation, local, memory, numbers, rows};
use chunkyard_test_support::cases;

/// A step. Its numbers are taken modulo the number of rows.
#[derive(Debug, Clone)]
enum Step {
    Append(u64),
    Flush,
    Trim(u64),
    Resize(u64),
    Discard,
    Refresh,
    Reopen,
    /// Existing rows change.
    Change {
        start: u64,
        count: u64,
    },
    /// Another handle adds rows and commits them.
    Other(u64),
    Attribute(i64),
    /// Rows here and there.
    Read {
        start: u64,
        step: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let count = prop_oneof![4 => 0..12_u64, 1 => 0..120_u64];
    let step = prop_oneof![
        6 => count.clone().prop_map(Step::Append),
        4 => Just(Step::Flush),
        2 => count.clone().prop_map(Step::Trim),
        2 => (0..150_u64).prop_map(Step::Resize),
        1 => Just(Step::Discard),
        1 => Just(Step::Refresh),
        2 => Just(Step::Reopen),
        2 => count.clone().prop_map(Step::Other),
        3 => (any::<u64>(), count).prop_map(|(start, count)| Step::Change { start, count }),
        1 => any::<i64>().prop_map(Step::Attribute),
        2 => (any::<u64>(), 1..7_u64).prop_map(|(start, step)| Step::Read { start, step }),
    ];
    prop::collection::vec(step, 1..30)
}

fn creations() -> impl Strategy<Value = Creation> {
    let styles = prop::sample::select(vec![
        Style::Superchunk,
        Style::Superchunk,
        Style::Document,
        Style::Bcolz,
    ]);
    let types = prop::sample::select(vec!["<i8", ">i8", "[('a', '<i8'), ('b', '>i8')]"]);
    let sizes = (1..13_u64, prop_oneof![1..4_u64, Just(1000)]);
    (styles, types, sizes, 0..40_u64, any::<bool>()).prop_map(
        |(style, text, (chunklen, superchunk), slack, differ)| {
            let mut wanted = creation(text, chunklen, superchunk);
            // In the style of the document a table has one chunk length: only our key gives columns their own.
            if differ && style == Style::Superchunk && text.starts_with('[') {
                let mut other = wanted.wish.clone();
                (other.chunklen, other.superchunk) = (Some(chunklen + 2), Some(2));
                wanted.columns.insert("b".into(), other);
            }
            (wanted.style, wanted.slack) = (style, slack);
            wanted.wish.default = (!text.starts_with('[')).then(|| json!(-7));
            wanted
        },
    )
}

struct Run {
    place: Place,
    blz: Blz,
    default: i64,
    /// The rows that this handle sees.
    now: Vec<i64>,
    committed: Vec<i64>,
    /// The committed rows that this handle knows.
    known: Vec<i64>,
    waits: bool,
    next: i64,
}

impl Run {
    fn rows(&mut self, count: u64) -> std::ops::Range<i64> {
        let first = self.next;
        self.next += count as i64;
        first..self.next
    }

    async fn append(&self, blz: &Blz, more: std::ops::Range<i64>) {
        let columns = blz.columns().iter().map(|_| rows(more.clone())).collect();
        blz.append(columns).await.unwrap();
    }

    /// A handle that begins to write sees the rows that others have committed.
    fn begin(&mut self) {
        if !self.waits {
            self.now.clone_from(&self.committed);
        }
        self.waits = true;
    }

    fn commit(&mut self) {
        self.committed.clone_from(&self.now);
        self.known.clone_from(&self.now);
        self.waits = false;
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Append(0) | Step::Other(0) => {}
            Step::Append(count) => {
                self.begin();
                let more = self.rows(count);
                self.append(&self.blz, more.clone()).await;
                self.now.extend(more);
            }
            Step::Flush => {
                self.blz.flush().await.unwrap();
                if self.waits {
                    self.commit();
                }
            }
            Step::Trim(count) => {
                self.begin();
                let count = count.min(self.now.len() as u64);
                self.blz.trim(count).await.unwrap();
                self.now.truncate(self.now.len() - count as usize);
                self.commit();
            }
            Step::Resize(len) => {
                self.begin();
                self.blz.resize(len).await.unwrap();
                let had = self.now.len();
                self.now.resize(len as usize, self.default);
                match (len as usize).cmp(&had) {
                    std::cmp::Ordering::Less => self.commit(),
                    std::cmp::Ordering::Equal if self.now == self.committed => self.waits = false,
                    _ => {}
                }
                self.known.clone_from(&self.committed);
            }
            Step::Discard => {
                self.blz.discard().await;
                if self.waits {
                    self.now.clone_from(&self.known);
                    self.waits = false;
                }
            }
            Step::Refresh => {
                self.blz.refresh().await.unwrap();
                if !self.waits {
                    self.now.clone_from(&self.committed);
                    self.known.clone_from(&self.committed);
                }
            }
            Step::Reopen => {
                self.blz = Blz::open(&self.place, mutable()).await.unwrap();
                self.now.clone_from(&self.committed);
                self.known.clone_from(&self.committed);
                self.waits = false;
            }
            Step::Change { start, count } => {
                self.begin();
                let len = self.now.len() as u64;
                let start = start.checked_rem(len).unwrap_or(0);
                let count = count.min(len - start);
                if count == 0 {
                    self.waits = self.now != self.committed;
                    return;
                }
                let new = self.rows(count);
                let region = Region::new([start], [count]).unwrap();
                for column in self.blz.columns().iter() {
                    let writer = self.blz.writer(&column.path).unwrap();
                    writer.write_region(&region, rows(new.clone())).await.unwrap();
                }
                let changed = self.now.iter_mut().skip(start as usize).zip(new);
                changed.for_each(|(row, new)| *row = new);
            }
            // A handle with waiting rows keeps others from writing.
            Step::Other(_) if self.waits => {}
            Step::Other(count) => {
                let other = Blz::open(&self.place, BlzOptions::default()).await.unwrap();
                let more = self.rows(count);
                self.append(&other, more.clone()).await;
                other.flush().await.unwrap();
                self.committed.extend(more);
                // The rows this handle saw are still there, and its new rows come behind.
                self.blz.refresh().await.unwrap();
                self.now.clone_from(&self.committed);
                self.known.clone_from(&self.committed);
            }
            Step::Attribute(number) => {
                let attributes: Attributes =
                    [("a".to_owned(), json!(number))].into_iter().collect();
                self.blz.set_attributes(attributes.clone()).await.unwrap();
                let other = Blz::open(&self.place, BlzOptions::default()).await.unwrap();
                assert_eq!(other.attributes(), attributes);
            }
            Step::Read { start, step } => {
                let Some(start) = start.checked_rem(self.now.len() as u64) else { return };
                let wanted: Vec<i64> =
                    self.now.iter().copied().skip(start as usize).step_by(step as usize).collect();
                for column in self.blz.columns().iter() {
                    let reader = self.blz.reader(&column.path).unwrap();
                    let axis = Axis::range(start, step, wanted.len() as u64).unwrap();
                    let selection = Selection::new(vec![axis]);
                    let read = reader.read_selected_elements(&selection).await.unwrap();
                    let rows = wanted.iter().flat_map(|row| row.to_le_bytes()).collect();
                    assert_eq!(read, ElementsBuf::Fixed(rows), "{path}", path = column.path);
                }
            }
        }
    }

    async fn check(&self, step: &Step) {
        for column in self.blz.columns().iter() {
            let path = &column.path;
            assert_eq!(numbers(&self.blz, path).await, self.now, "here, {path} {step:?}");
            let other = Blz::open(&self.place, BlzOptions::default()).await.unwrap();
            assert_eq!(numbers(&other, path).await, self.committed, "there, {path} {step:?}");
        }
    }
}

fn mutable() -> BlzOptions {
    BlzOptions { mutable: true, ..BlzOptions::default() }
}

async fn check(place: Place, wanted: Creation, steps: Vec<Step>) {
    let blz = Blz::create(&place, &wanted, mutable()).await.unwrap();
    let default = wanted.wish.default.as_ref().and_then(serde_json::Value::as_i64).unwrap_or(0);
    let (now, committed, known) = (Vec::new(), Vec::new(), Vec::new());
    let mut run = Run { place, blz, default, now, committed, known, waits: false, next: 0 };
    for step in steps {
        run.step(step.clone()).await;
        run.check(&step).await;
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn a_dataset_is_a_list_of_rows(wanted in creations(), steps in steps(), on_disk: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_temp, local) = local();
        let place = if on_disk { local } else { memory() };
        // A table in the style of bcolz cannot be committed in one step in an object store.
        let apart = wanted.style == Style::Bcolz && !on_disk;
        prop_assume!(!(apart && matches!(wanted.row, RowType::Struct(_))));
        runtime.block_on(check(place, wanted, steps));
    }
}
