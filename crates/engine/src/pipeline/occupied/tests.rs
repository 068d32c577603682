use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use chunkyard_array::ArraySpec;
use chunkyard_format::zarr3::{Zarr3, Zarr3Source};
use chunkyard_store::{Options, Store};

use super::*;
use crate::pipeline::plan::Plan;
use crate::pipeline::wishes::Wishes;

const SHAPE: u64 = 1 << 40;

/// An array of 2^38 chunks of four elements, of which these are stored, in packs of 64 chunks.
async fn planned(stored: &[u64], wishes: Wishes) -> (Arc<dyn Source>, Arc<ArrayPlan>) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let url = format!("memory://occupied-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let store = Store::open(&url, &Options::default()).unwrap();
    let spec = ArraySpec::builder(&[SHAPE], &[4], "uint8").build().unwrap();
    store.put("zarr.json", vec![spec.render().into()]).await.unwrap();
    for chunk in stored {
        store.put(&format!("c/{chunk}"), vec!["some".into()]).await.unwrap();
    }
    let source: Arc<dyn Source> = Arc::new(Zarr3Source::open(store).await.unwrap());
    let wishes = Wishes { pack_bytes: Some(256), ..wishes };
    let plan = Plan::new(&source, &wishes, &Zarr3, "").await.unwrap();
    (source, Arc::new(plan.arrays.into_iter().next().unwrap()))
}

async fn visits(source: &Arc<dyn Source>, plan: &Arc<ArrayPlan>, notes_max: usize) -> Vec<Visit> {
    let sides = vec![Scan::source_of(plan, source)];
    Scan::new(plan, sides, notes_max).visits().try_collect().await.unwrap()
}

/// A hundred chunks: some adjacent, some alone.
fn stored() -> Vec<u64> {
    let chunks = SHAPE / 4;
    let near = (0..40).map(|n| 1000 + n).chain((0..10).map(|n| 63 + 64 * n));
    near.chain((1..51).map(|n| chunks / 51 * n)).collect()
}

#[tokio::test]
async fn packs_are_visited_once_in_order_however_few_notes_fit() {
    let (source, plan) = planned(&stored(), Wishes::default()).await;
    let expected: BTreeSet<u64> = stored().iter().map(|chunk| chunk / 64).collect();
    for notes_max in [1, 2, 7, 50, 1000] {
        let found = visits(&source, &plan, notes_max).await;
        let numbers: Vec<u64> = found.iter().map(|visit| visit.pack.number).collect();
        assert_eq!(numbers, expected.iter().copied().collect::<Vec<_>>(), "{notes_max}");
        let grid = plan.to.grid().unwrap();
        let mut chunks = BTreeSet::new();
        for visit in &found {
            for piece in &visit.pieces {
                assert!(visit.pack.region.contains(piece));
                let all = grid.chunks_in(piece).map(|index| index[0]);
                assert!(all.into_iter().all(|chunk| chunks.insert(chunk)), "a chunk twice");
            }
        }
        assert!(stored().iter().all(|chunk| chunks.contains(chunk)), "{notes_max}");
        if notes_max == 1000 {
            assert!(chunks.len() <= 2 * stored().len(), "{} chunks", chunks.len());
        }
    }
}

#[tokio::test]
async fn chunks_of_another_grid_and_a_region_reach_into_their_packs() {
    let region = format!("5:{}", SHAPE - 3);
    let wishes = Wishes { region: Some(region), chunks: Some(vec![7]), ..Wishes::default() };
    let (source, plan) = planned(&stored(), wishes).await;
    let found = visits(&source, &plan, 1000).await;
    for chunk in stored() {
        for element in 4 * chunk..4 * chunk + 4 {
            let at = Region::new([element - 5], [1]).unwrap();
            let holds = |visit: &&Visit| visit.pieces.iter().any(|piece| piece.contains(&at));
            assert_eq!(found.iter().filter(holds).count(), 1, "element {element}");
        }
    }
    let elements = found.iter().flat_map(|visit| &visit.pieces).map(Region::num_elements);
    assert!(elements.sum::<u64>() <= 100 * 14 * 2);
}

#[tokio::test]
async fn dense_arrays_visit_all_packs_and_empty_arrays_visit_none() {
    let (source, plan) = planned(&[], Wishes::default()).await;
    assert_eq!(visits(&source, &plan, 10).await.len(), 0);
    let region = Wishes { region: Some("0:2048".into()), ..Wishes::default() };
    let (source, plan) = planned(&(0..300).collect::<Vec<_>>(), region).await;
    let mut scan = Scan::new(&plan, vec![Scan::source_of(&plan, &source)], 1000);
    let slice = scan.next().await.unwrap().unwrap();
    assert!(slice.is_all() && !scan.goes_on());
    assert_eq!(slice.extent(), (8, 2048));
    let few = Wishes { region: Some("0:512".into()), ..Wishes::default() };
    let (source, plan) = planned(&[3], few).await;
    assert_eq!(visits(&source, &plan, 10).await.len(), 2, "few chunks are not listed");
}
