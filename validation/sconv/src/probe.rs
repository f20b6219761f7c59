//! Measuring the host: thread time, clock, FMA rate, bandwidth and latency.
//!
//! Virtual machines often hide performance counters. What is needed here can be had without: the time that a thread really
//! ran, and the clock during it from a chain of dependent multiplications of known latency.

use std::{hint::black_box, sync::OnceLock, time::Duration};

use crate::{Isa, scratch::Aligned};

/// Time that the calling thread has run on a CPU, from some start. Wall-clock time on systems other than Unix.
#[must_use]
pub fn thread_time() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }
}

/// Seconds of thread time since `started`, without what asking for it takes: some hundred nanoseconds of a system call,
/// which would be a few per cent of the short loops here.
fn since(started: Duration) -> f64 {
    static ASKING: OnceLock<Duration> = OnceLock::new();
    let asking = ASKING.get_or_init(|| {
        let once = || {
            let started = thread_time();
            thread_time() - started
        };
        (0..1000).map(|_| once()).min().unwrap_or_default()
    });
    let elapsed = thread_time() - started;
    elapsed
        .saturating_sub(*asking)
        .max(Duration::from_nanos(1))
        .as_secs_f64()
}

/// Cycles that one integer multiplication waits for the one before: 3 on the x86-64 cores since 2008.
const MULTIPLY_LATENCY: f64 = 3.0;

/// Clock in Hz, from `links` dependent multiplications (about `links` nanoseconds).
#[must_use]
pub fn clock(links: u64) -> f64 {
    let rounds = (links / 16).max(1);
    let mut value = black_box(3u64);
    let started = thread_time();
    for _ in 0..rounds {
        value = multiply_16(value);
    }
    let elapsed = since(started);
    black_box(value);
    rounds as f64 * 16.0 * MULTIPLY_LATENCY / elapsed
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn multiply_16(mut value: u64) -> u64 {
    // SAFETY: register arithmetic only. Written out so that no compiler shortens the chain.
    unsafe {
        std::arch::asm!(
            "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}",
            "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}",
            "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}",
            "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}",
            inout(reg) value, options(pure, nomem, nostack),
        );
    }
    value
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn multiply_16(mut value: u64) -> u64 {
    for _ in 0..16 {
        value = black_box(value.wrapping_mul(value));
    }
    value
}

/// Multiply-adds (lanes) per second of independent register-only chains, over about `vectors` vector operations.
#[must_use]
pub fn fma_rate(isa: Isa, vectors: u64) -> f64 {
    let rounds = (vectors / FMA_CHAINS as u64).max(1);
    let started = thread_time();
    fma_chains(isa, rounds);
    (rounds * FMA_CHAINS as u64 * isa.lanes() as u64) as f64 / since(started)
}

/// Independent chains: enough to cover a latency of 5 cycles twice per cycle.
const FMA_CHAINS: usize = 12;

fn fma_chains(isa: Isa, rounds: u64) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has AVX-512.
        Isa::Avx512 if isa.available() => unsafe { fma_512(rounds) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has AVX2 and FMA.
        Isa::Avx2 if isa.available() => unsafe { fma_256(rounds) },
        _ => {
            let mut sums = [[1.0f32; 4]; FMA_CHAINS];
            let factor = black_box([0.999f32; 4]);
            for _ in 0..rounds {
                for sum in &mut sums {
                    for (sum, factor) in sum.iter_mut().zip(&factor) {
                        *sum = *sum * factor + factor;
                    }
                }
            }
            black_box(sums);
        }
    }
}

/// # Safety
/// The CPU has AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn fma_512(rounds: u64) {
    use std::arch::x86_64::*;
    let factor = _mm512_set1_ps(black_box(0.999));
    let mut sums = [factor; FMA_CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, factor, factor);
        }
    }
    for sum in sums {
        black_box(_mm512_reduce_add_ps(sum));
    }
}

/// # Safety
/// The CPU has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn fma_256(rounds: u64) {
    use std::arch::x86_64::*;
    let factor = _mm256_set1_ps(black_box(0.999));
    let mut sums = [factor; FMA_CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, factor, factor);
        }
    }
    for sum in sums {
        black_box(_mm256_cvtss_f32(sum));
    }
}

