//! oneDNN 3 by its C interface: forward convolution by the direct algorithm.

use std::{
    ffi::{c_int, c_void},
    path::Path,
    ptr::{null, null_mut},
    sync::Arc,
};

use libloading::Library;

use super::{BaselineError, load};
use crate::ConvShape;

const NAME: &str = "oneDNN";

// Values of dnnl_types.h and dnnl_common_types.h, version 3.
const CPU: c_int = 1;
const IN_ORDER: u32 = 1;
const F32: c_int = 3;
const TAG_ANY: c_int = 1;
const FORWARD_INFERENCE: c_int = 96;
const CONVOLUTION_DIRECT: c_int = 1;
const QUERY_IMPLEMENTATION: c_int = 8;
const QUERY_SOURCE: c_int = 129;
const QUERY_WEIGHTS: c_int = 131;
const QUERY_TARGET: c_int = 133;
const ARG_SOURCE: c_int = 1;
const ARG_TARGET: c_int = 17;
const ARG_WEIGHTS: c_int = 33;

type Handle = *mut c_void;
type Dims = [i64; 12];

/// `dnnl_exec_arg_t`.
#[repr(C)]
struct ExecArg {
    arg: c_int,
    memory: Handle,
}

/// `dnnl_version_t`.
#[repr(C)]
struct Version {
    major: c_int,
    minor: c_int,
    patch: c_int,
}

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) -> $out:ty;)*) => {
        #[derive(Debug, Clone, Copy)]
        struct Functions { $($name: unsafe extern "C" fn($($arg),*) -> $out,)* }

        impl Functions {
            fn of(library: &Library) -> Result<Self, BaselineError> {
                Ok(Functions {
                    $($name: {
                        let symbol = concat!("dnnl_", stringify!($name));
                        // SAFETY: the signature is that of oneDNN 3's headers; the version is checked before any other call.
                        *unsafe { library.get(symbol.as_bytes()) }
                            .map_err(|_| BaselineError::Symbol { library: NAME, symbol: symbol.to_string() })?
                    },)*
                })
            }
        }
    };
}

functions! {
    version: fn() -> *const Version;
    engine_create: fn(*mut Handle, c_int, usize) -> c_int;
    engine_destroy: fn(Handle) -> c_int;
    stream_create: fn(*mut Handle, Handle, u32) -> c_int;
    stream_destroy: fn(Handle) -> c_int;
    stream_wait: fn(Handle) -> c_int;
    memory_desc_create_with_strides: fn(*mut Handle, c_int, *const i64, c_int, *const i64) -> c_int;
    memory_desc_create_with_tag: fn(*mut Handle, c_int, *const i64, c_int, c_int) -> c_int;
    memory_desc_destroy: fn(Handle) -> c_int;
    convolution_forward_primitive_desc_create: fn(*mut Handle, Handle, c_int, c_int, Handle, Handle, Handle, Handle, *const i64, *const i64, *const i64, *const i64, *const c_void) -> c_int;
    reorder_primitive_desc_create: fn(*mut Handle, Handle, Handle, Handle, Handle, *const c_void) -> c_int;
    primitive_desc_query: fn(Handle, c_int, c_int, *mut c_void) -> c_int;
    primitive_desc_query_md: fn(Handle, c_int, c_int) -> Handle;
    primitive_desc_destroy: fn(Handle) -> c_int;
    primitive_create: fn(*mut Handle, Handle) -> c_int;
    primitive_destroy: fn(Handle) -> c_int;
    primitive_execute: fn(Handle, Handle, c_int, *const ExecArg) -> c_int;
    memory_create: fn(*mut Handle, Handle, Handle, Handle) -> c_int;
    memory_destroy: fn(Handle) -> c_int;
    memory_get_data_handle: fn(Handle, *mut Handle) -> c_int;
}

fn check(call: &'static str, status: c_int) -> Result<(), BaselineError> {
    if status == 0 {
        Ok(())
    } else {
        Err(BaselineError::Status { call, status })
    }
}

/// What the convolution primitive sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnnLayout {
    /// Input and output NCHW; the library may reorder inside.
    Nchw,
    /// Input and output in the layout that the library prefers.
    Blocked,
}

/// A loaded oneDNN, set to one thread.
#[derive(Debug, Clone)]
pub struct OneDnn(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    f: Functions,
    engine: Handle,
    stream: Handle,
    version: String,
    _library: Library,
}

// SAFETY: engines and streams may be used from any thread, one at a time; a `Loaded` is only used through `OneDnnConv`,
// which is not `Send`, and by its drop.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: both were created in `load` and have no users left: convolutions hold the Arc.
        unsafe {
            (self.f.stream_destroy)(self.stream);
            (self.f.engine_destroy)(self.engine);
        }
    }
}

