//! `link`: existing data under version control, by reference.

use std::fs;
use std::path::Path;

use super::support::Scratch;

/// The golden file, copied so that it can be changed.
fn netcdf(scratch: &Scratch) -> String {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hdf5/netcdf.nc");
    let copy = scratch.path("sea.nc");
    fs::copy(golden, &copy).unwrap();
    copy.to_str().unwrap().to_owned()
}

/// The arrays of a place.
fn arrays(scratch: &Scratch, place: &str) -> Vec<String> {
    let listed = scratch.run(&["ls", place]).code(0).text();
    listed.lines().filter(|line| !line.ends_with('/')).map(str::to_owned).collect()
}

#[test]
fn a_linked_netcdf_file_reads_as_a_converted_one_if_its_place_is_allowed() {
    let scratch = Scratch::new();
    let file = netcdf(&scratch);
    let linked = scratch.json(&["link", &file, "r", "-m", "the sea"]);
    assert!(linked["references"].as_u64().unwrap() > 0, "{linked}");
    let allow = linked["allow"].as_str().unwrap().to_owned();
    scratch.run(&["convert", &file, "x.zarr"]).code(0);
    assert_eq!(arrays(&scratch, "r"), arrays(&scratch, "x.zarr"));
    // A conversion through the references gives the same elements as a direct one.
    scratch.run(&["convert", "r", "y.zarr", "--allow", &allow, "--verify"]).code(0);
    let chunks = |place: &str| -> Vec<_> {
        let files = scratch.files_in(place).into_iter();
        let data = files.filter(|(path, _)| path.file_name().is_some_and(|it| it != "zarr.json"));
        let root = scratch.path(place);
        data.map(|(path, bytes)| (path.strip_prefix(&root).map(Path::to_owned), bytes)).collect()
    };
    assert_eq!(chunks("x.zarr"), chunks("y.zarr"));
    let refused = scratch.run(&["convert", "r", "z.zarr"]).code(2);
    assert!(refused.stderr.contains("--allow"), "{}", refused.stderr);
    assert!(!scratch.names().contains(&"z.zarr".to_owned()));
    let verified = scratch.run(&["verify", "r"]).code(0).text();
    assert_eq!(verified.matches("not checked").count(), 1, "once, not per chunk: {verified}");
}

#[test]
fn a_source_that_changed_is_an_error_with_exit_code_5() {
    let scratch = Scratch::new();
    let file = netcdf(&scratch);
    scratch.run(&["link", &file, "r"]).code(0);
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    fs::write(&file, bytes).unwrap();
    let allow = format!("file://{file}");
    let run = scratch.run(&["convert", "r", "x.zarr", "--allow", &allow]).code(5);
    assert!(run.stderr.contains("has changed since it was linked"), "{}", run.stderr);
}

#[test]
fn arrays_that_cannot_be_linked_are_named_and_a_second_link_is_refused() {
    let scratch = Scratch::new();
    let file = netcdf(&scratch);
    scratch.run(&["link", &file, "r", "--into", "/a"]).code(0);
    let again = scratch.run(&["link", &file, "r", "--into", "/a"]).code(4);
    assert!(again.stderr.contains("--overwrite"), "{}", again.stderr);
    scratch.run(&["link", &file, "r", "--into", "/b"]).code(0);
    let missing = scratch.run(&["link", &file, "r", "--array", "/nothing"]).code(3);
    assert!(missing.stderr.contains("/nothing"), "{}", missing.stderr);
    let log = scratch.json(&["repo", "log", "r"]);
    assert_eq!(log.as_array().map(Vec::len), Some(3), "two links and the creation: {log}");
}
