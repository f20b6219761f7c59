//! `validate native`: convolutions on this machine beside other libraries.

use std::path::PathBuf;
use std::process::Command;

use clap::{Args as ClapArgs, ValueEnum};
use cyclonest_arch::Accelerator;
use cyclonest_validation::host::Host;
use cyclonest_validation::native::{self, Config, Kernel, NativeLayer, Paths, Prediction, Report, layers};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;

/// Variables of the libraries that would change what is compared.
const TRAPS: [(&str, Option<&str>); 4] = [
    ("OPENBLAS_CORETYPE", None),
    ("OPENBLAS_NUM_THREADS", Some("1")),
    ("OMP_NUM_THREADS", Some("1")),
    ("ONEDNN_MAX_CPU_ISA", None),
];

/// Run convolutions natively, interleaved with im2col + OpenBLAS, oneDNN and `matrixmultiply`.
///
/// Without `--network`: the 143 distinct shapes of the 393 convolutions of ResNet-18, -50 and -152, VGG-16, SqueezeNet,
/// GoogLeNet and Inception v2. Libraries that are not found are skipped with a line that says so; see docs/native.md.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only this network: one of the seven, a bundled one, or a RON or ONNX file.
    #[arg(long, value_name = "NAME|FILE")]
    network: Option<String>,
    /// Only layers whose name contains this.
    #[arg(long, value_name = "TEXT")]
    layer: Option<String>,
    /// Samples of each kernel and layer.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    samples: u16,
    /// OpenBLAS's library file [default: CYCLONEST_OPENBLAS, then the system's search path]
    #[arg(long, value_name = "FILE")]
    openblas: Option<PathBuf>,
    /// oneDNN's library file [default: CYCLONEST_ONEDNN, then the system's search path]
    #[arg(long, value_name = "FILE")]
    onednn: Option<PathBuf>,
    /// Also measure what the parts of SConv are worth: vector packing, the stationary tensor, the cache shares.
    #[arg(long)]
    ablations: bool,
    /// Also predict SConv's cycles by simulation of this host, by the ECM formula and by the roofline, and rank the tilings
    /// of a few layers.
    #[arg(long)]
    predict: bool,
    /// The host as `cyclonest host` wrote it; measured at the start if not given.
    #[arg(long, value_name = "FILE", requires = "predict")]
    host: Option<String>,
    /// Write this earlier JSON report in another format instead of measuring.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["network", "layer", "ablations", "predict"])]
    report: Option<PathBuf>,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the report here instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables.
    Human,
    /// Everything.
    Json,
    /// One row per layer and kernel.
    Csv,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let destination;
    let report = match &args.report {
        Some(path) => {
            destination = Destination::prepare(args.output.as_deref())?;
            let fault = |error: String| Faults::one(format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
            serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?
        }
        None => {
            let layers = select(args)?;
            let arch = args.host.as_deref().map(inputs::arch).transpose()?;
            if let Some(ending) = without_traps()? {
                return Ok(ending);
            }
            destination = Destination::prepare(args.output.as_deref())?;
            measure(args, &layers, arch)?
        }
    };
    let text = match args.format {
        Format::Human => native::human(&report),
        Format::Json => serde_json::to_string_pretty(&report).map_err(|error| Faults::one(error.to_string()))? + "\n",
        Format::Csv => csv(&report)?,
    };
    destination.write(&text)?;
    Ok(if report.wrong().is_empty() {
        Ending::Complete
    } else {
        Ending::Incomplete
    })
}

fn measure(args: &Args, layers: &[NativeLayer], arch: Option<Accelerator>) -> Result<Report, Faults> {
    let path =
        |given: &Option<PathBuf>, name: &str| given.clone().or_else(|| std::env::var_os(name).map(PathBuf::from));
    let config = Config {
        paths: Paths {
            openblas: path(&args.openblas, "CYCLONEST_OPENBLAS"),
            onednn: path(&args.onednn, "CYCLONEST_ONEDNN"),
        },
        samples: usize::from(args.samples),
        ablations: args.ablations,
    };
    // Before the layers, so that a machine that cannot be used is told at once.
    let arch = match (args.predict, arch) {
        (false, _) => None,
        (true, Some(arch)) => Some(arch),
        (true, None) => Some(Host::measure().accelerator()),
    };
    let mut report = native::measure(layers, &config, &mut |done, layer| {
        eprintln!("{}/{} {}", done + 1, layers.len(), layer.layer.name);
    });
    if let Some(arch) = arch {
        native::add_predictions(&mut report, &arch, config.samples).map_err(Faults::one)?;
    }
    Ok(report)
}

