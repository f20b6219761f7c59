//! Plans: everything that can be decided and allocated before data arrives.

use std::{
    fmt,
    ops::Range,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    Caches, ConvShape, Error, Isa, Layout,
    csa::{Analysis, Fill, MicroTile, Stationary, Tiling, csa},
    cso::{self, Cso},
    scratch::Aligned,
};
#[cfg(target_arch = "x86_64")]
use crate::{direct::Direct, pointwise::Pointwise};

/// A family of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Family {
    /// SConv: packed tiles and the macro-kernel of the paper, tiled by [`csa`]. Any instruction set; NCHW.
    Sconv,
    /// Filters in lanes, windows broadcast from the input where it lies. AVX-512; NCHW and nChw16c.
    Direct,
    /// Windows in lanes, filters broadcast, nothing packed or transposed; 1×1, stride 1, no padding. AVX-512; NCHW.
    Pointwise,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Sconv => "sconv",
            Family::Direct => "direct",
            Family::Pointwise => "pointwise",
        })
    }
}

/// What a plan may be told; the default decides everything by the shape and the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Instructions; the widest that the CPU has by default.
    pub isa: Option<Isa>,
    /// Kernel family; [`choose`] by default.
    pub family: Option<Family>,
    /// Caches to tile for; the host's by default.
    pub caches: Option<Caches>,
    /// Shares of the caches that CSA fills.
    pub fill: Fill,
    /// Stationary tensor of [`Family::Sconv`]; the cheaper by CSA by default.
    pub stationary: Option<Stationary>,
    /// Tiling of [`Family::Sconv`] instead of CSA's.
    pub tiling: Option<Tiling>,
    /// Whether [`Family::Sconv`] packs with vectors (AVX-512).
    pub vector_packing: bool,
    /// Layout of the input.
    pub input: Layout,
    /// Layout of the output.
    pub output: Layout,
    /// Threads, at least 1. With more than one, every run spawns them for each image and group.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            isa: None,
            family: None,
            caches: None,
            fill: Fill::default(),
            stationary: None,
            tiling: None,
            vector_packing: true,
            input: Layout::Nchw,
            output: Layout::Nchw,
            threads: 1,
        }
    }
}

/// The rule that picks a kernel family by the shape alone:
///
/// 1. without AVX-512: [`Family::Sconv`];
/// 2. a blocked layout: [`Family::Direct`], the only one that knows it;
/// 3. groups with fewer than 8 filters each: [`Family::Sconv`] (fewer than half of the lanes would have a filter);
/// 4. 1×1 with stride 1: [`Family::Pointwise`] if 0.9 · windows/⌈windows⌉₁₆ > filters/⌈filters⌉₁₆ · C/(C + 15): which of
///    the two has the better filled lanes, where the transposition of [`Family::Direct`] takes the time of 15 channels
///    and the kernel of [`Family::Pointwise`] is a tenth slower otherwise (both measured once, on a Zen 4 core);
/// 5. else [`Family::Direct`].
#[must_use]
pub fn choose(shape: &ConvShape, isa: Isa, input: Layout, output: Layout) -> Family {
    let filled = |n: usize| n as f64 / n.next_multiple_of(16) as f64;
    let channels = shape.group_channels() as f64;
    let transposed = channels / (channels + 15.0);
    if isa < Isa::Avx512 {
        Family::Sconv
    } else if input != Layout::Nchw || output != Layout::Nchw {
        Family::Direct
    } else if shape.groups > 1 && shape.group_filters() < 8 {
        Family::Sconv
    } else if shape.is_pointwise() && 0.9 * filled(shape.windows()) > filled(shape.group_filters()) * transposed {
        Family::Pointwise
    } else {
        Family::Direct
    }
}

/// One image and group: where its tensors start, and which part of the work to do.
pub(crate) struct Job {
    pub(crate) input: *const f32,
    pub(crate) filters: *const f32,
    pub(crate) output: *mut f32,
    pub(crate) units: Range<usize>,
}

// SAFETY: the pointers are used under the contract of `Executor::run`: disjoint units write disjoint outputs.
unsafe impl Send for Job {}

/// Time spent packing, measured only on request.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    enabled: bool,
    packing: Duration,
}

impl Clock {
    pub(crate) fn start(&self) -> Option<Instant> {
        self.enabled.then(Instant::now)
    }

    pub(crate) fn packed(&mut self, started: Option<Instant>) {
        if let Some(started) = started {
            self.packing += started.elapsed();
        }
    }
}

