//! Statistics of arrays: a file beside the layers, and a part of the seal of each.
//!
//! ```text
//!  .stats of 0.9    archive: Vec of ArrayStats | u64 length | "ARST"
//!  .stats of 0.12   archive: u32 version = 1 · Vec of ArrayStats | …      the Vec is last in both
//! ```
//!
//! Verified with files of 0.9.0 and 0.11.0 (first form), 0.12.0 and 0.14.0 (second form); written in
//! the first form, byte for byte as 0.9 does.

use bytes::Bytes;
use chunkyard_store::{Error, Result};

use super::archive::{Record, Resident, Stop, View, Writer, corrupt};
use super::trailer::Ending;
use crate::container::model::{ArrayStats, StatValue};

/// Size of an archived `ArrayStats`.
pub(crate) const STATS_LEN: u64 = 96;

/// The only version number so far.
const VERSION: u32 = 1;

/// The statistics in an archive of either form.
pub fn parse_payload(payload: &[u8]) -> Result<Vec<ArrayStats>> {
    let view = Resident(Bytes::copy_from_slice(payload));
    parse(&view).map_err(|stop| match stop {
        Stop::Corrupt(error) => error,
        Stop::Lack(range) => Error::Corrupt {
            file: "archive".into(),
            what: "the statistics".into(),
            expected: "all of their bytes".into(),
            found: format!("none at {range:?}"),
        },
    })
}

fn parse(view: &dyn View) -> Result<Vec<ArrayStats>, Stop> {
    let (root, table) = Record::last_vec(view, STATS_LEN)?;
    // Between the elements and the root there can only be a version number.
    if root.saturating_sub(table.at + table.len * STATS_LEN) >= 8 {
        let version = Record::read(view, root - 8, 8)?.u32(0)?;
        if version != VERSION {
            let what = format!("statistics of version {version}");
            return Err(Error::unsupported(what).into());
        }
    }
    // Names and values share no bytes, so that together they are no longer than the archive.
    let mut left = view.len();
    let mut all = Vec::new();
    for number in 0..table.len {
        let stats = read(view, table.at + number * STATS_LEN)?;
        let text = [&stats.min, &stats.max].into_iter().flatten().map(text_len).sum::<usize>();
        let text = (text + stats.name.len()) as u64;
        left = left.checked_sub(text).ok_or_else(|| {
            corrupt(table.at, "statistics that share no bytes", "more text than there are bytes")
        })?;
        all.push(stats);
    }
    Ok(all)
}

fn text_len(value: &StatValue) -> usize {
    if let StatValue::Bytes(bytes) = value { bytes.len() } else { 0 }
}

/// The archived `ArrayStats` at a position.
pub(crate) fn read(view: &dyn View, at: u64) -> Result<ArrayStats, Stop> {
    let record = Record::read(view, at, STATS_LEN)?;
    Ok(ArrayStats {
        name: record.string(0)?,
        min: read_value(&record, 16)?,
        max: read_value(&record, 48)?,
        null_count: record.u64(80)?,
        row_count: record.u64(88)?,
    })
}

/// The archived `Option<StatValue>` at an offset.
fn read_value(record: &Record<'_>, offset: usize) -> Result<Option<StatValue>, Stop> {
    if !record.bool(offset)? {
        return Ok(None);
    }
    let (tag, value) = (offset + 8, offset + 16);
    Ok(Some(match record.u8(tag)? {
        0 => StatValue::Int(record.i64(value)?),
        1 => StatValue::UInt(record.u64(value)?),
        2 => StatValue::Float(record.f64(value)?),
        3 => StatValue::Bytes(record.blob(value)?),
        4 => StatValue::TimestampNs(record.i64(value)?),
        other => return Err(record.bad_tag(tag, "a statistical value", other)),
    }))
}

/// The statistics in a file, trailer included.
pub fn parse_file(file: &[u8]) -> Result<Vec<ArrayStats>> {
    let short = |found: String| Error::Corrupt {
        file: "statistics".into(),
        what: "the length of the file".into(),
        expected: "an archive and its trailer of 12 bytes".into(),
        found,
    };
    let Some((rest, trailer)) = file.split_last_chunk::<12>() else {
        return Err(short(format!("{} bytes", file.len())));
    };
    let len = Ending::Statistics.parse(trailer)?;
    let start = usize::try_from(len).ok().and_then(|len| rest.len().checked_sub(len));
    let Some(payload) = start.and_then(|start| rest.get(start..)) else {
        return Err(short(format!("{} bytes before it, not {len}", rest.len())));
    };
    parse_payload(payload)
}

/// The archive of some statistics, in the form of 0.9.
pub fn render_payload(stats: &[ArrayStats]) -> Vec<u8> {
    let mut out = Writer::default();
    let children: Vec<[u64; 3]> = stats
        .iter()
        .map(|stats| {
            let name = out.text(&stats.name);
            let [min, max] = [&stats.min, &stats.max].map(|value| {
                let at = out.position();
                if let Some(StatValue::Bytes(bytes)) = value {
                    out.put(bytes);
                }
                at
            });
            [name, min, max]
        })
        .collect();
    let table = out.pad(8);
    for (stats, [name, min, max]) in stats.iter().zip(children) {
        out.string(&stats.name, name);
        render_value(&mut out, stats.min.as_ref(), min);
        render_value(&mut out, stats.max.as_ref(), max);
        out.u64(stats.null_count);
        out.u64(stats.row_count);
    }
    out.vec(table, stats.len());
    out.finish()
}

