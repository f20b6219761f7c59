//! Pieces of HTML.

use std::fmt::Write as _;

/// Text as it must stand in HTML and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A cell of a table that can be sorted.
#[derive(Debug)]
pub(super) struct Cell {
    shown: String,
    /// What it is sorted by, if that is not its text.
    value: Option<f64>,
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Cell {
            shown: text.into(),
            value: None,
        }
    }

    pub(super) fn count(n: u64) -> Self {
        Cell {
            shown: crate::report::thousands(n),
            value: Some(n as f64),
        }
    }

    pub(super) fn number(value: f64, decimals: usize) -> Self {
        Cell {
            shown: format!("{value:.decimals$}"),
            value: Some(value),
        }
    }
}

/// A table whose columns can be sorted.
pub(super) fn table(head: &[&str], rows: Vec<Vec<Cell>>) -> String {
    let mut out = "<div class=\"scroll\"><table class=\"sortable\"><thead><tr>".to_string();
    let is_text = |column: usize| rows.first().is_some_and(|row| row[column].value.is_none());
    for (column, name) in head.iter().enumerate() {
        let class = if is_text(column) { " class=\"text\"" } else { "" };
        let _ = write!(
            out,
            "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>",
            escape(name)
        );
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = match cell.value {
                Some(value) => write!(out, "<td data-value=\"{value}\">{}</td>", escape(&cell.shown)),
                None => write!(out, "<td class=\"text\">{}</td>", escape(&cell.shown)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// A figure as part of a page: as wide as its place, with a name for those who do not see it.
pub(super) fn inline(svg: &str, name: &str) -> String {
    let rest = svg.split_once(" viewBox").map_or(svg, |(_, rest)| rest);
    format!(
        "<svg class=\"figure\" role=\"img\" aria-label=\"{}\" viewBox{rest}",
        escape(name)
    )
}
