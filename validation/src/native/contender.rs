//! What is run: our kernels and the libraries they are compared with.

use std::path::PathBuf;
use std::rc::Rc;

use cyclonest_sconv::{
    BLOCK, ConvPlan, ConvShape, Error, Family, Fill, Filters, Isa, Layout, Options, Stationary, Tiling,
    baselines::{BaselineError, DnnLayout, Gemm, Im2col, MatrixMultiply, OneDnn, OneDnnConv, OpenBlas},
    from_blocked, to_blocked,
};
use serde::{Deserialize, Serialize};

/// A kernel or library with the way it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// The packed macro-kernel of SConv, NCHW.
    Sconv,
    /// The family that `choose` picks, NCHW.
    Best,
    /// The same with nChw16c in and out; NCHW in where there are fewer than 16 channels.
    BestBlocked,
    /// im2col and OpenBLAS; no im2col for pointwise layers of stride 1.
    Openblas,
    /// The same with the pure-Rust `matrixmultiply`.
    Matrixmultiply,
    /// oneDNN told that input and output are NCHW.
    OnednnNchw,
    /// oneDNN in its own layout with reorders from and to NCHW.
    OnednnReordered,
    /// oneDNN in its own layout, the convolution alone.
    OnednnBlocked,
    /// SConv with element-wise packing.
    SconvScalarPacking,
    /// SConv, input-stationary.
    SconvInputStationary,
    /// SConv, weight-stationary.
    SconvWeightStationary,
    /// SConv with α = β = γ = 0.8.
    SconvFill80,
    /// SConv with α = β = γ = 1.0.
    SconvFill100,
    /// The direct family, whatever the rule says; NCHW.
    Direct,
    /// The pointwise family, whatever the rule says, on the layers that it knows; NCHW.
    Pointwise,
}

impl Kernel {
    /// What is always run.
    pub const USUAL: [Kernel; 8] = [
        Kernel::Sconv,
        Kernel::Best,
        Kernel::BestBlocked,
        Kernel::Openblas,
        Kernel::Matrixmultiply,
        Kernel::OnednnNchw,
        Kernel::OnednnReordered,
        Kernel::OnednnBlocked,
    ];
    /// What shows the worth of SConv's parts, and of the rule that picks a family.
    pub const ABLATIONS: [Kernel; 7] = [
        Kernel::SconvScalarPacking,
        Kernel::SconvInputStationary,
        Kernel::SconvWeightStationary,
        Kernel::SconvFill80,
        Kernel::SconvFill100,
        Kernel::Direct,
        Kernel::Pointwise,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Kernel::Sconv => "sconv",
            Kernel::Best => "best",
            Kernel::BestBlocked => "best nChw16c",
            Kernel::Openblas => "im2col + OpenBLAS",
            Kernel::Matrixmultiply => "im2col + matrixmultiply",
            Kernel::OnednnNchw => "oneDNN NCHW",
            Kernel::OnednnReordered => "oneDNN blocked with reorders",
            Kernel::OnednnBlocked => "oneDNN blocked",
            Kernel::SconvScalarPacking => "sconv, scalar packing",
            Kernel::SconvInputStationary => "sconv, IS",
            Kernel::SconvWeightStationary => "sconv, WS",
            Kernel::SconvFill80 => "sconv, α=β=γ=0.8",
            Kernel::SconvFill100 => "sconv, α=β=γ=1.0",
            Kernel::Direct => "direct",
            Kernel::Pointwise => "pointwise",
        }
    }

    /// How our kernels are planned; `None` for libraries.
    #[must_use]
    pub fn options(self) -> Option<Options> {
        let sconv = Options {
            family: Some(Family::Sconv),
            ..Options::default()
        };
        Some(match self {
            Kernel::Sconv => sconv,
            Kernel::Best => Options::default(),
            Kernel::BestBlocked => Options {
                input: Layout::Nchw16c,
                output: Layout::Nchw16c,
                ..Options::default()
            },
            Kernel::Direct => Options {
                family: Some(Family::Direct),
                ..Options::default()
            },
            Kernel::Pointwise => Options {
                family: Some(Family::Pointwise),
                ..Options::default()
            },
            Kernel::SconvScalarPacking => Options {
                vector_packing: false,
                ..sconv
            },
            Kernel::SconvInputStationary => Options {
                stationary: Some(Stationary::Input),
                ..sconv
            },
            Kernel::SconvWeightStationary => Options {
                stationary: Some(Stationary::Weight),
                ..sconv
            },
            Kernel::SconvFill80 => Options {
                fill: Fill::all(0.8),
                ..sconv
            },
            Kernel::SconvFill100 => Options {
                fill: Fill::all(1.0),
                ..sconv
            },
            _ => return None,
        })
    }
}

