//! The names of blocks as objects.

use std::fmt;

/// A block: its scale and its coordinates in blocks of that scale. As text `s<scale>/<z>_<y>_<x>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockName {
    /// The scale; 0 is full resolution.
    pub scale: u8,
    /// z, y and x, so that names sort like the keys of the server.
    pub zyx: [i32; 3],
}

impl BlockName {
    /// Takes a name apart; `None` if it is no name of a block, or not spelled as [`fmt::Display`] does.
    pub fn parse(path: &str) -> Option<Self> {
        let (scale, place) = path.strip_prefix('s')?.split_once('/')?;
        let mut parts = place.splitn(3, '_').map(|part| part.parse().ok());
        let zyx = [parts.next()??, parts.next()??, parts.next()??];
        let name = Self { scale: scale.parse().ok()?, zyx };
        (name.to_string() == path).then_some(name)
    }

    /// x, y and z, as the server writes them.
    pub fn xyz(&self) -> [i32; 3] {
        let [z, y, x] = self.zyx;
        [x, y, z]
    }
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scale, zyx: [z, y, x] } = self;
        write!(f, "s{scale}/{z}_{y}_{x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            BlockName { scale: 0, zyx: [0, 0, 0] },
            BlockName { scale: 255, zyx: [i32::MIN, -1, i32::MAX] },
        ] {
            assert_eq!(BlockName::parse(&name.to_string()), Some(name));
        }
        assert_eq!(BlockName { scale: 2, zyx: [-3, 1, 2] }.to_string(), "s2/-3_1_2");
    }

    #[test]
    fn other_names_are_no_blocks() {
        for path in [
            "",
            "s0",
            "s0/",
            "s0/1_2",
            "s0/1_2_3_4",
            "s256/0_0_0",
            "s0/01_0_0",
            "s0/+1_0_0",
            "s0/-0_0_0",
            "0/0_0_0",
            "s0/2147483648_0_0",
            "zarr.json",
            "s00/0_0_0",
        ] {
            assert_eq!(BlockName::parse(path), None, "{path}");
        }
    }
}
