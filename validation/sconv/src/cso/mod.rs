//! Convolution slicing optimisation (CSO): the paper's macro-kernel over packed tiles.
//!
//! Five layers, outermost first: channel tiles of Nc; blocks of K3 stationary tiles; blocks of K2 streamed tiles; the
//! stationary tiles of the block; the streamed tiles of the block. The innermost body is a micro-kernel that multiplies an
//! input tile [Nc·R·S][Nwin] by a filter tile [Nc·R·S][Nf]. Filters are packed once, with the plan; input tiles when they are first
//! needed. Pointwise convolutions are read where they lie.

mod micro;
pub(crate) use pack::pack_filters;

mod pack;

use micro::{MicroArgs, MicroFn};

use crate::{
    ConvShape, Isa,
    csa::{MicroTile, Stationary, Tiling},
    plan::{Clock, Job},
    scratch::Aligned,
};

/// The micro-kernel's tile for an instruction set: 16×24 with AVX-512 as in the paper, less where there are fewer registers.
#[must_use]
pub fn micro_tile(isa: Isa) -> MicroTile {
    match isa {
        Isa::Avx512 => MicroTile {
            windows: 16,
            filters: 24,
        },
        Isa::Avx2 => MicroTile {
            windows: 16,
            filters: 6,
        },
        Isa::Portable => MicroTile { windows: 8, filters: 4 },
    }
}

/// How a shape is run by the macro-kernel.
#[derive(Debug, Clone)]
pub(crate) struct Cso {
    shape: ConvShape,
    isa: Isa,
    micro: MicroTile,
    kernel: MicroFn,
    tiling: Tiling,
    vector_packing: bool,
}

impl Cso {
    pub(crate) fn new(shape: ConvShape, isa: Isa, tiling: Tiling, vector_packing: bool) -> Self {
        Cso {
            shape,
            isa,
            micro: micro_tile(isa),
            kernel: micro::kernel(isa),
            tiling,
            vector_packing,
        }
    }

    /// Filter tiles of one group: what threads share out.
    pub(crate) fn units(&self) -> usize {
        self.shape.group_filters().div_ceil(self.micro.filters)
    }

    /// Elements of the packed filters.
    pub(crate) fn filters_len(&self) -> usize {
        self.shape.groups * self.units() * self.shape.group_channels() * self.shape.taps() * self.micro.filters
    }

    /// Packs the weights of all groups.
    pub(crate) fn pack_filters(&self, weights: &[f32], packed: &mut [f32]) {
        pack::pack_filters(&self.shape, weights, self.micro.filters, packed);
    }

    /// Elements that a thread needs for packed input tiles.
    pub(crate) fn scratch_len(&self) -> usize {
        if self.shape.is_pointwise() {
            return 0;
        }
        let tiles = match self.tiling.stationary {
            Stationary::Input => self.tiling.k3,
            Stationary::Weight => self.tiling.k2,
        };
        tiles * self.tile_len()
    }

    fn tile_len(&self) -> usize {
        self.tiling.nc * self.shape.taps() * self.micro.windows
    }

