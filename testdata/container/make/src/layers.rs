//! The same arrays written through the interface of each release.

use std::error::Error;
use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};
use object_store::ObjectStore;

/// An array of that shape whose elements are made from their number.
fn ramp<T>(shape: &[usize], element: impl Fn(usize) -> T) -> ArrayD<T> {
    let mut at = 0;
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        at += 1;
        element(at - 1)
    })
}

fn dims(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| String::from(*name)).collect()
}

/// Defines the arrays, before anything is written.
macro_rules! define {
    ($af:ident, $file:expr) => {{
        let (yx, x) = (dims(&["y", "x"]), dims(&["x"]));
        let nan = Some($af::FillValue::Float(f64::NAN));
        $file.define_array::<f32>("weather/temperature", yx, vec![4, 5], Some(vec![2, 3]), nan)?;
        $file.define_array::<i16>("weather/rain", x.clone(), vec![7], Some(vec![3]), None)?;
        $file.define_array::<String>("stations", x.clone(), vec![4], None, None)?;
        $file.define_array::<Vec<u8>>("raw", x.clone(), vec![2], None, None)?;
        $file.define_array::<$af::TimestampNs>("time", x.clone(), vec![3], None, None)?;
        $file.define_array::<u64>("a-name-of-more-than-16-bytes", x, vec![2], None, None)?;
    }};
}

/// The attributes that all releases have.
macro_rules! scalars {
    ($af:ident) => {
        [
            ("units", $af::AttributeValue::String("K".into())),
            ("long_name", $af::AttributeValue::String("temperature at two metres".into())),
            ("flag", $af::AttributeValue::Bool(true)),
            ("i8", $af::AttributeValue::Int8(-1)),
            ("i16", $af::AttributeValue::Int16(-2)),
            ("i32", $af::AttributeValue::Int32(-3)),
            ("i64", $af::AttributeValue::Int64(-4)),
            ("u8", $af::AttributeValue::UInt8(1)),
            ("u16", $af::AttributeValue::UInt16(2)),
            ("u32", $af::AttributeValue::UInt32(3)),
            ("u64", $af::AttributeValue::UInt64(4)),
            ("f32", $af::AttributeValue::Float32(0.5)),
            ("f64", $af::AttributeValue::Float64(0.25)),
        ]
    };
}

/// The attributes that came with footer version 5.
macro_rules! lists {
    ($af:ident) => {
        [
            ("binary", $af::AttributeValue::Binary(vec![0xde, 0xad].into())),
            ("bools", $af::AttributeValue::BoolList(vec![true, false].into())),
            ("i8s", $af::AttributeValue::Int8List(vec![-1, 1].into())),
            ("i16s", $af::AttributeValue::Int16List(vec![-2, 2].into())),
            ("i32s", $af::AttributeValue::Int32List(vec![-3, 3].into())),
            ("i64s", $af::AttributeValue::Int64List(vec![-4, 4].into())),
            ("u8s", $af::AttributeValue::UInt8List(vec![1, 2, 3].into())),
            ("u16s", $af::AttributeValue::UInt16List(vec![4].into())),
            ("u32s", $af::AttributeValue::UInt32List(vec![].into())),
            ("u64s", $af::AttributeValue::UInt64List(vec![5, 6].into())),
            ("f32s", $af::AttributeValue::Float32List(vec![0.5, f32::NAN].into())),
            ("f64s", $af::AttributeValue::Float64List(vec![0.25].into())),
            (
                "strings",
                $af::AttributeValue::StringList(
                    vec!["K".into(), "".into(), "a string of more than 16".into()].into(),
                ),
            ),
            (
                "binaries",
                $af::AttributeValue::BinaryList(vec![vec![9].into(), vec![].into()].into()),
            ),
        ]
    };
}

/// The elements of the first layer, or of the only one. The chunk in the middle is left out.
macro_rules! write {
    ($file:expr, $time:path $(, $wait:tt)?) => {{
        let corner = ramp(&[2, 5], |at| at as f32);
        $file.write_array("weather/temperature", vec![0, 0], corner.view())$(.$wait)??;
        let corner = ramp(&[2, 2], |at| -(at as f32));
        $file.write_array("weather/temperature", vec![2, 3], corner.view())$(.$wait)??;
        let rain = ramp(&[7], |at| at as i16 * 10 - 20);
        $file.write_array("weather/rain", vec![0], rain.view())$(.$wait)??;
        let names = ["Oslo", "", "Llanfairpwllgwyngyll", "Ås"];
        let names = ramp(&[4], |at| names[at].to_owned());
        $file.write_array("stations", vec![0], names.view())$(.$wait)??;
        let raw = ramp(&[2], |at| vec![at as u8; 3 * at]);
        $file.write_array("raw", vec![0], raw.view())$(.$wait)??;
        let time = ramp(&[3], |at| $time(at as i64 - 1));
        $file.write_array("time", vec![0], time.view())$(.$wait)??;
    }};
}

/// A base without content and two sidecars: the second one changes a chunk, changes an attribute and
/// deletes an array.
macro_rules! layered {
    ($af:ident, $($more:ident)?) => {
        pub async fn $af(store: Arc<dyn ObjectStore>, path: &str) -> Result<(), Box<dyn Error>> {
            let mut config = $af::FileConfig::new($af::ZstdCodec { level: 3 });
            config.block_target_size = 64;
            let mut file = $af::ArrayFile::create(store, path.into(), config).await?;
            define!($af, file);
            for (key, value) in scalars!($af) {
                file.set_attribute("weather/temperature", key, value)?;
            }
            $(for (key, value) in $more!($af) {
                file.set_attribute("weather/rain", key, value)?;
            })?
            write!(file, $af::TimestampNs, await);
            file.flush().await?;

            let corner = ramp(&[1, 1], |_| 99f32);
            file.write_array("weather/temperature", vec![3, 0], corner.view()).await?;
            let units = $af::AttributeValue::String("mm".into());
            file.set_attribute("weather/rain", "units", units)?;
            file.delete("raw")?;
            file.flush().await?;
            Ok(())
        }
    };
}

layered!(af9,);
layered!(af11, lists);
layered!(af12, lists);
layered!(af14, lists);

/// One file: this release has no layers.
pub async fn af15(store: Arc<dyn ObjectStore>, path: &str) -> Result<(), Box<dyn Error>> {
    let mut config = af15::WriterConfig::new(af15::Lz4Codec);
    config.block_target_size = 64;
    let mut file = af15::ArrayWriter::new(config);
    define!(af15, file);
    for (key, value) in scalars!(af15) {
        file.set_attribute("weather/temperature", key, value)?;
    }
    for (key, value) in lists!(af15) {
        file.set_attribute("weather/rain", key, value)?;
    }
    write!(file, af15::TimestampNs);
    file.finish(store, path.into()).await?;
    Ok(())
}
