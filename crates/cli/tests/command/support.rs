//! A scratch directory, the binary in it, and NumPy files made by hand.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The result of a run of the binary.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    /// Demands an exit code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.text(), self.stderr);
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The one JSON document on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {}\n{}", self.text(), self.stderr))
    }
}

/// A directory with, by convention, a repository called `r`.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With an empty repository.
    pub(crate) fn with_repo() -> Self {
        let scratch = Self::new();
        scratch.run(&["repo", "init", "r"]).code(0);
        scratch
    }

    /// With an array `/a` of `uint8`, 4 by 6 in chunks of 2 by 3, counting from 1.
    pub(crate) fn with_array() -> Self {
        let scratch = Self::with_repo();
        let values: Vec<u8> = (1..=24).collect();
        scratch.write("a.npy", &npy("|u1", false, &[4, 6], &values));
        let set = ["repo", "set", "r", "/a", "a.npy", "--chunks", "2,3", "-m", "first"];
        scratch.run(&set).code(0);
        scratch
    }

    /// The binary with arguments, in this directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("chunkyard").unwrap();
        command.current_dir(self.0.path()).args(arguments).env_remove("COLUMNS");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, Vec::new())
    }

    /// With bytes on standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: Vec<u8>) -> Run {
        let output = self.command(arguments).write_stdin(stdin).output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A run that must succeed, and its JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        self.run(&arguments).code(0).json()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The elements that `repo get` gives, without the header.
    #[track_caller]
    pub(crate) fn get(&self, options: &[&str]) -> Vec<u8> {
        let arguments: Vec<&str> =
            ["repo", "get", "r"].iter().chain(options).copied().chain(["-o", "-"]).collect();
        data(&self.run(&arguments).code(0).stdout).to_vec()
    }

    /// All files of the repository with their content, sorted.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.files_in("r")
    }

    /// All files below a directory with their content, sorted.
    pub(crate) fn files_in(&self, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        collect(&self.path(name), &mut files);
        files.sort();
        files
    }

    /// The names in the directory itself, sorted; hidden names too.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The elements of an array of any format: converted into a repository and read from there.
    #[track_caller]
    pub(crate) fn elements(&self, place: &str, path: &str) -> Vec<u8> {
        let repo = tempfile::tempdir_in(self.0.path()).unwrap();
        let repo = repo.path().join("elements.repo").to_str().unwrap().to_owned();
        self.run(&["convert", place, &repo]).code(0);
        let got = self.run(&["repo", "get", &repo, path, "-o", "-"]).code(0);
        data(&got.stdout).to_vec()
    }
}

fn collect(directory: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
}

/// Numbers that no codec makes smaller, the same for the same seed.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A given count of them, as little-endian `uint32`.
    pub(crate) fn words(&mut self, count: u64) -> Vec<u8> {
        (0..count).flat_map(|_| (self.next() as u32).to_le_bytes()).collect()
    }
}

/// A `.npy` file.
pub(crate) fn npy(descr: &str, fortran: bool, shape: &[u64], data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let extents =
        if shape.len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({extents}), }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// The elements of a `.npy` file of version 1.
pub(crate) fn data(npy: &[u8]) -> &[u8] {
    let length = u16::from_le_bytes([npy[8], npy[9]]);
    &npy[10 + usize::from(length)..]
}
