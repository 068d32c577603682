//! Every byte of every file counts: a read or a check notices a change, or says that it cannot be
//! checked. And every file knows where it belongs.

use std::sync::Arc;

use chunkyard_format::superchunk::{Blz, BlzOptions, BlzSource, Style, meta};
use chunkyard_format::{Level, Meter, OpenOptions, Place, Report, Source, Verdict, check};
use chunkyard_store::fault::{Mode, Plan, at_every_operation};
use chunkyard_store::{ErrorKind, Result};
use serde_json::json;

use super::support::{creation, files, memory, open, rows, try_numbers, unsealed, within};
use chunkyard_test_support::{Place as At, duplicate};

const STYLES: [Style; 3] = [Style::Superchunk, Style::Document, Style::Bcolz];
const ROWS: i64 = 45;

/// 45 rows in chunks of ten, two to a file: three files, the last of which is the tail.
async fn dataset(style: Style) -> Place {
    let place = memory();
    let mut wanted = creation("<i8", 10, 2);
    wanted.style = style;
    wanted.attributes = json!({"unit": "K", "n": 1}).as_object().unwrap().clone();
    let blz = Blz::create(&place, &wanted, BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..ROWS)]).await.unwrap();
    blz.flush().await.unwrap();
    place
}

async fn put(place: &Place, name: &str, bytes: &[u8]) {
    place.directory().put(name, vec![bytes.to_vec().into()]).await.unwrap();
}

async fn checked(place: &Place) -> Result<Report> {
    let source: Arc<dyn Source> = Arc::new(BlzSource::open(place, &OpenOptions::default()).await?);
    check(&source, Level::Bytes, &Meter::default()).await
}

/// Whether rows and attributes are as they were written.
async fn is_right(place: &Place) -> Result<bool> {
    let blz = Blz::open(place, BlzOptions::default()).await?;
    let rows = try_numbers(&blz, "/").await?;
    let attributes = json!({"unit": "K", "n": 1});
    Ok(rows == (0..ROWS).collect::<Vec<_>>() && json!(blz.attributes()) == attributes)
}

async fn all_files(place: &Place) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for folder in ["", "data", "meta"] {
        let found = files(place, folder).await.into_iter();
        all.extend(found.map(|(path, bytes)| (path, bytes.to_vec())));
    }
    all
}

/// Where a file in the style of the document names its writer, on an object store. There the metadata has no
/// checksum, and no read uses the name.
fn writer(style: Style, file: &[u8]) -> std::ops::Range<usize> {
    let key = b"\"writer\":\"";
    let found = file.windows(key.len()).position(|bytes| bytes == key);
    let start = found.filter(|_| style == Style::Document).map(|at| at + key.len());
    start.map_or(0..0, |start| {
        let end = file[start..].iter().position(|byte| *byte == b'"').unwrap();
        start..start + end
    })
}

#[tokio::test]
async fn every_flipped_bit_is_noticed() {
    for style in STYLES {
        let place = dataset(style).await;
        let report = checked(&place).await.unwrap();
        let verdict = if style == Style::Bcolz { Verdict::Readable } else { Verdict::Sound };
        assert_eq!(report.verdict, verdict, "{style:?} {:?}", report.findings);
        for (name, whole) in all_files(&place).await {
            let named = writer(style, &whole);
            for at in (0..whole.len()).filter(|at| !named.contains(at)) {
                let bit = at % 8;
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                put(&place, &name, &bytes).await;
                let read = is_right(&place).await;
                let report = checked(&place).await;
                let noticed = read.is_err()
                    || report.as_ref().map_or(true, |report| !report.findings.is_empty());
                let what = format!("{style:?} {name} {at}.{bit}");
                if style == Style::Bcolz {
                    // Nothing in such a file shows the change, so the report must say that it is not sure.
                    let unsure = |report: &Report| report.verdict != Verdict::Sound;
                    assert!(report.as_ref().map_or(true, unsure), "{what}");
                    continue;
                }
                assert!(noticed, "{what}: {report:?}");
                assert!(read.unwrap_or(true), "{what} is read as something else");
            }
            put(&place, &name, &whole).await;
        }
        assert!(is_right(&place).await.unwrap());
    }
}

#[tokio::test]
async fn wrong_meta_files_are_damage_also_without_checksums() {
    for style in STYLES {
        let place = dataset(style).await;
        for (name, bytes) in all_files(&place).await {
            if name.starts_with("meta/") {
                put(&place, &name, unsealed(&bytes).as_bytes()).await;
            }
        }
        assert!(is_right(&place).await.unwrap());
        assert_eq!(checked(&place).await.unwrap().verdict, Verdict::Readable);
        let storage = place.directory().get("meta/storage").await.unwrap().bytes;
        let mut damaged = 0;
        for at in 0..storage.len() {
            for bit in 0..8 {
                let mut bytes = storage.to_vec();
                bytes[at] ^= 1 << bit;
                put(&place, "meta/storage", &bytes).await;
                let Err(error) = is_right(&place).await else { continue };
                damaged += 1;
                // A damaged version number cannot be told from another version of the format.
                let other = error.to_string().contains("this reads \"blz-superchunk/1\"");
                let kind = if other { ErrorKind::Unsupported } else { ErrorKind::Corrupt };
                assert_eq!(error.kind(), kind, "{style:?} {at}.{bit}: {error}");
            }
        }
        assert!(damaged > 300, "{damaged}");
    }
}

