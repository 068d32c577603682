//! Many ranges of many objects in one go.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::backend::Kind;
use super::guard::Guard;
use super::limits::Limits;
use super::{Backend, Store};
use crate::error::{Error, Result};

/// A gap of up to this many bytes between two ranges is read along instead of split into two reads.
/// A second system call is cheap; a request over a network costs as much as sending a megabyte.
const LOCAL_GAP_BYTES: u64 = 64 << 10;
const REMOTE_GAP_BYTES: u64 = 1 << 20;

/// The most that is read in one piece, unless a single range is larger: several pieces are better
/// read at the same time.
const PIECE_BYTES_MAX: u64 = 16 << 20;

/// A range of an object of this store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The object.
    pub path: Arc<str>,
    /// The bytes wanted.
    pub range: Range<u64>,
    /// What must be true of the object for the range to mean something.
    pub guard: Option<Guard>,
}

impl Store {
    /// Reads many ranges: grouped by object, near ones together, equal ones once, at most
    /// `limits.requests` at a time. The results are in the order of the requests, each complete.
    ///
    /// Results are slices of a larger read and keep all of it alive. Copy what you keep for long.
    pub async fn fetch(&self, requests: &[Request], limits: &Limits) -> Result<Vec<Bytes>> {
        let mut results = vec![Bytes::new(); requests.len()];
        let backend: &dyn Backend = &**self;
        let mut done = stream::iter(plan(requests, backend.kind())?)
            .map(|job| job.run(backend, requests))
            .buffer_unordered(limits.requests.max(1));
        while let Some(shares) = done.try_next().await? {
            for (request, bytes) in shares {
                if let Some(result) = results.get_mut(request) {
                    *result = bytes;
                }
            }
        }
        Ok(results)
    }
}

/// One call to the backend.
#[derive(Debug)]
pub(super) struct Job {
    path: Arc<str>,
    guard: Option<Guard>,
    pieces: Vec<Range<u64>>,
    pieces_bytes: u64,
    shares: Vec<Share>,
}

/// Which piece serves a request.
#[derive(Debug, Clone, Copy)]
struct Share {
    request: usize,
    piece: usize,
}

impl Share {
    fn cut(&self, requests: &[Request], job: &Job, pieces: &[Bytes]) -> Option<Bytes> {
        let wanted = &requests.get(self.request)?.range;
        let piece = job.pieces.get(self.piece)?;
        let start = usize::try_from(wanted.start.checked_sub(piece.start)?).ok()?;
        let end = usize::try_from(wanted.end.checked_sub(piece.start)?).ok()?;
        let bytes = pieces.get(self.piece)?;
        (end <= bytes.len()).then(|| bytes.slice(start..end))
    }
}

/// Groups, sorts and coalesces. Empty ranges need no bytes and are left out.
pub(super) fn plan(requests: &[Request], kind: Kind) -> Result<Vec<Job>> {
    let mut order = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        match request.range.start.cmp(&request.range.end) {
            Ordering::Less => order.push((index, request)),
            Ordering::Equal => {}
            Ordering::Greater => {
                let Request { path, range, .. } = request;
                return Err(Error::invalid(format!("the range {range:?} of {path} is reversed")));
            }
        }
    }
    let key = |r: &Request| (r.range.start, r.range.end);
    order.sort_by(|(_, a), (_, b)| {
        a.path.cmp(&b.path).then_with(|| a.guard.cmp(&b.guard)).then_with(|| key(a).cmp(&key(b)))
    });

    // A file is opened once for many pieces; requests over a network are better made separately.
    let gap_bytes = if kind == Kind::Local { LOCAL_GAP_BYTES } else { REMOTE_GAP_BYTES };
    let job_bytes_max = if kind == Kind::Local { PIECE_BYTES_MAX } else { 0 };

    let mut jobs: Vec<Job> = Vec::new();
    for (index, request) in order {
        let same = |job: &&mut Job| job.path == request.path && job.guard == request.guard;
        if let Some(job) = jobs.last_mut().filter(same)
            && (job.extend(&request.range, gap_bytes) || job.append(&request.range, job_bytes_max))
        {
            job.shares.push(Share { request: index, piece: job.pieces.len() - 1 });
            continue;
        }
        jobs.push(Job {
            path: request.path.clone(),
            guard: request.guard.clone(),
            pieces: vec![request.range.clone()],
            pieces_bytes: length(&request.range),
            shares: vec![Share { request: index, piece: 0 }],
        });
    }
    Ok(jobs)
}

impl Job {
    /// Reads, and gives each request that this job serves its bytes.
    pub(super) async fn run(
        self,
        backend: &dyn Backend,
        requests: &[Request],
    ) -> Result<Vec<(usize, Bytes)>> {
        let pieces = backend.get_ranges(&self.path, &self.pieces, self.guard.as_ref()).await?;
        let cut = |share: &Share| {
            let bytes = share.cut(requests, &self, &pieces).ok_or_else(|| {
                Error::store("read", &*self.path, "the backend returned too few bytes")
            })?;
            Ok((share.request, bytes))
        };
        self.shares.iter().map(cut).collect()
    }

