//! The `chunkyard` binary from outside: every command, its exit codes, its JSON.

mod command;
