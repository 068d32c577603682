//! Files of a dataset that are kept elsewhere.

use chunkyard_format::superchunk::{Blz, BlzOptions};
use chunkyard_format::{OpenOptions, Place};
use chunkyard_store::ErrorKind;

use super::support::{creation, files, local, memory, numbers, open, rows, tidy, try_numbers};

fn allowing(bases: &[&str]) -> BlzOptions {
    let allowed = bases.iter().map(|base| (*base).to_owned()).collect();
    BlzOptions { open: OpenOptions { allowed, ..OpenOptions::default() }, ..BlzOptions::default() }
}

async fn spread(place: &Place, base: &str) {
    let wanted = creation("<i8", 10, 3);
    let blz = Blz::create(place, &wanted, allowing(&[base])).await.unwrap();
    blz.append(vec![rows(0..125)]).await.unwrap();
    let other = open(place).await;
    blz.relocate(2..=3, base).await.unwrap();
    let all: Vec<i64> = (0..125).collect();
    assert_eq!(numbers(&blz, "/").await, all);
    let names: Vec<String> = files(place, "data").await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["data/__1__.bin", "data/__4__.bin", "data/__5__.bin"]);

    // A reader that does not allow the place learns what to allow; one that looked earlier must look again.
    let refused = try_numbers(&open(place).await, "/").await.unwrap_err();
    assert!(refused.to_string().contains(base), "{refused}");
    assert!(other.is_empty());

    blz.append(vec![rows(125..200)]).await.unwrap();
    blz.flush().await.unwrap();
    let again = Blz::open(place, allowing(&[base])).await.unwrap();
    assert_eq!(numbers(&again, "/").await, (0..200).collect::<Vec<_>>());
    for wrong in [0..=1, 6..=7, 1..=9] {
        let refused = again.relocate(wrong.clone(), base).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{wrong:?}");
    }
    // The same move may be repeated; a move to another place, or into the dataset, is refused.
    again.relocate(2..=3, base).await.unwrap();
    let both = Blz::open(place, allowing(&[base, place.url()])).await.unwrap();
    for there in [&format!("{base}/other"), place.url()] {
        let refused = both.relocate(2..=4, there).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{there}");
    }
    let refused = both.relocate(1..=1, place.url()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");

    // Rows are cut off in a file elsewhere: it comes home before new rows are added.
    for (len, more) in [(75, 3), (60, 1), (34, 90), (30, 5)] {
        again.resize(len).await.unwrap();
        assert_eq!(numbers(&again, "/").await, (0..len as i64).collect::<Vec<_>>());
        again.append(vec![rows(len as i64..len as i64 + more)]).await.unwrap();
        again.flush().await.unwrap();
        let all: Vec<i64> = (0..len as i64 + more).collect();
        assert_eq!(numbers(&again, "/").await, all);
        let other = Blz::open(place, allowing(&[base])).await.unwrap();
        assert_eq!(numbers(&other, "/").await, all, "{len}");
    }
    assert!(again.shards().ranges.is_empty());
    tidy(place, 10, 3, "home").await;
}

#[tokio::test]
async fn full_files_are_kept_in_another_directory_or_in_memory() {
    let elsewhere = tempfile::tempdir().unwrap();
    let (_temp, local) = local();
    for here in [local, memory()] {
        let name = if here.url().starts_with("memory") { "m" } else { "d" };
        let base = elsewhere.path().join(name);
        std::fs::create_dir_all(&base).unwrap();
        spread(&here, base.to_str().unwrap()).await;
    }
    let (_temp, here) = super::support::local();
    spread(&here, "memory://elsewhere/there").await;
}
