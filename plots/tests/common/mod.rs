//! What every figure must keep: texts that can be read.

use std::sync::Arc;

use cyclonest_plots::{Figure, bundled_font};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Group, Node, Options, Rect, Tree};

/// A text of a figure and the box that it takes, in units of the page (1/96 in).
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) area: Rect,
    pub(crate) size: f32,
}

/// The SVG as a renderer reads it, with nothing but the bundled font.
pub(crate) fn tree(svg: &str) -> Tree {
    let mut fonts = Database::new();
    fonts.load_font_data(bundled_font().to_vec());
    let options = Options {
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    Tree::from_str(svg, &options).expect("the figure is an SVG")
}

/// All texts, with the boxes that the renderer lays out.
pub(crate) fn texts(tree: &Tree) -> Vec<Text> {
    fn collect(group: &Group, scale: f32, texts: &mut Vec<Text>) {
        for node in group.children() {
            match node {
                Node::Group(group) => collect(group, scale, texts),
                Node::Text(text) => texts.push(Text {
                    text: text
                        .chunks()
                        .iter()
                        .map(|chunk| chunk.text().trim().to_string())
                        .collect(),
                    area: text.abs_bounding_box(),
                    size: text.chunks()[0].spans()[0].font_size().get() * scale,
                }),
                _ => {}
            }
        }
    }
    let mut all = Vec::new();
    // Units of the drawing are twentieths of a point.
    collect(tree.root(), 1.0 / 20.0, &mut all);
    all
}

/// Panics if a text is clipped by the page, overlaps another, or is smaller than 8 pt.
pub(crate) fn assert_legible(name: &str, figure: &Figure) {
    let tree = tree(figure.svg());
    let texts = texts(&tree);
    let page = tree.size();
    assert!(!texts.is_empty(), "{name}: no text");
    for text in &texts {
        let area = text.area;
        assert!(text.size >= 7.99, "{name}: `{}` has {} pt", text.text, text.size);
        assert!(
            area.left() >= 0.0
                && area.top() >= -0.5
                && area.right() <= page.width()
                && area.bottom() <= page.height() + 0.5,
            "{name}: `{}` is clipped: {area:?} of {page:?}",
            text.text
        );
    }
    for (i, a) in texts.iter().enumerate() {
        for b in &texts[..i] {
            let overlap = (a.area.right().min(b.area.right()) - a.area.left().max(b.area.left()) > 0.2)
                && (a.area.bottom().min(b.area.bottom()) - a.area.top().max(b.area.top()) > 0.2);
            assert!(
                !overlap,
                "{name}: `{}` {:?} overlaps `{}` {:?}",
                a.text, a.area, b.text, b.area
            );
        }
    }
}
