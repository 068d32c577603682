//! Data for the demonstration: a year of air temperature on a coarse globe, made up but plausible.

use std::f32::consts::TAU;

use anyhow::Result;
use chunkyard_array::{ArraySpec, Region};
use serde_json::{Map, Value, json};

/// Days of a year, as climate models count them.
pub(super) const DAYS: u64 = 360;
const LATITUDES: u64 = 90;
const LONGITUDES: u64 = 180;
const CHUNKS: [u64; 3] = [30, 45, 90];

/// One coordinate axis.
pub(super) struct Axis {
    /// Name of the dimension.
    pub(super) name: &'static str,
    /// Number of values.
    pub(super) length: u64,
    attributes: Value,
    value: fn(u64) -> f32,
}

impl Axis {
    /// Its array.
    pub(super) fn spec(&self) -> Result<ArraySpec> {
        let spec = ArraySpec::builder(&[self.length], &[self.length], "float32");
        Ok(spec.dimension_names([self.name]).attributes(object(&self.attributes)).build()?)
    }

    /// Its values.
    pub(super) fn values(&self) -> Vec<u8> {
        (0..self.length).flat_map(|at| (self.value)(at).to_le_bytes()).collect()
    }
}

/// The axes of the temperatures.
pub(super) fn axes() -> [Axis; 3] {
    let time = json!({"units": "days since 2026-01-01", "calendar": "360_day"});
    let north = json!({"units": "degrees_north"});
    let east = json!({"units": "degrees_east"});
    [
        Axis { name: "time", length: DAYS, attributes: time, value: |day| day as f32 },
        Axis { name: "lat", length: LATITUDES, attributes: north, value: latitude },
        Axis { name: "lon", length: LONGITUDES, attributes: east, value: |at| at as f32 * 2.0 },
    ]
}

/// The array of temperatures, not yet measured.
pub(super) fn temperature() -> Result<ArraySpec> {
    let attributes = json!({"long_name": "air temperature", "units": "K"});
    let spec = ArraySpec::builder(&[DAYS, LATITUDES, LONGITUDES], &CHUNKS, "float32");
    let spec = spec.fill_value("NaN").dimension_names(["time", "lat", "lon"]);
    Ok(spec.attributes(object(&attributes)).build()?)
}

/// Temperatures of a region, shifted by `offset` kelvin.
pub(super) fn values(region: &Region, offset: f32) -> Vec<u8> {
    let (origin, end) = (region.origin(), region.end());
    let axis = |at: usize| {
        let start = origin.get(at).copied().unwrap_or(0);
        start..end.get(at).copied().unwrap_or(start)
    };
    let mut bytes = Vec::new();
    for day in axis(0) {
        let season = -(TAU * day as f32 / DAYS as f32).cos();
        for lat in axis(1) {
            let degrees = latitude(lat).to_radians();
            // Warm at the equator, cold at the poles, and the seasons opposite on either side.
            let mean = 300.0 - 45.0 * degrees.sin().powi(2) + 15.0 * season * degrees.sin();
            for lon in axis(2) {
                let kelvin = mean + weather(day, lat, lon) + offset;
                // Instruments give tenths, which also makes such data compressible.
                bytes.extend(((kelvin * 10.0).round() / 10.0).to_le_bytes());
            }
        }
    }
    bytes
}

fn latitude(at: u64) -> f32 {
    at as f32 * 2.0 - 89.0
}

/// Waves that wander eastwards, and a little noise: a hash, the same on every machine.
fn weather(day: u64, lat: u64, lon: u64) -> f32 {
    let wave = (TAU * (lon as f32 / 45.0 - day as f32 / 7.0 + lat as f32 / 60.0)).sin();
    let seed = (day << 32 ^ lat << 16 ^ lon).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise = (seed >> 40) as f32 / (1 << 24) as f32 - 0.5;
    3.0 * wave + noise
}

/// The members of a JSON object.
pub(super) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
