//! Files of other programs are understood, and written again byte for byte.

use std::path::{Path, PathBuf};

use super::bloscpack::{
    Digest, FileHead, FileSpec, Parsed, Section, SectionOptions, Version, render_file,
};
use super::dtype;
use super::meta::{RootDirs, Sizes, Storage, default_element, parse_attributes, render_attributes};
use super::names::{Style, parse_file};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/superchunk").join(path)
}

/// The files and directories in a directory, with their names.
fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut named: Vec<_> =
        paths.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path)).collect();
    named.sort();
    named
}

fn bloscpack_files() -> Vec<(String, Vec<u8>)> {
    let files = entries(&testdata("bloscpack")).into_iter();
    let files = files.filter(|(name, _)| name.ends_with(".blp"));
    files.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

fn parse(file: &[u8]) -> (FileHead, Vec<Option<u64>>) {
    match FileHead::parse("golden", file, file.len() as u64).unwrap() {
        Parsed::Whole(layout, offsets) => (layout, offsets),
        Parsed::Needs(bytes) => panic!("{bytes} bytes are more than the file has"),
    }
}

/// The chunks from the first to the last, each found behind the one before and its checksum.
fn walk<'a>(file: &'a [u8], layout: &FileHead) -> Vec<(u64, &'a [u8])> {
    let mut at = layout.chunks_at as usize;
    let mut chunks = Vec::new();
    while at < file.len() {
        let size = u32::from_le_bytes(file[at + 12..at + 16].try_into().unwrap());
        let (chunk, rest) = file[at..].split_at(size as usize);
        let digest = layout.header.digest;
        assert!(digest.matches(chunk, &rest[..digest.bytes()]), "chunk at {at}");
        chunks.push((at as u64, chunk));
        at += chunk.len() + digest.bytes();
    }
    chunks
}

#[test]
fn every_bloscpack_file_says_where_its_chunks_are() {
    for (name, file) in bloscpack_files() {
        let (layout, offsets) = parse(&file);
        let chunks = walk(&file, &layout);
        assert_eq!(layout.header.chunks, Some(chunks.len() as u64), "{name}");
        if layout.header.has_offsets {
            let places = chunks.iter().map(|(at, _)| Some(*at)).chain(std::iter::repeat(None));
            assert!(places.take(layout.entries as usize).eq(offsets), "{name}");
        }
        for (number, (_, chunk)) in (0..).zip(&chunks) {
            let plain = u32::from_le_bytes(chunk[4..8].try_into().unwrap());
            let expected = layout.header.plain_bytes(number);
            assert!(expected.is_none_or(|expected| expected == plain), "{name}: {number}");
        }
    }
}

#[test]
fn the_versions_checksums_and_metadata_of_all_files_are_as_they_were_made() {
    let names: Vec<_> = bloscpack_files().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 19);
    for (name, file) in bloscpack_files() {
        let (FileHead { header, metadata, .. }, _) = parse(&file);
        let metadata = metadata.map(|json| String::from_utf8(json).unwrap());
        let version = match name.as_str() {
            "v1.blp" => Version::V1,
            "v2.blp" => Version::V2,
            "interim.blp" | "interim-deflated.blp" => Version::Interim,
            _ => Version::Final,
        };
        assert_eq!(header.version, version, "{name}");
        let kind = name.strip_prefix("final-").and_then(|name| name.strip_suffix(".blp"));
        if let Some(digest) = kind.and_then(|kind| Digest::parse(kind).ok()) {
            assert_eq!(header.digest, digest);
        }
        match kind {
            None if matches!(version, Version::V1 | Version::V2) => assert_eq!(metadata, None),
            Some("no-metadata" | "empty") => assert_eq!(metadata, None),
            Some("numpy" | "struct" | "deflated") => assert!(metadata.unwrap().len() > 15),
            _ => assert_eq!(metadata.as_deref(), Some("{\"dtype\":\"<i4\"}"), "{name}"),
        }
    }
}

#[test]
fn files_are_written_again_to_the_byte() {
    for (name, file) in bloscpack_files() {
        let (layout, _) = parse(&file);
        let header = layout.header.clone();
        // The tool compresses with another zlib, and no program writes compressed metadata in the interim
        // version; both are read all the same.
        let section = match header.version == Version::Final && header.has_metadata {
            true => Some(Section::parse("golden", &file[32..]).unwrap().0),
            false => None,
        };
        if header.metadata_deflated || section.as_ref().is_some_and(|section| section.deflate) {
            continue;
        }
        let spec = FileSpec {
            version: header.version,
            digest: header.digest,
            item: header.item,
            chunk_bytes: header.chunk_bytes.unwrap_or(0),
            metadata: layout.metadata.clone(),
            section: match section {
                Some(Section { digest, level, room, .. }) => {
                    SectionOptions { digest, deflate: true, level, room: Some(room) }
                }
                None => SectionOptions::default(),
            },
            offsets: header.has_offsets,
            entries: layout.entries,
        };
        let chunks: Vec<_> = walk(&file, &layout).into_iter().map(|(_, chunk)| chunk).collect();
        assert!(render_file(&spec, &chunks).unwrap() == file, "{name}");
    }
}

