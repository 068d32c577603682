//! Rows in, rows out.

use chunkyard_format::superchunk::{Blz, BlzOptions};

use super::support::{creation, local, memory, numbers, open, rows};

#[tokio::test]
async fn rows_are_seen_at_once_here_and_after_a_flush_by_others() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let blz =
            Blz::create(&place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
        let (mut end, mut flushed) = (0, 0);
        for (step, more) in [3, 4, 5, 30, 1, 0, 100, 7, 250, 9].into_iter().enumerate() {
            blz.append(vec![rows(end..end + more)]).await.unwrap();
            end += more;
            assert_eq!(numbers(&blz, "/").await, (0..end).collect::<Vec<_>>());
            assert_eq!(numbers(&open(&place).await, "/").await, (0..flushed).collect::<Vec<_>>());
            if step % 2 == 1 {
                blz.flush().await.unwrap();
                flushed = end;
                assert_eq!(numbers(&blz, "/").await, (0..end).collect::<Vec<_>>());
                assert_eq!(numbers(&open(&place).await, "/").await, (0..end).collect::<Vec<_>>());
            }
        }
    }
}

#[tokio::test]
async fn rows_are_cut_off_and_added_again() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let blz =
            Blz::create(&place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
        let mut model: Vec<i64> = Vec::new();
        for len in [95, 60, 61, 89, 90, 30, 29, 155, 0, 7, 200, 35] {
            let have = model.len();
            if len < have {
                blz.resize(len as u64).await.unwrap();
                model.truncate(len);
            } else {
                let more = 1000 * len as i64..1000 * len as i64 + (len - have) as i64;
                blz.append(vec![rows(more.clone())]).await.unwrap();
                blz.flush().await.unwrap();
                model.extend(more);
            }
            assert_eq!(numbers(&blz, "/").await, model, "{len}");
            assert_eq!(numbers(&open(&place).await, "/").await, model, "{len}");
        }
        blz.resize(77).await.unwrap();
        model.resize(77, 0);
        assert_eq!(numbers(&blz, "/").await, model);
        blz.flush().await.unwrap();
        assert_eq!(numbers(&open(&place).await, "/").await, model);
    }
}

#[tokio::test]
async fn columns_of_a_table_grow_together() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let creation = creation("[('x', '<i8'), ('p', [('y', '>i8'), ('z', '<i8')])]", 10, 3);
        let blz = Blz::create(&place, &creation, BlzOptions::default()).await.unwrap();
        for start in [0, 25, 50] {
            let each = start..start + 25;
            blz.append(vec![rows(each.clone()), rows(each.clone()), rows(each)]).await.unwrap();
        }
        blz.flush().await.unwrap();
        let again = open(&place).await;
        for column in ["/x", "/p/y", "/p/z"] {
            assert_eq!(numbers(&again, column).await, (0..75).collect::<Vec<_>>(), "{column}");
        }
    }
}