    /// Computes the filter tiles `job.units` of one image and group.
    ///
    /// # Safety
    /// `job` points to an input, an output and filters of this shape; the instruction set is available; no one else
    /// touches the output rows of these filters meanwhile; `scratch` has [`Self::scratch_len`] elements.
    pub(crate) unsafe fn run(&self, job: &Job, scratch: &mut Aligned, clock: &mut Clock) {
        debug_assert!(scratch.len() >= self.scratch_len());
        let inputs = self.shape.windows().div_ceil(self.micro.windows);
        let filters = job.units.clone();
        let mut walk = Walk {
            cso: self,
            job,
            packed: scratch.as_mut_ptr(),
            clock,
        };
        for c0 in (0..self.shape.group_channels()).step_by(self.tiling.nc) {
            let nc = self.tiling.nc.min(self.shape.group_channels() - c0);
            let (k2, k3) = (self.tiling.k2, self.tiling.k3);
            match self.tiling.stationary {
                Stationary::Input => {
                    for i3 in (0..inputs).step_by(k3) {
                        for f2 in filters.clone().step_by(k2) {
                            for input in i3..(i3 + k3).min(inputs) {
                                if f2 == filters.start {
                                    // SAFETY: the slot is below k3; see the caller's contract.
                                    unsafe { walk.pack(input, input - i3, c0, nc) };
                                }
                                for filter in f2..(f2 + k2).min(filters.end) {
                                    // SAFETY: the slot was packed above; see the caller's contract.
                                    unsafe { walk.multiply(input, input - i3, filter, c0, nc) };
                                }
                            }
                        }
                    }
                }
                Stationary::Weight => {
                    for f3 in filters.clone().step_by(k3) {
                        for i2 in (0..inputs).step_by(k2) {
                            for filter in f3..(f3 + k3).min(filters.end) {
                                for input in i2..(i2 + k2).min(inputs) {
                                    if filter == f3 {
                                        // SAFETY: the slot is below k2; see the caller's contract.
                                        unsafe { walk.pack(input, input - i2, c0, nc) };
                                    }
                                    // SAFETY: the slot was packed at the block's first filter; see the caller's contract.
                                    unsafe { walk.multiply(input, input - i2, filter, c0, nc) };
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One walk over the tiles of an image and group.
struct Walk<'a> {
    cso: &'a Cso,
    job: &'a Job,
    packed: *mut f32,
    clock: &'a mut Clock,
}

impl Walk<'_> {
    /// Packs channels c0..c0+nc of input tile `tile` into slot `slot`.
    ///
    /// # Safety
    /// As [`Cso::run`]; `slot` is within the scratch.
    unsafe fn pack(&mut self, tile: usize, slot: usize, c0: usize, nc: usize) {
        let Cso { shape, micro, .. } = self.cso;
        if shape.is_pointwise() {
            return;
        }
        let started = self.clock.start();
        let window = tile * micro.windows;
        let request = pack::Request {
            shape,
            input: self.job.input.wrapping_add(c0 * shape.height * shape.width),
            channels: nc,
            window,
            windows: micro.windows.min(shape.windows() - window),
            lanes: micro.windows,
            packed: self.packed.wrapping_add(slot * self.cso.tile_len()),
        };
        // SAFETY: the slot has room for nc·R·S·Nwin elements and the channels are the input's own; AVX-512 is there if
        // the plan has it.
        unsafe { pack::pack_input(&request, self.cso.isa == Isa::Avx512 && self.cso.vector_packing) };
        self.clock.packed(started);
    }

    /// Multiplies input tile `input`, packed in `slot`, by filter tile `filter` into the output.
    ///
    /// # Safety
    /// As [`Cso::run`]; the slot holds the tile.
    unsafe fn multiply(&mut self, input: usize, slot: usize, filter: usize, c0: usize, nc: usize) {
        let Cso { shape, micro, .. } = self.cso;
        let (plane, windows) = (shape.height * shape.width, shape.windows());
        let (window, k) = (input * micro.windows, filter * micro.filters);
        let (source, stride) = if shape.is_pointwise() {
            (self.job.input.wrapping_add(c0 * plane + window), plane)
        } else {
            (
                self.packed.cast_const().wrapping_add(slot * self.cso.tile_len()),
                micro.windows,
            )
        };
        let depth = (filter * shape.group_channels() + c0) * shape.taps();
        let args = MicroArgs {
            depth: nc * shape.taps(),
            input: source,
            input_stride: stride,
            filters: self.job.filters.wrapping_add(depth * micro.filters),
            output: self.job.output.wrapping_add(k * windows + window),
            output_stride: windows,
            windows: micro.windows.min(windows - window),
            filter_count: micro.filters.min(shape.group_filters() - k),
            accumulate: c0 > 0,
        };
        // SAFETY: the tiles lie within the tensors: `windows` and `filter_count` are clipped at the shape's bounds.
        unsafe { (self.cso.kernel)(&args) }
    }
}
