//! Runs the examples: `cargo test` compiles them and no more. Their `main` is `pub(crate)` for this module.

#[path = "../../examples/convert_any.rs"]
mod convert_any;
#[path = "../../examples/read_any.rs"]
mod read_any;
#[path = "../../examples/time_travel.rs"]
mod time_travel;

#[test]
fn arrays_are_converted_from_format_to_format() {
    convert_any::main().unwrap();
}

#[test]
fn any_part_of_any_array_is_read() {
    read_any::main().unwrap();
}

#[test]
fn the_values_of_before_are_read() {
    time_travel::main().unwrap();
}

/// An example that this module does not run could be wrong.
#[test]
fn all_examples_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["convert_any.rs", "read_any.rs", "time_travel.rs"]);
}
