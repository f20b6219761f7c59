//! Other libraries, to compare with. None is needed to build: OpenBLAS and oneDNN are loaded at run time.

mod gemm;
mod onednn;
mod openblas;

use std::{ffi::OsString, path::Path};

use libloading::Library;
use thiserror::Error;

pub use gemm::{Gemm, Im2col, MatrixMultiply};
pub use onednn::{DnnLayout, OneDnn, OneDnnConv};
pub use openblas::OpenBlas;

/// Why a baseline cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// The library was not found or cannot be loaded.
    #[error("{library} not found (tried {tried}): {reason}")]
    NotFound {
        /// The library's name.
        library: &'static str,
        /// File names that were tried.
        tried: String,
        /// What the loader said of the last.
        reason: String,
    },
    /// The library has not a function that is needed.
    #[error("{library} has no {symbol}")]
    Symbol {
        /// The library's name.
        library: &'static str,
        /// The function.
        symbol: String,
    },
    /// The library returned an error.
    #[error("{call} failed with status {status}")]
    Status {
        /// The function.
        call: &'static str,
        /// Its result.
        status: i32,
    },
    /// The library cannot run this shape.
    #[error("{0} is not supported by this baseline")]
    Unsupported(&'static str),
}

/// Loads `path`, or the first of `names` that the system's loader finds.
fn load(library: &'static str, path: Option<&Path>, names: &[&str]) -> Result<Library, BaselineError> {
    let candidates: Vec<OsString> = match path {
        Some(path) => vec![path.as_os_str().to_owned()],
        None => names.iter().map(OsString::from).collect(),
    };
    let mut reason = String::new();
    for candidate in &candidates {
        // SAFETY: initialisers of a shared library run here. The user names the library or has it on the loader's path;
        // both libraries are meant to be loaded this way.
        match unsafe { Library::new(candidate) } {
            Ok(library) => return Ok(library),
            Err(error) => reason = error.to_string(),
        }
    }
    let tried = candidates
        .iter()
        .map(|name| name.to_string_lossy())
        .collect::<Vec<_>>()
        .join(", ");
    Err(BaselineError::NotFound { library, tried, reason })
}