/// Where the libraries are; the system's search path if not given.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    /// OpenBLAS.
    pub openblas: Option<PathBuf>,
    /// oneDNN.
    pub onednn: Option<PathBuf>,
}

/// The libraries that were found.
#[derive(Debug)]
pub(super) struct Libraries {
    openblas: Option<Rc<OpenBlas>>,
    onednn: Option<OneDnn>,
    /// One line each: what was found, or why it is skipped.
    pub(super) lines: Vec<String>,
}

impl Libraries {
    pub(super) fn load(paths: &Paths) -> Self {
        let mut lines = Vec::new();
        let openblas = OpenBlas::load(paths.openblas.as_deref());
        lines.push(match &openblas {
            Ok(blas) => format!("OpenBLAS: kernel {} ({})", blas.core(), blas.config()),
            Err(error) => format!("OpenBLAS: skipped: {error}"),
        });
        let onednn = OneDnn::load(paths.onednn.as_deref());
        lines.push(match &onednn {
            Ok(dnn) => format!("oneDNN: version {}", dnn.version()),
            Err(error) => format!("oneDNN: skipped: {error}"),
        });
        Libraries {
            openblas: openblas.ok().map(Rc::new),
            onednn: onednn.ok(),
            lines,
        }
    }
}

/// f32 values that start at a cache line, as every contender is given.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    data: Vec<f32>,
    offset: usize,
    len: usize,
}

impl Buffer {
    pub(super) fn new(len: usize) -> Self {
        let data = vec![0.0f32; len + 16];
        let offset = data.as_ptr().align_offset(64).min(16);
        Buffer { data, offset, len }
    }

    pub(super) fn of(values: &[f32]) -> Self {
        let mut buffer = Buffer::new(values.len());
        buffer.slice_mut().copy_from_slice(values);
        buffer
    }

    pub(super) fn slice(&self) -> &[f32] {
        &self.data[self.offset..][..self.len]
    }

    pub(super) fn slice_mut(&mut self) -> &mut [f32] {
        &mut self.data[self.offset..][..self.len]
    }
}

/// Something that convolves one layer again and again.
pub(super) trait Contender {
    fn run(&mut self);
    /// Output of the last run, NCHW.
    fn output(&mut self) -> Vec<f32>;
    /// Kernel family, implementation or tiling, for the report.
    fn detail(&self) -> String;
    /// Share of packing in one run, where it can be told.
    fn packing_share(&mut self) -> Option<f64> {
        None
    }
}

/// Why a contender does not run a layer.
#[derive(Debug)]
pub(super) enum Absent {
    /// The library was not found.
    Library,
    /// It refused the layer.
    Refused(String),
}

impl From<Error> for Absent {
    fn from(error: Error) -> Self {
        Absent::Refused(error.to_string())
    }
}

impl From<BaselineError> for Absent {
    fn from(error: BaselineError) -> Self {
        Absent::Refused(error.to_string())
    }
}

/// Prepares `kernel` for a layer.
pub(super) fn prepare(
    kernel: Kernel,
    libraries: &Libraries,
    shape: &ConvShape,
    input: &[f32],
    weights: &[f32],
) -> Result<Box<dyn Contender>, Absent> {
    if let Some(mut options) = kernel.options() {
        // A block of 16 for a few channels is mostly padding; oneDNN's own choice is NCHW there, too.
        if shape.channels < BLOCK {
            options.input = Layout::Nchw;
        }
        return Ok(Box::new(Ours::new(shape, options, input, weights)?));
    }
    let im2col = |gemm: Rc<dyn Gemm>, name: String| {
        Box::new(Gemmed {
            gemm,
            im2col: Im2col::new(*shape),
            input: Buffer::of(input),
            weights: Buffer::of(weights),
            output: Buffer::new(Layout::Nchw.output_len(shape)),
            name,
        })
    };
    let dnn = |layout: DnnLayout, reorders: bool| -> Result<Box<dyn Contender>, Absent> {
        let library = libraries.onednn.as_ref().ok_or(Absent::Library)?;
        Ok(Box::new(Dnn {
            conv: library.conv(shape, layout, input, weights)?,
            reorders,
        }))
    };
    match kernel {
        Kernel::Openblas => {
            let blas = libraries.openblas.clone().ok_or(Absent::Library)?;
            let core = blas.core().to_string();
            Ok(im2col(blas, core))
        }
        Kernel::Matrixmultiply => Ok(im2col(Rc::new(MatrixMultiply), "matrixmultiply".to_string())),
        Kernel::OnednnNchw => dnn(DnnLayout::Nchw, false),
        Kernel::OnednnReordered => dnn(DnnLayout::Blocked, true),
        _ => dnn(DnnLayout::Blocked, false),
    }
}