fn select(args: &Args) -> Result<Vec<NativeLayer>, Faults> {
    let mut chosen = layers::published();
    if let Some(name) = &args.network {
        if layers::models().contains(name) {
            chosen.retain(|layer| layer.models.contains_key(name));
            for layer in &mut chosen {
                layer.models.retain(|model, _| model == name);
            }
        } else {
            let described = inputs::network(name, None)?;
            chosen = layers::of_network(name, &described.network.distinct());
        }
    }
    if let Some(text) = &args.layer {
        chosen.retain(|layer| layer.name.contains(text));
    }
    if chosen.is_empty() {
        return Err(Faults::one("no layer of that name"));
    }
    Ok(chosen)
}

/// If the environment would change what is compared, runs this program again without that; its end.
pub(crate) fn without_traps() -> Result<Option<Ending>, Faults> {
    let differs = |(name, value): &(&str, Option<&str>)| std::env::var_os(name).as_deref() != value.map(AsRef::as_ref);
    if !TRAPS.iter().any(differs) {
        return Ok(None);
    }
    let fault = |error: std::io::Error| Faults::one(format!("cannot run this program again: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(fault)?);
    command.args(std::env::args_os().skip(1));
    for (name, value) in TRAPS {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let status = command.status().map_err(fault)?;
    match status.code() {
        Some(0) => Ok(Some(Ending::Complete)),
        Some(1) => Ok(Some(Ending::Incomplete)),
        _ => Err(Faults::one(format!("the measurement ended with {status}"))),
    }
}

fn csv(report: &Report) -> Result<String, Faults> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: &[String]| writer.write_record(row).map_err(|error| Faults::one(error.to_string()));
    let header = [
        "layer",
        "count",
        "c",
        "h",
        "w",
        "k",
        "r",
        "s",
        "stride",
        "pad",
        "macs",
        "kernel",
        "detail",
        "cycles",
        "cycles_q1",
        "cycles_q3",
        "samples",
        "rejected",
        "noisy",
        "share_of_peak",
        "gflops",
        "error_of_bound",
        "packing_share",
        "stationary",
        "simulated",
        "ecm",
        "roofline",
    ];
    write(&header.map(String::from))?;
    for layer in &report.layers {
        let shape = &layer.layer.shape;
        for measured in &layer.measured {
            let cycles = &measured.cycles;
            let predicted = |value: fn(&Prediction) -> f64| {
                let prediction = layer.prediction.as_ref().filter(|_| measured.kernel == Kernel::Sconv);
                prediction.map_or(String::new(), |prediction| format!("{:.0}", value(prediction)))
            };
            write(&[
                layer.layer.name.clone(),
                layer.layer.count().to_string(),
                shape.channels.to_string(),
                shape.height.to_string(),
                shape.width.to_string(),
                shape.filters.to_string(),
                shape.kernel.0.to_string(),
                shape.kernel.1.to_string(),
                shape.stride.0.to_string(),
                shape.padding.top.to_string(),
                layer.macs.to_string(),
                measured.kernel.label().to_string(),
                measured.detail.clone(),
                format!("{:.0}", cycles.median),
                format!("{:.0}", cycles.low),
                format!("{:.0}", cycles.high),
                cycles.samples.to_string(),
                cycles.rejected.to_string(),
                cycles.noisy.to_string(),
                format!("{:.4}", layer.macs as f64 / cycles.median / report.gate.peak),
                format!(
                    "{:.2}",
                    2.0 * layer.macs as f64 / cycles.median * report.gate.clock / 1e9
                ),
                format!("{:.4}", measured.error),
                measured
                    .packing_share
                    .map_or(String::new(), |share| format!("{share:.4}")),
                format!("{:?}", layer.tiling.stationary),
                predicted(|prediction| prediction.simulated),
                predicted(|prediction| prediction.ecm),
                predicted(|prediction| prediction.roofline),
            ])?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| Faults::one(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