impl OneDnn {
    /// Loads `path`, or what the system's loader finds as `libdnnl.so.3`.
    ///
    /// # Errors
    /// No library, another major version, or no CPU engine.
    pub fn load(path: Option<&Path>) -> Result<Self, BaselineError> {
        let library = load(NAME, path, &["libdnnl.so.3", "libdnnl.so"])?;
        let f = Functions::of(&library)?;
        // SAFETY: returns a pointer to a static structure.
        let Version { major, minor, patch } = unsafe { (f.version)().read() };
        if major != 3 {
            return Err(BaselineError::Unsupported("a oneDNN other than version 3"));
        }
        // OpenMP's own setting, if the library uses OpenMP: its symbols are visible through the library's dependencies.
        // SAFETY: the signature is that of omp.h.
        if let Ok(threads) = unsafe { library.get::<unsafe extern "C" fn(c_int)>(b"omp_set_num_threads") } {
            // SAFETY: sets the calling thread's limit; may be called at any time.
            unsafe { threads(1) };
        }
        let (mut engine, mut stream) = (null_mut(), null_mut());
        // SAFETY: out-parameters are valid.
        check("dnnl_engine_create", unsafe { (f.engine_create)(&mut engine, CPU, 0) })?;
        // SAFETY: the engine was just created.
        check("dnnl_stream_create", unsafe {
            (f.stream_create)(&mut stream, engine, IN_ORDER)
        })?;
        Ok(OneDnn(Arc::new(Loaded {
            f,
            engine,
            stream,
            version: format!("{major}.{minor}.{patch}"),
            _library: library,
        })))
    }

    /// The library's version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Prepares a convolution, with input and weights copied in.
    ///
    /// # Errors
    /// A shape or layout that the library refuses, or slices of the wrong length.
    pub fn conv(
        &self,
        shape: &ConvShape,
        layout: DnnLayout,
        input: &[f32],
        weights: &[f32],
    ) -> Result<OneDnnConv, BaselineError> {
        OneDnnConv::new(self.clone(), shape, layout, input, weights)
    }
}

/// A convolution of oneDNN, ready to run again and again. Frees in reverse order of creation.
#[derive(Debug)]
pub struct OneDnnConv {
    dnn: OneDnn,
    owned: Vec<Owned>,
    conv: Handle,
    source: Handle,
    weights: Handle,
    target: Handle,
    /// Between NCHW and the primitive's layout, if they differ: primitive, NCHW memory.
    source_reorder: (Handle, Handle),
    target_reorder: (Handle, Handle),
    output_len: usize,
    implementation: String,
}

#[derive(Debug)]
enum Owned {
    Desc(Handle),
    PrimitiveDesc(Handle),
    Primitive(Handle),
    Memory(Handle),
}

impl Drop for OneDnnConv {
    fn drop(&mut self) {
        let f = &self.dnn.0.f;
        while let Some(owned) = self.owned.pop() {
            // SAFETY: each handle was created by the call that belongs to its kind and is destroyed once.
            unsafe {
                match owned {
                    Owned::Desc(handle) => (f.memory_desc_destroy)(handle),
                    Owned::PrimitiveDesc(handle) => (f.primitive_desc_destroy)(handle),
                    Owned::Primitive(handle) => (f.primitive_destroy)(handle),
                    Owned::Memory(handle) => (f.memory_destroy)(handle),
                };
            }
        }
    }
}

