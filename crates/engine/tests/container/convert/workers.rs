//! One container by many workers.

use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::{CreateOptions, OpenOptions};
use chunkyard_engine::pipeline::{Conversion, Coordinator, Request, RunOptions, Task, Wishes};

use super::{TARGET, wishes};
use crate::convert::sample::Sample;
use crate::convert::support::{From, Yard, options, read_back};
use crate::convert::workers::elsewhere;

#[tokio::test]
async fn many_workers_make_one_container() {
    for yard in Yard::both() {
        let sample = Sample::new(&[23, 13], &[4, 3], "int32").sparse(|index| index[0] != 2);
        From::Zarr3.write(&yard, "source", &sample).await;
        let open = OpenOptions { store: options(), ..OpenOptions::default() };
        let to = Some("container".to_owned());
        let wishes = Wishes { pack_bytes: Some(1), ..wishes(&[3, 2], "zstd:1") };
        let (source, target) = (yard.at("source"), yard.at(TARGET));
        let request = Request { source, target, open, to, wishes };
        let conversion = Conversion::prepare(request).await.unwrap();
        let run = RunOptions { verify: true, ..RunOptions::default() };
        let mut first =
            Coordinator::begin(&conversion, CreateOptions::default(), run.clone()).await.unwrap();
        let tasks: Vec<Task> = first.tasks(64).collect();
        assert!(tasks.len() > 3, "{}", tasks.len());
        // Done twice at the same time, adopted once; the last is lost with its coordinator.
        let mut adopted = 0;
        for task in &tasks[1..] {
            let (one, two) = futures::future::join(elsewhere(task), elsewhere(task)).await;
            adopted += first.adopt(&two.unwrap()).await.unwrap();
            assert_eq!(first.adopt(&one.unwrap()).await.unwrap(), 0, "adopted twice");
        }
        elsewhere(&tasks[0]).await.unwrap();
        first.pause().await.unwrap();
        drop(first);
        let mut second =
            Coordinator::begin(&conversion, CreateOptions::default(), run).await.unwrap();
        assert_eq!(second.packs().0, adopted);
        for task in second.tasks(64).collect::<Vec<_>>() {
            second.adopt(&elsewhere(&task).await.unwrap()).await.unwrap();
        }
        assert!(yard.store("").head(TARGET).await.is_err(), "visible before the end");
        second.finish().await.unwrap();
        assert!(read_back(&yard, TARGET).await == sample.array);
        yard.holds_only(&["source", TARGET, "x.stats"]);
        let error = elsewhere(&tasks[0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}
