//! Arrow columns of any width or variant, as the one type that the readers use.
//!
//! Files of the draft may hold integers of any width, `large`, view and dictionary variants. This is the
//! part of Arrow's casts that they need; the casts themselves are four crates of which nothing else is
//! used. An error says what was found, and the caller adds the place.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeListArray, Int64Array, ListArray, PrimitiveArray,
    StringArray, UInt64Array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use arrow_select::take::take;

type Found<T> = Result<T, String>;

/// Integers that are not negative.
pub(super) fn uints(array: &dyn Array) -> Found<UInt64Array> {
    integers::<UInt64Type>(array)
}

/// Integers with a sign.
pub(super) fn ints(array: &dyn Array) -> Found<Int64Array> {
    integers::<Int64Type>(array)
}

fn integers<To>(array: &dyn Array) -> Found<PrimitiveArray<To>>
where
    To: ArrowPrimitiveType,
    To::Native: TryFrom<i8> + TryFrom<i16> + TryFrom<i32> + TryFrom<i64>,
    To::Native: TryFrom<u8> + TryFrom<u16> + TryFrom<u32> + TryFrom<u64>,
{
    match array.data_type() {
        DataType::Null => Ok(PrimitiveArray::new_null(array.len())),
        DataType::Int8 => fit::<Int8Type, To>(array),
        DataType::Int16 => fit::<Int16Type, To>(array),
        DataType::Int32 => fit::<Int32Type, To>(array),
        DataType::Int64 => fit::<Int64Type, To>(array),
        DataType::UInt8 => fit::<UInt8Type, To>(array),
        DataType::UInt16 => fit::<UInt16Type, To>(array),
        DataType::UInt32 => fit::<UInt32Type, To>(array),
        DataType::UInt64 => fit::<UInt64Type, To>(array),
        DataType::Dictionary(..) => integers(&plain(array)?),
        other => Err(other.to_string()),
    }
}

/// A value that does not fit (a negative count) is an error, not a null.
fn fit<From, To>(array: &dyn Array) -> Found<PrimitiveArray<To>>
where
    From: ArrowPrimitiveType,
    To: ArrowPrimitiveType,
    To::Native: TryFrom<From::Native>,
{
    let array = array.as_primitive::<From>();
    let convert = |value: From::Native| {
        To::Native::try_from(value).map_err(|_| format!("{value:?}, which does not fit"))
    };
    array.try_unary(convert)
}

/// Text.
pub(super) fn strings(array: &dyn Array) -> Found<StringArray> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string().clone()),
        DataType::LargeUtf8 => Ok(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Ok(array.as_string_view().iter().collect()),
        DataType::Dictionary(..) => strings(&plain(array)?),
        _ => {
            let bytes = binaries(array)?;
            let (offsets, values, nulls) = bytes.into_parts();
            StringArray::try_new(offsets, values, nulls).map_err(|error| error.to_string())
        }
    }
}

/// Bytes.
pub(super) fn binaries(array: &dyn Array) -> Found<BinaryArray> {
    match array.data_type() {
        DataType::Null => Ok(BinaryArray::new_null(array.len())),
        DataType::Binary => Ok(array.as_binary().clone()),
        DataType::LargeBinary => Ok(array.as_binary::<i64>().iter().collect()),
        DataType::BinaryView => Ok(array.as_binary_view().iter().collect()),
        DataType::FixedSizeBinary(_) => Ok(array.as_fixed_size_binary().iter().collect()),
        DataType::Utf8 => Ok(BinaryArray::from(array.as_string::<i32>().clone())),
        DataType::LargeUtf8 | DataType::Utf8View => Ok(BinaryArray::from(strings(array)?)),
        DataType::Dictionary(..) => binaries(&plain(array)?),
        other => Err(other.to_string()),
    }
}

/// A dictionary column, spelled out.
fn plain(array: &dyn Array) -> Found<ArrayRef> {
    let dictionary = array.as_any_dictionary();
    if matches!(dictionary.values().data_type(), DataType::Dictionary(..)) {
        return Err(array.data_type().to_string());
    }
    take(dictionary.values(), dictionary.keys(), None).map_err(|error| error.to_string())
}