/// Puts files in the places of others, and expects an error.
async fn misplaced(place: &Place, put_there: &[(&str, &[u8])], what: &str) {
    for (name, bytes) in put_there {
        put(place, name, bytes).await;
    }
    let blz = open(place).await;
    let mut errors = Vec::new();
    for column in blz.columns().iter() {
        errors.extend(try_numbers(&blz, &column.path).await.err());
    }
    assert!(!errors.is_empty(), "{what}: wrong rows are read");
    assert!(errors.iter().all(|error| error.kind() == ErrorKind::Corrupt), "{what}: {errors:?}");
    assert_eq!(checked(place).await.unwrap().verdict, Verdict::Damaged, "{what}");
}

#[tokio::test]
async fn a_file_in_the_place_of_another_is_noticed() {
    for style in [Style::Superchunk, Style::Document] {
        let table = async || {
            let place = memory();
            let mut wanted = creation("[('x', '<i8'), ('y', '<i8')]", 10, 2);
            wanted.style = style;
            let blz = Blz::create(&place, &wanted, BlzOptions::default()).await.unwrap();
            blz.append(vec![rows(0..ROWS), rows(100..100 + ROWS)]).await.unwrap();
            blz.flush().await.unwrap();
            let mut all = files(&place, "data/x").await;
            all.extend(files(&place, "data/y").await);
            (place, all)
        };
        let file = |all: &[(String, bytes::Bytes)], name: &str| {
            all.iter().find(|(path, _)| path == name).unwrap().1.clone()
        };
        let (place, all) = table().await;
        let [first, second] = ["data/x/__1__.bin", "data/x/__2__.bin"];
        let swapped = [(first, &file(&all, second)[..]), (second, &file(&all, first)[..])];
        misplaced(&place, &swapped, &format!("{style:?}: two files of a column")).await;

        let (place, all) = table().await;
        let [x, y] = ["data/x/__1__.bin", "data/y/__1__.bin"];
        let swapped = [(x, &file(&all, y)[..]), (y, &file(&all, x)[..])];
        misplaced(&place, &swapped, &format!("{style:?}: two columns")).await;

        let (place, _) = table().await;
        let (_, others) = table().await;
        for name in ["data/x/__2__.bin", "data/x/__3__.bin"] {
            let other = [(name, &file(&others, name)[..])];
            misplaced(&place, &other, &format!("{style:?}: of another dataset, {name}")).await;
        }
    }
}

#[tokio::test]
async fn attributes_that_another_program_changed_are_accepted_by_a_repair() {
    let (_temp, place) = super::support::local();
    let blz = Blz::create(&place, &creation("<i8", 10, 2), BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..ROWS)]).await.unwrap();
    blz.flush().await.unwrap();
    let sealed = place.directory().get("meta/attributes").await.unwrap().bytes;
    assert!(String::from_utf8_lossy(&sealed).contains(meta::SEAL));
    for (edited, found) in [
        (r#"{"unit": "m"}"#.to_owned(), json!({"unit": "m"})),
        (String::from_utf8_lossy(&sealed).replace('{', r#"{"unit": "s", "#), json!({"unit": "s"})),
        ("no JSON".to_owned(), json!({})),
    ] {
        std::fs::write(std::path::Path::new(place.url()).join("meta/attributes"), &edited).unwrap();
        let error = Blz::open(&place, BlzOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{edited}: {error}");
        assert!(edited == "no JSON" || error.to_string().contains("blz repair"), "{error}");
        let planned = Blz::repair(&place, &BlzOptions::default(), true).await.unwrap();
        assert!(planned.notes[0].contains("meta/attributes"), "{:?}", planned.notes);
        assert!(Blz::open(&place, BlzOptions::default()).await.is_err());
        Blz::repair(&place, &BlzOptions::default(), false).await.unwrap();
        assert_eq!(json!(open(&place).await.attributes()), found, "{edited}");
        assert_eq!(checked(&place).await.unwrap().verdict, Verdict::Sound);
    }
}

#[tokio::test]
async fn an_attribute_cannot_be_called_like_the_checksum() {
    let place = dataset(Style::Superchunk).await;
    let taken = json!({meta::SEAL: "00000000"}).as_object().unwrap().clone();
    let error = open(&place).await.set_attributes(taken.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let mut wanted = creation("<i8", 10, 2);
    wanted.attributes = taken;
    let error = Blz::create(&memory(), &wanted, BlzOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn attributes_and_their_checksum_agree_whenever_a_writer_dies() {
    for at in [At::Local, At::Memory] {
        let (_guard, store) = at.open();
        let (place, wanted) = (within(&store), creation("<i8", 10, 2));
        Blz::create(&place, &wanted, BlzOptions::default()).await.unwrap();
        for (mode, unsynced) in super::crash::deaths(at) {
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let n = attempt.at();
                let (_guard, copy) = duplicate(&store, at).await;
                let (faulty, fault) = attempt.wrap(&copy);
                let new = json!({"unit": "K"}).as_object().unwrap().clone();
                let set = match Blz::open(&within(&faulty), BlzOptions::default()).await {
                    Ok(blz) => blz.set_attributes(new.clone()).await,
                    Err(error) => Err(error),
                };
                fault.die().await.unwrap();
                let found = open(&within(&copy)).await.attributes();
                let old = found.is_empty() && (set.is_err() || mode == Mode::LoseReply);
                assert!(old || found == new, "{at:?} {mode:?} {unsynced:?} {n}: {found:?}");
            }
        }
    }
}
