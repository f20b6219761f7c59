//! Where the names of a network stand in its RON text.

/// Positions (line, column; from 1) of inputs and nodes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Positions {
    /// The first token.
    pub(crate) start: (usize, usize),
    /// The keys of the map `inputs`, in order.
    pub(crate) inputs: Vec<(usize, usize)>,
    /// The values of the `name` fields of the list `nodes`, in order.
    pub(crate) nodes: Vec<(usize, usize)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text,
    Open,
    Close,
    Mark(u8),
}

/// Scans text that is already known to be a network, so no fault is expected in it.
pub(crate) fn positions(text: &str) -> Positions {
    let mut found = Positions {
        start: Tokens::new(text).next().map_or((1, 1), |(_, at)| at),
        ..Positions::default()
    };
    let mut depth = 0_usize;
    let mut section = "";
    let mut field = "";
    let mut word = "";
    let mut pending = None;
    for (token, at) in Tokens::new(text) {
        // A string followed by a colon is a key of the map of inputs.
        if let Some(key) = pending.take().filter(|_| token == Token::Mark(b':')) {
            found.inputs.push(key);
        }
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Word(name) => word = name,
            Token::Mark(b':') => {
                if depth == 1 {
                    section = word;
                }
                field = word;
            }
            Token::Mark(_) => field = "",
            Token::Text if section == "inputs" && depth == 2 => pending = Some(at),
            Token::Text if section == "nodes" && depth == 3 && field == "name" => found.nodes.push(at),
            Token::Text => {}
        }
    }
    found
}

struct Tokens<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    line_start: usize,
}

impl<'a> Tokens<'a> {
    const fn new(text: &'a str) -> Self {
        Tokens {
            text,
            at: 0,
            line: 1,
            line_start: 0,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves over `length` bytes and keeps count of the lines.
    fn advance(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        for (offset, _) in self.text[self.at..end].match_indices('\n') {
            self.line += 1;
            self.line_start = self.at + offset + 1;
        }
        self.at = end;
    }

    /// Length of the string or comment that starts here, or 0.
    fn literal(&self) -> (usize, bool) {
        let rest = self.rest();
        let until = |start: usize, end: &str| rest[start..].find(end).map_or(rest.len(), |i| start + i + end.len());
        if rest.starts_with("//") {
            return (rest.find('\n').unwrap_or(rest.len()), false);
        }
        if rest.starts_with("/*") {
            return (block_comment(rest), false);
        }
        if let Some(raw) = rest.strip_prefix('r') {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            if raw[hashes..].starts_with('"') {
                return (until(hashes + 2, &format!("\"{}", "#".repeat(hashes))), true);
            }
        }
        if let Some(inside) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = inside.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            return (end.map_or(rest.len(), |end| end + 2), true);
        }
        (0, false)
    }
}

/// Length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token<'a>, (usize, usize));

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let first = self.rest().chars().next()?;
            let column = self.text[self.line_start..self.at].chars().count() + 1;
            let position = (self.line, column);
            let (length, is_text) = self.literal();
            if length > 0 {
                self.advance(length);
                if is_text {
                    return Some((Token::Text, position));
                }
                continue;
            }
            let word = self.rest().find(|c: char| !c.is_alphanumeric() && c != '_');
            let token = match (first, word) {
                ('(' | '[' | '{', _) => (Token::Open, 1),
                (')' | ']' | '}', _) => (Token::Close, 1),
                (_, Some(length @ 1..)) => (Token::Word(&self.rest()[..length]), length),
                (_, None) => (Token::Word(self.rest()), self.rest().len()),
                (':' | ',', _) => (Token::Mark(first as u8), 1),
                (other, _) => {
                    self.advance(other.len_utf8());
                    continue;
                }
            };
            self.advance(token.1);
            return Some((token.0, position));
        }
    }
}
