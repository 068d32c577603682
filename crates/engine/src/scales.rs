//! Which arrays are the scales of one volume: the levels of a pyramid, `s0`, `s1`, …, or one array alone.

use chunkyard_format::{Dataset, Survey};
use chunkyard_store::{Error, Noun, Result};

/// Scales that are looked for at most.
const SCALES_MAX: usize = 32;

/// The arrays of the scales of what is at a path: an array alone, or a group of scales.
pub(crate) fn at(dataset: &Dataset, survey: &Survey, path: &str) -> Result<Vec<Option<String>>> {
    if dataset.array(path).is_ok() {
        return Ok(vec![Some(path.to_owned())]);
    }
    let listed = of_group(dataset, survey, path);
    if listed.is_empty() {
        return Err(Error::NotFound {
            what: Noun::Array,
            name: format!("{path}, or scales below it"),
        });
    }
    Ok(listed)
}

/// The arrays of the scales in a group: of its pyramid, or `s0`, `s1`, …
fn of_group(dataset: &Dataset, survey: &Survey, group: &str) -> Vec<Option<String>> {
    let pyramid = survey.multiscales.iter().find(|multiscale| multiscale.group == group);
    if let Some(pyramid) = pyramid {
        return pyramid.levels.iter().map(|level| Some(level.path.clone())).collect();
    }
    let name = |scale: usize| format!("{}/s{scale}", group.trim_end_matches('/'));
    let mut scales: Vec<Option<String>> = (0..SCALES_MAX)
        .map(|scale| Some(name(scale)).filter(|path| dataset.array(path).is_ok()))
        .collect();
    while scales.last().is_some_and(Option::is_none) {
        scales.pop();
    }
    scales
}

/// The only volume of a source; where there are several, the error ends with what the caller can do.
pub(crate) fn only(
    dataset: &Dataset,
    survey: &Survey,
    advice: &str,
) -> Result<Vec<Option<String>>> {
    let groups = dataset.groups().map(|(path, _)| path.to_owned());
    let pyramids: Vec<(String, Vec<Option<String>>)> = groups
        .map(|group| (group.clone(), of_group(dataset, survey, &group)))
        .filter(|(_, scales)| !scales.is_empty())
        .collect();
    let arrays: Vec<String> = dataset.arrays().map(|(path, _)| path.to_owned()).collect();
    match (&pyramids[..], &arrays[..]) {
        ([(_, only)], _) => Ok(only.clone()),
        ([], [only]) => Ok(vec![Some(only.clone())]),
        ([], []) => {
            Err(Error::NotFound { what: Noun::Array, name: "any in the source".to_owned() })
        }
        (several, arrays) => {
            let names: Vec<&str> = match several {
                [] => arrays.iter().map(String::as_str).take(10).collect(),
                several => several.iter().map(|(group, _)| group.as_str()).take(10).collect(),
            };
            Err(Error::invalid(format!(
                "there are several arrays in the source ({}); {advice}",
                names.join(", ")
            )))
        }
    }
}
