//! Arrays as plain lists of elements, and their statistics.

use std::collections::BTreeMap;

use chunkyard_array::ElementsBuf;
use chunkyard_format::container::model::{ArrayStats, DType, FillValue, StatValue};

/// The types under test, each with a fill value and a way to write a small number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int8,
    Int32,
    UInt64,
    Float32,
    Float64,
    Bool,
    Timestamp,
    Text,
    Binary,
}

pub(super) const KINDS: [Kind; 9] = [
    Kind::Int8,
    Kind::Int32,
    Kind::UInt64,
    Kind::Float32,
    Kind::Float64,
    Kind::Bool,
    Kind::Timestamp,
    Kind::Text,
    Kind::Binary,
];

/// The number that stands for the fill value of every type.
pub(super) const FILL: u8 = 0;

impl Kind {
    pub(super) fn dtype(self) -> DType {
        match self {
            Self::Int8 => DType::Int8,
            Self::Int32 => DType::Int32,
            Self::UInt64 => DType::UInt64,
            Self::Float32 => DType::Float32,
            Self::Float64 => DType::Float64,
            Self::Bool => DType::Bool,
            Self::Timestamp => DType::TimestampNs,
            Self::Text => DType::String,
            Self::Binary => DType::Binary,
        }
    }

    pub(super) fn fill_value(self) -> FillValue {
        match self {
            Self::Int8 | Self::Int32 => FillValue::Int(-7),
            Self::UInt64 => FillValue::UInt(u64::MAX),
            Self::Float32 | Self::Float64 => FillValue::Float(f64::NAN),
            Self::Bool => FillValue::Bool(true),
            Self::Timestamp => FillValue::TimestampNs(i64::MIN),
            Self::Text | Self::Binary => FillValue::String("fill".to_owned()),
        }
    }

    /// The element that a number stands for. Different numbers may be the same element.
    fn element(self, number: u8) -> Vec<u8> {
        let n = i64::from(number) - 128;
        let fill = number == FILL;
        match self {
            Self::Int8 => vec![if fill { -7_i8 as u8 } else { number }],
            Self::Int32 => (if fill { -7 } else { n as i32 * 1000 }).to_le_bytes().to_vec(),
            Self::UInt64 => {
                (if fill { u64::MAX } else { u64::from(number) << 40 }).to_le_bytes().to_vec()
            }
            Self::Float32 => (if fill { f32::NAN } else { n as f32 / 4.0 }).to_le_bytes().to_vec(),
            Self::Float64 => (if fill { f64::NAN } else { n as f64 / 4.0 }).to_le_bytes().to_vec(),
            Self::Bool => vec![u8::from(fill || number % 2 == 1)],
            Self::Timestamp => (if fill { i64::MIN } else { n }).to_le_bytes().to_vec(),
            Self::Text | Self::Binary if fill => b"fill".to_vec(),
            Self::Text => "ä".repeat(usize::from(number) % 4).into_bytes(),
            Self::Binary => vec![number; usize::from(number) % 4],
        }
    }

    fn stat(self, element: &[u8]) -> StatValue {
        match self {
            Self::Int8 => StatValue::Int(i64::from(element[0] as i8)),
            Self::Int32 => StatValue::Int(i32::from_le_bytes(element.try_into().unwrap()).into()),
            Self::UInt64 => StatValue::UInt(u64::from_le_bytes(element.try_into().unwrap())),
            Self::Float32 => {
                StatValue::Float(f32::from_le_bytes(element.try_into().unwrap()).into())
            }
            Self::Float64 => StatValue::Float(f64::from_le_bytes(element.try_into().unwrap())),
            Self::Bool => StatValue::UInt(element[0].into()),
            Self::Timestamp => {
                StatValue::TimestampNs(i64::from_le_bytes(element.try_into().unwrap()))
            }
            Self::Text | Self::Binary => StatValue::Bytes(element.to_vec()),
        }
    }

    fn is_variable(self) -> bool {
        matches!(self, Self::Text | Self::Binary)
    }

    pub(super) fn elements(self, numbers: &[u8]) -> ElementsBuf {
        let all: Vec<Vec<u8>> = numbers.iter().map(|&number| self.element(number)).collect();
        if !self.is_variable() {
            return ElementsBuf::Fixed(all.concat());
        }
        let ends = all.iter().scan(0, |end, element| {
            *end += element.len() as u64;
            Some(*end)
        });
        ElementsBuf::Variable {
            offsets: [0].into_iter().chain(ends).collect(),
            bytes: all.concat(),
        }
    }
}

/// An array of the model: every element by its position, as the number that was written.
#[derive(Debug, Clone)]
pub(super) struct Naive {
    pub(super) kind: Kind,
    pub(super) shape: Vec<u64>,
    pub(super) cells: BTreeMap<Vec<u64>, u8>,
    pub(super) attributes: BTreeMap<String, i64>,
}

pub(super) fn positions(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |heads, &extent| {
        let tails = |head: Vec<u64>| (0..extent).map(move |n| [&head[..], &[n]].concat());
        heads.into_iter().flat_map(tails).collect()
    })
}

impl Naive {
    pub(super) fn numbers(&self) -> Vec<u8> {
        let cell = |at: Vec<u64>| self.cells.get(&at).copied().unwrap_or(FILL);
        positions(&self.shape).into_iter().map(cell).collect()
    }

    pub(super) fn resize(&mut self, shape: &[u64]) {
        self.shape = shape.to_vec();
        self.cells.retain(|at, _| at.iter().zip(shape).all(|(at, extent)| at < extent));
    }

    pub(super) fn statistics(&self, name: &str) -> ArrayStats {
        let fill = self.kind.element(FILL);
        let numbers = self.numbers();
        let elements = numbers.iter().map(|&number| self.kind.element(number));
        let mut written: Vec<Vec<u8>> = elements.filter(|element| *element != fill).collect();
        written.sort_by(|a, b| compare(&self.kind.stat(a), &self.kind.stat(b)));
        ArrayStats {
            name: name.to_owned(),
            min: written.first().map(|element| self.kind.stat(element)),
            max: written.last().map(|element| self.kind.stat(element)),
            null_count: (numbers.len() - written.len()) as u64,
            row_count: numbers.len() as u64,
        }
    }
}

fn compare(a: &StatValue, b: &StatValue) -> std::cmp::Ordering {
    match (a, b) {
        (StatValue::Int(a), StatValue::Int(b)) => a.cmp(b),
        (StatValue::UInt(a), StatValue::UInt(b)) => a.cmp(b),
        (StatValue::Float(a), StatValue::Float(b)) => a.total_cmp(b),
        (StatValue::Bytes(a), StatValue::Bytes(b)) => a.cmp(b),
        (StatValue::TimestampNs(a), StatValue::TimestampNs(b)) => a.cmp(b),
        other => panic!("{other:?}"),
    }
}