impl OneDnnConv {
    fn new(
        dnn: OneDnn,
        shape: &ConvShape,
        layout: DnnLayout,
        input: &[f32],
        weights: &[f32],
    ) -> Result<Self, BaselineError> {
        let pixels = shape.height * shape.width;
        if input.len() != shape.batch * shape.channels * pixels || weights.len() != shape.weights_len() {
            return Err(BaselineError::Unsupported("a slice of the wrong length"));
        }
        let output_len = shape.batch * shape.filters * shape.windows();
        let mut conv = OneDnnConv {
            dnn,
            owned: Vec::new(),
            conv: null_mut(),
            source: null_mut(),
            weights: null_mut(),
            target: null_mut(),
            source_reorder: (null_mut(), null_mut()),
            target_reorder: (null_mut(), null_mut()),
            output_len,
            implementation: String::new(),
        };
        let (p, q) = shape.output();
        let int = |n: usize| n as i64;
        let source_dims = [shape.batch, shape.channels, shape.height, shape.width].map(int);
        let target_dims = [shape.batch, shape.filters, p, q].map(int);
        let grouped = [
            shape.groups,
            shape.group_filters(),
            shape.group_channels(),
            shape.kernel.0,
            shape.kernel.1,
        ]
        .map(int);
        let weight_dims = if shape.groups == 1 { &grouped[1..] } else { &grouped[..] };
        let plain = [
            conv.desc(&source_dims, false)?,
            conv.desc(weight_dims, false)?,
            conv.desc(&target_dims, false)?,
        ];
        let any = [
            conv.desc(&source_dims, true)?,
            conv.desc(weight_dims, true)?,
            conv.desc(&target_dims, true)?,
        ];
        let (source_desc, target_desc) = match layout {
            DnnLayout::Nchw => (plain[0], plain[2]),
            DnnLayout::Blocked => (any[0], any[2]),
        };
        let pair = |(a, b): (usize, usize)| dims(&[int(a), int(b)]);
        let strides = pair(shape.stride);
        let dilates = pair((shape.dilation.0 - 1, shape.dilation.1 - 1));
        // oneDNN wants the padding that its output size implies; surplus at the end may be unused.
        let end = |out: usize, stride: usize, taps: usize, dilation: usize, size: usize, before: usize| {
            (int(out) - 1) * int(stride) + int((taps - 1) * dilation) + 1 - int(size) - int(before)
        };
        let before = pair((shape.padding.top, shape.padding.left));
        let after = dims(&[
            end(
                p,
                shape.stride.0,
                shape.kernel.0,
                shape.dilation.0,
                shape.height,
                shape.padding.top,
            ),
            end(
                q,
                shape.stride.1,
                shape.kernel.1,
                shape.dilation.1,
                shape.width,
                shape.padding.left,
            ),
        ]);
        let f = conv.dnn.0.f;
        let mut desc = null_mut();
        // SAFETY: descriptors are alive, the arrays have at least two entries.
        let status = unsafe {
            (f.convolution_forward_primitive_desc_create)(
                &mut desc,
                conv.dnn.0.engine,
                FORWARD_INFERENCE,
                CONVOLUTION_DIRECT,
                source_desc,
                any[1],
                null_mut(),
                target_desc,
                strides.as_ptr(),
                dilates.as_ptr(),
                before.as_ptr(),
                after.as_ptr(),
                null(),
            )
        };
        check("dnnl_convolution_forward_primitive_desc_create", status)?;
        conv.owned.push(Owned::PrimitiveDesc(desc));
        let mut name: *const std::ffi::c_char = null();
        // SAFETY: the query writes a pointer to a string that lives as long as the descriptor.
        unsafe {
            if (f.primitive_desc_query)(desc, QUERY_IMPLEMENTATION, 0, (&raw mut name).cast()) == 0 && !name.is_null() {
                conv.implementation = std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned();
            }
        }
        conv.conv = conv.primitive(desc)?;
        // SAFETY: queries of a live descriptor; the results belong to it, and it is kept.
        let [source, weight, target] = [QUERY_SOURCE, QUERY_WEIGHTS, QUERY_TARGET]
            .map(|what| unsafe { (f.primitive_desc_query_md)(desc, what, 0) });
        conv.source = conv.memory(source)?;
        conv.weights = conv.memory(weight)?;
        conv.target = conv.memory(target)?;

        let outside = [conv.memory(plain[0])?, conv.memory(plain[1])?, conv.memory(plain[2])?];
        conv.fill(outside[0], input)?;
        conv.fill(outside[1], weights)?;
        let source_reorder = conv.reorder(plain[0], source)?;
        let weight_reorder = conv.reorder(plain[1], weight)?;
        let target_reorder = conv.reorder(target, plain[2])?;
        conv.source_reorder = (source_reorder, outside[0]);
        conv.target_reorder = (target_reorder, outside[2]);
        conv.execute(weight_reorder, &[(ARG_SOURCE, outside[1]), (ARG_TARGET, conv.weights)])?;
        conv.reorder_in()?;
        Ok(conv)
    }

    /// The library's name for the implementation that it chose.
    #[must_use]
    pub fn implementation(&self) -> &str {
        &self.implementation
    }

    /// The convolution alone.
    ///
    /// # Errors
    /// What the library reports.
    pub fn run(&mut self) -> Result<(), BaselineError> {
        self.execute(
            self.conv,
            &[
                (ARG_SOURCE, self.source),
                (ARG_WEIGHTS, self.weights),
                (ARG_TARGET, self.target),
            ],
        )
    }

    /// Reorders the NCHW input into the primitive's layout.
    ///
    /// # Errors
    /// What the library reports.
    pub fn reorder_in(&mut self) -> Result<(), BaselineError> {
        self.execute(
            self.source_reorder.0,
            &[(ARG_SOURCE, self.source_reorder.1), (ARG_TARGET, self.source)],
        )
    }

    /// Reorders the output to NCHW.
    ///
    /// # Errors
    /// What the library reports.
    pub fn reorder_out(&mut self) -> Result<(), BaselineError> {
        self.execute(
            self.target_reorder.0,
            &[(ARG_SOURCE, self.target), (ARG_TARGET, self.target_reorder.1)],
        )
    }