/// Bytes per second of reading a buffer of `bytes` again and again, `passes` times.
#[must_use]
pub fn read_rate(bytes: usize, passes: usize) -> f64 {
    let mut buffer = Aligned::zeroed((bytes / 4).max(256).next_multiple_of(256));
    let buffer = buffer.as_mut_slice();
    // Written once, so that every page is there.
    write(buffer, 1.0);
    read(buffer);
    let started = thread_time();
    for _ in 0..passes {
        read(black_box(buffer));
    }
    (passes * buffer.len() * 4) as f64 / since(started)
}

fn read(buffer: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    if Isa::Avx512.available() {
        // SAFETY: the CPU has AVX-512.
        unsafe { read_512(buffer) };
        return;
    }
    let mut sums = [0.0f32; 32];
    for chunk in buffer.chunks_exact(32) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += value;
        }
    }
    black_box(sums);
}

/// # Safety
/// The CPU has AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn read_512(buffer: &[f32]) {
    use std::arch::x86_64::*;
    let mut sums = [_mm512_setzero_si512(); 8];
    for chunk in buffer.chunks_exact(128) {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the chunk has 8 vectors of 16.
            let value = unsafe { _mm512_loadu_si512(chunk.as_ptr().add(i * 16).cast()) };
            // Integer addition: one cycle, so that only loads bound the loop.
            *sum = _mm512_xor_si512(*sum, value);
        }
    }
    for sum in sums {
        black_box(_mm512_reduce_add_epi32(sum));
    }
}

/// Bytes per second of overwriting a buffer of `bytes` again and again, `passes` times.
#[must_use]
pub fn write_rate(bytes: usize, passes: usize) -> f64 {
    let mut buffer = Aligned::zeroed((bytes / 4).max(256).next_multiple_of(256));
    let buffer = buffer.as_mut_slice();
    write(buffer, 1.0);
    let started = thread_time();
    for pass in 0..passes {
        write(black_box(buffer), pass as f32);
    }
    black_box(&*buffer);
    (passes * buffer.len() * 4) as f64 / since(started)
}

fn write(buffer: &mut [f32], value: f32) {
    #[cfg(target_arch = "x86_64")]
    if Isa::Avx512.available() {
        // SAFETY: the CPU has AVX-512.
        unsafe { write_512(buffer, value) };
        return;
    }
    buffer.fill(value);
}

/// # Safety
/// The CPU has AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn write_512(buffer: &mut [f32], value: f32) {
    use std::arch::x86_64::*;
    let value = _mm512_set1_ps(value);
    for chunk in buffer.chunks_exact_mut(128) {
        for i in 0..8 {
            // SAFETY: the chunk has 8 vectors of 16.
            unsafe { _mm512_storeu_ps(chunk.as_mut_ptr().add(i * 16), value) };
        }
    }
}

/// Seconds from a load to the next that needs its result, in a buffer of `bytes` visited line by line in random order.
#[must_use]
pub fn load_latency(bytes: usize, loads: usize) -> f64 {
    const LINE: usize = 64 / size_of::<usize>();
    let lines = (bytes / 64).max(2);
    // One cycle through all lines (Sattolo), from a fixed generator.
    let mut order: Vec<usize> = (0..lines).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..lines).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(i, (state % i as u64) as usize);
    }
    let mut next = vec![0usize; lines * LINE];
    for (line, target) in order.iter().enumerate() {
        next[line * LINE] = target * LINE;
    }
    let mut at = 0;
    for _ in 0..lines.min(loads) {
        at = next[at];
    }
    let started = thread_time();
    for _ in 0..loads {
        at = next[at];
    }
    let elapsed = since(started);
    black_box(at);
    elapsed / loads as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_of_this_century() {
        let clock = clock(1_000_000);
        assert!((2e8..2e10).contains(&clock), "{clock}");
    }

    #[test]
    fn rates_and_latencies_are_finite_and_positive() {
        for value in [
            fma_rate(Isa::detect(), 100_000),
            read_rate(1 << 14, 10),
            write_rate(1 << 14, 10),
            load_latency(1 << 14, 10_000),
        ] {
            assert!(value.is_finite() && value > 0.0, "{value}");
        }
    }
}
