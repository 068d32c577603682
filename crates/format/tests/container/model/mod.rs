//! After any steps, a container equals a naive model: arrays as plain lists.

mod naive;

use std::collections::BTreeMap;

use chunkyard_array::Region;
use chunkyard_format::container::model::AttributeValue;
use chunkyard_format::container::{CompactOptions, Container, ContainerOptions, Definition};
use chunkyard_store::{Store, block_codec};
use proptest::prelude::*;

use self::naive::{FILL, KINDS, Kind, Naive, positions};
use super::support::{memory, open, place};
use chunkyard_test_support::cases;

/// A step of a test. Numbers are taken modulo the number of choices.
#[derive(Debug, Clone)]
enum Step {
    Define {
        name: u8,
        kind: usize,
        shape: Vec<u64>,
        chunks: Vec<u64>,
    },
    Write {
        name: u8,
        origin: [u64; 3],
        shape: [u64; 3],
        seed: u8,
    },
    Erase {
        name: u8,
        origin: [u64; 3],
        shape: [u64; 3],
    },
    Delete {
        name: u8,
    },
    Attribute {
        name: u8,
        key: u8,
        value: Option<i64>,
    },
    Resize {
        name: u8,
        shape: [u64; 3],
    },
    Flush,
    Discard,
    Compact {
        repack: bool,
    },
    Reopen,
    /// Another writer flushes an array of its own.
    Other,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..4_u8;
    let extents = [0..9_u64, 0..9, 0..9];
    let box_of = (extents.clone(), extents.clone());
    let step = prop_oneof![
        4 => (name.clone(), 0..KINDS.len(), prop::collection::vec((0..9_u64, 1..6_u64), 0..4))
            .prop_map(|(name, kind, axes)| {
                let (shape, chunks) = axes.into_iter().unzip();
                Step::Define { name, kind, shape, chunks }
            }),
        8 => (name.clone(), box_of.clone(), any::<u8>())
            .prop_map(|(name, (origin, shape), seed)| Step::Write { name, origin, shape, seed }),
        1 => (name.clone(), box_of)
            .prop_map(|(name, (origin, shape))| Step::Erase { name, origin, shape }),
        1 => name.clone().prop_map(|name| Step::Delete { name }),
        2 => (name.clone(), 0..3_u8, prop::option::weighted(0.7, -3..3_i64))
            .prop_map(|(name, key, value)| Step::Attribute { name, key, value }),
        2 => (name, extents).prop_map(|(name, shape)| Step::Resize { name, shape }),
        4 => Just(Step::Flush),
        1 => Just(Step::Discard),
        1 => any::<bool>().prop_map(|repack| Step::Compact { repack }),
        2 => Just(Step::Reopen),
        1 => Just(Step::Other),
    ];
    prop::collection::vec(step, 1..40)
}

struct Run {
    store: Store,
    container: Container,
    options: ContainerOptions,
    /// The state now, and the state at the last flush.
    now: BTreeMap<String, Naive>,
    flushed: BTreeMap<String, Naive>,
}

impl Run {
    async fn new(options: ContainerOptions) -> Self {
        let store = memory();
        let container = Container::create(&place(&store), options.clone()).await.unwrap();
        Self { store, container, options, now: BTreeMap::new(), flushed: BTreeMap::new() }
    }

    /// A box inside an array, or nothing if it has no elements there.
    fn region(&self, name: &str, origin: &[u64], shape: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
        let array = self.now.get(name)?;
        let axes = array.shape.iter().zip(origin.iter().zip(shape));
        let axes: Option<Vec<(u64, u64)>> = axes
            .map(|(&extent, (&at, &len))| {
                let at = at.checked_rem(extent)?;
                Some((at, len.clamp(1, extent - at)))
            })
            .collect();
        Some(axes?.into_iter().unzip())
    }

