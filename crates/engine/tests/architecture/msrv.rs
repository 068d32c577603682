//! The oldest compiler that the manifest promises. Clippy (`incompatible_msrv`) compares it with the parts of the
//! standard library that we use; this compares it with what dependencies need and with what the documents say.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Major, minor and patch number.
type Release = (u32, u32, u32);

fn release(text: &str) -> Release {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Standard output of a program that must succeed.
fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {}: {said}", arguments.join(" "));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn no_dependency_needs_a_newer_compiler_than_we_state() {
    let version = output("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let metadata = output(
        env!("CARGO"),
        &[
            "metadata",
            "--offline",
            "--locked",
            "--format-version=1",
            "--filter-platform",
            host,
            "--manifest-path",
            manifest.to_str().unwrap(),
        ],
    );
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let stated = release(env!("CARGO_PKG_RUST_VERSION"));
    let needs = |package: &Value| package["rust_version"].as_str().map(release);
    let newer = packages.iter().filter(|package| needs(package) > Some(stated));
    let newer: Vec<_> = newer
        .map(|package| format!("{} needs {}", package["name"], package["rust_version"]))
        .collect();
    assert!(newer.is_empty(), "rust-version is {stated:?}, but {newer:#?}");
    assert!(packages.iter().filter_map(needs).count() > 100, "most packages state a version");
}

#[test]
fn the_documents_name_the_compiler_that_the_manifest_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let said = format!("Rust {} or later", env!("CARGO_PKG_RUST_VERSION"));
    for document in ["README.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        assert!(text.contains(&said), "{document} does not say {said:?}");
    }
}
