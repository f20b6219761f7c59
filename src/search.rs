//! What the commands that search for mappings have in common: objective, oracle and budget.

use std::num::NonZeroU64;

use clap::{Args as ClapArgs, ValueEnum};
use cyclonest_arch::Accelerator;
use cyclonest_scheduler::cost::{self, CostModel};
use cyclonest_scheduler::{Objective, Request};
use cyclonest_validation::oracle::Simulated;
use cyclonest_workloads::Problem;

/// How candidates are judged.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct SearchArgs {
    /// What is minimised.
    #[arg(long, value_enum, default_value_t = Minimise::Cycles)]
    objective: Minimise,
    /// Who judges candidates; without it, schedulers that search ask `exact:quick`.
    #[arg(long, value_enum)]
    oracle: Option<Oracle>,
    /// Who decides at the end between the best candidates of different parts of a search.
    #[arg(long, value_enum, default_value_t = Referee::Sim)]
    referee: Referee,
    /// Evaluations of the oracle per layer [default: the scheduler's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64))]
    budget: Option<u64>,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Minimise {
    /// Latency.
    Cycles,
    /// Energy.
    Energy,
    /// Energy × latency.
    Edp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Oracle {
    /// The project's own model: exact counts, rehearsed latency.
    Exact,
    /// The same counts, latency in closed form: ten times faster, less accurate.
    #[value(name = "exact:quick")]
    Quick,
    /// Timeloop's rules.
    Timeloop,
    /// The simulator: slow, and right.
    Sim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Referee {
    /// The simulator: a dozen simulations per layer.
    Sim,
    /// The oracle.
    None,
}

/// The referee of every command that does not choose one.
pub(crate) const REFEREE: Option<&dyn CostModel> = Some(&Simulated);

impl SearchArgs {
    /// The request for one layer.
    pub(crate) fn request<'a>(&self, problem: &'a Problem, arch: &'a Accelerator) -> Request<'a> {
        let oracle: Option<&dyn CostModel> = match self.oracle {
            None => None,
            Some(Oracle::Exact) => cost::by_name("exact"),
            Some(Oracle::Quick) => cost::by_name("exact:quick"),
            Some(Oracle::Timeloop) => cost::by_name("timeloop").map(|model| model as &dyn CostModel),
            Some(Oracle::Sim) => Some(&Simulated),
        };
        Request {
            objective: self.objective(),
            oracle,
            budget: self.budget,
            seed: self.seed,
            referee: match (self.referee, self.oracle) {
                (Referee::None, _) | (_, Some(Oracle::Sim)) => None,
                (Referee::Sim, _) => REFEREE,
            },
            ..Request::new(problem, arch)
        }
    }

    /// What is minimised.
    pub(crate) fn objective(&self) -> Objective {
        match self.objective {
            Minimise::Cycles => Objective::Cycles,
            Minimise::Energy => Objective::Energy,
            Minimise::Edp => Objective::Edp,
        }
    }

    /// Who has the last word on a mapping, by name.
    pub(crate) fn judge(&self) -> &'static str {
        match self.referee {
            Referee::Sim => "sim",
            Referee::None => self.oracle(),
        }
    }

    /// The oracle by name.
    pub(crate) fn oracle(&self) -> &'static str {
        match self.oracle {
            Some(Oracle::Exact) => "exact",
            None | Some(Oracle::Quick) => "exact:quick",
            Some(Oracle::Timeloop) => "timeloop",
            Some(Oracle::Sim) => "sim",
        }
    }
}

/// CPU seconds that this thread has used; wall-clock seconds where the system does not tell.
pub(crate) fn cpu_seconds() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns as f64 * 1e-9)
}

/// Geometric mean of positive numbers; `None` of none.
pub(crate) fn geomean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u64);
    for value in values {
        sum += value.ln();
        count += 1;
    }
    NonZeroU64::new(count).map(|count| (sum / count.get() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_geometric_mean_multiplies() {
        assert!((geomean([1.0, 4.0, 2.0]).expect("values") - 2.0).abs() < 1e-12);
        assert_eq!(geomean([]), None);
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = cpu_seconds();
        let sum: u64 = (0..3_000_000_u64).map(|i| std::hint::black_box(i) % 7).sum();
        assert!(sum > 0 && cpu_seconds() >= before);
    }
}