    async fn write(&mut self, name: &str, origin: &[u64], shape: &[u64], numbers: Vec<u8>) {
        let array = self.now.get_mut(name).unwrap();
        for (at, &number) in positions(shape).into_iter().zip(&numbers) {
            let at = at.iter().zip(origin).map(|(a, b)| a + b).collect();
            array.cells.insert(at, number);
        }
        let elements = array.kind.elements(&numbers);
        let opened = self.container.array(name).await.unwrap();
        let region = Region::new(origin, shape).unwrap();
        opened.writer().unwrap().write_elements(&region, elements).await.unwrap();
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Define { name, kind, shape, chunks } => {
                let (name, kind) = (name_of(name), KINDS[kind]);
                let definition = Definition {
                    chunk_shape: Some(chunks),
                    fill_value: Some(kind.fill_value()),
                    ..Definition::new(&name, kind.dtype(), &shape)
                };
                let defined = self.container.define(definition).await;
                assert_eq!(defined.is_err(), self.now.contains_key(&name), "{defined:?}");
                let (cells, attributes) = (BTreeMap::new(), BTreeMap::new());
                self.now.entry(name).or_insert(Naive { kind, shape, cells, attributes });
            }
            Step::Write { name, origin, shape, seed } => {
                let name = name_of(name);
                let Some((origin, shape)) = self.region(&name, &origin, &shape) else { return };
                let count: u64 = shape.iter().product();
                let numbers = (0..count).map(|n| seed.wrapping_add((n * 37) as u8)).collect();
                self.write(&name, &origin, &shape, numbers).await;
            }
            Step::Erase { name, origin, shape } => {
                let name = name_of(name);
                let Some((origin, shape)) = self.region(&name, &origin, &shape) else { return };
                let count: u64 = shape.iter().product();
                self.write(&name, &origin, &shape, vec![FILL; count as usize]).await;
            }
            Step::Delete { name } => {
                let name = name_of(name);
                let deleted = self.container.delete(&name).await;
                assert_eq!(deleted.is_ok(), self.now.remove(&name).is_some(), "{deleted:?}");
            }
            Step::Attribute { name, key, value } => {
                let (name, key) = (name_of(name), format!("key {key}"));
                let Some(array) = self.now.get_mut(&name) else { return };
                match value {
                    Some(value) => {
                        array.attributes.insert(key.clone(), value);
                        let value = AttributeValue::Int64(value);
                        self.container.set_attribute(&name, &key, value).await.unwrap();
                    }
                    None => {
                        let was = array.attributes.remove(&key).is_some();
                        let removed = self.container.remove_attribute(&name, &key).await;
                        assert_eq!(removed.unwrap(), was);
                    }
                }
            }
            Step::Resize { name, shape } => {
                let name = name_of(name);
                let Some(array) = self.now.get_mut(&name) else { return };
                let shape = &shape[..array.shape.len()];
                array.resize(shape);
                self.container.resize(&name, shape).await.unwrap();
            }
            Step::Flush => {
                self.container.flush().await.unwrap();
                self.flushed = self.now.clone();
                self.check_statistics().await;
            }
            Step::Discard => {
                self.container.discard().await;
                self.now = self.flushed.clone();
            }
            Step::Compact { repack } => {
                let options = CompactOptions { repack, ..CompactOptions::default() };
                self.container.compact(&options).await.unwrap();
                self.flushed = self.now.clone();
                self.check_statistics().await;
            }
            Step::Reopen => {
                let opened = Container::open(&place(&self.store), self.options.clone()).await;
                self.container = opened.unwrap();
                self.now = self.flushed.clone();
            }
            Step::Other => self.other().await,
        }
        check(&self.container, &self.now).await;
        check(&open(&self.store).await, &self.flushed).await;
    }

    async fn other(&mut self) {
        let other = open(&self.store).await;
        let name = format!("other {}", self.now.len());
        if self.now.contains_key(&name) || self.flushed.contains_key(&name) {
            return;
        }
        let kind = Kind::Int32;
        let definition = Definition {
            fill_value: Some(kind.fill_value()),
            ..Definition::new(&name, kind.dtype(), &[])
        };
        other.define(definition).await.unwrap();
        other.flush().await.unwrap();
        let (cells, attributes) = (BTreeMap::new(), BTreeMap::new());
        let theirs = Naive { kind, shape: Vec::new(), cells, attributes };
        self.now.insert(name.clone(), theirs.clone());
        self.flushed.insert(name, theirs);
        self.container.refresh().await.unwrap();
    }

    async fn check_statistics(&self) {
        for container in [&self.container, &open(&self.store).await] {
            for (name, array) in &self.flushed {
                let found = container.statistics(name).await.unwrap().unwrap();
                assert_eq!(found, array.statistics(name), "{name}");
            }
        }
    }
}

fn name_of(number: u8) -> String {
    ["a", "b", "group/c", "long name of more than sixteen bytes"][usize::from(number)].to_owned()
}

async fn check(container: &Container, expected: &BTreeMap<String, Naive>) {
    let names: Vec<String> = expected.keys().cloned().collect();
    assert_eq!(container.names().await.unwrap(), names);
    for (name, naive) in expected {
        let array = container.array(name).await.unwrap();
        let shape: Vec<u64> = array.described().meta.shape.iter().map(|&n| n.into()).collect();
        assert_eq!(shape, naive.shape, "{name}");
        let attributes = array.described().attributes.iter();
        let attributes: BTreeMap<_, _> = attributes.cloned().collect();
        let wanted = naive.attributes.iter();
        let wanted: BTreeMap<_, _> =
            wanted.map(|(key, &value)| (key.clone(), AttributeValue::Int64(value))).collect();
        assert_eq!(attributes, wanted, "{name}");
        let found = array.reader().unwrap().read_elements(&Region::whole(&shape)).await.unwrap();
        assert_eq!(found, naive.kind.elements(&naive.numbers()), "{name}: {naive:?}");
    }
}

fn run(steps: Vec<Step>, options: ContainerOptions) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut run = Run::new(options).await;
        for step in steps {
            run.step(step).await;
        }
        run.step(Step::Flush).await;
        run.step(Step::Reopen).await;
        run.step(Step::Compact { repack: true }).await;
    });
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_container_equals_the_model(steps in steps()) {
        run(steps, ContainerOptions::default());
    }

    /// Blocks of a few bytes, and changes that do not fit in memory.
    #[test]
    fn a_container_with_small_limits_equals_the_model(steps in steps()) {
        let codec = block_codec("lz4").unwrap();
        run(steps, ContainerOptions { codec, block_bytes: 20, pending_bytes_max: 60, ..Default::default() });
    }
}