    /// The output of the last run, NCHW.
    ///
    /// # Errors
    /// What the library reports.
    pub fn output(&mut self) -> Result<Vec<f32>, BaselineError> {
        self.reorder_out()?;
        let data = self.data(self.target_reorder.1)?;
        // SAFETY: the memory was created for the output's dimensions, without padding.
        Ok(unsafe { std::slice::from_raw_parts(data, self.output_len) }.to_vec())
    }

    fn desc(&mut self, sizes: &[i64], any: bool) -> Result<Handle, BaselineError> {
        let sizes_12 = dims(sizes);
        let mut strides = dims(&[]);
        let mut stride = 1;
        for (i, size) in sizes.iter().enumerate().rev() {
            strides[i] = stride;
            stride *= size;
        }
        let (f, mut desc, rank) = (self.dnn.0.f, null_mut(), sizes.len() as c_int);
        // SAFETY: both arrays have DNNL_MAX_NDIMS = 12 entries.
        let status = unsafe {
            if any {
                (f.memory_desc_create_with_tag)(&mut desc, rank, sizes_12.as_ptr(), F32, TAG_ANY)
            } else {
                (f.memory_desc_create_with_strides)(&mut desc, rank, sizes_12.as_ptr(), F32, strides.as_ptr())
            }
        };
        check("dnnl_memory_desc_create", status)?;
        self.owned.push(Owned::Desc(desc));
        Ok(desc)
    }

    fn primitive(&mut self, desc: Handle) -> Result<Handle, BaselineError> {
        let mut primitive = null_mut();
        // SAFETY: the descriptor is alive.
        check("dnnl_primitive_create", unsafe {
            (self.dnn.0.f.primitive_create)(&mut primitive, desc)
        })?;
        self.owned.push(Owned::Primitive(primitive));
        Ok(primitive)
    }

    fn memory(&mut self, desc: Handle) -> Result<Handle, BaselineError> {
        let mut memory = null_mut();
        let allocate = usize::MAX as Handle; // DNNL_MEMORY_ALLOCATE
        // SAFETY: descriptor and engine are alive; the library allocates.
        check("dnnl_memory_create", unsafe {
            (self.dnn.0.f.memory_create)(&mut memory, desc, self.dnn.0.engine, allocate)
        })?;
        self.owned.push(Owned::Memory(memory));
        Ok(memory)
    }

    fn reorder(&mut self, from: Handle, to: Handle) -> Result<Handle, BaselineError> {
        let (engine, mut desc) = (self.dnn.0.engine, null_mut());
        // SAFETY: descriptors and engine are alive.
        let status =
            unsafe { (self.dnn.0.f.reorder_primitive_desc_create)(&mut desc, from, engine, to, engine, null()) };
        check("dnnl_reorder_primitive_desc_create", status)?;
        self.owned.push(Owned::PrimitiveDesc(desc));
        self.primitive(desc)
    }

    fn data(&self, memory: Handle) -> Result<*mut f32, BaselineError> {
        let mut data = null_mut();
        // SAFETY: the memory is alive.
        check("dnnl_memory_get_data_handle", unsafe {
            (self.dnn.0.f.memory_get_data_handle)(memory, &mut data)
        })?;
        Ok(data.cast())
    }

    fn fill(&self, memory: Handle, values: &[f32]) -> Result<(), BaselineError> {
        let data = self.data(memory)?;
        // SAFETY: the memory was created for as many elements (checked in `new`), without padding.
        unsafe { std::slice::from_raw_parts_mut(data, values.len()) }.copy_from_slice(values);
        Ok(())
    }

    fn execute(&self, primitive: Handle, args: &[(c_int, Handle)]) -> Result<(), BaselineError> {
        let mut list = [const {
            ExecArg {
                arg: 0,
                memory: null_mut(),
            }
        }; 3];
        for (slot, (arg, memory)) in list.iter_mut().zip(args) {
            *slot = ExecArg {
                arg: *arg,
                memory: *memory,
            };
        }
        let f = &self.dnn.0.f;
        // SAFETY: primitive, memories and stream are alive; `args` has at most three entries.
        check("dnnl_primitive_execute", unsafe {
            (f.primitive_execute)(primitive, self.dnn.0.stream, args.len() as c_int, list.as_ptr())
        })?;
        // SAFETY: the stream is alive.
        check("dnnl_stream_wait", unsafe { (f.stream_wait)(self.dnn.0.stream) })
    }
}

fn dims(sizes: &[i64]) -> Dims {
    let mut all = [0; 12];
    all[..sizes.len()].copy_from_slice(sizes);
    all
}
