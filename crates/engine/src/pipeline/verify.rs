//! Reading back what was written, and comparing it with the source.

use std::sync::Arc;

use chunkyard_array::{ElementsBuf, Region};
use chunkyard_format::{Meter, Reader, Source};
use chunkyard_store::{Error, Limits, Result, cpu};
use futures::{TryStreamExt, future};

use super::occupied::{Scan, Side, Visit, notes_max};
use super::plan::{ArrayPlan, Plan};

/// Regions that are compared at once.
const AT_ONCE: usize = 2;

/// Compares all elements of target and source, by checksums of pieces of about a tile. Where
/// neither stores anything, both are the fill value.
pub(super) async fn verify(
    source: &Arc<dyn Source>,
    target: &Arc<dyn Source>,
    plan: &Plan,
    limits: &Limits,
    meter: &Meter,
) -> Result<()> {
    for array in &plan.arrays {
        let from = Reader::new(source, &array.source)?;
        let to = Reader::new(target, &array.target)?;
        let (path, offset) = (array.target.clone(), vec![0; array.offset.len()]);
        let written = Side { source: target.clone(), path, offset };
        let sides = vec![Scan::source_of(array, source), written];
        let scan = Scan::new(&Arc::new(array.clone()), sides, notes_max(limits));
        scan.visits()
            .map_ok(|visit| verify_pack(array, visit, &from, &to, meter))
            .try_buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
    }
    Ok(())
}

async fn verify_pack(
    plan: &ArrayPlan,
    visit: Visit,
    from: &Reader,
    to: &Reader,
    meter: &Meter,
) -> Result<()> {
    let tiles = chunkyard_array::Grid::new(plan.packs.array_shape(), &plan.tile)?;
    for piece in &visit.pieces {
        for cell in tiles.chunks_in(piece) {
            let Some(tile) = tiles.clipped_region(&cell).intersect(piece) else { continue };
            compare(plan, &tile, from, to).await?;
        }
    }
    meter.advance(plan.pack_bytes(&visit.pack));
    meter.advance_packs();
    Ok(())
}

async fn compare(plan: &ArrayPlan, region: &Region, from: &Reader, to: &Reader) -> Result<()> {
    let within = plan.in_source(region)?;
    let (source, target) =
        future::try_join(from.read_elements(&within), to.read_elements(region)).await?;
    let (relabel, cast) = (plan.relabel.clone(), plan.cast.clone());
    let (expected, found) = cpu(move || {
        let source = match (relabel, source) {
            (Some(relabel), ElementsBuf::Fixed(bytes)) => {
                let mut labels = Vec::new();
                relabel.elements_into(&bytes, &mut labels);
                ElementsBuf::Fixed(labels)
            }
            (_, source) => source,
        };
        let source = match (cast, source) {
            (Some(cast), ElementsBuf::Fixed(bytes)) => {
                let ElementsBuf::Fixed(target) = &target else {
                    return Err(Error::invalid("a cast made elements of variable length"));
                };
                let mut converted = vec![0; target.len()];
                cast.apply(&bytes, &mut converted)?;
                ElementsBuf::Fixed(converted)
            }
            (_, source) => source,
        };
        Ok::<_, Error>((checksum(&source), checksum(&target)))
    })
    .await??;
    if expected == found {
        return Ok(());
    }
    Err(Error::Corrupt {
        file: plan.target.to_string(),
        what: format!("checksum of the elements in {region}, read back"),
        expected: format!("{expected:08x} as in the source"),
        found: format!("{found:08x}"),
    })
}

fn checksum(elements: &ElementsBuf) -> u32 {
    match elements {
        ElementsBuf::Fixed(bytes) => crc32c::crc32c(bytes),
        ElementsBuf::Variable { bytes, offsets } => {
            let sum = crc32c::crc32c(bytes);
            offsets
                .iter()
                .fold(sum, |sum, offset| crc32c::crc32c_append(sum, &offset.to_le_bytes()))
        }
    }
}
