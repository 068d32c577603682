//! Regions as people type them, in the manner of NumPy: `0:10,5:20`, `:`, `3`, `-5:`, `...,0`.
//!
//! Unlike in NumPy, nothing is clipped: a region that leaves the array is an error.

use super::Region;
use crate::{Error, Result};

impl Region {
    /// Reads a region of an array of shape `array_shape`.
    ///
    /// Each dimension is `start:end`, with either side left out for the edge of the array, or one
    /// index, which stands for one element. Negative numbers count from the end. `...` stands for
    /// all dimensions not mentioned; so does leaving the last ones out.
    ///
    /// ```
    /// # use chunkyard_array::Region;
    /// let region = Region::parse("...,-1", &[10, 20, 3])?;
    /// assert_eq!(region.to_string(), "0:10,0:20,2:3");
    /// # Ok::<(), chunkyard_array::Error>(())
    /// ```
    pub fn parse(text: &str, array_shape: &[u64]) -> Result<Region> {
        let parts: Vec<&str> = match text.trim() {
            "" => Vec::new(),
            trimmed => trimmed.split(',').map(str::trim).collect(),
        };
        let ellipses = parts.iter().filter(|part| **part == "...").count();
        if ellipses > 1 {
            return Err(Error::invalid(format!("region '{text}' has more than one '...'")));
        }
        let named = parts.len() - ellipses;
        let Some(unnamed) = array_shape.len().checked_sub(named) else {
            return Err(Error::invalid(format!(
                "region '{text}' has {named} dimensions, the array has {}",
                array_shape.len()
            )));
        };

        let mut bounds = Vec::with_capacity(array_shape.len());
        let mut extents = array_shape.iter().copied();
        let implied_ellipsis = std::iter::once("...").take(usize::from(ellipses == 0));
        for part in parts.iter().copied().chain(implied_ellipsis) {
            if part == "..." {
                bounds.extend(extents.by_ref().take(unnamed).map(|extent| (0, extent)));
            } else if let Some(extent) = extents.next() {
                let dimension = bounds.len();
                bounds.push(parse_bounds(part, extent).map_err(|problem| {
                    Error::invalid(format!("dimension {dimension} of region '{text}': {problem}"))
                })?);
            }
        }
        Ok(Region::from_bounds(bounds.into_iter()))
    }
}

/// Bounds of one dimension, within `0..=extent` and in order.
fn parse_bounds(part: &str, extent: u64) -> Result<(u64, u64), String> {
    let Some((start, end)) = part.split_once(':') else {
        let index = parse_index(part, extent)?;
        if index >= extent {
            return Err(format!("index {part} is out of bounds, the extent is {extent}"));
        }
        return Ok((index, index + 1));
    };
    if end.contains(':') {
        return Err(format!("'{part}' has a step; only start:end is supported"));
    }
    let (start, end) = (start.trim(), end.trim());
    let first = if start.is_empty() { 0 } else { parse_index(start, extent)? };
    let last = if end.is_empty() { extent } else { parse_index(end, extent)? };
    if first > extent || last > extent {
        return Err(format!("'{part}' is out of bounds, the extent is {extent}"));
    }
    if first > last {
        return Err(format!("'{part}' ends before it starts"));
    }
    Ok((first, last))
}

/// A number, counted from the end when negative; not yet checked against the end of the array.
fn parse_index(text: &str, extent: u64) -> Result<u64, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    // `u64::from_str` accepts a sign, which would let "-+3" pass.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("'{text}' is not an index"));
    }
    let number: u64 = digits.parse().map_err(|_| format!("'{text}' is beyond 2^64"))?;
    if !negative {
        return Ok(number);
    }
    extent
        .checked_sub(number)
        .ok_or_else(|| format!("index {text} is out of bounds, the extent is {extent}"))
}
