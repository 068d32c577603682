//! The bytes themselves: we write exactly what array-format would write.

use std::path::Path;

use array_format::footer::Footer;
use chunkyard_array_format::{Definition, Script};
use chunkyard_engine::format::container::model::{AttributeValue, DType};

use crate::matrix::{every, with_all};
use crate::own::Own;
use crate::peer::Peer;

/// A file's footer with its trailer.
fn footer_of(file: &[u8]) -> &[u8] {
    let size = file.len() - 12;
    let length = u64::from_le_bytes(file[size..size + 8].try_into().unwrap());
    &file[size - length as usize..]
}

/// The layers in a directory, by name.
fn layers(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let layers = files.filter(|file| file.extension().is_some_and(|end| end == "af"));
    let mut layers: Vec<_> = layers
        .filter(|file| file.is_file())
        .map(|file| (file.file_name().unwrap().to_str().unwrap().to_owned(), read(&file)))
        .collect();
    layers.sort();
    layers
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap()
}

/// array-format reads each of our footers and writes it again.
#[tokio::test]
async fn array_format_writes_our_footers_to_the_byte() {
    for case in every() {
        Own::of(&case).play(&case.script).await;
        for (name, file) in layers(case.directory()) {
            let footer = Footer::deserialize(&file).unwrap();
            let again = footer.serialize().unwrap();
            assert!(again == footer_of(&file), "footer of {name}, {}", case.name);
        }
    }
}

/// Arrays in the order of their names and chunks in row-major order, which is how we write.
fn in_order() -> Script {
    Script::new()
        .whole(Definition::new("a", DType::Float32, &[4, 5]).chunks(&[2, 3]), 1)
        .attribute("a", "units", AttributeValue::String("K".into()))
        .attribute("a", "valid", AttributeValue::Bool(true))
        .whole(Definition::new("b/with a name that is long", DType::String, &[7]).chunks(&[3]), 2)
        .whole(Definition::new("c", DType::TimestampNs, &[]), 3)
        .flush()
        .write("b/with a name that is long", &DType::String, &[3], &[3], 4)
        .flush()
        .delete("c")
        .flush()
}

#[tokio::test]
async fn the_same_steps_make_the_same_layers() {
    for (theirs, ours) in with_all("theirs", &in_order()).iter().zip(with_all("ours", &in_order()))
    {
        Peer::of(theirs).play(&theirs.script).await;
        Own::of(&ours).play(&ours.script).await;
        let (theirs_layers, ours_layers) = (layers(theirs.directory()), layers(ours.directory()));
        assert_eq!(theirs_layers.len(), ours_layers.len());
        for ((name, their), (_, our)) in theirs_layers.iter().zip(&ours_layers) {
            let blocks = their.len() - footer_of(their).len();
            let is_packed_alike = theirs.codec != "zstd";
            assert!(footer_of(their) == footer_of(our), "footer of {name}, {}", theirs.name);
            if is_packed_alike {
                assert!(their[..blocks] == our[..blocks], "blocks of {name}, {}", theirs.name);
            }
        }
    }
}

#[tokio::test]
async fn the_same_steps_make_the_same_statistics_file() {
    let script = in_order().layers().swap_remove(0);
    let theirs = with_all("theirs", &script).remove(0);
    let ours = with_all("ours", &script).remove(0);
    Peer::of(&theirs).play(&script).await;
    Own::of(&ours).play(&script).await;
    let file = |directory: &Path| read(&directory.join("c.stats"));
    assert!(file(theirs.directory()) == file(ours.directory()));
}
