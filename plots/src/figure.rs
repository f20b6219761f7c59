//! A drawn figure in its formats.

use std::fs;
use std::path::{Path, PathBuf};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::PlotError;
use crate::font;

/// Resolution of PNGs that are not asked for another, in dots per inch.
pub const PNG_DPI: f64 = 200.0;

/// A figure, and the numbers that it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    svg: String,
    csv: String,
    notes: Vec<(String, f64)>,
}

/// A format of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Vector, text as text.
    Svg,
    /// Pixels at [`PNG_DPI`].
    Png,
    /// Vector, with the font embedded.
    Pdf,
}

impl Format {
    /// The format that the ending of a file's name asks for.
    ///
    /// # Errors
    /// For any ending but svg, png and pdf.
    pub fn of(path: &Path) -> Result<Self, String> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            Some("pdf") => Ok(Format::Pdf),
            _ => Err(format!(
                "{}: the ending says no format; expected .svg, .png or .pdf",
                path.display()
            )),
        }
    }
}

impl Figure {
    pub(crate) fn new(svg: String, csv: String) -> Self {
        Figure {
            svg,
            csv,
            notes: Vec::new(),
        }
    }

    pub(crate) fn with_note(mut self, name: impl Into<String>, value: f64) -> Self {
        self.notes.push((name.into(), value));
        self
    }

    /// The figure as SVG, as wide as its style says.
    #[must_use]
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The numbers that the figure shows, as CSV.
    #[must_use]
    pub fn csv(&self) -> &str {
        &self.csv
    }

    /// What was computed from the rows: geometric means, R², errors; by name.
    #[must_use]
    pub fn notes(&self) -> &[(String, f64)] {
        &self.notes
    }

    /// The figure in a format.
    ///
    /// # Errors
    /// If the conversion fails.
    pub fn bytes(&self, format: Format) -> Result<Vec<u8>, PlotError> {
        match format {
            Format::Svg => Ok(self.svg.clone().into_bytes()),
            Format::Png => self.png(PNG_DPI),
            Format::Pdf => self.pdf(),
        }
    }

    /// The figure as PNG.
    ///
    /// # Errors
    /// If the resolution is not between 10 and 2,400 dots per inch, or the conversion fails.
    pub fn png(&self, dpi: f64) -> Result<Vec<u8>, PlotError> {
        if !(10.0..=2400.0).contains(&dpi) {
            return Err(PlotError::Size(format!("{dpi} dots per inch; expected 10 to 2400")));
        }
        let options = Options {
            fontdb: font::database(),
            ..Options::default()
        };
        let tree = Tree::from_str(&self.svg, &options).map_err(drawing)?;
        let scale = (dpi / f64::from(options.dpi)) as f32;
        let size = tree.size();
        let pixels = |length: f32| (length * scale).round().max(1.0) as u32;
        let mut pixmap = Pixmap::new(pixels(size.width()), pixels(size.height()))
            .ok_or_else(|| PlotError::Size("the picture has no pixels".to_string()))?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
        encode(&pixmap)
    }

    /// The figure as PDF: vector, with the font embedded.
    ///
    /// # Errors
    /// If the conversion fails.
    pub fn pdf(&self) -> Result<Vec<u8>, PlotError> {
        let options = Options {
            fontdb: font::database(),
            ..Options::default()
        };
        let tree = Tree::from_str(&self.svg, &options).map_err(drawing)?;
        let page = svg2pdf::PageOptions { dpi: options.dpi };
        svg2pdf::to_pdf(&tree, svg2pdf::ConversionOptions::default(), page).map_err(drawing)
    }

    /// Writes the figure, in the format that the ending says, and its numbers beside it as `.csv`. Both appear whole or
    /// not at all. Returns the path of the numbers.
    ///
    /// # Errors
    /// If the ending is not svg, png or pdf, or a file cannot be written.
    pub fn save(&self, path: &Path) -> Result<PathBuf, PlotError> {
        let format = Format::of(path).map_err(PlotError::Size)?;
        let numbers = path.with_extension("csv");
        write(path, &self.bytes(format)?)?;
        write(&numbers, self.csv.as_bytes())?;
        Ok(numbers)
    }
}

/// The picture without transparency, as small as PNG gets: line art needs no filter.
fn encode(pixmap: &Pixmap) -> Result<Vec<u8>, PlotError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Best);
    encoder.set_filter(png::FilterType::NoFilter);
    encoder.set_adaptive_filter(png::AdaptiveFilterType::NonAdaptive);
    // The page is opaque, so colours are as they are.
    let rgb: Vec<u8> = pixmap.data().chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect();
    let mut writer = encoder.write_header().map_err(drawing)?;
    writer.write_image_data(&rgb).map_err(drawing)?;
    writer.finish().map_err(drawing)?;
    Ok(bytes)
}

/// Writes beside the target and renames.
fn write(path: &Path, bytes: &[u8]) -> Result<(), PlotError> {
    let fault = |error: std::io::Error| PlotError::Write {
        path: path.to_path_buf(),
        message: error.kind().to_string(),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".cyclonest-{}-{name}", std::process::id()));
    fs::write(&temporary, bytes).map_err(fault)?;
    fs::rename(&temporary, path).map_err(|error| {
        fs::remove_file(&temporary).ok();
        fault(error)
    })
}

fn drawing(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}