/// Lists, of any items.
pub(super) fn lists(array: &dyn Array) -> Found<ListArray> {
    match array.data_type() {
        DataType::Null => {
            let item = Arc::new(Field::new("item", DataType::Null, true));
            Ok(ListArray::new_null(item, array.len()))
        }
        DataType::List(_) => Ok(array.as_list::<i32>().clone()),
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets().iter().map(|offset| offset_i32(*offset));
            let offsets = offsets.collect::<Found<Vec<i32>>>()?;
            list_of(item, offsets, list.values().clone(), array)
        }
        DataType::FixedSizeList(item, _) => {
            let list = array.as_fixed_size_list();
            let offsets = (0..=list.len()).map(|row| offset_i32(list.value_offset_at(row) as i64));
            list_of(item, offsets.collect::<Found<_>>()?, list.values().clone(), array)
        }
        DataType::ListView(item) => {
            let list = array.as_list_view::<i32>();
            let parts = list.offsets().iter().zip(list.sizes()).map(|(at, len)| (*at, *len));
            let parts = parts.map(|(at, len)| (i64::from(at), i64::from(len))).collect();
            gathered(item, parts, list.values(), array)
        }
        DataType::LargeListView(item) => {
            let list = array.as_list_view::<i64>();
            let parts = list.offsets().iter().zip(list.sizes()).map(|(at, len)| (*at, *len));
            gathered(item, parts.collect(), list.values(), array)
        }
        other => Err(other.to_string()),
    }
}

/// The items of views, brought into order.
fn gathered(
    item: &Arc<Field>,
    parts: Vec<(i64, i64)>,
    values: &ArrayRef,
    array: &dyn Array,
) -> Found<ListArray> {
    let mut offsets = vec![0];
    let mut indices: Vec<i64> = Vec::new();
    for (row, (at, len)) in parts.into_iter().enumerate() {
        if array.is_valid(row) {
            indices.extend(at..at + len);
        }
        // Views may share items; a column of ours never does, and a file must not make memory out of it.
        if indices.len() > values.len() {
            return Err(format!("lists with {} items or more of {}", indices.len(), values.len()));
        }
        offsets.push(offset_i32(indices.len() as i64)?);
    }
    let values = take(values, &Int64Array::from(indices), None).map_err(|e| e.to_string())?;
    list_of(item, offsets, values, array)
}

fn list_of(
    item: &Arc<Field>,
    offsets: Vec<i32>,
    values: ArrayRef,
    array: &dyn Array,
) -> Found<ListArray> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    ListArray::try_new(item.clone(), offsets, values, array.nulls().cloned())
        .map_err(|error| error.to_string())
}

fn offset_i32(offset: i64) -> Found<i32> {
    i32::try_from(offset).map_err(|_| format!("{offset} items"))
}

