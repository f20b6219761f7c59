//! Where results go: a file that appears whole or not at all, or standard output.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::faults::Faults;

/// Where a result will be written.
#[derive(Debug)]
pub(crate) enum Destination {
    /// Standard output.
    Stdout,
    /// A temporary in the folder of the target, renamed over it at the end.
    File {
        /// What is written to.
        temporary: NamedTempFile,
        /// What it becomes.
        target: PathBuf,
    },
    /// Something that cannot be replaced by a rename: a device, a named pipe.
    Special(PathBuf),
}

/// Why a stream ended early.
#[derive(Debug)]
pub(crate) enum Streaming {
    /// It cannot be written to.
    Output(io::Error),
    /// There is nothing to write.
    Input(Faults),
}

impl From<io::Error> for Streaming {
    fn from(error: io::Error) -> Self {
        Streaming::Output(error)
    }
}

impl Destination {
    /// Prepares `target` (standard output if `None` or `-`) before any work is done, so that a folder that
    /// cannot be written to is reported at once.
    pub(crate) fn prepare(target: Option<&Path>) -> Result<Self, Faults> {
        let Some(given) = target.filter(|path| *path != Path::new("-")) else {
            return Ok(Destination::Stdout);
        };
        // The kind only: the error itself names the temporary, which means nothing to the user.
        let fault = |error: io::Error| Faults::one(format!("{}: cannot be written: {}", given.display(), error.kind()));
        // A symbolic link stays one: what it points at is replaced.
        let target = fs::canonicalize(given).unwrap_or_else(|_| given.to_path_buf());
        match fs::metadata(&target) {
            Ok(data) if data.is_dir() => return Err(fault(io::ErrorKind::IsADirectory.into())),
            Ok(data) if !data.is_file() => return Ok(Destination::Special(target)),
            _ => {}
        }
        let folder = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let message = format!("{}: there is no folder {}", given.display(), folder.display());
            return Err(Faults::one(message));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".cyclonest-");
        #[cfg(unix)]
        {
            // As any new file: the process's umask decides, not the private mode of temporaries.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(folder).map_err(fault)?;
        Ok(Destination::File { temporary, target })
    }

    /// Writes while `produce` runs, for results that are too long to hold. A file appears only if it succeeds.
    pub(crate) fn stream<T>(self, produce: impl FnOnce(&mut dyn Write) -> Result<T, Streaming>) -> Result<T, Faults> {
        let unwritten = |path: &Path, fault: Streaming| match fault {
            Streaming::Output(error) => Faults::one(format!("{}: cannot be written: {error}", path.display())),
            Streaming::Input(faults) => faults,
        };
        match self {
            Destination::Stdout => produce(&mut io::BufWriter::new(io::stdout().lock()))
                .map_err(|fault| unwritten(Path::new("standard output"), fault)),
            Destination::Special(path) => {
                let file = fs::OpenOptions::new().write(true).open(&path);
                let mut file = io::BufWriter::new(file.map_err(|error| unwritten(&path, error.into()))?);
                produce(&mut file).map_err(|fault| unwritten(&path, fault))
            }
            Destination::File { mut temporary, target } => {
                let produced = produce(&mut io::BufWriter::new(&mut temporary));
                let produced = produced.map_err(|fault| unwritten(&target, fault))?;
                match temporary.persist(&target) {
                    Ok(_) => Ok(produced),
                    Err(error) => Err(unwritten(&target, error.error.into())),
                }
            }
        }
    }

    /// Writes `text`. A reader that closed the pipe has seen enough: that is success.
    pub(crate) fn write(self, text: &str) -> Result<(), Faults> {
        self.write_bytes(text.as_bytes())
    }

    /// Writes what need not be text.
    pub(crate) fn write_bytes(self, bytes: &[u8]) -> Result<(), Faults> {
        match self {
            Destination::Stdout => print_bytes(bytes),
            Destination::Special(path) => fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|mut file| file.write_all(bytes))
                .or_else(ignore_broken_pipe)
                .map_err(|error| Faults::one(format!("{}: cannot be written: {error}", path.display()))),
            Destination::File { mut temporary, target } => temporary
                .write_all(bytes)
                .and_then(|()| temporary.persist(&target).map(drop).map_err(|error| error.error))
                .map_err(|error| Faults::one(format!("{}: cannot be written: {error}", target.display()))),
        }
    }
}

/// Writes `text` to standard output. A reader that closed the pipe has seen enough: that is success.
pub(crate) fn print(text: &str) -> Result<(), Faults> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<(), Faults> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .or_else(ignore_broken_pipe)
        .map_err(|error| Faults::one(format!("standard output cannot be written: {error}")))
}

fn ignore_broken_pipe(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    }
}
