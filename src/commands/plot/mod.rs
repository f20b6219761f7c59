//! `plot`: figures from results.

pub(crate) mod rows;
#[cfg(test)]
mod tests;
mod traces;

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use cyclonest_plots as plots;
use cyclonest_plots::{Figure, Format, PlotError, Scale, Style, Theme, Width};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::output::{self, Destination};
use crate::results;
use crate::trace::Window;
use rows::Source;

/// Draw a figure from results: of our commands (JSON) or of anyone (CSV, docs/figures.md).
///
/// The numbers of the figure are written beside it as CSV, and what was computed from them goes to standard error.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// What to draw.
    #[arg(value_enum, value_name = "KIND")]
    kind: Kind,
    /// Results: JSON of simulate, bench schedulers, schedule or compare, a trace, or CSV. Of several results of
    /// simulate, the first is the baseline.
    #[arg(value_name = "DATA", required = true)]
    data: Vec<PathBuf>,
    /// The figure: .svg, .png or .pdf; its numbers stand beside it as .csv [default: SVG to standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Width in print: ieee1 (3.487 in), ieee2 (7.140 in), acm1 (3.337 in), acm2 (7.006 in) or inches.
    #[arg(long, value_name = "WIDTH", default_value = "ieee1")]
    width: Width,
    /// Height in inches [default: what suits the kind]
    #[arg(long, value_name = "INCHES")]
    height: Option<f64>,
    /// A line above the figure.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Colours: light, dark or print (greys).
    #[arg(long, value_name = "STYLE", default_value = "light")]
    style: Theme,
    /// Scale of the values [default: what suits the kind]
    #[arg(long, value_enum)]
    scale: Option<ScaleName>,
    /// The series that speed-ups are relative to [default: the first]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Only this layer.
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,
    /// The accelerator of the results, where it is not a bundled one.
    #[arg(long, value_name = "FILE")]
    arch: Option<String>,
    /// Of CSV, the column of the horizontal axis (pareto, lines).
    #[arg(long, value_name = "COLUMN")]
    x: Option<String>,
    /// Of CSV, the column of the vertical axis (pareto, lines).
    #[arg(long, value_name = "COLUMN")]
    y: Option<String>,
    /// Of CSV, the column that names the series (pareto, lines).
    #[arg(long, value_name = "COLUMN")]
    series: Option<String>,
    /// What is better on the horizontal axis of pareto.
    #[arg(long, value_enum, default_value_t = BetterName::Lower)]
    x_better: BetterName,
    /// What is better on the vertical axis of pareto.
    #[arg(long, value_enum, default_value_t = BetterName::Lower)]
    y_better: BetterName,
    /// Label of the horizontal axis, with its unit.
    #[arg(long, value_name = "TEXT")]
    x_label: Option<String>,
    /// Label of the vertical axis, with its unit.
    #[arg(long, value_name = "TEXT")]
    y_label: Option<String>,
    /// Of a trace, only tracks whose name contains this; may be given several times.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Of a trace, only these cycles.
    #[arg(long, value_name = "FROM:TO")]
    window: Option<Window>,
    /// Cycles themselves instead of shares (cycles).
    #[arg(long)]
    absolute: bool,
}

