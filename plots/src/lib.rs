//! Figures for papers: one function per kind, plain rows in, a [`Figure`] out.
//!
//! A figure is drawn once, as SVG in print size, and converted from there to PNG and PDF, so all three show the same.
//! The font is bundled; no fonts of the system are used. Beside every figure stand its numbers as CSV, which the same
//! kind reads again.
//!
//! ```
//! use cyclonest_plots::{BarRow, BarOptions, Style, bars};
//!
//! let rows = [("conv1", "greedy", 1.4), ("conv2", "greedy", 2.1)]
//!     .map(|(group, series, value)| BarRow { group: group.into(), series: series.into(), value });
//! let figure = bars(&rows, &BarOptions::speedup(), &Style::default())?;
//! assert!(figure.svg().starts_with("<svg width=\"3.4870in\""));
//! assert!(figure.csv().contains("geomean,greedy,1.7146"));
//! # Ok::<(), cyclonest_plots::PlotError>(())
//! ```

mod axis;
mod canvas;
mod error;
mod figure;
mod font;
mod frame;
mod kinds;
mod row;
pub mod stats;
mod style;

pub use axis::Scale;
pub use error::PlotError;
pub use figure::{Figure, Format, PNG_DPI};
pub use font::bundled_font;
pub use kinds::bars::{BarOptions, BarRow, GEOMEAN, bars};
pub use kinds::convergence::{ConvergenceOptions, ConvergenceRow, convergence};
pub use kinds::gantt::{GanttOptions, GanttRow, SKIPPED, gantt};
pub use kinds::heat::{HeatOptions, HeatRow, LinkRow, heat, links};
pub use kinds::layers::layers;
pub use kinds::lines::{LineOptions, LineRow, lines};
pub use kinds::occupancy::{OccupancyOptions, OccupancyRow, occupancy};
pub use kinds::pareto::{Better, CloudOptions, CloudRow, front, pareto};
pub use kinds::roofline::{RoofOptions, RoofRow, roofline};
pub use kinds::scatter::{ScatterOptions, ScatterRow, scatter};
pub use kinds::space::{SpaceRow, space};
pub use kinds::stacked::{StackOptions, StackRow, stacked};
pub use row::{Cell, Column, CsvFaults, Record, Row, read_csv, write_csv};
pub use style::{Style, Theme, Width};