/// A kernel family, prepared for a shape.
pub(crate) trait Executor: fmt::Debug + Send + Sync {
    /// Parts of one image and group that can be computed by different threads.
    fn units(&self) -> usize;
    /// Elements of the packed filters of all groups.
    fn filters_len(&self) -> usize;
    /// Packs {G·K, C, R, S} into `filters_len` zeroed elements.
    fn pack(&self, weights: &[f32], packed: &mut [f32]);
    /// Elements that each thread needs.
    fn scratch_len(&self) -> usize;
    /// Computes some units of one image and group.
    ///
    /// # Safety
    /// The job points to an input, packed filters and an output of the plan's shape and layouts, `units` is within
    /// [`Self::units`], nobody else computes these units of this output, `scratch` has `scratch_len` elements, and the CPU
    /// has the plan's instructions.
    unsafe fn run(&self, job: &Job, scratch: &mut Aligned, clock: &mut Clock);
}

impl Executor for Cso {
    fn units(&self) -> usize {
        Cso::units(self)
    }

    fn filters_len(&self) -> usize {
        Cso::filters_len(self)
    }

    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        self.pack_filters(weights, packed);
    }

    fn scratch_len(&self) -> usize {
        Cso::scratch_len(self)
    }

    unsafe fn run(&self, job: &Job, scratch: &mut Aligned, clock: &mut Clock) {
        // SAFETY: the same contract.
        unsafe { Cso::run(self, job, scratch, clock) }
    }
}

/// Filters packed for a plan.
#[derive(Debug)]
pub struct Filters {
    data: Aligned,
    key: Key,
}

/// What packed filters depend on.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    shape: ConvShape,
    isa: Isa,
    family: Family,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConvShape {
            filters,
            channels,
            groups,
            kernel: (r, s),
            ..
        } = self.shape;
        write!(
            f,
            "{} on {}, {filters} filters of {}×{r}×{s} in {groups} groups",
            self.family,
            self.isa,
            channels / groups
        )
    }
}

/// Time of a run, and the share of packing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// All of it.
    pub total: Duration,
    /// Packing of inputs.
    pub packing: Duration,
}

/// A convolution that is ready to run: kernels chosen, tiles sized, buffers allocated.
///
/// ```
/// use cyclonest_sconv::{ConvPlan, ConvShape, Options};
/// # fn main() -> Result<(), cyclonest_sconv::Error> {
/// let shape = ConvShape::new(3, 8, 8, 4, 3).with_padding(1);
/// let mut plan = ConvPlan::new(shape, Options::default())?;
/// let filters = plan.filters(&vec![1.0; shape.weights_len()])?; // packed once, used by every run
/// let (input, mut output) = (vec![1.0; plan.input_len()], vec![0.0; plan.output_len()]);
/// plan.run(&input, &filters, &mut output)?; // allocates nothing
/// assert_eq!(output[9], 27.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ConvPlan {
    shape: ConvShape,
    input: Layout,
    output: Layout,
    key: Key,
    analysis: Analysis,
    tiling: Tiling,
    executor: Box<dyn Executor>,
    scratch: Vec<Aligned>,
    clock: Clock,
}

impl ConvPlan {
    /// Plans `shape`.
    ///
    /// # Errors
    /// An invalid shape, instructions that the CPU lacks, or a family that cannot run the shape or its layouts.
    pub fn new(shape: ConvShape, options: Options) -> Result<Self, Error> {
        shape.check()?;
        let isa = options.isa.unwrap_or_else(Isa::detect);
        isa.require()?;
        if options.threads == 0 {
            return Err(Error::Zero {
                what: "the number of threads",
            });
        }
        let family = options
            .family
            .unwrap_or_else(|| choose(&shape, isa, options.input, options.output));
        let unsupported = |what: &str| Error::Unsupported {
            family: family.to_string(),
            what: what.to_string(),
        };
        let blocked = options.input != Layout::Nchw || options.output != Layout::Nchw;
        match family {
            Family::Sconv | Family::Pointwise if blocked => return Err(unsupported("blocked layouts")),
            Family::Direct | Family::Pointwise if isa < Isa::Avx512 => {
                return Err(unsupported(&format!("{isa} instructions")));
            }
            Family::Pointwise if !shape.is_pointwise() => {
                return Err(unsupported("anything but 1×1, stride 1, without padding"));
            }
            _ if blocked && shape.groups > 1 => return Err(unsupported("groups in a blocked layout")),
            _ => {}
        }
        let caches = options.caches.unwrap_or_else(Caches::host);
        let analysis = csa(&shape, cso::micro_tile(isa), &caches, options.fill);
        let tiling = match (options.tiling, options.stationary) {
            (Some(tiling), _) if tiling.nc == 0 || tiling.k2 == 0 || tiling.k3 == 0 => {
                return Err(Error::Zero { what: "a tile size" });
            }
            // Tiles larger than the tensors would only cost memory.
            (Some(tiling), _) => clip(tiling, &shape, analysis.micro),
            (None, Some(stationary)) => analysis.with(stationary),
            (None, None) => analysis.best(),
        };
        let executor: Box<dyn Executor> = match family {
            Family::Sconv => Box::new(Cso::new(shape, isa, tiling, options.vector_packing)),
            #[cfg(target_arch = "x86_64")]
            Family::Direct => Box::new(Direct::new(shape, options.input, options.output, &caches)),
            #[cfg(target_arch = "x86_64")]
            Family::Pointwise => Box::new(Pointwise::new(shape, &caches)),
            #[cfg(not(target_arch = "x86_64"))]
            _ => return Err(unsupported("this processor")),
        };
        let threads = options.threads.min(executor.units());
        let scratch = (0..threads).map(|_| Aligned::zeroed(executor.scratch_len())).collect();
        let key = Key { shape, isa, family };
        Ok(ConvPlan {
            shape,
            input: options.input,
            output: options.output,
            key,
            analysis,
            tiling,
            executor,
            scratch,
            clock: Clock::default(),
        })
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// The family that runs.
    #[must_use]
    pub fn family(&self) -> Family {
        self.key.family
    }

    /// The instructions that run.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.key.isa
    }

