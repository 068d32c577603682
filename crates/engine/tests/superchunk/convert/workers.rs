//! One dataset by many workers.

use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::{CreateOptions, OpenOptions};
use chunkyard_engine::pipeline::{Conversion, Coordinator, Request, RunOptions, Task, Wishes};

use super::wishes;
use crate::convert::sample::Sample;
use crate::convert::support::{From, Yard, options, read_back};
use crate::convert::workers::elsewhere;

#[tokio::test]
async fn many_workers_make_one_dataset() {
    for yard in Yard::both() {
        let sample = Sample::new(&[43, 5], &[4, 5], "int32").sparse(|index| index[0] != 2);
        From::Zarr3.write(&yard, "source", &sample).await;
        let open = OpenOptions { store: options(), ..OpenOptions::default() };
        let to = Some("blz".to_owned());
        let shards = Some(Some(vec![12, 5]));
        let wishes = Wishes { pack_bytes: Some(1), shards, ..wishes("blosc:lz4:1") };
        let (source, target) = (yard.at("source"), yard.at("x.blz"));
        let request = Request { source, target, open, to, wishes };
        let conversion = Conversion::prepare(request).await.unwrap();
        let run = RunOptions { verify: true, ..RunOptions::default() };
        let mut first =
            Coordinator::begin(&conversion, CreateOptions::default(), run.clone()).await.unwrap();
        let tasks: Vec<Task> = first.tasks(1).collect();
        assert!(tasks.len() > 3, "{}", tasks.len());
        let mut adopted = 0;
        for task in &tasks[1..] {
            let (one, two) = futures::future::join(elsewhere(task), elsewhere(task)).await;
            adopted += first.adopt(&two.unwrap()).await.unwrap();
            assert_eq!(first.adopt(&one.unwrap()).await.unwrap(), 0, "adopted twice");
        }
        first.pause().await.unwrap();
        drop(first);
        let mut second =
            Coordinator::begin(&conversion, CreateOptions::default(), run).await.unwrap();
        assert_eq!(second.packs().0, adopted);
        for task in second.tasks(1).collect::<Vec<_>>() {
            second.adopt(&elsewhere(&task).await.unwrap()).await.unwrap();
        }
        assert!(yard.store("x.blz").head("meta/sizes").await.is_err(), "visible before the end");
        second.finish().await.unwrap();
        assert!(read_back(&yard, "x.blz").await == sample.array);
        yard.holds_only(&["source", "x.blz"]);
        let error = elsewhere(&tasks[0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}
