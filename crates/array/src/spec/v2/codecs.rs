//! Filters and compressors of version 2, with numcodecs' names and configurations.
//!
//! A filter is translated only if it surely decodes to the same numbers as numcodecs. `zarrs`
//! offers a translation of its own; it forgets the compressor of variable-length strings.

use serde_json::{Map, Value, json};

use super::dtype::Element;
use crate::{ByteOrder, DType, Error, Result, codec};

/// Where a codec stands in a chain of version 3.
enum Codec {
    Elements(Value),
    ElementsToBytes(Value),
    Bytes(Value),
    /// It has nothing to do when chunks are decoded.
    Nothing,
}

/// The codecs of an array whose elements pass through filters and then a compressor.
pub(super) fn translate(
    element: &Element,
    filters: &[Value],
    compressor: Option<&Value>,
) -> Result<Vec<Value>> {
    let (mut before, mut to_bytes, mut after) = (Vec::new(), None, Vec::new());
    // The element as the codec at hand sees it.
    let mut stored = Element { dtype: element.dtype.clone(), order: element.order };
    for codec in filters.iter().chain(compressor) {
        let members = codec.as_object();
        let id = members.and_then(|members| members.get("id")?.as_str());
        let (Some(members), Some(id)) = (members, id) else {
            return Err(Error::invalid(format!("Zarr v2 metadata with codec {codec}")));
        };
        let on_elements = to_bytes.is_none() && after.is_empty();
        match translate_one(id, members, &mut stored)? {
            Codec::Elements(codec) if on_elements => before.push(codec),
            Codec::ElementsToBytes(codec) if on_elements => to_bytes = Some(codec),
            Codec::Bytes(codec) => after.push(codec),
            Codec::Nothing => {}
            _ => return Err(Error::unsupported(format!("codec '{id}' after codecs of bytes"))),
        }
    }
    let to_bytes = match to_bytes {
        Some(codec) => codec,
        None => elements_to_bytes(&stored)?,
    };
    Ok([before, vec![to_bytes], after].concat())
}

fn translate_one(id: &str, members: &Map<String, Value>, stored: &mut Element) -> Result<Codec> {
    let unsupported = |why: &str| Error::unsupported(format!("codec '{id}'{why}"));
    let with = |name: &str, keys: &[&str]| {
        let kept = members.iter().filter(|(key, _)| keys.contains(&key.as_str()));
        let configuration: Map<_, _> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
        if configuration.is_empty() {
            return json!({"name": name});
        }
        json!({"name": name, "configuration": configuration})
    };
    Ok(match id {
        "vlen-utf8" | "vlen-bytes" => {
            let expected = if id == "vlen-utf8" { "string" } else { "bytes" };
            if stored.dtype.name() != expected {
                return Err(unsupported(&format!(" for {}", stored.dtype)));
            }
            Codec::ElementsToBytes(json!({"name": id}))
        }
        "pcodec" => {
            let keys: Vec<&str> =
                members.keys().map(String::as_str).filter(|k| *k != "id").collect();
            Codec::ElementsToBytes(with("numcodecs.pcodec", &keys))
        }
        "bitround" => Codec::Elements(with("bitround", &["keepbits"])),
        "fixedscaleoffset" => fixed_scale_offset(members, stored)?,
        // It rounds when chunks are encoded; decoding only changes the type, if at all.
        "quantize" if same_type(members, stored) => Codec::Nothing,
        "quantize" => return Err(unsupported(" with a type of its own")),
        "blosc" => Codec::Bytes(blosc(members, &stored.dtype)?),
        "gzip" => Codec::Bytes(with("gzip", &["level"])),
        "zlib" => Codec::Bytes(with("numcodecs.zlib", &["level"])),
        "bz2" => Codec::Bytes(with("numcodecs.bz2", &["level"])),
        "lz4" => Codec::Bytes(with("numcodecs.lz4", &["acceleration"])),
        "zstd" => {
            let level = members.get("level").cloned().unwrap_or(json!(0));
            let checksum = members.get("checksum").cloned().unwrap_or(json!(false));
            let configuration = json!({"level": level, "checksum": checksum});
            Codec::Bytes(json!({"name": "zstd", "configuration": configuration}))
        }
        "shuffle" => Codec::Bytes(with("numcodecs.shuffle", &["elementsize"])),
        "adler32" => Codec::Bytes(with("numcodecs.adler32", &["location"])),
        "fletcher32" => Codec::Bytes(with("numcodecs.fletcher32", &[])),
        "crc32c" if members.get("location").is_none_or(|location| location == "end") => {
            Codec::Bytes(json!({"name": "crc32c"}))
        }
        "crc32c" => return Err(unsupported(" with the checksum first")),
        _ => return Err(unsupported("")),
    })
}

