//! The coordinator of a conversion is killed, or its machine loses power, at any operation.

use chunkyard_engine::format::{CreateOptions, Place};
use chunkyard_engine::open::recognise;
use chunkyard_engine::pipeline::{Conversion, Coordinator, Outcome, RunOptions};
use chunkyard_engine::store::Store;
use chunkyard_engine::store::fault::{self, Mode, Unsynced, at_every_operation};
use chunkyard_engine::{ErrorKind, Result};

use super::super::formats::{Entry, named, sinks};
use super::super::sample::Sample;
use super::super::support::{PATH, Yard, opened, options, read};
use super::{elsewhere, request};

const SHAPE: [u64; 2] = [9, 5];
const CHUNKS: [u64; 2] = [4, 3];

/// Carries out a conversion whose coordinator reaches its target through a store of its own.
async fn carry_out(yard: &Yard, parent: &Store, to: &'static Entry) -> Result<Outcome> {
    let name = to.called("target");
    let target = Place::within(parent.clone(), &name)?;
    let wishes = to.packs(&SHAPE, &CHUNKS);
    let request = request(yard.at("source"), yard.at(&format!("place/{name}")), to, wishes);
    let conversion = Conversion::prepare_into(request, target).await?;
    let options = RunOptions::default();
    let mut coordinator =
        Coordinator::begin(&conversion, CreateOptions::default(), options).await?;
    for task in coordinator.tasks(1) {
        coordinator.adopt(&elsewhere(&task).await?).await?;
        coordinator.pause().await?;
    }
    coordinator.finish().await
}

/// The coordinator dies at operation 0, 1, 2, …; the workers do not, and see the same directory.
#[tokio::test]
async fn every_operation_of_a_coordinator_can_be_its_last() {
    let sample = Sample::new(&SHAPE, &CHUNKS, "int32");
    for to in sinks() {
        for (mode, unsynced) in [
            (Mode::Die, Unsynced::Kept),
            (Mode::DieAfter, Unsynced::Kept),
            (Mode::Die, Unsynced::Reverted),
        ] {
            for attempt in at_every_operation(fault::Plan::new(0, mode).with_power_cut(unsynced)) {
                let yard = Yard::directory();
                named("zarr3").write(&yard, "source", &sample).await;
                let parent = yard.store("place");
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&parent);
                let outcome = carry_out(&yard, &faulty, to).await;
                fault.die().await.unwrap();
                let what =
                    format!("{to:?} {plan:?}: {:?} {:#?}", outcome.as_ref().err(), fault.log());
                let complete = is_there(&yard, to, &sample, &what).await;
                assert!(outcome.is_ok() <= complete, "{what}");
                match carry_out(&yard, &parent, to).await {
                    Ok(_) => {}
                    // Only the reply was lost.
                    Err(error) if error.kind() == ErrorKind::Conflict && complete => {}
                    Err(error) => panic!("{what}: {error:?}"),
                }
                assert!(is_there(&yard, to, &sample, &what).await, "{what}");
            }
        }
    }
}

/// Whether the target exists; if it seems to, it must be complete.
async fn is_there(yard: &Yard, to: &'static Entry, sample: &Sample, what: &str) -> bool {
    let url = yard.at(&format!("place/{}", to.called("target")));
    if let Err(error) = recognise(&Place::new(&url, &options()).unwrap()).await {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{what}: {error}");
        return false;
    }
    let opened = opened(&url).await;
    if to.facts().begins_empty && opened.dataset().array(PATH).is_err() {
        return false;
    }
    assert!(read(&opened, PATH).await == sample.array, "{what}: looks complete and is not");
    true
}