    /// What CSA found for this shape and instruction set (also for families that do not use it).
    #[must_use]
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// The tiling that [`Family::Sconv`] runs.
    #[must_use]
    pub fn tiling(&self) -> &Tiling {
        &self.tiling
    }

    /// Elements of the input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.input.input_len(&self.shape)
    }

    /// Elements of the output.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.output.output_len(&self.shape)
    }

    /// Packs weights {G·K, C, R, S} for this plan: once, before all runs.
    ///
    /// # Errors
    /// A slice of the wrong length.
    pub fn filters(&self, weights: &[f32]) -> Result<Filters, Error> {
        expect("weights", weights.len(), self.shape.weights_len())?;
        let mut data = Aligned::zeroed(self.executor.filters_len());
        self.executor.pack(weights, data.as_mut_slice());
        Ok(Filters {
            data,
            key: self.key.clone(),
        })
    }

    /// Convolves `input` with `filters` into `output`, overwriting it. Allocates nothing with one thread.
    ///
    /// # Errors
    /// Slices of the wrong length, or filters that were packed for another plan.
    pub fn run(&mut self, input: &[f32], filters: &Filters, output: &mut [f32]) -> Result<(), Error> {
        expect("input", input.len(), self.input_len())?;
        expect("output", output.len(), self.output_len())?;
        if filters.key != self.key {
            return Err(Error::ForeignFilters {
                found: filters.key.to_string(),
                expected: self.key.to_string(),
            });
        }
        let shape = &self.shape;
        let groups = shape.groups;
        let (image, out_image) = (input.len() / shape.batch, output.len() / shape.batch);
        let filters_group = self.executor.filters_len() / groups;
        // Only NCHW has groups, where a group's planes are contiguous.
        let (input_group, output_group) = (image / groups, out_image / groups);
        let (units, output) = (self.executor.units(), output.as_mut_ptr());
        for n in 0..shape.batch {
            for g in 0..groups {
                let job = |units| Job {
                    input: input.as_ptr().wrapping_add(n * image + g * input_group),
                    filters: filters.data.as_ptr().wrapping_add(g * filters_group),
                    output: output.wrapping_add(n * out_image + g * output_group),
                    units,
                };
                let executor = &*self.executor;
                if let [scratch] = &mut self.scratch[..] {
                    // SAFETY: lengths and filters were checked above, the instructions in `new`.
                    unsafe { executor.run(&job(0..units), scratch, &mut self.clock) };
                    continue;
                }
                let threads = self.scratch.len();
                std::thread::scope(|scope| {
                    for (thread, scratch) in self.scratch.iter_mut().enumerate() {
                        let job = job(thread * units / threads..(thread + 1) * units / threads);
                        scope.spawn(move || {
                            let job = job;
                            // SAFETY: as above; the units of the threads are disjoint.
                            unsafe { executor.run(&job, scratch, &mut Clock::default()) }
                        });
                    }
                });
            }
        }
        Ok(())
    }

    /// [`Self::run`], timing packing (each tile reads the clock twice, so the total is a little longer; one thread only).
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_profiled(&mut self, input: &[f32], filters: &Filters, output: &mut [f32]) -> Result<Profile, Error> {
        self.clock = Clock {
            enabled: true,
            packing: Duration::ZERO,
        };
        let started = Instant::now();
        let result = self.run(input, filters, output);
        let profile = Profile {
            total: started.elapsed(),
            packing: self.clock.packing,
        };
        self.clock = Clock::default();
        result.map(|()| profile)
    }
}

fn clip(tiling: Tiling, shape: &ConvShape, micro: MicroTile) -> Tiling {
    let (inputs, filters) = (
        shape.windows().div_ceil(micro.windows),
        shape.group_filters().div_ceil(micro.filters),
    );
    let (streams, stays) = match tiling.stationary {
        Stationary::Input => (filters, inputs),
        Stationary::Weight => (inputs, filters),
    };
    Tiling {
        nc: tiling.nc.min(shape.group_channels()),
        k2: tiling.k2.min(streams),
        k3: tiling.k3.min(stays),
        ..tiling
    }
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Length { what, found, expected })
    }
}
