//! The log: one record per line, appended whole, each with a checksum.
//!
//! A line is the record in JSON, a tab, and sixteen hexadecimal digits of its hash. A process that is killed while it
//! writes leaves at most one line that is cut off; it is recognised by its missing end or its hash, dropped, and what
//! it said is done again. A line that is damaged in front of whole ones cannot come about that way and is an error.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use cyclonest_scheduler::explore::Swept;
use serde::{Deserialize, Serialize};

use super::identity::hash;
use super::verify::Simulated;

/// What is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Record {
    /// The first line.
    Begin {
        /// Version of the log: 1.
        format: u32,
        /// Hash of `identity`.
        plan: String,
        /// Whether designs are skipped.
        prune: bool,
        /// Everything that the results depend on.
        identity: String,
    },
    /// A chunk is done.
    Swept {
        /// Its result.
        swept: Swept,
        /// Time that it took \[s\].
        seconds: f64,
    },
    /// A design has been simulated.
    Simulated(Simulated),
}

/// Between two times that the file is forced onto the disk.
const SYNC: Duration = Duration::from_secs(2);

/// A log that is being written.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Bytes of whole records.
    length: u64,
    synced: Instant,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    /// The file.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// In the middle.
    #[error(
        "line {line} (byte {offset}) is damaged and whole records follow; a killed process does not do that. \
         Cut the file off before that line to keep what stands in front of it"
    )]
    Damaged {
        /// Which line.
        line: u64,
        /// Where it starts.
        offset: u64,
    },
}

/// Bytes of whole records, and whether a record that was cut off follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) length: u64,
    pub(super) torn: bool,
}

/// Reads every whole record.
pub(super) fn read(path: &Path, mut each: impl FnMut(Record)) -> Result<Extent, LogError> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut length, mut lines) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(Extent { length, torn: false });
        }
        match parse(&line) {
            Some(record) => each(record),
            None => break,
        }
        length += line.len() as u64;
        lines += 1;
    }
    // Only the last record may be cut off. Its rest can look like anything, but not like a whole record.
    loop {
        line.clear();
        if reader.by_ref().read_until(b'\n', &mut line)? == 0 {
            return Ok(Extent { length, torn: true });
        }
        if parse(&line).is_some() {
            return Err(LogError::Damaged {
                line: lines + 1,
                offset: length,
            });
        }
    }
}

fn parse(line: &[u8]) -> Option<Record> {
    let line = line.strip_suffix(b"\n")?;
    let tab = line.len().checked_sub(17).filter(|&at| line[at] == b'\t')?;
    let (json, sum) = (&line[..tab], &line[tab + 1..]);
    (sum == format!("{:016x}", hash(json)).as_bytes()).then_some(())?;
    serde_json::from_slice(json).ok()
}

impl Log {
    /// Opens the log. Only one process can, until it drops the log or ends.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        #[cfg(unix)]
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(
            |error| match error {
                rustix::io::Errno::WOULDBLOCK => io::Error::other("another process is at work on it"),
                error => error.into(),
            },
        )?;
        Ok(Log {
            file,
            length: 0,
            synced: Instant::now(),
        })
    }

    /// Goes on after the first `length` bytes; what follows them is dropped.
    pub(super) fn go_on(&mut self, length: u64) -> io::Result<()> {
        self.length = length;
        self.file.set_len(length)
    }

    /// Appends a record. If that fails, the log ends after the record before it.
    pub(super) fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        let sum = hash(&line);
        line.extend(format!("\t{sum:016x}\n").bytes());
        if let Err(error) = self.file.write_all(&line) {
            // If this fails too, the rest of the record is recognised as cut off.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += line.len() as u64;
        if self.synced.elapsed() > SYNC {
            self.sync()?;
        }
        Ok(())
    }

    /// Forces what was appended onto the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.synced = Instant::now();
        self.file.sync_data()
    }
}

impl Drop for Log {
    /// Unlocks the file. Closing alone would leave it locked by a child process that is just being started and has a copy
    /// of the descriptor.
    fn drop(&mut self) {
        #[cfg(unix)]
        let _ = rustix::fs::flock(&self.file, rustix::fs::FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u32) -> Record {
        Record::Begin {
            format: n,
            plan: "p".repeat(n as usize),
            prune: true,
            identity: "a\tb\nc".to_owned(),
        }
    }

    fn records(path: &Path) -> Result<(Vec<Record>, Extent), LogError> {
        let mut all = Vec::new();
        let extent = read(path, |record| all.push(record))?;
        Ok((all, extent))
    }

    #[test]
    fn a_log_that_is_cut_off_anywhere_keeps_its_whole_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::open(&path).unwrap();
        let mut ends = vec![0];
        for n in 0..4 {
            log.append(&record(n)).unwrap();
            ends.push(log.length);
        }
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(records(&path).unwrap().0, [0, 1, 2, 3].map(record));
        for end in 0..=whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            let (all, extent) = records(&path).unwrap();
            let kept = ends.iter().filter(|&&e| e <= end as u64).count() - 1;
            assert_eq!(all.len(), kept, "{end}");
            assert_eq!((extent.length, extent.torn), (ends[kept], ends[kept] != end as u64));
            // Appending goes on behind the last whole record.
            let mut log = Log::open(&path).unwrap();
            log.go_on(extent.length).unwrap();
            log.append(&record(9)).unwrap();
            drop(log);
            assert_eq!(records(&path).unwrap().0.last(), Some(&record(9)));
        }
    }

    #[test]
    fn damage_in_front_of_whole_records_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::open(&path).unwrap();
        (0..3).for_each(|n| log.append(&record(n)).unwrap());
        drop(log);
        let mut bytes = std::fs::read(&path).unwrap();
        let second = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
        bytes[second + 12] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = records(&path).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("line 2 (byte {second}) is damaged")),
            "{error}"
        );
        bytes.truncate(second + 40);
        std::fs::write(&path, &bytes).unwrap();
        assert!(records(&path).unwrap().1.torn);
    }

    #[cfg(unix)]
    #[test]
    fn two_processes_do_not_write_to_one_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let _log = Log::open(&path).unwrap();
        assert!(Log::open(&path).is_err());
    }
}
