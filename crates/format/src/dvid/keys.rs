//! Keys: what an entry of the store is about, and at which version.
//!
//! ```text
//!  01 │ instance u32 │ class u8 │ 01 │ rest │ version u32 │ client u32 │ mark u8      big-endian
//! ```
//!
//! The last nine bytes are the version part; before it is the *unversioned* key. So all versions of a thing are
//! neighbours. A mark of `03` is a value and `4f` a tombstone. Keys that begin with `00` are metadata and have no
//! version; those that begin with `02` are blobs, which this crate does not read.

/// Bytes of the version part.
pub(super) const VERSION_BYTES: usize = 9;
/// The class of label blocks.
pub(super) const BLOCK: u8 = 0xba;
/// The class of label indices.
pub(super) const INDEX: u8 = 0xbb;

const VALUE: u8 = 0x03;
const TOMBSTONE: u8 = 0x4f;
/// What keys of data begin with.
pub(super) const DATA: u8 = 1;
const CLASS_MARK: u8 = 1;

/// The key of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key<'a> {
    /// Metadata of the server: the class and what follows it.
    Meta {
        /// The class.
        class: u8,
        /// The rest.
        rest: &'a [u8],
    },
    /// Data of an instance.
    Data(DataKey<'a>),
}

/// A key of data, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataKey<'a> {
    /// The number of the instance.
    pub instance: u32,
    /// What sort of thing it is.
    pub class: u8,
    /// Which one.
    pub rest: &'a [u8],
    /// The number of the version.
    pub version: u32,
    /// The number of the client, which is always 0.
    pub client: u32,
    /// Whether this says that the thing is deleted at the version.
    pub tombstone: bool,
}

impl<'a> Key<'a> {
    /// Takes a key apart; `None` if it is none of these.
    pub fn parse(key: &'a [u8]) -> Option<Self> {
        let (&first, rest) = key.split_first()?;
        match first {
            0 => {
                let (&[class, CLASS_MARK], rest) = rest.split_first_chunk::<2>()? else {
                    return None;
                };
                Some(Self::Meta { class, rest })
            }
            DATA => {
                let (instance, rest) = rest.split_first_chunk::<4>()?;
                let (&[class, CLASS_MARK], rest) = rest.split_first_chunk::<2>()? else {
                    return None;
                };
                let (rest, end) = rest.split_last_chunk::<VERSION_BYTES>()?;
                let [a, b, c, d, e, f, g, h, mark] = *end;
                let tombstone = match mark {
                    VALUE => false,
                    TOMBSTONE => true,
                    _ => return None,
                };
                Some(Self::Data(DataKey {
                    instance: u32::from_be_bytes(*instance),
                    class,
                    rest,
                    version: u32::from_be_bytes([a, b, c, d]),
                    client: u32::from_be_bytes([e, f, g, h]),
                    tombstone,
                }))
            }
            _ => None,
        }
    }
}

impl DataKey<'_> {
    /// The bytes of the key.
    pub fn render(&self) -> Vec<u8> {
        let mut key = class_prefix(self.instance, self.class);
        key.extend_from_slice(self.rest);
        key.extend_from_slice(&self.version.to_be_bytes());
        key.extend_from_slice(&self.client.to_be_bytes());
        key.push(if self.tombstone { TOMBSTONE } else { VALUE });
        key
    }
}

/// What all keys of an instance begin with.
pub(super) fn instance_prefix(instance: u32) -> Vec<u8> {
    [&[DATA][..], &instance.to_be_bytes()].concat()
}

/// What all keys of a class of an instance begin with.
pub(super) fn class_prefix(instance: u32, class: u8) -> Vec<u8> {
    let mut key = instance_prefix(instance);
    key.extend_from_slice(&[class, CLASS_MARK]);
    key
}

/// What all metadata keys of a class begin with.
pub(super) fn meta_prefix(class: u8) -> Vec<u8> {
    vec![0, class, CLASS_MARK]
}

/// A block: its scale, and its position along z, y and x in blocks of that scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockAt {
    /// The scale.
    pub scale: u8,
    /// The position.
    pub at: [i32; 3],
}

impl BlockAt {
    /// Reads the rest of a key of a block.
    pub fn parse(rest: &[u8]) -> Option<Self> {
        let (&scale, rest) = rest.split_first()?;
        let (z, rest) = rest.split_first_chunk::<4>()?;
        let (y, rest) = rest.split_first_chunk::<4>()?;
        let (x, rest) = rest.split_first_chunk::<4>()?;
        rest.is_empty().then(|| Self { scale, at: [z, y, x].map(|axis| flip(*axis)) })
    }

    /// The rest of the key of this block.
    pub fn render(&self) -> Vec<u8> {
        let mut rest = vec![self.scale];
        for axis in self.at {
            rest.extend_from_slice(&(axis as u32 ^ 1 << 31).to_be_bytes());
        }
        rest
    }
}

/// Numbers are stored so that bytes sort as they do.
fn flip(bytes: [u8; 4]) -> i32 {
    (u32::from_be_bytes(bytes) ^ 1 << 31) as i32
}

/// The label that the rest of a key of an index names.
pub fn parse_label(rest: &[u8]) -> Option<u64> {
    rest.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|pair| byte(pair).unwrap()).collect()
    }

    #[test]
    fn keys_of_blocks_are_read_and_written_as_dvid_does() {
        for (hex, block, version, tombstone) in [
            (
                "01 00000064 ba01 00 80000003 80000002 80000001 00000005 00000000 03",
                BlockAt { scale: 0, at: [3, 2, 1] },
                5,
                false,
            ),
            (
                "01 00000064 ba01 02 80000003 80000002 7fffffff 00000005 00000000 4f",
                BlockAt { scale: 2, at: [3, 2, -1] },
                5,
                true,
            ),
        ] {
            let key = bytes(hex);
            let Some(Key::Data(data)) = Key::parse(&key) else { panic!("{hex}") };
            assert_eq!((data.instance, data.class, data.version), (100, BLOCK, version));
            assert_eq!(data.tombstone, tombstone);
            assert_eq!(BlockAt::parse(data.rest), Some(block));
            assert_eq!(block.render(), data.rest);
            assert_eq!(data.render(), key);
        }
    }

    #[test]
    fn keys_of_indices_name_a_label() {
        let key = bytes("01 00000064 bb01 0000000000001234 00000005 00000000 03");
        let Some(Key::Data(data)) = Key::parse(&key) else { panic!() };
        assert_eq!((data.class, parse_label(data.rest)), (INDEX, Some(0x1234)));
    }

    #[test]
    fn other_bytes_are_no_keys() {
        let whole = bytes("01 00000064 ba01 00 80000003 80000002 80000001 00000005 00000000 03");
        for end in 0..16 {
            assert_eq!(Key::parse(&whole[..end]), None);
        }
        let mut bad = whole.clone();
        *bad.last_mut().unwrap() = 4;
        assert_eq!(Key::parse(&bad), None);
        assert_eq!(Key::parse(&bytes("02 aabbcc")), None);
        assert_eq!(Key::parse(b"!badger!head"), None);
    }
}
