//! The host's caches, as far as tiling needs them.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};

/// Capacities and latencies that [`crate::csa`] tiles for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Caches {
    /// Level-1 data cache, bytes.
    pub l1: usize,
    /// Level-2 cache, bytes.
    pub l2: usize,
    /// Level-3 cache, bytes.
    pub l3: usize,
    /// Cache line, bytes.
    pub line: usize,
    /// Load-to-use latency of L1, L2, L3 and memory, cycles: the weights of CSA's cost.
    pub latency: [f64; 4],
}

impl Default for Caches {
    /// 32 KiB, 1 MiB, 16 MiB, 64-byte lines; latencies of current x86 server cores (5, 15, 60, 400 cycles).
    fn default() -> Self {
        Caches {
            l1: 32 << 10,
            l2: 1 << 20,
            l3: 16 << 20,
            line: 64,
            latency: [5.0, 15.0, 60.0, 400.0],
        }
    }
}

impl Caches {
    /// Sizes of the first CPU's caches as the system reports them (`/sys/devices/system/cpu/cpu0/cache` on Linux). What
    /// the system does not tell keeps its [`Default`].
    #[must_use]
    pub fn host() -> Self {
        Caches::read(Path::new("/sys/devices/system/cpu/cpu0/cache"))
    }

    fn read(folder: &Path) -> Self {
        let mut caches = Caches::default();
        for index in 0..16 {
            let read = |name: &str| fs::read_to_string(folder.join(format!("index{index}")).join(name)).ok();
            let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) else {
                break;
            };
            let Some(size) = parse_size(size.trim()) else { continue };
            match (level.trim(), kind.trim()) {
                ("1", "Data" | "Unified") => {
                    caches.l1 = size;
                    if let Some(line) = read("coherency_line_size")
                        .and_then(|line| line.trim().parse().ok())
                        .filter(|line| *line > 0)
                    {
                        caches.line = line;
                    }
                }
                ("2", "Data" | "Unified") => caches.l2 = size,
                ("3", "Data" | "Unified") => caches.l3 = size,
                _ => {}
            }
        }
        caches
    }
}

fn parse_size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok().filter(|n| *n > 0)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(parse_size("32K"), Some(32 << 10));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("0K"), None);
        assert_eq!(parse_size("big"), None);
    }

    #[test]
    fn a_system_that_tells_nothing_gets_the_defaults() {
        assert_eq!(Caches::read(Path::new("/nonexistent")), Caches::default());
    }
}
