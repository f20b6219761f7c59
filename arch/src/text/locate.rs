//! Where a value stands in a RON text: path → line and column.
//!
//! serde hands over values without positions, so a rule that is broken by a *value* (a latency of 0) is found
//! on the data and its place is looked up here afterwards. The scanner understands RON's structure only; it runs
//! on texts that the real parser has accepted, and gives the deepest place that it can follow otherwise.

use std::ops::Range;

/// A value in the text.
#[derive(Debug)]
struct Node {
    /// Byte range of the value, the name in front of its parentheses included.
    span: Range<usize>,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    /// Number, string, bare word.
    Scalar,
    /// List or tuple.
    Items(Vec<Node>),
    /// Struct or map: key, byte offset of the key, value.
    Entries(Vec<(String, Range<usize>, Node)>),
}

/// The structure of a RON text, to look up places in.
#[derive(Debug)]
pub(crate) struct Locator<'a> {
    text: &'a str,
    root: Option<Node>,
}

/// Which end of an entry is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The value.
    Value,
    /// The key in front of it.
    Key,
}

impl<'a> Locator<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut scanner = Scanner { text, at: 0 };
        scanner.skip_attributes();
        let root = scanner.value();
        Locator { text, root }
    }

    /// Byte range of the value (or key) at `path`, such as `levels[2].banks[0].latency` or
    /// `layers["conv1"].bounds.K`; of the innermost value on the way there if the rest is not in the text
    /// (because it has its default).
    pub(crate) fn find(&self, path: &str, part: Part) -> Range<usize> {
        let Some(mut node) = self.root.as_ref() else {
            return 0..0;
        };
        let mut found = node.span.clone();
        for step in steps(path) {
            let Some((key, child)) = child_of(node, &step) else {
                break;
            };
            found = match (part, key) {
                (Part::Key, Some(key)) => key,
                _ => child.span.clone(),
            };
            node = child;
        }
        found
    }

    /// Line and column, both from 1, of a byte offset; columns count characters.
    pub(crate) fn line_column(&self, offset: usize) -> (usize, usize) {
        line_column(self.text, offset)
    }
}

/// Line and column, both from 1, of a byte offset; columns count characters.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    (line, before[start..].chars().count() + 1)
}

/// One step of a path.
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

/// Splits `a.b[2]["c.d"]` into its steps.
fn steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let end = quoted.find("\"]").unwrap_or(quoted.len());
            steps.push(Step::Key(&quoted[..end]));
            rest = quoted.get(end + 2..).unwrap_or("");
        } else if let Some(number) = rest.strip_prefix('[') {
            let end = number.find(']').unwrap_or(number.len());
            if let Ok(index) = number[..end].parse() {
                steps.push(Step::Index(index));
            }
            rest = number.get(end + 1..).unwrap_or("");
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Key(&rest[..end]));
            rest = &rest[end..];
        }
    }
    steps
}

