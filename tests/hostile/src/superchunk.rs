//! BLZ directories: heads of Bloscpack files, meta files and NumPy's texts for types.

use chunkyard_engine::format::hostile::superchunk::bloscpack::{
    Digest, FileHead, Header, Parsed, Section,
};
use chunkyard_engine::format::hostile::superchunk::dtype::{self, RowType};
use chunkyard_engine::format::hostile::superchunk::meta::{
    RootDirs, Shards, Sizes, Storage, default_element, default_value, parse_attributes,
    render_attributes, seal,
};
use chunkyard_engine::format::hostile::superchunk::names;
use chunkyard_engine::repo::hostile::FILE;
use chunkyard_engine::{Error, Result};

use crate::error::is_about_bytes;

/// A Bloscpack file: as it is, and with the checksum of its metadata made right.
pub(crate) fn bloscpack_head(data: &[u8]) {
    check_head(data);
    if let Some(sealed) = sealed(data) {
        check_head(&sealed);
    }
    let behind_header = data.get(32..).unwrap_or_default();
    match Section::parse(FILE, behind_header) {
        Err(error) => is_about_bytes(&error),
        Ok((section, len)) => {
            assert_eq!(section.bytes(), len as u64);
            // Another zlib may need more room.
            let roomy = section.room.max(section.json.len() as u32);
            let rendered =
                Section { room: roomy, ..section.clone() }.render().expect("read before");
            let (again, _) = Section::parse(FILE, &rendered).expect("written");
            assert_eq!((again.json, again.magic), (section.json, section.magic));
        }
    }
}

/// The file with the right checksum after the metadata of its section, if there is room for it.
fn sealed(data: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize| Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?) as usize);
    let (room, stored) = (number(48)?, number(52)?);
    let digest = Digest::from_id(*data.get(41)?)?;
    let sum = digest.of(data.get(64..)?.get(..stored)?);
    let mut sealed = data.to_vec();
    sealed.get_mut(64..)?.get_mut(room..)?.get_mut(..sum.len())?.copy_from_slice(&sum);
    Some(sealed)
}

fn check_head(file: &[u8]) {
    let len = file.len() as u64;
    let (layout, offsets) = match FileHead::parse(FILE, file, len) {
        Err(error) => {
            is_about_bytes(&error);
            // A writer that died may have left it so; then a part of it can still be read.
            if let Err(error) = FileHead::parse_torn(FILE, file, len) {
                is_about_bytes(&error);
            }
            return;
        }
        Ok(Parsed::Needs(bytes)) => panic!("all {len} bytes are here, not {bytes}"),
        Ok(Parsed::Whole(layout, offsets)) => (layout, offsets),
    };
    assert!(layout.chunks_at <= len && layout.offsets_at + 8 * layout.entries == layout.chunks_at);
    assert_eq!(offsets.len() as u64, layout.entries);
    assert!(offsets.iter().flatten().all(|&at| at >= layout.chunks_at && at + 16 <= len));
    let whole = Parsed::Whole(layout.clone(), offsets);
    assert_eq!(FileHead::parse_torn(FILE, file, len).expect("it is not even torn"), whole);

    // Piece by piece it gives the same as at once.
    let mut given = 0;
    let piecemeal = loop {
        match FileHead::parse(FILE, &file[..given], len).expect("the beginning is right") {
            Parsed::Needs(bytes) => {
                assert!(bytes > given as u64 && bytes <= len, "{bytes} after {given}");
                given = bytes as usize;
            }
            whole => break whole,
        }
    };
    assert_eq!(piecemeal, whole);

    let rendered = layout.header.render().expect("what was read can be written");
    let behind = file.get(rendered.len()..).unwrap_or_default();
    let again = Header::parse(FILE, &[&rendered, behind].concat(), len).expect("written");
    assert_eq!(again, layout.header);
}

/// Any meta file, and the names of files and directories.
pub(crate) fn meta(data: &[u8]) {
    check_meta(data);
    // With a checksum that holds, as far as the bytes are one object.
    if data.trim_ascii_end().ends_with(b"}") {
        check_meta(&seal::sealed(data.to_vec()));
    }
}

fn check_meta(data: &[u8]) {
    round_trip(data, Sizes::parse, Sizes::render);
    round_trip(data, RootDirs::parse, RootDirs::render);
    round_trip(data, Shards::parse, |shards| shards.render(false));
    round_trip(data, parse_attributes, render_attributes);
    if let Some(storage) = round_trip(data, Storage::parse, Storage::render)
        && let Some(kind) = parse_type(&storage.dtype)
    {
        fill_value(&storage, &kind);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        assert_eq!(names::parse_field_dir(&names::field_dir(text)).as_deref(), Some(text));
        if let Some(field) = names::parse_field_dir(text) {
            assert_eq!(names::field_dir(&field), text);
        }
        if let Some((style, number)) = names::parse_file(text) {
            let name = match style {
                names::Style::Superchunk => names::superchunk_file(number),
                names::Style::Legacy => names::legacy_file(number),
            };
            assert_eq!(name, text);
        }
    }
}

/// A parsed value is rendered as one line of ASCII, and parsed again as the same.
fn round_trip<T: PartialEq + std::fmt::Debug>(
    data: &[u8],
    parse: impl Fn(&str, &[u8]) -> Result<T, Error>,
    render: impl Fn(&T) -> Vec<u8>,
) -> Option<T> {
    let value = match parse(FILE, data) {
        Ok(value) => value,
        Err(error) => {
            is_about_bytes(&error);
            return None;
        }
    };
    let rendered = render(&value);
    let (last, line) = rendered.split_last().expect("an object");
    assert!(*last == b'\n' && line.iter().all(|byte| (b' '..=b'~').contains(byte)));
    assert_eq!(parse(FILE, &rendered).expect("what was written can be read"), value);
    Some(value)
}

/// A fill value as bytes and back.
fn fill_value(storage: &Storage, kind: &RowType) {
    for row_shape in [&[][..], &[2], &[1, 3], &[u64::MAX, u64::MAX]] {
        let element = match default_element(&storage.dflt, kind, row_shape) {
            Ok(element) => element,
            Err(error) => {
                is_about_bytes(&error);
                continue;
            }
        };
        assert_eq!(element.len() as u64 % dtype::item_bytes(kind), 0);
        if element.len() as u64 == dtype::item_bytes(kind) {
            let value = default_value(&element, kind).expect("bytes of a value");
            let again = default_element(&value, kind, &[]).expect("what was written can be read");
            assert_eq!(again, element);
        }
    }
}

fn parse_type(text: &str) -> Option<RowType> {
    match dtype::parse(text) {
        Ok(kind) => {
            assert!(dtype::item_bytes(&kind) > 0 && dtype::typesize(&kind) > 0);
            Some(kind)
        }
        Err(error) => {
            is_about_bytes(&error);
            None
        }
    }
}
