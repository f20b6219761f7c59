//! Memory that plans keep for their runs.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Alignment of every buffer: a cache line.
const ALIGN: usize = 64;

/// A zeroed f32 buffer aligned to cache lines.
pub(crate) struct Aligned {
    data: *mut f32,
    len: usize,
}

impl Aligned {
    pub(crate) fn zeroed(len: usize) -> Self {
        if len == 0 {
            return Aligned {
                data: ALIGN as *mut f32,
                len,
            };
        }
        let layout = Self::layout(len);
        // SAFETY: the layout has a size above zero.
        let data = unsafe { alloc_zeroed(layout) }.cast::<f32>();
        if data.is_null() {
            handle_alloc_error(layout);
        }
        Aligned { data, len }
    }

    fn layout(len: usize) -> Layout {
        Layout::array::<f32>(len)
            .and_then(|layout| layout.align_to(ALIGN))
            .expect("a checked shape's buffers can be addressed")
    }

    pub(crate) fn as_ptr(&self) -> *const f32 {
        self.data
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut f32 {
        self.data
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: `data` points to `len` initialised elements (or is dangling and aligned for length 0), owned by self.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated in `zeroed` with the same layout.
            unsafe { dealloc(self.data.cast(), Self::layout(self.len)) }
        }
    }
}

// SAFETY: the buffer is owned, as that of a Vec<f32>.
unsafe impl Send for Aligned {}
// SAFETY: a shared reference only gives out the address; reading through it is the reader's business.
unsafe impl Sync for Aligned {}

impl std::fmt::Debug for Aligned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Aligned({} elements)", self.len)
    }
}
