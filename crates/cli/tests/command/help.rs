//! Help, usage errors, pipes.

use std::process::Stdio;

use super::support::Scratch;

#[test]
fn the_top_level_help_is_this() {
    let help = Scratch::new().run(&["--help"]).code(0).text();
    let expected = include_str!("help.txt");
    assert_eq!(help, expected, "--- found ---\n{help}");
}

#[test]
fn every_command_has_help_with_an_example() {
    let scratch = Scratch::new();
    let top = [
        "demo",
        "info",
        "ls",
        "verify",
        "get",
        "set",
        "attrs",
        "rm",
        "resize",
        "convert",
        "work",
        "export-shards",
        "serve",
        "repo",
        "af",
        "blz",
    ];
    let repo = [
        "init", "set", "get", "log", "diff", "branch", "tag", "reset", "attrs", "mv", "rm",
        "expire", "gc", "optimise", "repack", "mode",
    ];
    let af = [
        "create", "ls", "layers", "define", "set", "get", "attrs", "stats", "resize", "rm",
        "compact", "repair",
    ];
    let blz =
        ["create", "append", "get", "set", "trim", "resize", "attrs", "files", "move", "repair"];
    let labels = [
        "create",
        "import",
        "info",
        "at",
        "body",
        "bodies",
        "table",
        "sql",
        "merge-bodies",
        "cleave",
        "split-supervoxel",
        "split-body",
        "renumber",
        "map",
        "edit",
        "revert",
        "diff",
        "merge",
        "blame",
        "log",
        "downres",
        "verify",
    ];
    let commands = top.iter().map(|name| vec![*name]);
    let commands = commands.chain(repo.iter().map(|name| vec!["repo", *name]));
    let commands = commands.chain(labels.iter().map(|name| vec!["labels", *name]));
    let commands = commands.chain(af.iter().map(|name| vec!["af", *name]));
    for mut command in commands.chain(blz.iter().map(|name| vec!["blz", *name])) {
        command.push("--help");
        let help = scratch.run(&command).code(0).text();
        assert!(help.contains("Example"), "{command:?}: {help}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let scratch = Scratch::with_array();
    for arguments in [
        vec![],
        vec!["frobnicate"],
        vec!["info"],
        vec!["repo", "get", "r", "/a"],
        vec!["verify", "r", "--level", "deep"],
        vec!["--storage", "novalue", "info", "r"],
        vec!["repo", "set", "r", "/b", "a.npy", "--chunks", "2,x"],
        vec!["repo", "set", "r", "/b", "a.npy", "--chunks", "2"],
        vec!["repo", "set", "r", "/b", "a.npy", "--codec", "brotli"],
        vec!["repo", "set", "r", "/b", "a.npy", "--fill", "blue"],
        vec!["repo", "set", "r", "/b", "a.npy", "--dims", "x"],
    ] {
        scratch.run(&arguments).code(2);
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let scratch = Scratch::with_array();
    let binary = scratch.command(&[]).get_program().to_owned();
    for arguments in [vec!["repo", "log", "r", "--json"], vec!["repo", "get", "r", "/a", "-o", "-"]]
    {
        let mut child = std::process::Command::new(&binary)
            .args(&arguments)
            .current_dir(scratch.path("."))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert!(output.status.success(), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_command_that_waits_for_input_with_exit_code_130() {
    let scratch = Scratch::with_array();
    let mut child = std::process::Command::new(scratch.command(&[]).get_program())
        .args(["repo", "set", "r", "/b", "-"])
        .current_dir(scratch.path("."))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The signal is heard once the command listens; before that it ends the process by itself.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let id = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    let held = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(held);
    if let Some(code) = output.status.code() {
        assert_eq!(code, 130);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
    }
    assert_eq!(scratch.json(&["repo", "log", "r"]).as_array().unwrap().len(), 2);
}