/// An `Option<StatValue>`; if it holds bytes, they are at that position.
fn render_value(out: &mut Writer, value: Option<&StatValue>, bytes_at: u64) {
    let Some(value) = value else { return out.zeros(32) };
    out.tag(1);
    let (tag, bits) = match value {
        StatValue::Int(value) => (0, value.cast_unsigned()),
        StatValue::UInt(value) => (1, *value),
        StatValue::Float(value) => (2, value.to_bits()),
        StatValue::TimestampNs(value) => (4, value.cast_unsigned()),
        StatValue::Bytes(bytes) => {
            out.tag(3);
            return out.vec(bytes_at, bytes.len());
        }
    };
    out.tag(tag);
    out.u64(bits);
    out.u64(0);
}

/// The statistics file of 0.9.
pub fn render_file(stats: &[ArrayStats]) -> Vec<u8> {
    let mut file = render_payload(stats);
    let trailer = Ending::Statistics.render(file.len() as u64);
    file.extend(trailer);
    file
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn golden(name: &str) -> Vec<u8> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/container");
        std::fs::read(directory.join(name)).unwrap()
    }

    fn some() -> Vec<ArrayStats> {
        let stats = |name: &str, min, max| ArrayStats {
            name: name.into(),
            min,
            max,
            null_count: 3,
            row_count: 2,
        };
        let bytes = |text: &str| Some(StatValue::Bytes(text.into()));
        vec![
            stats("none", None, None),
            stats("int", Some(StatValue::Int(-1)), Some(StatValue::Int(i64::MAX))),
            stats("uint", Some(StatValue::UInt(0)), Some(StatValue::UInt(u64::MAX))),
            stats("float", Some(StatValue::Float(-0.0)), Some(StatValue::Float(f64::NAN))),
            stats("a name of more than sixteen bytes", bytes(""), bytes("zebra")),
            stats("time", Some(StatValue::TimestampNs(-5)), None),
        ]
    }

    #[test]
    fn statistics_of_all_releases_are_read() {
        for release in ["af9", "af11", "af12", "af14"] {
            let all = parse_file(&golden(&format!("{release}-layers.stats"))).unwrap();
            let rain = all.iter().find(|stats| stats.name == "weather/rain").unwrap();
            assert_eq!(rain.min, Some(StatValue::Int(-20)), "{release}");
            assert_eq!((rain.null_count, rain.row_count), (0, 7), "{release}");
            let stations = all.iter().find(|stats| stats.name == "stations").unwrap();
            assert_eq!(stations.max, Some(StatValue::Bytes("Ås".into())), "{release}");
            let time = all.iter().find(|stats| stats.name == "time").unwrap();
            assert_eq!(time.max, Some(StatValue::TimestampNs(1)), "{release}");
        }
    }

    #[test]
    fn a_file_of_0_9_is_written_again_byte_for_byte() {
        for name in ["af9-layers.stats", "af11-layers.stats"] {
            let file = golden(name);
            assert!(render_file(&parse_file(&file).unwrap()) == file, "{name}");
        }
    }

    #[test]
    fn every_value_round_trips() {
        assert_eq!(parse_payload(&render_payload(&some())).unwrap(), some());
        assert_eq!(render_payload(&[]).len(), 16);
        assert_eq!(parse_file(&render_file(&[])).unwrap(), []);
    }

    #[test]
    fn another_version_is_unsupported() {
        let mut file = golden("af12-layers.stats");
        let version = file.len() - 12 - 24;
        assert_eq!(file[version], 1);
        file[version] = 2;
        let error = parse_file(&file).unwrap_err();
        assert_eq!(error.to_string(), "not supported: statistics of version 2");
    }

    #[test]
    fn a_file_cut_anywhere_is_corrupt() {
        let file = golden("af9-layers.stats");
        for len in 0..file.len() {
            let error = parse_file(&file[..len]).unwrap_err();
            assert_eq!(error.kind(), chunkyard_store::ErrorKind::Corrupt, "{len}");
        }
    }

    #[test]
    fn names_that_are_the_same_bytes_are_refused_before_they_fill_the_memory() {
        let name = "x".repeat(17);
        let stats = ArrayStats { name, min: None, max: None, null_count: 0, row_count: 0 };
        let mut payload = render_payload(&vec![stats; 64]);
        // Every name becomes the whole text.
        let text = "x".repeat(64 * 17);
        let mut out = Writer::default();
        out.string(&text, 0);
        let header = out.finish();
        for number in 0..64 {
            let at = text.len() + number * 96;
            payload[at..at + 8].copy_from_slice(&header[..8]);
            let distance = 0u64.wrapping_sub(at as u64).to_le_bytes();
            payload[at + 8..at + 16].copy_from_slice(&distance);
        }
        let error = parse_payload(&payload).unwrap_err().to_string();
        assert!(error.contains("statistics that share no bytes"), "{error}");
    }
}
