//! A repair brings back all rows before the first damage.

use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions, Repaired};
use chunkyard_store::ErrorKind;

use super::support::{
    creation, files, local, memory, numbers, open, resealed, rows, tidy, try_numbers,
};

async fn dataset(place: &Place, len: i64) {
    let blz = Blz::create(place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..len)]).await.unwrap();
    blz.flush().await.unwrap();
}

async fn repair(place: &Place, dry_run: bool) -> Repaired {
    Blz::repair(place, &BlzOptions::default(), dry_run).await.unwrap()
}

fn path(place: &Place, name: &str) -> std::path::PathBuf {
    std::path::Path::new(place.url().trim_start_matches("file://")).join(name)
}

/// Damages a dataset of 95 rows, repairs it, and gives the result.
async fn rows_after(damage: impl Fn(&Place)) -> Repaired {
    let (_temp, place) = local();
    dataset(&place, 95).await;
    damage(&place);
    let before = files(&place, "data").await;
    let planned = repair(&place, true).await;
    assert_eq!(files(&place, "data").await, before, "a dry run changes nothing");
    let done = repair(&place, false).await;
    assert_eq!((planned.rows_before, planned.rows_after), (done.rows_before, done.rows_after));
    assert_eq!(planned.set_aside.len(), done.set_aside.len(), "{planned:#?} {done:#?}");
    let blz = open(&place).await;
    let whole: Vec<i64> = (0..done.rows_after as i64).collect();
    assert_eq!(numbers(&blz, "/").await, whole, "{done:#?}");
    for aside in &done.set_aside {
        assert!(path(&place, aside.renamed.as_ref().unwrap()).exists(), "{aside:?}");
    }
    let more = whole.len() as i64..whole.len() as i64 + 33;
    blz.append(vec![rows(more.clone())]).await.unwrap();
    blz.flush().await.unwrap();
    assert_eq!(numbers(&open(&place).await, "/").await, (0..more.end).collect::<Vec<_>>());
    // The files that were set aside do not disturb.
    for aside in &done.set_aside {
        std::fs::remove_file(path(&place, aside.renamed.as_ref().unwrap())).unwrap();
    }
    tidy(&place, 10, 3, "repaired").await;
    done
}

fn edit(place: &Place, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = path(place, name);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_dataset_without_damage_stays_as_it_is() {
    let done = rows_after(|_| {}).await;
    assert_eq!((done.rows_after, done.set_aside.len()), (95, 0), "{done:#?}");
    assert!(done.notes.is_empty(), "{done:#?}");
}

#[tokio::test]
async fn rows_before_the_first_damage_come_back() {
    let flip = |name: &'static str, from_end: usize| {
        move |place: &Place| {
            edit(place, name, |bytes| {
                let at = bytes.len() - from_end;
                bytes[at] ^= 0x10;
            })
        }
    };
    // The digest of the last chunk of a file, and of the tail.
    assert_eq!(rows_after(flip("data/__2__.bin", 1)).await.rows_after, 50);
    assert_eq!(rows_after(flip("data/__4__.bin", 1)).await.rows_after, 90);
    let torn = rows_after(|place| {
        edit(place, "data/__3__.bin", |bytes| {
            bytes.truncate(bytes.len() - 30);
        })
    });
    assert_eq!(torn.await.rows_after, 80);
    let gone = |name| move |place: &Place| std::fs::remove_file(path(place, name)).unwrap();
    assert_eq!(rows_after(gone("data/__1__.bin")).await.rows_after, 0);
    assert_eq!(rows_after(gone("data/__2__.bin")).await.rows_after, 30);
    assert_eq!(rows_after(gone("data/__4__.bin")).await.rows_after, 90);
}

#[tokio::test]
async fn a_torn_header_and_offsets_are_rebuilt() {
    for range in [16..32, 20..24] {
        let torn = rows_after(|place| {
            edit(place, "data/__2__.bin", |bytes| {
                bytes[range.clone()].fill(0x7f);
            })
        });
        assert_eq!(torn.await.rows_after, 95, "{range:?}");
    }
}

#[tokio::test]
async fn without_sizes_the_chunks_tell() {
    let gone = rows_after(|place| std::fs::remove_file(path(place, "meta/sizes")).unwrap()).await;
    assert_eq!((gone.rows_before, gone.rows_after), (None, 95));
    let torn = rows_after(|place| edit(place, "meta/sizes", |bytes| bytes.truncate(9))).await;
    assert_eq!((torn.rows_before, torn.rows_after), (None, 95));
    let wrong = rows_after(|place| {
        edit(place, "meta/sizes", |bytes| *bytes = resealed(bytes, "[95]", "[950]"))
    });
    let wrong = wrong.await;
    assert_eq!((wrong.rows_before, wrong.rows_after), (Some(950), 95), "{wrong:#?}");
}

#[tokio::test]
async fn columns_keep_the_rows_that_all_of_them_have() {
    let (_temp, place) = local();
    let wanted = creation("[('x', '<i8'), ('y', '<i8')]", 10, 3);
    let blz = Blz::create(&place, &wanted, BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..95), rows(100..195)]).await.unwrap();
    blz.flush().await.unwrap();
    edit(&place, "data/y/__2__.bin", |bytes| *bytes.last_mut().unwrap() ^= 1);
    assert_eq!(
        try_numbers(&open(&place).await, "/y").await.unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    let done = repair(&place, false).await;
    assert_eq!(done.rows_after, 50, "{done:#?}");
    let blz = open(&place).await;
    assert_eq!(numbers(&blz, "/x").await, (0..50).collect::<Vec<_>>());
    assert_eq!(numbers(&blz, "/y").await, (100..150).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_object_store_is_only_looked_at() {
    let place = memory();
    dataset(&place, 45).await;
    assert_eq!(repair(&place, true).await.rows_after, 45);
    let refused = Blz::repair(&place, &BlzOptions::default(), false).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}
