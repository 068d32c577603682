//! Examines the files of a column from the first on, up to the first damage. Only chunks and their digests are
//! trusted: headers and offsets may be torn.

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_array::codec::blosc;
use chunkyard_store::{Error, Noun, Result, cpu};

use crate::superchunk::access::Access;
use crate::superchunk::committed::Committed;
use crate::superchunk::corrupt;
use crate::superchunk::model::Column;
use crate::superchunk::read::files::{self, FileIndex};
use crate::superchunk::write::begin::file_number;

/// The part of a column that is whole.
#[derive(Debug, Default)]
pub(super) struct Examined {
    /// The files from the first on, each with its chunks that are whole and full.
    pub(super) files: Vec<FileIndex>,
    /// Full chunks in them.
    full: u64,
    /// Whole chunks that are not full, or are in a tail file, by number.
    pub(super) tails: BTreeMap<u64, Tail>,
    /// All files of the column: number and path.
    pub(super) all: Vec<(u64, String)>,
    /// Why the whole part ends where it does.
    pub(super) stopped: Option<String>,
}

/// The rows behind the full chunks, as a chunk that is whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    pub(super) rows: u64,
    /// Its encoded bytes.
    pub(super) encoded: u64,
}

impl Tail {
    fn new(column: &Column, index: &FileIndex, slot: u64, plain: &Bytes) -> Self {
        let place = usize::try_from(slot).ok().and_then(|slot| index.chunks.get(slot));
        let encoded = place.map_or(0, |place| place.end - place.start);
        Self { rows: plain.len() as u64 / column.row_bytes().max(1), encoded }
    }
}

impl Committed {
    /// Finds the part of a column that is whole.
    pub(super) async fn examine(&self, column: &Column) -> Result<Examined> {
        let mut found = Examined::default();
        for meta in self.access.store.list_dir(&column.folder).await?.objects {
            let name = meta.path.rsplit('/').next().unwrap_or_default();
            if let Some(number) = file_number(self.access.style, name).filter(|_| meta.size > 0) {
                found.all.push((number, meta.path));
            }
        }
        found.all.sort_unstable();
        let whole = column.chunk_bytes();
        for file in 0.. {
            let path = column.file(self.access.style, file);
            let rooted = self.files.roots.resolve(&column.folder, &path, file).await?;
            let name = rooted.name();
            let walked = files::read_whole(rooted, column, self.access.style).await;
            let (mut index, problem) = match walked {
                Ok(found) => found,
                Err(Error::NotFound { .. }) => {
                    found.stopped = Some(format!("there is no {name}"));
                    break;
                }
                Err(error @ (Error::Corrupt { .. } | Error::Unsupported { .. })) => {
                    found.stopped = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            let begins = file.saturating_mul(column.superchunk);
            let first = index.first_chunk.unwrap_or(begins);
            let mut full = 0;
            let mut stopped = problem;
            for slot in 0..index.chunks.len() as u64 {
                match self.access.check_chunk(column, &index, slot).await {
                    Ok(plain) if plain.len() as u64 == whole => full += 1,
                    Ok(plain) => {
                        let tail = Tail::new(column, &index, slot, &plain);
                        found.tails.insert(first + slot, tail);
                        stopped = None;
                        break;
                    }
                    Err(error @ (Error::Corrupt { .. } | Error::Array(_))) => {
                        stopped = Some(error.to_string());
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            if first != begins {
                // It does not begin with the chunk that its number says, so it is a tail, even if its chunk is
                // full.
                if full > 0 && !found.tails.contains_key(&first) {
                    let plain = self.access.check_chunk(column, &index, 0).await?;
                    found.tails.insert(first, Tail::new(column, &index, 0, &plain));
                }
                found.stopped = Some(format!("{name} begins with chunk {first}"));
                break;
            }
            index.chunks.truncate(usize::try_from(full).unwrap_or(usize::MAX));
            found.full += full;
            found.files.push(index);
            if full < column.superchunk {
                let more = stopped.unwrap_or_else(|| format!("{name} has {full} full chunks"));
                found.stopped = Some(more);
                // A file without full chunks is the tail itself; behind any other, the next file is.
                if full > 0 {
                    self.examine_tail(column, file + 1, &mut found).await?;
                }
                break;
            }
        }
        Ok(found)
    }

    /// Takes the chunk of a tail file, if it is whole. Any damage means that there is no tail.
    async fn examine_tail(&self, column: &Column, file: u64, found: &mut Examined) -> Result<()> {
        let path = column.file(self.access.style, file);
        let rooted = self.files.roots.resolve(&column.folder, &path, file).await?;
        let Ok((index, _)) = files::read_whole(rooted, column, self.access.style).await else {
            return Ok(());
        };
        let Some(first) = index.first_chunk.filter(|_| !index.chunks.is_empty()) else {
            return Ok(());
        };
        if let Ok(plain) = self.access.check_chunk(column, &index, 0).await {
            found.tails.insert(first, Tail::new(column, &index, 0, &plain));
        }
        Ok(())
    }
}

impl Access {
    /// A chunk of a file, decoded; an error if it does not match its digest, or has more rows than a chunk has.
    pub(super) async fn check_chunk(
        &self,
        column: &Column,
        index: &FileIndex,
        slot: u64,
    ) -> Result<Bytes> {
        let name = format!("chunk {slot} of {}", index.rooted.name());
        let reference = index.reference(slot);
        let reference =
            reference.ok_or_else(|| Error::NotFound { what: Noun::Chunk, name: name.clone() })?;
        let bytes = self.fetcher.fetch_named(&[&reference], |_| name.clone()).await?.pop();
        let bytes = bytes.flatten().unwrap_or_default();
        let most = column.chunk_bytes();
        cpu(move || {
            let header = blosc::Header::parse(&bytes)?;
            if header.decoded_bytes > most {
                let expected = format!("at most {most}");
                return Err(corrupt(&name, "its bytes", expected, header.decoded_bytes));
            }
            let mut plain = vec![0; usize::try_from(header.decoded_bytes).unwrap_or(0)];
            blosc::decode_into(&bytes, &mut plain)?;
            Ok(plain.into())
        })
        .await?
    }
}

impl Examined {
    /// The number of whole rows, at most `said`.
    pub(super) fn rows(&self, column: &Column, said: Option<u64>) -> u64 {
        let tail = self.tails.get(&self.full).map_or(0, |tail| tail.rows);
        let whole = self.full.saturating_mul(column.chunklen.max(1)).saturating_add(tail);
        said.map_or(whole, |said| whole.min(said))
    }
}
