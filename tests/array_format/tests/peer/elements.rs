//! Elements by their types, in the form of array-format.

use array_format::{ArrayElement, DType as PeerType, FillValue, TimestampNs};
use chunkyard_array_format::Element;
use chunkyard_engine::format::container::model::DType;

/// A type that array-format writes and reads, from and to the bytes of an element.
pub(super) trait Typed: ArrayElement {
    fn from_element(element: &[u8]) -> Self;
    fn to_element(&self) -> Element;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Typed for $number {
            fn from_element(element: &[u8]) -> Self {
                Self::from_le_bytes(element.try_into().unwrap())
            }

            fn to_element(&self) -> Element {
                self.to_le_bytes().to_vec()
            }
        }
    )*};
}

numbers!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Typed for TimestampNs {
    fn from_element(element: &[u8]) -> Self {
        Self(i64::from_element(element))
    }

    fn to_element(&self) -> Element {
        self.0.to_element()
    }
}

impl Typed for String {
    fn from_element(element: &[u8]) -> Self {
        Self::from_utf8(element.to_vec()).unwrap()
    }

    fn to_element(&self) -> Element {
        self.as_bytes().to_vec()
    }
}

impl Typed for Vec<u8> {
    fn from_element(element: &[u8]) -> Self {
        element.to_vec()
    }

    fn to_element(&self) -> Element {
        self.clone()
    }
}

/// array-format names Bool but has no element type for it.
#[derive(Clone)]
pub(super) struct Bool(bool);

impl ArrayElement for Bool {
    const DTYPE: PeerType = PeerType::Bool;

    fn encode_chunk(values: &[Self]) -> Vec<u8> {
        values.iter().map(|value| u8::from(value.0)).collect()
    }

    fn decode_chunk(bytes: &[u8]) -> Vec<Self> {
        bytes.iter().map(|byte| Self(*byte != 0)).collect()
    }

    fn fill_element(fill: Option<&FillValue>) -> Self {
        Self(matches!(fill, Some(FillValue::Bool(true))))
    }
}

impl Typed for Bool {
    fn from_element(element: &[u8]) -> Self {
        Self(element == [1])
    }

    fn to_element(&self) -> Element {
        vec![u8::from(self.0)]
    }
}

/// A generic function over the element type of a data type.
pub(super) trait Visit {
    type Output;
    async fn with<T: Typed>(self) -> Self::Output;
}

/// Calls it; lists have no such type.
pub(super) async fn visit<V: Visit>(dtype: &DType, visit: V) -> V::Output {
    match dtype {
        DType::Bool => visit.with::<Bool>().await,
        DType::Int8 => visit.with::<i8>().await,
        DType::Int16 => visit.with::<i16>().await,
        DType::Int32 => visit.with::<i32>().await,
        DType::Int64 => visit.with::<i64>().await,
        DType::UInt8 => visit.with::<u8>().await,
        DType::UInt16 => visit.with::<u16>().await,
        DType::UInt32 => visit.with::<u32>().await,
        DType::UInt64 => visit.with::<u64>().await,
        DType::Float32 => visit.with::<f32>().await,
        DType::Float64 => visit.with::<f64>().await,
        DType::String => visit.with::<String>().await,
        DType::Binary => visit.with::<Vec<u8>>().await,
        DType::TimestampNs => visit.with::<TimestampNs>().await,
        DType::FixedSizeList { .. } | DType::List { .. } => panic!("no type for {dtype:?}"),
    }
}
