//! Bytes of a fixed length, as zarr-python has them: `null_terminated_bytes` is NumPy's `S`,
//! `raw_bytes` is its `V`.
//!
//! `zarrs` knows neither, and zarr-python does not know the `r*` of the specification. To all
//! codecs they are the same as `r*`, so they are built on that type. Their fill values are base64,
//! and a fill value of `null_terminated_bytes` leaves out the zeros at its end.

use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Once};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use zarrs::array::data_type::RawBitsDataType;
use zarrs::array::data_type::api::{
    DataTypeFillValueError, DataTypeFillValueMetadataError, DataTypeRuntimePluginV3,
    register_data_type_v3,
};
use zarrs::array::{DataTypeSize, DataTypeTraits, FillValue, FillValueMetadata};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionName, PluginCreateError, ZarrVersion};

/// NumPy's `S`.
pub(crate) const TERMINATED: &str = "null_terminated_bytes";
/// NumPy's `V`.
pub(crate) const RAW: &str = "raw_bytes";
/// Bytes of the longest item.
const LENGTH_MAX: u64 = 1 << 20;

#[derive(Debug)]
struct FixedBytes {
    name: &'static str,
    length: usize,
    inner: RawBitsDataType,
}

/// Makes `zarrs` know these types.
pub(super) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        for name in [TERMINATED, RAW] {
            register_data_type_v3(DataTypeRuntimePluginV3::new(
                move |found| found == name,
                move |metadata| {
                    let length =
                        metadata.configuration().and_then(|map| map.get("length_bytes")?.as_u64());
                    let length = length.filter(|length| (1..=LENGTH_MAX).contains(length));
                    let length = length.and_then(|length| usize::try_from(length).ok());
                    let length = length.ok_or_else(|| {
                        let range = format!("1 to {LENGTH_MAX}");
                        PluginCreateError::Other(format!("{name} needs a length_bytes of {range}"))
                    })?;
                    let inner = RawBitsDataType::new(length);
                    Ok(Arc::new(FixedBytes { name, length, inner }).into())
                },
            ));
        }
    });
}

impl ExtensionName for FixedBytes {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(self.name))
    }
}

impl DataTypeTraits for FixedBytes {
    fn configuration(&self, _version: ZarrVersion) -> Configuration {
        let members = json!({"length_bytes": self.length});
        match members {
            Value::Object(members) => members.into(),
            _ => Configuration::default(),
        }
    }

    fn size(&self) -> DataTypeSize {
        DataTypeSize::Fixed(self.length)
    }

    fn fill_value(
        &self,
        fill_value_metadata: &FillValueMetadata,
        _version: ZarrVersion,
    ) -> Result<FillValue, DataTypeFillValueMetadataError> {
        let text = fill_value_metadata.as_str().ok_or(DataTypeFillValueMetadataError)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| DataTypeFillValueMetadataError)?;
        let fits = bytes.len() == self.length || self.name == TERMINATED;
        if !fits || bytes.len() > self.length {
            return Err(DataTypeFillValueMetadataError);
        }
        let mut bytes = bytes;
        bytes.resize(self.length, 0);
        Ok(FillValue::new(bytes))
    }

    fn metadata_fill_value(
        &self,
        fill_value: &FillValue,
    ) -> Result<FillValueMetadata, DataTypeFillValueError> {
        let bytes = fill_value.as_ne_bytes();
        let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
        let kept = if self.name == TERMINATED { bytes.len() - zeros } else { bytes.len() };
        let kept = bytes.get(..kept).ok_or(DataTypeFillValueError)?;
        Ok(FillValueMetadata::from(BASE64_STANDARD.encode(kept)))
    }

    /// Codecs recognise types by this, and treat these as `r*`.
    fn as_any(&self) -> &dyn Any {
        &self.inner
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{ArraySpec, Codecs, DType, Elements, ElementsBuf, fill_element};

    fn dtype(name: &str, length: u64) -> serde_json::Value {
        json!({"name": name, "configuration": {"length_bytes": length}})
    }

    #[test]
    fn fixed_bytes_are_read_and_written_as_zarr_python_does() {
        for (name, fill, expected) in [
            ("null_terminated_bytes", "YWI=", &b"ab\0"[..]),
            ("null_terminated_bytes", "", b"\0\0\0"),
            ("raw_bytes", "AQID", &[1, 2, 3]),
        ] {
            let spec = ArraySpec::builder(&[4], &[2], dtype(name, 3)).fill_value(fill);
            let spec = spec.build().unwrap();
            let found = fill_element(&spec.dtype().unwrap(), &spec.metadata().fill_value).unwrap();
            assert_eq!(found, expected);
            let codecs = Codecs::new(&spec).unwrap();
            let encoded = codecs.encode(Elements::Fixed(b"abcde\0")).unwrap();
            assert_eq!(codecs.decode(&encoded).unwrap(), ElementsBuf::Fixed(b"abcde\0".to_vec()));
        }
        let empty = ArraySpec::builder(&[4], &[2], dtype("null_terminated_bytes", 3)).build();
        let fill = serde_json::to_value(&empty.unwrap().metadata().fill_value).unwrap();
        assert_eq!(fill, json!(""));
    }

    #[test]
    fn they_are_types_of_numpy() {
        let numpy = |name| DType::parse(&dtype(name, 5)).unwrap().to_numpy();
        assert_eq!(numpy("null_terminated_bytes").as_deref(), Some("|S5"));
        assert_eq!(numpy("raw_bytes").as_deref(), Some("|V5"));
    }

    #[test]
    fn lengths_that_make_no_sense_are_refused() {
        for length in [0, u64::MAX, 1 << 40] {
            assert!(DType::parse(&dtype("raw_bytes", length)).is_err());
        }
        assert!(DType::parse(&json!("raw_bytes")).is_err());
        let refused = |name: &str, fill: &str| {
            ArraySpec::builder(&[4], &[2], dtype(name, 3)).fill_value(fill).build().is_err()
        };
        assert!(refused("raw_bytes", "AQI="), "too short");
        assert!(refused("null_terminated_bytes", "YWFhYQ=="), "too long");
        assert!(refused("null_terminated_bytes", "?"), "not base64");
    }
}
