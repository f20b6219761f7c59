//! Reading and writing RON, with errors that say where and what.
//!
//! A syntax error or a field that does not exist ends reading at once, with the parser's position; broken rules
//! (a latency of 0, a capacity that does not fit) are all reported, each at the value that breaks it.

mod locate;

use std::fmt::Write as _;

use ron::error::SpannedError;
use ron::extensions::Extensions;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use locate::{Locator, Part};

/// One fault in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
    /// What to do about it: the nearest valid name, a limit.
    pub help: Option<String>,
}

/// The extensions that every RON of this project is read with: `Some(…)` may be left out, and a variant takes
/// its struct's fields directly (`OneForAll(width: Bits(64))`).
#[must_use]
pub fn ron_options() -> ron::Options {
    ron::Options::default().with_default_extension(
        Extensions::IMPLICIT_SOME | Extensions::UNWRAP_NEWTYPES | Extensions::UNWRAP_VARIANT_NEWTYPES,
    )
}

/// Reads a value; does not check its rules.
///
/// # Errors
/// The first syntax error, unknown name or value of the wrong type, with its place and the nearest valid name.
pub fn from_ron<T: DeserializeOwned>(text: &str) -> Result<T, Diagnostic> {
    ron_options().from_str(text).map_err(|error| diagnose(text, &error))
}

/// Writes a value as indented RON that [`from_ron`] reads back to the same value.
///
/// # Panics
/// If `value` cannot be expressed in RON; the types of this project can.
#[must_use]
pub fn to_ron<T: Serialize>(value: &T) -> String {
    let config = ron::ser::PrettyConfig::new()
        .struct_names(true)
        .depth_limit(5)
        .separate_tuple_members(false)
        .compact_arrays(false);
    let mut text = ron_options()
        .to_string_pretty(value, config)
        .expect("plain data is expressible in RON");
    text.push('\n');
    text
}

/// Plain text of faults: `file:line:column: message`, the source line, a caret, and the help.
///
/// The same for every terminal, so that it can be compared and pasted.
#[must_use]
pub fn render(file: &str, text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let Diagnostic {
            line,
            column,
            message,
            help,
        } = diagnostic;
        let _ = writeln!(out, "{file}:{line}:{column}: {message}");
        if let Some(source) = text.lines().nth(line - 1) {
            // A tab takes one column here and in the caret line alike.
            let source = source.replace('\t', " ");
            let gutter = line.to_string();
            let _ = writeln!(out, "  {gutter} | {source}");
            let _ = writeln!(out, "  {} | {}^", " ".repeat(gutter.len()), " ".repeat(column - 1));
        }
        if let Some(help) = help {
            let _ = writeln!(out, "  help: {help}");
        }
    }
    out
}

/// The candidate nearest to `found`, if one is near enough to be a misspelling.
#[must_use]
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = found.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|&(distance, candidate)| 3 * distance <= candidate.chars().count().max(found.chars().count()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

fn diagnose(text: &str, error: &SpannedError) -> Diagnostic {
    use ron::Error;
    let offset = |position: ron::error::Position| {
        let start: usize = text.split_inclusive('\n').take(position.line - 1).map(str::len).sum();
        let line = text.get(start..).unwrap_or("");
        let within = line.char_indices().nth(position.col.saturating_sub(1));
        start + within.map_or(line.len(), |(i, _)| i)
    };
    let (start, end) = (offset(error.span.start), offset(error.span.end));
    let (place, message, help) = match &error.code {
        Error::NoSuchStructField { expected, found, outer } => (
            word_before(text, found, end).unwrap_or(start),
            format!("unknown field `{found}`{}", of(outer.as_deref())),
            suggestion(found, expected),
        ),
        Error::NoSuchEnumVariant { expected, found, outer } => (
            word_before(text, found, end).unwrap_or(start),
            format!("unknown name `{found}`{}", of(outer.as_deref())),
            suggestion(found, expected),
        ),
        Error::MissingStructField { field, outer } => (
            start,
            format!("field `{field}` is missing{}", of(outer.as_deref())),
            None,
        ),
        Error::DuplicateStructField { field, outer } => (
            word_before(text, field, end).unwrap_or(start),
            format!("field `{field}` is given twice{}", of(outer.as_deref())),
            None,
        ),
        // The rule of a type is judged after its value has been read: the value ends where the parser stands.
        Error::Message(message) => (token_start(text, start), message.clone(), None),
        code => match number_fault(text, start, end, code) {
            Some((place, message)) => (place, message, None),
            None => {
                let place = start + blank_ahead(&text[start..]);
                (place, lower_first(&code.to_string()), None)
            }
        },
    };
    let (line, column) = locate::line_column(text, place);
    Diagnostic {
        line,
        column,
        message,
        help,
    }
}

/// What is wrong with the number at `start`, if there is one: the parser's own message does not show it.
fn number_fault(text: &str, start: usize, end: usize, code: &ron::Error) -> Option<(usize, String)> {
    use ron::Error::{ExpectedComma, ExpectedInteger, IntegerOutOfBounds, InvalidIntegerDigit, UnexpectedChar};
    let fraction = matches!(code, ExpectedComma) && text[start..].starts_with('.');
    if !fraction
        && !matches!(
            code,
            IntegerOutOfBounds | ExpectedInteger | InvalidIntegerDigit { .. } | UnexpectedChar('-')
        )
    {
        return None;
    }
    let begin = token_start(text, end.max(start));
    let rest = &text[begin..];
    let number = &rest[..rest.find(|c| !in_token(c)).unwrap_or(rest.len())];
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') {
        return None;
    }
    let expected = "an integer from 0 to 18446744073709551615 is expected";
    Some((begin, format!("`{number}`: {expected}")))
}

/// True for the characters of numbers and names.
const fn in_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

/// Start of the number or name that ends at `end`, blanks and a comma behind it left out.
fn token_start(text: &str, end: usize) -> usize {
    let head = text[..end.min(text.len())].trim_end_matches(|c: char| c.is_whitespace() || c == ',');
    head.char_indices()
        .rev()
        .take_while(|&(_, c)| in_token(c))
        .last()
        .map_or(head.len(), |(i, _)| i)
}

/// Bytes of blank in front of the next token.
fn blank_ahead(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Byte offset of the last occurrence of `word` that starts before `end`.
fn word_before(text: &str, word: &str, end: usize) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(i, _)| i)
        .take_while(|&i| i < end)
        .filter(|&i| !text[..i].ends_with(is_word) && !text[i + word.len()..].starts_with(is_word))
        .last()
}

fn of(outer: Option<&str>) -> String {
    outer.map_or_else(String::new, |name| format!(" in {name}"))
}

fn suggestion(found: &str, expected: &[&str]) -> Option<String> {
    if expected.is_empty() {
        return None;
    }
    let all = format!("expected one of {}", expected.join(", "));
    Some(match nearest(found, expected.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? {all}"),
        None => all,
    })
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}
