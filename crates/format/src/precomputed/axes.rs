//! Which axis of a volume each dimension of an array is.
//!
//! A volume has x, y, z and channels, and keeps x fastest. An array in C order with the dimensions z, y, x, or c, z, y, x,
//! has the same elements in the same order. Other orders are transposed by a codec; a dimension that is not there has
//! one element.

use serde_json::{Value, json};

/// An axis of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Axis {
    Channel,
    Z,
    Y,
    X,
}

/// The axis of each dimension of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Axes(Vec<Axis>);

/// In the order in which elements lie, the slowest first.
const ALL: [Axis; 4] = [Axis::Channel, Axis::Z, Axis::Y, Axis::X];

impl Axis {
    /// Its name as a dimension.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Channel => "c",
            Self::Z => "z",
            Self::Y => "y",
            Self::X => "x",
        }
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "channel" => Some(Self::Channel),
            _ => ALL.into_iter().find(|axis| axis.name() == name),
        }
    }
}

impl Axes {
    /// Those of a volume: without channels if it has one.
    pub(super) fn of_volume(num_channels: u64) -> Self {
        Self(ALL.into_iter().skip(usize::from(num_channels == 1)).collect())
    }

    /// Those of an array: by the names of its dimensions if all of these are axes, otherwise in the usual order. `None`
    /// if there are too many.
    pub(super) fn of_array(names: &[Option<String>], rank: usize) -> Option<Self> {
        let named: Option<Vec<Axis>> =
            names.iter().map(|name| Axis::named(&name.as_ref()?.to_lowercase())).collect();
        let named = named.filter(|axes| axes.len() == rank).and_then(Self::checked);
        named.or_else(|| Some(Self(ALL.get(ALL.len().checked_sub(rank)?..)?.to_vec())))
    }

    /// Reads what [`Axes::render`] wrote.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let axes = value.as_array()?.iter().map(|name| Axis::named(name.as_str()?));
        Self::checked(axes.collect::<Option<Vec<_>>>()?)
    }

    pub(super) fn render(&self) -> Value {
        self.0.iter().map(|axis| json!(axis.name())).collect()
    }

    fn checked(axes: Vec<Axis>) -> Option<Self> {
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        (sorted.len() == axes.len()).then_some(Self(axes))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Axis> + '_ {
        self.0.iter().copied()
    }

    /// What each dimension has, given what x, y and z have, and channels.
    pub(super) fn arrange<T: Copy>(&self, [x, y, z]: [T; 3], channel: T) -> Vec<T> {
        let of = |axis: &Axis| match axis {
            Axis::Channel => channel,
            Axis::Z => z,
            Axis::Y => y,
            Axis::X => x,
        };
        self.0.iter().map(of).collect()
    }

    /// What x, y and z have, given what each dimension has.
    pub(super) fn xyz<T: Copy>(&self, values: &[T], missing: T) -> [T; 3] {
        [Axis::X, Axis::Y, Axis::Z].map(|axis| self.value(axis, values).unwrap_or(missing))
    }

    /// What channels have, given what each dimension has.
    pub(super) fn channel<T: Copy>(&self, values: &[T], missing: T) -> T {
        self.value(Axis::Channel, values).unwrap_or(missing)
    }

    fn value<T: Copy>(&self, axis: Axis, values: &[T]) -> Option<T> {
        let at = self.0.iter().position(|known| *known == axis)?;
        values.get(at).copied()
    }

    /// The codec that brings the elements of a chunk into the order of a volume; `None` if they have it.
    pub(super) fn transpose(&self) -> Option<Value> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|at| self.0.get(*at).copied());
        let moved = !order.is_sorted();
        moved.then(|| json!({"name": "transpose", "configuration": {"order": order}}))
    }

    /// Whether all of x, y and z are there, as encodings for labels want it.
    pub(super) fn has_space(&self) -> bool {
        [Axis::X, Axis::Y, Axis::Z].iter().all(|axis| self.0.contains(axis))
    }
}
