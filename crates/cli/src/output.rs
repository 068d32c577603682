//! Results on standard output, as text for people or as JSON; talk on standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use serde::Serialize;

use crate::printable::{cell, line, painted, render};

/// Where and how results are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    colours: bool,
    /// Columns of the terminal, where standard output is one.
    width: Option<usize>,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let width = console::Term::stdout().size_checked().map(|(_, width)| width.into());
        Self { json, quiet, colours: wants_colours(io::stdout().is_terminal()), width }
    }

    /// Whether the user asked for JSON.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether nothing but results is wanted.
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Whether progress and remarks are wanted.
    pub(crate) fn talks(self) -> bool {
        !self.json && !self.quiet
    }

    /// Prints one JSON document.
    pub(crate) fn document(self, value: &impl Serialize) -> Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
        writeln!(out)?;
        out.flush()?;
        Ok(())
    }

    /// Prints a document when JSON is wanted, and otherwise the text that `text` makes.
    pub(crate) fn result(
        self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        if self.json { self.document(value) } else { self.text(&text()) }
    }

    /// Prints a document when JSON is wanted, and otherwise a remark.
    pub(crate) fn done(
        self,
        value: &impl Serialize,
        remark: impl FnOnce() -> String,
    ) -> Result<()> {
        if self.json {
            return self.document(value);
        }
        self.remark(&remark());
        Ok(())
    }

    /// Prints text, with a newline at its end if it has none.
    pub(crate) fn text(self, text: &str) -> Result<()> {
        let text = render(text, self.colours);
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()?;
        Ok(())
    }

    /// Prints a remark on standard error, unless the user wants none.
    pub(crate) fn remark(self, text: &str) {
        if self.talks() {
            talk(text);
        }
    }

    /// Prints a warning on standard error, beside a result.
    pub(crate) fn warn(self, text: &str) {
        if !self.quiet {
            talk(format_args!("{} {}", paint_stderr("1;33", "warning:"), line(text)));
        }
    }

    /// Emphasised, if colours are on.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Dimmed, if colours are on.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// The colour of snapshot ids.
    pub(crate) fn id(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// The colour of branches and tags, and of what is sound.
    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// The colour of damage and conflicts.
    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Cuts text from a file, which begins at a column, at the edge of the terminal. Without a terminal nothing is
    /// cut.
    pub(crate) fn fit(self, text: &str, column: usize) -> String {
        match self.width {
            Some(width) => cut(&line(text), width.saturating_sub(column).max(20)),
            None => text.to_owned(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        paint(self.colours, code, text)
    }
}

/// Prints on standard error. If that fails, because it is a file on a full disk, the command goes on
/// and the exit code tells the rest; `eprintln!` would panic.
pub(crate) fn talk(text: impl std::fmt::Display) {
    let colours = wants_colours(io::stderr().is_terminal());
    drop(writeln!(io::stderr(), "{}", render(&text.to_string(), colours)));
}

/// Colours text for standard error.
pub(crate) fn paint_stderr(code: &str, text: &str) -> String {
    paint(wants_colours(io::stderr().is_terminal()), code, text)
}

fn paint(colours: bool, code: &str, text: &str) -> String {
    if colours { painted(code, text) } else { text.to_owned() }
}

/// Colours go to terminals only, and not if <https://no-color.org> forbids them.
fn wants_colours(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The beginning of a text, with a mark if the rest is missing.
fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some(_) => text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Lays rows out in columns two blanks apart; the last column is not padded. Cells are one line each,
/// and cut where they are long. They must not hold colours, except in the last column.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| row.iter().map(|text| cell(text)).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            line.push_str(cell);
            // Not with a width in a format, which is a `u16` and panics above it.
            let missing = width.saturating_sub(cell.chars().count());
            line.extend(std::iter::repeat_n(' ', missing + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_is_too_long_is_cut() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(cut("", 0), "");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".into(), "long".into(), "x".into()], vec!["bcd".into(), "é".into()]];
        assert_eq!(columns(&rows), "a    long  x\nbcd  é\n");
        assert_eq!(columns(&[]), "");
    }

    #[test]
    fn cells_of_any_length_and_content_are_laid_out() {
        let rows = [vec!["k\x1b[2J".into(), "x".repeat(100_000)], vec!["a\nb".into(), "y".into()]];
        let text = columns(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("k\\x1b[2J  xxx"), "{text}");
        assert!(lines[0].ends_with("x… (100000 characters)"), "{text}");
        assert_eq!(lines[1], "a\\nb      y");
        assert_eq!(lines.len(), 2);
    }
}