    /// Extends the last piece to cover `range`, which starts no earlier, if that is worth it.
    fn extend(&mut self, range: &Range<u64>, gap_bytes: u64) -> bool {
        let Some(piece) = self.pieces.last_mut() else { return false };
        let end = piece.end.max(range.end);
        let near = range.start <= piece.end.saturating_add(gap_bytes);
        // Bytes that the piece holds already are free, however large the piece is.
        let fits = end == piece.end || end - piece.start <= PIECE_BYTES_MAX;
        if near && fits {
            self.pieces_bytes += end - piece.end;
            piece.end = end;
        }
        near && fits
    }

    /// Makes `range` another piece of this job, if the job stays small.
    fn append(&mut self, range: &Range<u64>, job_bytes_max: u64) -> bool {
        let bytes = self.pieces_bytes.saturating_add(length(range));
        let fits = bytes <= job_bytes_max;
        if fits {
            self.pieces.push(range.clone());
            self.pieces_bytes = bytes;
        }
        fits
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges may well hold one")]
mod tests {
    use super::*;

    const REMOTE: Kind = Kind::Object { conditional_put: true };
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn request(path: &str, range: Range<u64>) -> Request {
        Request { path: path.into(), range, guard: None }
    }

    /// The calls made for ranges of one object: the pieces of each.
    fn calls(kind: Kind, ranges: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
        let requests: Vec<_> = ranges.iter().map(|range| request("a", range.clone())).collect();
        plan(&requests, kind).unwrap().into_iter().map(|job| job.pieces).collect()
    }

    #[test]
    fn near_ranges_are_read_together_in_whatever_order_they_are_asked() {
        let ranges = [200..300, 0..100, 150..160];
        assert_eq!(calls(REMOTE, &ranges), [[0..300]]);
        assert_eq!(calls(Kind::Local, &ranges), [[0..300]]);
    }

    #[test]
    fn a_gap_costs_more_on_a_disk_than_on_a_network() {
        let ranges = [0..10, 10 + 64 * KIB..100 * KIB, 200 * KIB..201 * KIB];
        assert_eq!(calls(Kind::Local, &ranges), [[0..100 * KIB, 200 * KIB..201 * KIB]]);
        assert_eq!(calls(REMOTE, &ranges), [[0..201 * KIB]]);
        let far = [0..10, 11 + MIB..12 + MIB];
        assert_eq!(calls(REMOTE, &far), [[0..10], [11 + MIB..12 + MIB]]);
    }

    #[test]
    fn equal_and_nested_ranges_are_read_once() {
        assert_eq!(calls(REMOTE, &[5..10, 5..10, 6..7, 5..10]), [[5..10]]);
        let huge = [0..100 * MIB, 0..100 * MIB, 50 * MIB..60 * MIB];
        assert_eq!(calls(REMOTE, &huge), [[0..100 * MIB]]);
    }

    #[test]
    fn a_piece_does_not_grow_beyond_its_bound() {
        let ranges: Vec<_> = (0..40).map(|i| i * MIB..(i + 1) * MIB).collect();
        for kind in [Kind::Local, REMOTE] {
            let calls = calls(kind, &ranges);
            assert_eq!(calls, [[0..16 * MIB], [16 * MIB..32 * MIB], [32 * MIB..40 * MIB]]);
        }
    }

    #[test]
    fn objects_and_guards_are_kept_apart() {
        let mut requests = vec![request("b", 0..1), request("a", 1..2), request("b", 1..2)];
        requests.push(Request { guard: Some(Guard::default()), ..request("b", 2..3) });
        let jobs = plan(&requests, Kind::Local).unwrap();
        let paths: Vec<_> = jobs.iter().map(|job| (&*job.path, job.guard.is_some())).collect();
        assert_eq!(paths, [("a", false), ("b", false), ("b", true)]);
    }

    #[test]
    fn empty_ranges_cost_nothing_and_reversed_ones_are_refused() {
        assert!(calls(REMOTE, &[7..7, 0..0]).is_empty());
        #[expect(clippy::reversed_empty_ranges, reason = "it is the point")]
        let reversed = [request("a", 2..1)];
        assert!(matches!(plan(&reversed, REMOTE), Err(Error::Invalid { .. })));
    }

    #[test]
    fn ranges_at_the_end_of_the_numbers_do_not_overflow() {
        let ranges = [0..u64::MAX, u64::MAX - 1..u64::MAX, 1..2];
        assert_eq!(calls(Kind::Local, &ranges), [[0..u64::MAX]]);
    }
}