fn child_of<'n>(node: &'n Node, step: &Step<'_>) -> Option<(Option<Range<usize>>, &'n Node)> {
    match (&node.inside, step) {
        (Inside::Entries(entries), Step::Key(wanted)) => entries
            .iter()
            .find(|(key, ..)| key == wanted)
            .map(|(_, at, value)| (Some(at.clone()), value)),
        // `Some(…)`, `PerTensor({…})` and other newtypes are looked through.
        (Inside::Items(items), Step::Key(_)) if items.len() == 1 => child_of(&items[0], step),
        (Inside::Items(items), Step::Index(index)) => items.get(*index).map(|item| (None, item)),
        _ => None,
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    /// Block comments nest in RON.
    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else if let Some(c) = rest.chars().next() {
                self.at += c.len_utf8();
            } else {
                return;
            }
        }
    }

    /// `#![enable(…)]` lines at the top.
    fn skip_attributes(&mut self) {
        self.skip_blank();
        while self.rest().starts_with("#!") {
            self.at += self.rest().find(']').map_or(self.rest().len(), |i| i + 1);
            self.skip_blank();
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blank();
        let hit = self.peek() == Some(wanted);
        if hit {
            self.at += wanted.len_utf8();
        }
        hit
    }

    fn word(&mut self) -> Option<String> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '#'))
            .unwrap_or(rest.len());
        if end == 0 || !rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return None;
        }
        let word = rest[..end].to_string();
        self.at += end;
        Some(word)
    }

    /// A string with its quotes; raw strings too.
    fn string(&mut self) -> Option<String> {
        let rest = self.rest();
        if let Some(body) = rest.strip_prefix('"') {
            let mut escaped = false;
            for (i, c) in body.char_indices() {
                match c {
                    '"' if !escaped => {
                        self.at += i + 2;
                        return Some(body[..i].to_string());
                    }
                    '\\' => escaped = !escaped,
                    _ => escaped = false,
                }
            }
            self.at = self.text.len();
            return None;
        }
        let hashes = rest.strip_prefix('r')?.chars().take_while(|&c| c == '#').count();
        let body = rest.get(1 + hashes..)?.strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = body.find(&close)?;
        let content = body[..end].to_string();
        self.at += 2 + hashes + end + close.len();
        Some(content)
    }

    fn value(&mut self) -> Option<Node> {
        self.skip_blank();
        let start = self.at;
        let inside = if self.take('[') {
            Inside::Items(self.items(']'))
        } else if self.take('{') {
            Inside::Entries(self.entries('}'))
        } else if self.take('(') {
            self.parentheses()
        } else if self.string().is_some() {
            Inside::Scalar
        } else if self.word().is_some() {
            let end = self.at;
            if self.take('(') {
                self.parentheses()
            } else {
                self.at = end;
                Inside::Scalar
            }
        } else {
            let end = self.rest().find([',', ')', ']', '}', '\n', ' ', '/'])?;
            if end == 0 {
                return None;
            }
            self.at += end;
            Inside::Scalar
        };
        Some(Node {
            span: start..self.at,
            inside,
        })
    }

    /// What follows `(`: fields if a word and a colon come first, a tuple otherwise.
    fn parentheses(&mut self) -> Inside {
        self.skip_blank();
        let start = self.at;
        let fields = self.word().is_some() && self.take(':');
        self.at = start;
        if fields {
            Inside::Entries(self.entries(')'))
        } else {
            Inside::Items(self.items(')'))
        }
    }

    fn items(&mut self, close: char) -> Vec<Node> {
        let mut items = Vec::new();
        while !self.take(close) {
            let Some(node) = self.value() else { break };
            items.push(node);
            self.take(',');
        }
        items
    }

    fn entries(&mut self, close: char) -> Vec<(String, Range<usize>, Node)> {
        let mut entries = Vec::new();
        while !self.take(close) {
            let start = self.at;
            let Some(key) = self.string().or_else(|| self.word()) else {
                break;
            };
            let span = start..self.at;
            if !self.take(':') {
                break;
            }
            let Some(node) = self.value() else { break };
            entries.push((key, span, node));
            self.take(',');
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"// a comment: with (brackets]
#![enable(implicit_some)]
Machine(name: "a \"b\" (", /* nested /* { */ */ levels: [
    Level(mesh: (4, 5), bank: PerTensor({ Inputs: (read: Words(1)), "q.r": -3.5e2 })),
    (mesh: (6, 7), size: Some(KiB(8)), empty: []),
])"#;

    fn at(path: &str) -> &'static str {
        &TEXT[Locator::new(TEXT).find(path, Part::Value)]
    }

    #[test]
    fn paths_lead_to_their_values() {
        assert_eq!(at("name"), r#""a \"b\" (""#);
        assert_eq!(at("levels[0].mesh[1]"), "5");
        assert_eq!(at("levels[1].mesh[0]"), "6");
        assert_eq!(at("levels[0].bank.Inputs.read"), "Words(1)");
        assert_eq!(at("levels[0].bank[\"q.r\"]"), "-3.5e2");
        assert_eq!(at("levels[1].size"), "Some(KiB(8))");
    }

    #[test]
    fn a_default_is_placed_at_the_value_that_lacks_it() {
        assert_eq!(at("levels[0].bank.Inputs.write"), "(read: Words(1))");
        assert_eq!(at("levels[1].empty[3]"), "[]");
    }

    #[test]
    fn keys_can_be_looked_up_too() {
        let locator = Locator::new(TEXT);
        assert_eq!(&TEXT[locator.find("levels[0].bank[\"q.r\"]", Part::Key)], "\"q.r\"");
        let (line, column) = locator.line_column(locator.find("levels[1].size", Part::Value).start);
        assert_eq!((line, column), (5, 26));
    }

    #[test]
    fn truncated_text_does_not_loop_or_panic() {
        for end in 0..TEXT.len() {
            if TEXT.is_char_boundary(end) {
                let _ = Locator::new(&TEXT[..end]).find("levels[1].size", Part::Value);
            }
        }
    }
}
