//! Reads the notation.
//!
//! Separators are blanks and any of `,->():;`; braces stand alone; `//` starts a comment. `Sz(D)` is the size of D,
//! `Constant NAME value;` before the network defines a name for a number. In a layer, `Type` and `Stride` come
//! before `Dimensions`, these before `Dataflow`. A layer without `Dataflow` takes that of the layer before it.

use std::collections::BTreeMap;

use super::{Directive, Layer, Network, Operator, Var};
use crate::text::{Diagnostic, nearest};

/// Reads a file.
///
/// # Errors
/// All that is wrong with it, with line and column: up to the first place where the structure is broken, and every
/// unknown or missing dimension before that.
pub fn parse(text: &str) -> Result<Network, Vec<Diagnostic>> {
    let mut parser = Parser {
        tokens: tokens(text),
        next: 0,
        constants: BTreeMap::new(),
        found: Vec::new(),
    };
    let network = parser.file();
    match network {
        Ok(network) if parser.found.is_empty() => Ok(network),
        Ok(_) => Err(parser.found),
        Err(last) => {
            parser.found.push(last);
            Err(parser.found)
        }
    }
}

#[derive(Debug, Clone)]
struct Token {
    text: String,
    line: usize,
    column: usize,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default();
        let mut open = false;
        for (column, c) in line.chars().enumerate() {
            if c.is_whitespace() || ",->():;".contains(c) {
                open = false;
                continue;
            }
            let brace = c == '{' || c == '}';
            if open && !brace {
                if let Some(token) = tokens.last_mut() {
                    token.text.push(c);
                }
            } else {
                tokens.push(Token {
                    text: c.to_string(),
                    line: n + 1,
                    column: column + 1,
                });
            }
            open = !brace;
        }
    }
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    constants: BTreeMap<String, u64>,
    found: Vec<Diagnostic>,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn error(&self, token: Option<&Token>, message: String) -> Diagnostic {
        let end = self.tokens.last();
        let at = token.or(end);
        Diagnostic {
            line: at.map_or(1, |t| t.line),
            column: at.map_or(1, |t| t.column),
            message,
            help: None,
        }
    }

    fn take(&mut self, expected: &str) -> Result<Token, Diagnostic> {
        let Some(token) = self.peek().cloned() else {
            return Err(self.error(None, format!("the text ends where {expected} is expected")));
        };
        self.next += 1;
        Ok(token)
    }

    fn brace(&mut self, brace: &str) -> Result<(), Diagnostic> {
        let token = self.take(&format!("`{brace}`"))?;
        if token.text == brace {
            return Ok(());
        }
        Err(self.error(Some(&token), format!("found `{}`, expected `{brace}`", token.text)))
    }

    /// `token` is none of `words`; the nearest of them is the help.
    fn unexpected(&self, token: &Token, words: &[&str]) -> Diagnostic {
        let message = format!("found `{}`, expected one of {}", token.text, words.join(" "));
        Diagnostic {
            help: nearest(&token.text, words.iter().copied()).map(|w| format!("did you mean `{w}`?")),
            ..self.error(Some(token), message)
        }
    }

    fn number(&self, token: &Token) -> Result<u64, Diagnostic> {
        let value = self
            .constants
            .get(&token.text)
            .copied()
            .or_else(|| token.text.parse().ok());
        match value {
            Some(n) if n > 0 => Ok(n),
            _ => {
                let message = format!(
                    "found `{}`, expected a positive integer or the name of a constant",
                    token.text
                );
                Err(self.error(Some(token), message))
            }
        }
    }

    /// A number, a constant, or `Sz(D)`.
    fn size(&mut self, layer: &Layer) -> Result<u64, Diagnostic> {
        let token = self.take("a size")?;
        if token.text != "Sz" {
            return self.number(&token);
        }
        let name = self.take("a dimension")?;
        match Var::from_name(&name.text).and_then(|v| layer.size(v)) {
            Some(size) => Ok(size),
            None => {
                let known: Vec<&str> = layer.dims.iter().map(|d| d.0.name()).collect();
                self.found.push(self.unexpected(&name, &known));
                Ok(1)
            }
        }
    }

    fn var(&mut self) -> Result<Var, Diagnostic> {
        let token = self.take("a dimension")?;
        Var::from_name(&token.text).ok_or_else(|| self.unexpected(&token, &Var::ALL.map(Var::name)))
    }

    fn file(&mut self) -> Result<Network, Diagnostic> {
        let mut network = Network::default();
        while self.peek().is_some() {
            let token = self.take("`Network`")?;
            match token.text.as_str() {
                "Constant" => {
                    let name = self.take("a name")?;
                    let value = self.take("a number")?;
                    let value = self.number(&value)?;
                    self.constants.insert(name.text, value);
                }
                "Network" => self.network(&mut network)?,
                _ => return Err(self.unexpected(&token, &["Network", "Constant"])),
            }
        }
        if network.layers.is_empty() && self.found.is_empty() {
            return Err(self.error(None, "there is no layer".to_owned()));
        }
        Ok(network)
    }

    fn network(&mut self, network: &mut Network) -> Result<(), Diagnostic> {
        let token = self.take("`{`")?;
        if token.text != "{" {
            network.name = token.text;
            self.brace("{")?;
        }
        loop {
            let token = self.take("`Layer` or `}`")?;
            match token.text.as_str() {
                "}" => return Ok(()),
                "Layer" => {
                    let before = network.layers.last().map(|l: &Layer| l.dataflow.clone());
                    let layer = self.layer(before)?;
                    network.layers.push(layer);
                }
                _ => return Err(self.unexpected(&token, &["Layer", "}"])),
            }
        }
    }

    fn layer(&mut self, before: Option<Vec<Directive>>) -> Result<Layer, Diagnostic> {
        let mut name = self.take("a name")?;
        // A name with separators falls apart; its last part stands for it, as in the original.
        while self.peek().is_some_and(|t| t.text != "{" && t.text != "}") {
            name = self.take("`{`")?;
        }
        self.brace("{")?;
        let mut layer = Layer {
            name: name.text.clone(),
            operator: Operator::Conv,
            dims: Vec::new(),
            strides: Vec::new(),
            dataflow: Vec::new(),
        };
        let mut typed = false;
        loop {
            let token = self.take("`Dataflow` or `}`")?;
            match token.text.as_str() {
                "}" => break,
                "Type" => {
                    layer.operator = self.operator()?;
                    typed = true;
                }
                "Stride" if !layer.dims.is_empty() => {
                    return Err(self.error(Some(&token), "`Stride` must come before `Dimensions`".to_owned()));
                }
                "Stride" => layer.strides = self.pairs()?,
                "Dimensions" => layer.dims = self.pairs()?,
                "Dataflow" if layer.dims.is_empty() => {
                    return Err(self.error(Some(&token), "`Dimensions` must come before `Dataflow`".to_owned()));
                }
                "Dataflow" => layer.dataflow = self.dataflow(&layer)?,
                _ => return Err(self.unexpected(&token, &["Type", "Stride", "Dimensions", "Dataflow", "}"])),
            }
        }
        if !typed {
            self.found
                .push(self.error(Some(&name), format!("layer `{}` has no `Type`", name.text)));
        }
        layer.strides.retain(|s| s.1 != 1);
        if layer.dataflow.is_empty() {
            match before {
                Some(dataflow) => layer.dataflow = dataflow,
                None => self
                    .found
                    .push(self.error(Some(&name), format!("layer `{}` has no `Dataflow`", name.text))),
            }
        }
        Ok(layer)
    }

    fn operator(&mut self) -> Result<Operator, Diagnostic> {
        let token = self.take("a layer type")?;
        match token.text.as_str() {
            "CONV" | "TRCONV" => Ok(Operator::Conv),
            "DSCONV" => Ok(Operator::DepthwiseConv),
            "NGCONV" => Ok(Operator::GroupedConv),
            "GEMM" => Ok(Operator::Gemm),
            "FC" | "LSTM" | "POOL" => {
                let message = format!(
                    "layers of type `{}` have no tensors in MAESTRO; write them as GEMM",
                    token.text
                );
                Err(self.error(Some(&token), message))
            }
            _ => Err(self.unexpected(&token, &["CONV", "DSCONV", "TRCONV", "NGCONV", "GEMM"])),
        }
    }

    fn pairs(&mut self) -> Result<Vec<(Var, u64)>, Diagnostic> {
        self.brace("{")?;
        let mut pairs: Vec<(Var, u64)> = Vec::new();
        while self.peek().is_some_and(|t| t.text != "}") {
            let at = self.peek().cloned();
            let var = self.var()?;
            let value = self.take("a size")?;
            let value = self.number(&value)?;
            if pairs.iter().any(|p| p.0 == var) {
                self.found
                    .push(self.error(at.as_ref(), format!("dimension {var} is given twice")));
            }
            pairs.push((var, value));
        }
        self.brace("}")?;
        Ok(pairs)
    }

    fn dataflow(&mut self, layer: &Layer) -> Result<Vec<Directive>, Diagnostic> {
        self.brace("{")?;
        let mut directives = Vec::new();
        loop {
            let token = self.take("a directive")?;
            match token.text.as_str() {
                "}" => return Ok(directives),
                "TemporalMap" | "SpatialMap" => {
                    let (size, offset) = (self.size(layer)?, self.size(layer)?);
                    let var = self.var()?;
                    directives.push(if token.text == "SpatialMap" {
                        Directive::spatial(size, offset, var)
                    } else {
                        Directive::temporal(size, offset, var)
                    });
                }
                "Cluster" => {
                    directives.push(Directive::Cluster(self.size(layer)?));
                    // P and L, physical and logical, make no difference; the letter may be left out.
                    if self.peek().is_some_and(|t| t.text == "P" || t.text == "L") {
                        self.next += 1;
                    }
                }
                _ => return Err(self.unexpected(&token, &["TemporalMap", "SpatialMap", "Cluster", "}"])),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// a comment\nConstant Tile 64;\nNetwork n {\nLayer A {\nType: CONV\nStride { X: 2, Y: 2 }\n\
        Dimensions {  K 96, C 3, R 11, S 11, Y 227, X 227 }\nDataflow {\n SpatialMap(1,1) K;\n \
        TemporalMap(Tile,Tile) C;\n TemporalMap(Sz(R),Sz(R)) R;\n TemporalMap(1,1) Y';\n Cluster(64, P);\n \
        SpatialMap(1,1) C;\n}\n}\nLayer B {\nType: DSCONV\nDimensions { C: 8, R: 3, S: 3, Y: 9, X: 9 }\n}\n}\n";

    #[test]
    fn sizes_constants_and_inherited_dataflows_are_resolved() {
        let network = parse(TEXT).unwrap();
        let a = &network.layers[0];
        assert_eq!((network.name.as_str(), a.stride(Var::X), a.stride(Var::K)), ("n", 2, 1));
        assert_eq!(a.dataflow[1], Directive::temporal(64, 64, Var::C));
        assert_eq!(a.dataflow[2], Directive::temporal(11, 11, Var::R));
        assert_eq!(a.dataflow[4], Directive::Cluster(64));
        assert_eq!(network.layers[1].dataflow, a.dataflow);
        assert_eq!(a.levels().1, [64]);
    }

    #[test]
    fn what_is_printed_reads_back() {
        let network = parse(TEXT).unwrap();
        assert_eq!(parse(&network.to_string()).unwrap(), network);
    }

    #[test]
    fn errors_say_where_and_what_was_expected() {
        let first = |text: &str| {
            let found = parse(text).unwrap_err();
            let Diagnostic {
                line,
                column,
                message,
                help,
            } = &found[0];
            format!("{line}:{column}: {message} {}", help.as_deref().unwrap_or_default())
        };
        assert_eq!(
            first(&TEXT.replace("SpatialMap(1,1) K", "SpatialMpa(1,1) K")),
            "9:2: found `SpatialMpa`, expected one of TemporalMap SpatialMap Cluster } did you mean `SpatialMap`?"
        );
        assert_eq!(
            first(&TEXT.replace("Sz(R),Sz(R)", "Sz(N),Sz(R)")),
            "11:17: found `N`, expected one of K C R S Y X "
        );
        assert_eq!(
            first(&TEXT.replace("(Tile,Tile)", "(Tiel,Tile)")),
            "10:14: found `Tiel`, expected a positive integer or the name of a constant "
        );
        assert_eq!(
            first("Network n { Layer L { Type: FC } }"),
            "1:29: layers of type `FC` have no tensors in MAESTRO; write them as GEMM "
        );
        assert_eq!(
            first("Network n { Layer"),
            "1:13: the text ends where a name is expected "
        );
    }
}