/// SConv with a tiling of one's own, for comparing choices.
pub(super) fn tiled(
    shape: &ConvShape,
    tiling: Tiling,
    input: &[f32],
    weights: &[f32],
) -> Result<Box<dyn Contender>, Absent> {
    let options = Options {
        family: Some(Family::Sconv),
        tiling: Some(tiling),
        ..Options::default()
    };
    Ok(Box::new(Ours::new(shape, options, input, weights)?))
}

struct Ours {
    plan: ConvPlan,
    filters: Filters,
    input: Buffer,
    output: Buffer,
    blocked: bool,
}

impl Ours {
    fn new(shape: &ConvShape, options: Options, input: &[f32], weights: &[f32]) -> Result<Self, Error> {
        let plan = ConvPlan::new(*shape, options)?;
        let filters = plan.filters(weights)?;
        let blocked = options.output == Layout::Nchw16c;
        let input = if options.input == Layout::Nchw16c {
            Buffer::of(&to_blocked(input, shape.channels, shape.height * shape.width))
        } else {
            Buffer::of(input)
        };
        let output = Buffer::new(plan.output_len());
        Ok(Ours {
            plan,
            filters,
            input,
            output,
            blocked,
        })
    }
}

impl Contender for Ours {
    fn run(&mut self) {
        self.plan
            .run(self.input.slice(), &self.filters, self.output.slice_mut())
            .expect("slices of the plan's lengths");
    }

    fn output(&mut self) -> Vec<f32> {
        let shape = self.plan.shape();
        if self.blocked {
            from_blocked(self.output.slice(), shape.filters, shape.windows())
        } else {
            self.output.slice().to_vec()
        }
    }

    fn detail(&self) -> String {
        let isa: Isa = self.plan.isa();
        if self.plan.family() == Family::Sconv {
            let Tiling {
                stationary, nc, k2, k3, ..
            } = *self.plan.tiling();
            let letters = if stationary == Stationary::Input { "IS" } else { "WS" };
            return format!("sconv {isa} {letters} Nc={nc} K2={k2} K3={k3}");
        }
        format!("{} {isa}", self.plan.family())
    }

    fn packing_share(&mut self) -> Option<f64> {
        let mut shares: Vec<f64> = (0..5)
            .filter_map(|_| {
                self.plan
                    .run_profiled(self.input.slice(), &self.filters, self.output.slice_mut())
                    .ok()
            })
            .map(|profile| profile.packing.as_secs_f64() / profile.total.as_secs_f64())
            .collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    }
}

struct Gemmed {
    gemm: Rc<dyn Gemm>,
    im2col: Im2col,
    input: Buffer,
    weights: Buffer,
    output: Buffer,
    name: String,
}

impl Contender for Gemmed {
    fn run(&mut self) {
        self.im2col.run(
            &*self.gemm,
            self.input.slice(),
            self.weights.slice(),
            self.output.slice_mut(),
        );
    }

    fn output(&mut self) -> Vec<f32> {
        self.output.slice().to_vec()
    }

    fn detail(&self) -> String {
        self.name.clone()
    }
}

struct Dnn {
    conv: OneDnnConv,
    reorders: bool,
}

impl Contender for Dnn {
    fn run(&mut self) {
        let result = if self.reorders {
            self.conv
                .reorder_in()
                .and_then(|()| self.conv.run())
                .and_then(|()| self.conv.reorder_out())
        } else {
            self.conv.run()
        };
        result.expect("the library ran this convolution before");
    }

    fn output(&mut self) -> Vec<f32> {
        self.conv.output().expect("the library ran this convolution before")
    }

    fn detail(&self) -> String {
        self.conv.implementation().to_string()
    }
}