#[test]
fn types_in_the_metadata_of_numpy_arrays_are_understood() {
    for (name, file) in bloscpack_files() {
        let expected = match name.as_str() {
            "final-numpy.blp" => "int32",
            "final-struct.blp" => "[('a', '<i4'), ('b', '>f8'), ('s', 'S3'), ('p', '<i2', (2,))]",
            _ => continue,
        };
        let metadata = parse(&file).0.metadata.unwrap();
        let metadata = parse_attributes("metadata", &metadata).unwrap();
        let kind = dtype::parse(metadata["dtype"].as_str().unwrap()).unwrap();
        assert_eq!(dtype::render(&kind).unwrap(), expected);
    }
}

/// All array roots of bcolz, or of BLZ; the columns of tables among them.
fn roots(writer: &str) -> Vec<PathBuf> {
    let directories = entries(&testdata(writer)).into_iter();
    let directories: Vec<_> = directories.filter(|(_, path)| path.is_dir()).collect();
    let mut roots = Vec::new();
    for (_, path) in directories {
        let Ok(table) = std::fs::read(path.join("__rootdirs__")) else {
            roots.push(path);
            continue;
        };
        let table = RootDirs::parse("__rootdirs__", &table).unwrap();
        assert_eq!(table.names, ["number", "wave", "word"]);
        roots.extend(table.names.iter().map(|name| path.join(table.directory(name).unwrap())));
    }
    roots
}

#[test]
fn directories_of_bcolz_are_understood_and_their_meta_files_written_to_the_byte() {
    let roots = roots("bcolz");
    assert_eq!(roots.len(), 22);
    for root in roots {
        let file = |name: &str| std::fs::read(root.join(name)).unwrap();
        let sizes = file("meta/sizes");
        assert_eq!(Sizes::parse("sizes", &sizes).unwrap().render(), sizes);
        let storage = file("meta/storage");
        assert_eq!(Storage::parse("storage", &storage).unwrap().render(), storage);
        let attributes = file("__attrs__");
        let parsed = parse_attributes("__attrs__", &attributes).unwrap();
        assert_eq!(render_attributes(&parsed), attributes);
    }
    let table = std::fs::read(testdata("bcolz/table/__rootdirs__")).unwrap();
    assert_eq!(RootDirs::parse("__rootdirs__", &table).unwrap().render(), table);
}

#[test]
fn chunks_of_directories_have_the_rows_that_their_meta_files_say() {
    for root in ["bcolz", "blz"].into_iter().flat_map(roots) {
        let file = |name: &str| std::fs::read(root.join(name)).unwrap();
        let sizes = Sizes::parse("sizes", &file("meta/sizes")).unwrap();
        let storage = Storage::parse("storage", &file("meta/storage")).unwrap();
        let kind = dtype::parse(&storage.dtype).unwrap();
        assert_eq!(dtype::render(&kind).unwrap(), storage.dtype);
        let row: u64 = dtype::item_bytes(&kind) * sizes.shape[1..].iter().product::<u64>();
        assert_eq!(sizes.nbytes, row * sizes.shape[0]);
        let element = default_element(&storage.dflt, &kind, &sizes.shape[1..]).unwrap();
        assert_eq!(element.len() as u64, dtype::item_bytes(&kind));

        let mut bytes = 0;
        for (name, path) in entries(&root.join("data")) {
            let (style, number) = parse_file(&name).unwrap();
            assert_eq!(style, Style::Legacy);
            let file = std::fs::read(path).unwrap();
            let (layout, _) = parse(&file);
            let chunk = layout.chunks_at as usize;
            assert_eq!(file[chunk + 3], dtype::typesize(&kind), "{}", storage.dtype);
            let plain = u32::from_le_bytes(file[chunk + 4..chunk + 8].try_into().unwrap());
            let left = (sizes.nbytes - number * storage.chunklen * row).min(storage.chunklen * row);
            assert_eq!(u64::from(plain), left, "{}", root.display());
            bytes += left;
        }
        assert_eq!(bytes, sizes.nbytes);
    }
}
