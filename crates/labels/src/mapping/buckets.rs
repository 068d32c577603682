//! Among which rows a key is, without a search of all.
//!
//! Keys are spread over buckets of equal width, and each bucket knows its first row. Where ids come from several
//! sources they are not spread evenly: a segmentation has small ones, and what people cut has the time for an id. Then
//! one bucket holds nearly all rows; it is divided again, over the keys that it has.
//!
//! ```text
//!  level 0   0   ▪   n-1  n          ▪ is a level of its own
//!                └─▶ level 1   1  5  9  …
//! ```

/// Rows of a bucket on average: half a cache line of keys.
const SPREAD: usize = 4;
/// The same where most buckets are divided again, so that their places are hardly used.
const SPREAD_COARSE: usize = 256;
/// A bucket of more rows is divided again.
const CROWDED: usize = 64;
/// Levels one below the other. Each narrows the keys by as many bits as the number of its buckets has; what is left
/// crowded then is a contrived distribution, and searched.
const DEPTH: usize = 6;
/// Marks a place that is the number of a level, not of a row.
const LEVEL: u32 = 1 << 31;
/// Rows at most: their numbers must not look like levels.
pub(super) const ROWS_MAX: usize = LEVEL as usize - 1;

/// Where the keys of a sorted column are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Buckets {
    levels: Vec<Level>,
    /// First rows of the buckets of all levels, and after those of a level the row after its last.
    places: Vec<u32>,
}

/// Buckets of equal width over some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    /// The least key.
    first: u64,
    /// The width of a bucket, as a power of two.
    shift: u32,
    /// The least row.
    row: u32,
    /// Where its places begin.
    start: usize,
    /// How many buckets it has.
    count: usize,
}

impl Buckets {
    /// For sorted keys, at most [`ROWS_MAX`].
    pub(super) fn of(keys: &[u64]) -> Self {
        let mut made = Self::default();
        if !keys.is_empty() {
            made.divide(keys, 0, keys.len(), 0);
        }
        made.places.shrink_to_fit();
        made.levels.shrink_to_fit();
        made
    }

    /// Adds a level for the rows from one up to another, and those below it.
    fn divide(&mut self, keys: &[u64], from: usize, to: usize, depth: usize) {
        let mut level = self.spread(keys, from, to, SPREAD);
        let crowded: usize = self.crowded(&level).map(|(_, from, to)| to - from).sum();
        if crowded > (to - from) / 2 {
            self.places.truncate(level.start);
            level = self.spread(keys, from, to, SPREAD_COARSE);
        }
        let crowded: Vec<_> = match depth + 1 {
            DEPTH => Vec::new(),
            _ => self.crowded(&level).collect(),
        };
        self.levels.push(level);
        for (bucket, from, to) in crowded {
            self.places[bucket] = LEVEL | self.levels.len() as u32;
            self.divide(keys, from, to, depth + 1);
        }
    }

    /// Adds the places of a level.
    fn spread(&mut self, keys: &[u64], from: usize, to: usize, rows: usize) -> Level {
        let some = &keys[from..to];
        let (first, span) = (some[0], some[some.len() - 1] - some[0]);
        let wanted = (some.len() / rows).max(2) as u64;
        let mut shift = 0;
        while shift < u64::BITS - 1 && span >> shift >= wanted {
            shift += 1;
        }
        let (start, count) = (self.places.len(), (span >> shift) as usize + 1);
        for (row, key) in (from..).zip(some) {
            let bucket = ((key - first) >> shift) as usize;
            // Rows fit, which was checked.
            self.places.resize(self.places.len().max(start + bucket + 1), row as u32);
        }
        self.places.push(to as u32);
        Level { first, shift, row: from as u32, start, count }
    }

    /// The buckets of a level that are divided again, each with its rows.
    fn crowded(&self, level: &Level) -> impl Iterator<Item = (usize, usize, usize)> {
        let places = self.places[level.start..].windows(2).take(level.count);
        let rows =
            places.zip(level.start..).map(|(pair, at)| (at, pair[0] as usize, pair[1] as usize));
        rows.filter(|(_, from, to)| to - from > CROWDED)
    }

    fn row_of(&self, place: u32) -> usize {
        match place & LEVEL {
            0 => place as usize,
            _ => self.levels.get((place & !LEVEL) as usize).map_or(0, |level| level.row as usize),
        }
    }

    /// The rows among which a key would be: from the first up to the second.
    pub(super) fn find(&self, key: u64) -> Option<(usize, usize)> {
        let mut level = self.levels.first()?;
        loop {
            let bucket = (key.checked_sub(level.first)? >> level.shift) as usize;
            if bucket >= level.count {
                return None;
            }
            let at = level.start + bucket;
            let (place, next) = (*self.places.get(at)?, *self.places.get(at + 1)?);
            if place & LEVEL == 0 {
                return Some((place as usize, self.row_of(next)));
            }
            level = self.levels.get((place & !LEVEL) as usize)?;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * 4 + self.levels.capacity() * size_of::<Level>()
    }
}
