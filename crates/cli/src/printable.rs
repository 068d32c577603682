//! Text for terminals.
//!
//! Names, messages, attributes and parts of errors come out of files, which may be untrusted. A
//! terminal obeys what it is sent: an escape sequence moves the cursor, changes the title or hides a
//! line, and a character for bidirectional text shows a name backwards. So everything that is printed
//! for people passes [`render`], which spells such characters out. JSON does that by itself.
//!
//! Our own colours pass as marks, see [`painted`].

use std::borrow::Cow;

/// Characters of a message that are shown.
const BRIEF_CHARS_MAX: usize = 300;
/// Characters of a cell of a table, which may hold a message and more.
const CELL_CHARS_MAX: usize = 500;

/// Marks around the code of a colour. They are noncharacters: text does not use them, and in an
/// untrusted file they can cause a colour at most.
const BEGIN: char = '\u{fdd0}';
const END: char = '\u{fdd1}';
/// The codes of all colours.
const CODES: [&str; 8] = ["0", "1", "2", "31", "32", "33", "1;31", "1;33"];

/// A text in a colour. Its lines stay lines.
pub(crate) fn painted(code: &str, text: &str) -> String {
    format!("{BEGIN}{code}{END}{}{BEGIN}0{END}", lines(text))
}

/// Text for the terminal: lines are kept, marks become colours if these are wanted, and every other
/// character that a terminal would obey is spelled out.
pub(crate) fn render(text: &str, colours: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        if c == BEGIN
            && colours
            && let Some((code, after)) = code_at(after)
        {
            out.push_str(&format!("\x1b[{code}m"));
            rest = after;
            continue;
        }
        push(&mut out, c, c == '\n' || c == '\t');
        rest = after;
    }
    out
}

/// The code of a mark, and what follows the mark.
fn code_at(text: &str) -> Option<(&'static str, &str)> {
    let (code, after) = text.split_once(END)?;
    CODES.into_iter().find(|known| *known == code).map(|known| (known, after))
}

/// Text from a file, in one line; our own colours in it stay.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, BEGIN | END))
}

/// The same with all its lines, and without colours.
fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n')
}

/// The beginning of a text from a file, in one line, and the length of the text if that is not all.
pub(crate) fn brief(text: &str) -> String {
    start(text, BRIEF_CHARS_MAX)
}

/// The same for a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    start(text, CELL_CHARS_MAX)
}

fn start(text: &str, chars_max: usize) -> String {
    match cut(text, chars_max) {
        Some(start) => line(&start).into_owned(),
        None => line(text).into_owned(),
    }
}

/// The beginning of a text and its length; `None` if nothing needs cutting.
pub(crate) fn cut(text: &str, chars_max: usize) -> Option<String> {
    let plain = || {
        text.split(BEGIN).enumerate().map(|(at, part)| match at {
            0 => part,
            // Colours would not end where the text is cut.
            _ => code_at(part).map_or(part, |(_, after)| after),
        })
    };
    let mut chars = plain().flat_map(str::chars);
    let start: String = chars.by_ref().take(chars_max).collect();
    match chars.count() {
        0 => None,
        more => Some(format!("{start}… ({} characters)", chars_max + more)),
    }
}

fn escaped(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| commands(c) && !kept(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push(&mut out, c, kept(c)));
    Cow::Owned(out)
}

fn push(out: &mut String, c: char, kept: bool) {
    match c {
        c if kept || !commands(c) => out.push(c),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c => out.extend(c.escape_unicode()),
    }
}

/// Whether a terminal obeys a character instead of showing it.
fn commands(c: char) -> bool {
    matches!(
        c,
        // C0, DEL and C1.
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        // Line and paragraph separator; embedding, override and isolation of bidirectional text.
        | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | BEGIN | END
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        let hostile = "a\x1b]0;title\x07\u{9b}31m\u{202e}b\r\tc\x7f\u{fdd0}31\u{fdd1}";
        let shown = "a\\x1b]0;title\\x07\\u{9b}31m\\u{202e}b\\r\\tc\\x7f";
        assert_eq!(brief(hostile).replace(['\u{fdd0}', '\u{fdd1}'], ""), format!("{shown}31"));
        assert_eq!(render("x\x1b[2J\ny\u{202e}", true), "x\\x1b[2J\ny\\u{202e}");
        assert_eq!(line("né 漢字 🙂"), "né 漢字 🙂");
        assert_eq!(line("two\nlines"), "two\\nlines");
    }

    #[test]
    fn only_our_colours_pass_and_only_where_they_are_wanted() {
        let text = format!("{} {}", painted("1;31", "red\x1b[0m\nstill"), "\x1b[31m");
        assert_eq!(render(&text, true), "\x1b[1;31mred\\x1b[0m\nstill\x1b[0m \\x1b[31m");
        assert!(!render(&text, false).contains('\x1b'));
        assert_eq!(render("\u{fdd0}5m\u{fdd1}", true), "\\u{fdd0}5m\\u{fdd1}");
    }

    #[test]
    fn long_text_is_cut_and_says_how_long_it_is() {
        assert_eq!(brief(&"ä".repeat(300)), "ä".repeat(300));
        let cut = brief(&"ä\n".repeat(70_000));
        assert!(cut.ends_with("ä\\n… (140000 characters)"), "{cut}");
        assert!(cut.chars().count() < 600);
        let coloured = brief(&painted("31", &"x".repeat(400)));
        assert_eq!(coloured, format!("{}… (400 characters)", "x".repeat(300)));
    }
}
