//! Which objects hold the chunks, and whether two chunks share bytes.

use std::ops::Range;
use std::sync::Arc;

use chunkyard_store::ChunkRef;

use super::Report;
use crate::Severity;

/// Chunks of one object whose ranges are compared with one another.
const RANGES_MAX: usize = 4 << 20;

/// The objects that hold the chunks of one array or several, and whether two chunks share bytes of
/// an object.
#[derive(Debug, Default)]
pub(super) struct Objects {
    current: Option<Arc<str>>,
    ranges: Vec<Range<u64>>,
    count: u64,
    overlaps: Vec<(Arc<str>, Range<u64>, Range<u64>)>,
}

impl Objects {
    /// The next chunk of the source.
    pub(super) fn see(&mut self, reference: &ChunkRef) {
        let (path, range) = match reference {
            ChunkRef::Object { path, range, .. } => (path, range),
            ChunkRef::Remote { url, range, .. } => (url, range),
            // Chunks of one block are one range; unpacking checks where they lie in it.
            ChunkRef::Slice { block, .. } => (&block.path, &block.range),
            ChunkRef::Whole { .. } | ChunkRef::Inline(_) => return,
        };
        if self.current.as_ref() != Some(path) {
            self.compare();
            self.current = Some(path.clone());
            self.count += 1;
        }
        if self.ranges.len() < RANGES_MAX && self.ranges.last() != Some(range) {
            self.ranges.push(range.clone());
        }
    }

    /// Compares the ranges in the object that was seen last. Several chunks with the same range are
    /// a saving, not damage; chunks that share a part of their bytes cannot all be right.
    fn compare(&mut self) {
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by_key(|range| (range.start, range.end));
        ranges.dedup();
        for pair in ranges.windows(2) {
            if let ([before, after], Some(path)) = (pair, &self.current)
                && after.start < before.end
            {
                self.overlaps.push((path.clone(), before.clone(), after.clone()));
            }
        }
    }

    /// Adds the findings to a report.
    pub(super) fn finish(mut self, report: &mut Report) {
        self.compare();
        report.checked.objects += self.count;
        for (path, before, after) in self.overlaps {
            let what = format!(
                "two chunks share bytes: {}..{} and {}..{}",
                before.start, before.end, after.start, after.end
            );
            report.add(Severity::Error, path.to_string(), what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(path: &str, range: Range<u64>) -> ChunkRef {
        ChunkRef::Object { path: path.into(), range, guard: None, check: None }
    }

    #[test]
    fn chunks_that_share_a_part_of_their_bytes_are_found_and_equal_ones_are_not() {
        let mut objects = Objects::default();
        for (path, range) in
            [("a", 0..10), ("a", 10..20), ("a", 0..10), ("b", 5..9), ("b", 8..12), ("c", 3..3)]
        {
            objects.see(&chunk(path, range));
        }
        objects.compare();
        assert_eq!(objects.count, 3);
        assert_eq!(objects.overlaps, [("b".into(), 5..9, 8..12)]);
    }
}
