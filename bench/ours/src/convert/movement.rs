//! The three movements, as the rows ask for them.

use std::error::Error;

use chunkyard_engine::pipeline::{self, Plan, Wishes};

/// The kind of a conversion.
#[derive(Clone, Copy)]
pub enum Movement {
    /// Plain Zarr into a repository, chunks as they are.
    Copy,
    /// Other codecs.
    Transcode,
    /// Other chunks.
    Regrid,
    /// Other chunks, in shards.
    RegridSharded,
}

impl Movement {
    /// By its word on the command line.
    pub fn parse(text: &str) -> Result<Self, Box<dyn Error>> {
        match text {
            "copy" => Ok(Self::Copy),
            "transcode" => Ok(Self::Transcode),
            "regrid" => Ok(Self::Regrid),
            "regrid-sharded" => Ok(Self::RegridSharded),
            other => Err(format!("no movement {other:?}").into()),
        }
    }

    /// The format of the target.
    pub fn format(self) -> &'static str {
        if matches!(self, Self::Copy) { "repo" } else { "zarr3" }
    }

    /// The options for it.
    pub fn wishes(self) -> Wishes {
        let plain = Wishes::default();
        match self {
            Self::Copy => plain,
            Self::Transcode => Wishes { codec: Some("blosc:lz4:5:shuffle".into()), ..plain },
            Self::Regrid => Wishes { chunks: Some(vec![128, 128, 32]), ..plain },
            Self::RegridSharded => Wishes {
                chunks: Some(vec![64, 64, 64]),
                shards: Some(Some(vec![64, 512, 512])),
                ..plain
            },
        }
    }

    /// Fails if the plan took another movement: then the figure would be wrong.
    pub fn check(self, plan: &Plan) -> Result<(), Box<dyn Error>> {
        let expected = match self {
            Self::Copy => pipeline::Movement::Copy,
            Self::Transcode => pipeline::Movement::Transcode,
            Self::Regrid | Self::RegridSharded => pipeline::Movement::Regrid,
        };
        match plan.arrays.iter().find(|array| array.movement != expected) {
            Some(array) => Err(format!("{} instead: {}", array.movement, array.why).into()),
            None => Ok(()),
        }
    }
}
