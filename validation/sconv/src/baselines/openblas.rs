//! OpenBLAS by its C interface.

use std::{
    ffi::{CStr, c_char, c_int},
    path::Path,
};

use libloading::{Library, Symbol};

use super::{BaselineError, Gemm, load};

const NAME: &str = "OpenBLAS";

type Sgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    f32,
    *mut f32,
    c_int,
);

/// A loaded OpenBLAS, set to one thread.
#[derive(Debug)]
pub struct OpenBlas {
    sgemm: Sgemm,
    core: String,
    config: String,
    /// Keeps the functions above valid.
    _library: Library,
}

impl OpenBlas {
    /// Loads `path`, or what the system's loader finds under the names of the PyPI wheel and of distributions.
    ///
    /// # Errors
    /// No library, or one without `cblas_sgemm`.
    pub fn load(path: Option<&Path>) -> Result<Self, BaselineError> {
        let library = load(
            NAME,
            path,
            &["libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so"],
        )?;
        let prefix = ["scipy_", ""]
            .into_iter()
            // SAFETY: only the symbol's presence is tested.
            .find(|prefix| unsafe { library.get::<Sgemm>(format!("{prefix}cblas_sgemm").as_bytes()) }.is_ok())
            .ok_or(BaselineError::Symbol {
                library: NAME,
                symbol: "cblas_sgemm".to_string(),
            })?;
        // SAFETY: the signature is that of cblas.h with 32-bit integers. Interfaces with 64-bit integers carry the suffix
        // 64_ and are not found above.
        let sgemm = unsafe {
            *library
                .get::<Sgemm>(format!("{prefix}cblas_sgemm").as_bytes())
                .map_err(|_| symbol("cblas_sgemm"))?
        };
        // SAFETY: the signature is that of OpenBLAS's cblas.h.
        let threads: Symbol<'_, unsafe extern "C" fn(c_int)> =
            unsafe { library.get(format!("{prefix}openblas_set_num_threads").as_bytes()) }
                .map_err(|_| symbol("openblas_set_num_threads"))?;
        // SAFETY: may be called at any time.
        unsafe { threads(1) };
        let text = |name: &str| {
            // SAFETY: the signature is that of OpenBLAS's cblas.h; the string is static.
            unsafe {
                let get: Symbol<'_, unsafe extern "C" fn() -> *const c_char> =
                    library.get(format!("{prefix}{name}").as_bytes()).ok()?;
                let text = get();
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let core = text("openblas_get_corename").unwrap_or_else(|| "unknown".to_string());
        let config = text("openblas_get_config").unwrap_or_else(|| "unknown".to_string());
        Ok(OpenBlas {
            sgemm,
            core,
            config,
            _library: library,
        })
    }

    /// The kernel family that OpenBLAS chose for this CPU.
    #[must_use]
    pub fn core(&self) -> &str {
        &self.core
    }

    /// Version and build, as the library says.
    #[must_use]
    pub fn config(&self) -> &str {
        self.config.trim()
    }
}

fn symbol(name: &str) -> BaselineError {
    BaselineError::Symbol {
        library: NAME,
        symbol: name.to_string(),
    }
}

impl Gemm for OpenBlas {
    fn sgemm(&self, (m, n, k): (usize, usize, usize), a: &[f32], b: &[f32], c: &mut [f32]) {
        assert!(
            a.len() >= m * k && b.len() >= k * n && c.len() >= m * n,
            "matrices of the stated sizes"
        );
        let int = |n: usize| c_int::try_from(n).expect("sizes within 31 bits");
        let (rows, columns, depth) = (int(m), int(n), int(k));
        const ROW_MAJOR: c_int = 101;
        const PLAIN: c_int = 111;
        // SAFETY: the matrices have the sizes that are passed, rows are contiguous, and C is not aliased.
        unsafe {
            (self.sgemm)(
                ROW_MAJOR,
                PLAIN,
                PLAIN,
                rows,
                columns,
                depth,
                1.0,
                a.as_ptr(),
                depth,
                b.as_ptr(),
                columns,
                0.0,
                c.as_mut_ptr(),
                columns,
            );
        }
    }
}