fn elements_to_bytes(stored: &Element) -> Result<Value> {
    let mut codec = codec::elements_to_bytes(&stored.dtype)?;
    if stored.order == ByteOrder::Big
        && let Some(endian) = codec.pointer_mut("/configuration/endian")
    {
        *endian = json!("big");
    }
    Ok(codec)
}

/// numcodecs numbers the shuffles, and takes the size of an item from its input.
fn blosc(members: &Map<String, Value>, dtype: &DType) -> Result<Value> {
    let item_size = dtype.item_size().filter(|size| (1..=255).contains(size)).unwrap_or(1);
    let number = |key: &str| members.get(key).and_then(Value::as_i64);
    let shuffle = match number("shuffle").unwrap_or(1) {
        0 => "noshuffle",
        1 => "shuffle",
        2 => "bitshuffle",
        -1 if item_size == 1 => "bitshuffle",
        -1 => "shuffle",
        other => return Err(Error::invalid(format!("codec 'blosc' with shuffle {other}"))),
    };
    let member = |key: &str, default: Value| members.get(key).cloned().unwrap_or(default);
    let mut configuration = json!({
        "cname": member("cname", json!("lz4")), "clevel": member("clevel", json!(5)),
        "shuffle": shuffle, "blocksize": member("blocksize", json!(0)),
    });
    if shuffle != "noshuffle" {
        configuration["typesize"] = json!(item_size);
    }
    Ok(json!({"name": "blosc", "configuration": configuration}))
}

/// Numbers stored as `round((x - offset) * scale)` in a type of their own.
fn fixed_scale_offset(members: &Map<String, Value>, stored: &mut Element) -> Result<Codec> {
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let unsupported = || {
        let found = Value::Object(members.clone());
        Error::unsupported(format!("codec 'fixedscaleoffset' for {} with {found}", stored.dtype))
    };
    // `zarrs` computes in the type of the elements, with scale and offset as `f32`; numcodecs in
    // `f64` throughout. The filter is accepted only where that makes no difference.
    let exact = |key: &str| {
        let number = members.get(key).and_then(Value::as_f64);
        number.is_some_and(|number| f64::from(number as f32) == number)
    };
    let sound = stored.dtype.name() == "float64"
        && same_dtype(text("dtype"), stored)
        && exact("scale")
        && exact("offset");
    let astype = text("astype").or(text("dtype"));
    let (Some(astype), true) = (astype, sound) else { return Err(unsupported()) };
    let (dtype, order) = DType::from_numpy(astype).map_err(|cause| unsupported().because(cause))?;
    // `zarrs` wants descriptions without the `|` of single bytes, and no signed single bytes.
    if dtype.name() == "int8" {
        return Err(unsupported());
    }
    let configuration = json!({
        "offset": members.get("offset"), "scale": members.get("scale"),
        "dtype": "f8", "astype": astype.trim_start_matches(['|', '<', '>', '=']),
    });
    *stored = Element { dtype, order };
    Ok(Codec::Elements(
        json!({"name": "numcodecs.fixedscaleoffset", "configuration": configuration}),
    ))
}

/// Whether a codec that names the types before and after it changes nothing.
fn same_type(members: &Map<String, Value>, stored: &Element) -> bool {
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let dtype = text("dtype");
    same_dtype(dtype, stored) && same_dtype(text("astype").or(dtype), stored)
}

fn same_dtype(descr: Option<&str>, stored: &Element) -> bool {
    let parsed = descr.and_then(|descr| DType::from_numpy(descr).ok());
    parsed.is_some_and(|(dtype, order)| dtype == stored.dtype && order == stored.order)
}