/// A kind of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Grouped bars of speed-ups with their geometric mean.
    Speedup,
    /// Speed-up of every layer, sorted.
    Layers,
    /// Reuse by level and tensor: uses per element that is fetched.
    Reuse,
    /// Grouped bars of any quantity.
    Bars,
    /// Stacked bars of energy by level and tensor.
    Energy,
    /// Stacked bars of PE-cycles: computing, and waiting by reason.
    Cycles,
    /// Stacked bars of any quantity.
    Stacked,
    /// Throughput against intensity below the machine's roof.
    Roofline,
    /// A cloud of designs and its Pareto front.
    Pareto,
    /// A model against simulation.
    Scatter,
    /// The best found over the evaluations of a search.
    Convergence,
    /// What every port, network and PE does when.
    Gantt,
    /// Traffic of a mesh's links.
    Links,
    /// Share of the cycles in which every PE computes.
    Pes,
    /// What buffers hold over time.
    Occupancy,
    /// Sizes of design spaces, as a table.
    Space,
    /// Lines of any quantity.
    Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScaleName {
    Linear,
    Log,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BetterName {
    Lower,
    Higher,
}

impl From<BetterName> for plots::Better {
    fn from(name: BetterName) -> Self {
        match name {
            BetterName::Lower => plots::Better::Lower,
            BetterName::Higher => plots::Better::Higher,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let format = match &args.output {
        Some(path) => Format::of(path).map_err(Faults::one)?,
        None => Format::Svg,
    };
    let mut faults = None;
    let sources: Vec<Source> = args
        .data
        .iter()
        .filter_map(|path| {
            let data = Faults::collect(&mut faults, results::read(path))?;
            Some(Source {
                path: path.clone(),
                data,
            })
        })
        .collect();
    if let Some(faults) = faults {
        return Err(faults);
    }
    let figure = draw(args, &sources)?;
    let fault = |error: PlotError| Faults::one(error.to_string());
    match &args.output {
        None => output::print(figure.svg())?,
        Some(path) => {
            let numbers = path.with_extension("csv");
            if args.data.iter().any(|data| same(data, &numbers)) {
                return Err(Faults::one(format!(
                    "{}: the numbers beside the figure would replace the data\n  help: choose another name for -o",
                    numbers.display()
                )));
            }
            let picture = Destination::prepare(Some(path))?;
            let table = Destination::prepare(Some(&numbers))?;
            picture.write_bytes(&figure.bytes(format).map_err(fault)?)?;
            table.write(figure.csv())?;
        }
    }
    for (name, value) in figure.notes() {
        eprintln!("{name}: {value:.6}");
    }
    Ok(Ending::Complete)
}

fn same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn draw(args: &Args, sources: &[Source]) -> Result<Figure, Faults> {
    let style = Style {
        width: args.width,
        height: args.height,
        title: args.title.clone(),
        theme: args.style,
    };
    let scale = |default: Scale| match args.scale {
        Some(ScaleName::Linear) => Scale::Linear,
        Some(ScaleName::Log) => Scale::Log,
        None => default,
    };
    let x_label = |default: &str| args.x_label.clone().unwrap_or_else(|| default.to_string());
    let y_label = |default: &str| args.y_label.clone().unwrap_or_else(|| default.to_string());
    let bars = |options: plots::BarOptions| plots::BarOptions {
        y_label: y_label(&options.y_label),
        x_label: x_label(&options.x_label),
        scale: scale(options.scale),
        ..options
    };
    let stack = |label: &str, shares: bool| plots::StackOptions {
        y_label: y_label(label),
        x_label: x_label(""),
        shares,
    };
    let drawn = match args.kind {
        Kind::Speedup => plots::bars(
            &rows::speedups(args, sources)?,
            &bars(plots::BarOptions::speedup()),
            &style,
        ),
        Kind::Layers => plots::layers(
            &rows::speedups(args, sources)?,
            &bars(plots::BarOptions::speedup()),
            &style,
        ),
        Kind::Reuse => plots::bars(&rows::reuse(args, sources)?, &bars(plots::BarOptions::reuse()), &style),
        Kind::Bars => {
            let options = plots::BarOptions {
                y_label: "value".to_string(),
                x_label: String::new(),
                scale: Scale::Linear,
                geomean: false,
                reference: None,
            };
            plots::bars(&rows::tables(sources)?, &bars(options), &style)
        }
        Kind::Energy => plots::stacked(&rows::energy(args, sources)?, &stack("energy [pJ]", false), &style),
        Kind::Cycles => {
            let label = if args.absolute {
                "time [PE-cycles]"
            } else {
                "share of PE-cycles [%]"
            };
            plots::stacked(&rows::cycles(args, sources)?, &stack(label, !args.absolute), &style)
        }
        Kind::Stacked => plots::stacked(&rows::tables(sources)?, &stack("value", false), &style),
        Kind::Roofline => {
            let options = plots::RoofOptions::default();
            let options = plots::RoofOptions {
                x_label: x_label(&options.x_label),
                y_label: y_label(&options.y_label),
            };
            plots::roofline(&rows::roofline(args, sources)?, &options, &style)
        }
        Kind::Pareto => {
            let (rows, x, y) = rows::cloud(args, sources)?;
            let options = plots::CloudOptions {
                x_label: x_label(&x),
                y_label: y_label(&y),
                x_scale: scale(Scale::Linear),
                y_scale: scale(Scale::Linear),
                x_better: args.x_better.into(),
                y_better: args.y_better.into(),
            };
            plots::pareto(&rows, &options, &style)
        }
        Kind::Scatter => {
            let options = plots::ScatterOptions::cycles();
            let options = plots::ScatterOptions {
                x_label: x_label(&options.x_label),
                y_label: y_label(&options.y_label),
                scale: scale(options.scale),
                ..options
            };
            plots::scatter(&rows::scatter(args, sources)?, &options, &style)
        }
        Kind::Convergence => {
            let options = plots::ConvergenceOptions {
                y_label: y_label("best objective"),
                x_scale: Scale::Log,
                y_scale: scale(Scale::Linear),
            };
            plots::convergence(&rows::convergence(args, sources)?, &options, &style)
        }
        Kind::Gantt => {
            let (rows, pale) = traces::gantt(args, sources)?;
            let options = plots::GanttOptions {
                x_label: x_label("time [cycles]"),
                pale,
            };
            plots::gantt(&rows, &options, &style)
        }
        Kind::Links => {
            let options = map("traffic [bit]", (x_label("column"), y_label("row")), None);
            plots::links(&traces::links(args, sources)?, &options, &style)
        }
        Kind::Pes => {
            let options = map(
                "computing [% of cycles]",
                (x_label("PE column"), y_label("PE row")),
                Some((0.0, 100.0)),
            );
            plots::heat(&traces::pes(sources)?, &options, &style)
        }
        Kind::Occupancy => {
            let options = plots::OccupancyOptions::default();
            let options = plots::OccupancyOptions {
                y_label: y_label(&options.y_label),
                x_label: x_label(&options.x_label),
            };
            plots::occupancy(&traces::occupancy(args, sources)?, &options, &style)
        }
        Kind::Space => plots::space(&rows::tables(sources)?, &style),
        Kind::Lines => {
            let (rows, x, y) = rows::lines(args, sources)?;
            let options = plots::LineOptions {
                x_label: x_label(&x),
                y_label: y_label(&y),
                x_scale: Scale::Linear,
                y_scale: scale(Scale::Linear),
                from_zero: true,
            };
            plots::lines(&rows, &options, &style)
        }
    };
    drawn.map_err(|error| match error {
        PlotError::Size(message) => Faults::one(message),
        error => Faults::one(format!("{}: {error}", args.data[0].display())),
    })
}

fn map(label: &str, (x_label, y_label): (String, String), range: Option<(f64, f64)>) -> plots::HeatOptions {
    plots::HeatOptions {
        label: label.to_string(),
        x_label,
        y_label,
        range,
    }
}
