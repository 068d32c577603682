//! The text of a condition.

use chunkyard_store::{Error, Result};

use super::{Filter, Literal, Relation, Term};

/// The longer ones first, because a shorter one may be the beginning of a longer one.
const RELATIONS: [(&str, Relation); 7] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<", Relation::Less),
    (">", Relation::Greater),
    ("=", Relation::Equal),
];

pub(super) fn parse(text: &str) -> Result<Filter> {
    let mut rest = Rest(text);
    let mut terms = Vec::new();
    loop {
        terms.push(rest.term().ok_or_else(|| malformed(text, rest.0))?);
        if rest.trimmed().is_empty() {
            return Ok(Filter { terms });
        }
        rest.and().ok_or_else(|| malformed(text, rest.0))?;
    }
}

fn malformed(text: &str, rest: &str) -> Error {
    let at = match rest.trim() {
        "" => "its end".to_owned(),
        rest => format!("{:?}", rest.chars().take(20).collect::<String>()),
    };
    Error::invalid(format!(
        "the condition {text:?}: not understood at {at}; expected comparisons such as \
         x > 3 and name == 'abc'"
    ))
}

/// The rest of the text. A parser that finds nothing leaves it at the point of the error.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn trimmed(&mut self) -> &'a str {
        self.0 = self.0.trim_start();
        self.0
    }

    fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn term(&mut self) -> Option<Term> {
        let column = self.name()?;
        let text = self.trimmed();
        let (sign, relation) = RELATIONS.iter().find(|(sign, _)| text.starts_with(sign))?;
        self.take(sign.len())?;
        Some(Term { column, relation: *relation, value: self.literal()? })
    }

    fn and(&mut self) -> Option<()> {
        let text = self.trimmed();
        if let Some(sign) = ["&&", "&"].iter().find(|sign| text.starts_with(**sign)) {
            return self.take(sign.len()).map(drop);
        }
        let word = self.word_len();
        let is_and = text.get(..word).is_some_and(|word| word.eq_ignore_ascii_case("and"));
        is_and.then(|| self.take(word)).flatten().map(drop)
    }

    /// Bytes of the next word.
    fn word_len(&self) -> usize {
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/');
        self.0.find(|c| !part(c)).unwrap_or(self.0.len())
    }

    /// A column: a word, or anything between backticks.
    fn name(&mut self) -> Option<String> {
        let text = self.trimmed();
        if let Some(inner) = text.strip_prefix('`') {
            let (name, rest) = inner.split_once('`').filter(|(name, _)| !name.is_empty())?;
            self.0 = rest;
            return Some(name.to_owned());
        }
        let begins = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
        let len = self.word_len();
        self.take(len).filter(|_| begins).map(str::to_owned)
    }

    fn literal(&mut self) -> Option<Literal> {
        let text = self.trimmed();
        if let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) {
            let (inner, rest) = text.get(1..)?.split_once(quote)?;
            self.0 = rest;
            return Some(Literal::Text(inner.to_owned()));
        }
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
        let len = text.find(|c| !part(c)).unwrap_or(text.len());
        let word = text.get(..len)?;
        let value = match word.to_ascii_lowercase().as_str() {
            "true" => Literal::Whole(1),
            "false" => Literal::Whole(0),
            lower => match word.parse::<i128>() {
                Ok(whole) => Literal::Whole(whole),
                Err(_) => Literal::Real(lower.parse().ok()?),
            },
        };
        self.take(len)?;
        Some(value)
    }
}