/// Pairs, spelled as lists of two: all items of all pairs, one after another.
pub(super) fn pairs(array: &dyn Array) -> Found<UInt64Array> {
    if let Some(pairs) = array.as_any().downcast_ref::<FixedSizeListArray>()
        && pairs.value_length() == 2
        && pairs.null_count() == 0
    {
        return uints(&pairs.values().slice(pairs.value_offset_at(0), 2 * pairs.len()));
    }
    let list = lists(array)?;
    if list.null_count() > 0 || list.value_offsets().windows(2).any(|ends| ends[1] - ends[0] != 2) {
        return Err(format!("{} with other than two items", array.data_type()));
    }
    let from = list.value_offsets().first().and_then(|at| usize::try_from(*at).ok());
    uints(&list.values().slice(from.unwrap_or_default(), 2 * list.len()))
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{
        FixedSizeListBuilder, Int16Builder, LargeListBuilder, ListViewBuilder,
        StringDictionaryBuilder, UInt8Builder,
    };
    use arrow_array::{
        FixedSizeBinaryArray, Float64Array, Int8Array, LargeStringArray, StringViewArray,
        UInt16Array,
    };

    use super::*;

    #[test]
    fn integers_of_any_width_are_widened_and_nulls_stay() {
        let narrow = UInt16Array::from(vec![Some(7), None, Some(65_535)]);
        assert_eq!(uints(&narrow).unwrap(), UInt64Array::from(vec![Some(7), None, Some(65_535)]));
        let signed = Int8Array::from(vec![-3, 4]);
        assert_eq!(ints(&signed).unwrap(), Int64Array::from(vec![-3, 4]));
    }

    #[test]
    fn a_number_that_does_not_fit_is_an_error() {
        assert_eq!(uints(&Int8Array::from(vec![4, -3])).unwrap_err(), "-3, which does not fit");
        assert!(ints(&UInt64Array::from(vec![u64::MAX])).is_err());
        assert!(uints(&Float64Array::from(vec![1.0])).unwrap_err().contains("Float64"));
    }

    #[test]
    fn text_of_any_variant_is_text() {
        let wanted = StringArray::from(vec![Some("a"), None, Some("bc")]);
        let large: LargeStringArray = wanted.iter().collect();
        let view: StringViewArray = wanted.iter().collect();
        let mut dictionary = StringDictionaryBuilder::<Int8Type>::new();
        dictionary.extend(wanted.iter());
        let bytes = BinaryArray::from(wanted.clone());
        let variants: [&dyn Array; 4] = [&large, &view, &dictionary.finish(), &bytes];
        for variant in variants {
            assert_eq!(strings(variant).unwrap(), wanted, "{}", variant.data_type());
        }
        assert!(strings(&BinaryArray::from(vec![&b"\xff"[..]])).is_err());
    }

    #[test]
    fn bytes_of_a_fixed_size_are_bytes() {
        let fixed = FixedSizeBinaryArray::try_from_iter([[1u8, 2], [3, 4]].iter()).unwrap();
        assert_eq!(binaries(&fixed).unwrap(), BinaryArray::from(vec![&[1u8, 2][..], &[3, 4]]));
    }

    #[test]
    fn lists_of_any_variant_are_lists() {
        let mut large = LargeListBuilder::new(UInt8Builder::new());
        let mut view = ListViewBuilder::new(UInt8Builder::new());
        for list in [vec![1, 2], vec![], vec![3]] {
            let items = || list.iter().copied().map(Some);
            large.append_value(items());
            view.append_value(items());
        }
        let variants: [&dyn Array; 2] = [&large.finish(), &view.finish()];
        for variant in variants {
            let list = lists(variant).unwrap();
            assert_eq!(list.value_offsets(), [0, 2, 2, 3], "{}", variant.data_type());
            assert_eq!(uints(list.values()).unwrap(), UInt64Array::from(vec![1, 2, 3]));
        }
    }

    #[test]
    fn views_that_share_items_make_no_memory() {
        let values: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2, 3]));
        let item = Arc::new(Field::new("item", DataType::UInt64, true));
        let (offsets, sizes) = (ScalarBuffer::from(vec![0; 9]), ScalarBuffer::from(vec![3; 9]));
        let view = arrow_array::ListViewArray::new(item, offsets, sizes, values, None);
        assert!(lists(&view).unwrap_err().contains("of 3"));
    }

    #[test]
    fn pairs_are_lists_of_two_and_nothing_else() {
        let mut fixed = FixedSizeListBuilder::new(Int16Builder::new(), 2);
        for pair in [[1, 2], [3, 4], [5, 6]] {
            pair.iter().for_each(|item| fixed.values().append_value(*item));
            fixed.append(true);
        }
        let fixed = fixed.finish();
        let flat = |array: &dyn Array| pairs(array).map(|flat| flat.values().to_vec());
        assert_eq!(flat(&fixed).unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(flat(&fixed.slice(1, 2)).unwrap(), [3, 4, 5, 6]);
        let list = lists(&fixed).unwrap();
        assert_eq!(flat(&list.slice(1, 1)).unwrap(), [3, 4]);
        let mut uneven = LargeListBuilder::new(UInt8Builder::new());
        uneven.append_value([Some(1)]);
        assert!(flat(&uneven.finish()).is_err());
    }
}
