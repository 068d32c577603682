//! The Python literals in which NumPy writes data types and headers: texts, whole numbers, truth values,
//! lists, tuples and dictionaries.

use std::fmt;

/// How deep lists and tuples may be nested: deeper than in any real data type.
const DEPTH_MAX: usize = 32;

/// A literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Number(u64),
    Truth(bool),
    List(Vec<Literal>),
    Tuple(Vec<Literal>),
    /// Keys that are texts, with their values.
    Dictionary(Vec<(String, Literal)>),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |items: &[Self]| {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            items.join(", ")
        };
        match self {
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Number(number) => number.fmt(f),
            Self::Truth(true) => f.write_str("True"),
            Self::Truth(false) => f.write_str("False"),
            Self::List(items) => write!(f, "[{}]", joined(items)),
            Self::Tuple(items) if items.len() == 1 => write!(f, "({},)", joined(items)),
            Self::Tuple(items) => write!(f, "({})", joined(items)),
            Self::Dictionary(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| format!("{}: {value}", quoted(key)));
                write!(f, "{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Parses the whole text as a literal; `None` if it is not one.
pub(super) fn parse(text: &str) -> Option<Literal> {
    let mut rest = text.trim();
    let literal = literal(&mut rest, 0)?;
    rest.trim().is_empty().then_some(literal)
}

fn literal(rest: &mut &str, depth: usize) -> Option<Literal> {
    if depth > DEPTH_MAX {
        return None;
    }
    match rest.chars().next()? {
        '{' => pairs(rest, depth).map(Literal::Dictionary),
        '[' => items(rest, ']', depth).map(|(items, _)| Literal::List(items)),
        '(' => match items(rest, ')', depth)? {
            // Parentheses around one item without a comma make no tuple.
            (mut items, false) if items.len() == 1 => items.pop(),
            (items, _) => Some(Literal::Tuple(items)),
        },
        '0'..='9' => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at_checked(end)?;
            // Python 2 marks long numbers.
            *rest = after.strip_prefix('L').unwrap_or(after);
            digits.parse().ok().map(Literal::Number)
        }
        'T' => word(rest, "True").map(|()| Literal::Truth(true)),
        'F' => word(rest, "False").map(|()| Literal::Truth(false)),
        _ => text(rest).map(Literal::Text),
    }
}

fn word(rest: &mut &str, word: &str) -> Option<()> {
    *rest = rest.strip_prefix(word)?;
    Some(())
}

/// Items up to the closing bracket, and whether a comma stands before it.
fn items(rest: &mut &str, close: char, depth: usize) -> Option<(Vec<Literal>, bool)> {
    let mut items = Vec::new();
    let mut comma = false;
    *rest = rest.get(1..)?.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix(close) {
            *rest = after;
            return Some((items, comma));
        }
        if !items.is_empty() && !comma {
            return None;
        }
        items.push(literal(rest, depth + 1)?);
        *rest = rest.trim_start();
        let after = rest.strip_prefix(',');
        comma = after.is_some();
        *rest = after.unwrap_or(rest).trim_start();
    }
}

/// Keys and values up to the closing brace.
fn pairs(rest: &mut &str, depth: usize) -> Option<Vec<(String, Literal)>> {
    let mut pairs = Vec::new();
    let mut comma = true;
    *rest = rest.get(1..)?.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            *rest = after;
            return Some(pairs);
        }
        if !comma {
            return None;
        }
        let key = text(rest)?;
        *rest = rest.trim_start().strip_prefix(':')?.trim_start();
        pairs.push((key, literal(rest, depth + 1)?));
        *rest = rest.trim_start();
        let after = rest.strip_prefix(',');
        comma = after.is_some();
        *rest = after.unwrap_or(rest).trim_start();
    }
}

/// A text in either kind of quotes, perhaps with a prefix of Python 2.
fn text(rest: &mut &str) -> Option<String> {
    let quoted = rest.strip_prefix(['u', 'b']).unwrap_or(rest);
    let quote = quoted.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut out = String::new();
    let mut chars = quoted.get(1..)?.chars();
    loop {
        match chars.next()? {
            c if c == quote => {
                *rest = chars.as_str();
                return Some(out);
            }
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'x' => code(&mut chars, 2)?,
                'u' => code(&mut chars, 4)?,
                'U' => code(&mut chars, 8)?,
                c @ ('\\' | '\'' | '"') => c,
                _ => return None,
            }),
            c => out.push(c),
        }
    }
}

/// The character whose number these digits give.
fn code(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let mut number = 0u32;
    for _ in 0..digits {
        number = number.checked_mul(16)?.checked_add(chars.next()?.to_digit(16)?)?;
    }
    char::from_u32(number)
}

/// A text as Python prints it.
pub(super) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Literal {
        Literal::Text(text.into())
    }

    #[test]
    fn what_numpy_writes_is_understood() {
        let found = parse("[('x', '<f8'), (\"y\", u'<i2', (3, 2L))]").unwrap();
        assert_eq!(found.to_string(), "[('x', '<f8'), ('y', '<i2', (3, 2))]");
        let shape = Literal::Tuple(vec![Literal::Number(3), Literal::Number(2)]);
        let fields = [vec![text("x"), text("<f8")], vec![text("y"), text("<i2"), shape]];
        assert_eq!(found, Literal::List(fields.map(Literal::Tuple).to_vec()));
        assert_eq!(parse("(3,)").unwrap(), Literal::Tuple(vec![Literal::Number(3)]));
        assert_eq!(parse("( 3 )").unwrap(), Literal::Number(3));
        assert_eq!(parse("()").unwrap(), Literal::Tuple(vec![]));
        let pairs = vec![("a".to_owned(), Literal::Truth(true)), ("b".to_owned(), text("c"))];
        for dictionary in ["{'a': True, \"b\":'c', }", "{ 'a':True,'b' : u'c'}"] {
            let found = parse(dictionary).unwrap();
            assert_eq!(found, Literal::Dictionary(pairs.clone()));
            assert_eq!(found.to_string(), "{'a': True, 'b': 'c'}");
        }
        assert_eq!(parse("{}").unwrap(), Literal::Dictionary(vec![]));
    }

    #[test]
    fn texts_come_back_as_python_prints_them() {
        for (plain, printed) in [
            ("x", "'x'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("a\\b\n\t\r\u{1}", "'a\\\\b\\n\\t\\r\\x01'"),
            ("né ∂", "'né ∂'"),
        ] {
            assert_eq!(quoted(plain), printed);
            assert_eq!(parse(printed).unwrap(), text(plain));
        }
        assert_eq!(parse(r"'\u00e9\U0001f600\xe9'").unwrap(), text("é😀é"));
    }

    #[test]
    fn other_texts_are_not_literals() {
        let deep = "[".repeat(100_000);
        for wrong in [
            "",
            "x",
            "'x",
            "'\\",
            "'\\q'",
            "'\\xg0'",
            "'\\ud800'",
            "[",
            "[1",
            "[1 2]",
            "[,]",
            "(1,,)",
            "[1)",
            "1 1",
            "-1",
            "None",
            "99999999999999999999",
            "['a'] x",
            "{",
            "{,}",
            "{'a'}",
            "{'a': }",
            "{1: 2}",
            "{'a': 1 'b': 2}",
            "Truex",
            &deep,
        ] {
            assert_eq!(parse(wrong), None, "{wrong:.20}");
        }
    }
}
