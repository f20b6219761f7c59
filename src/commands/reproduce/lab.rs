//! What experiments share: which layers a quick run takes, and schedules that several figures judge.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::rc::Rc;

use cyclonest_arch::streaming::{Backend, Coefficients, Front, Graph, Objective, Platform, backend};
use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::Request;
use cyclonest_scheduler::streaming::{Budget, Found, OptimiseError, Optimiser, Space};
use cyclonest_sim::Options;
use cyclonest_validation::host::Host;
use cyclonest_validation::native::{self, Config, Paths, Report, layers};
use cyclonest_workloads::Problem;

use crate::parallel;
use crate::search::cpu_seconds;

/// The four networks of CoSA's evaluation.
pub(super) const COSA_NETWORKS: [&str; 4] = ["alexnet", "resnet50", "resnext50_32x4d", "deepbench"];

/// Layers of a network that a quick run takes.
const FEW: usize = 3;

/// Settings of a run, and what is already known.
pub(super) struct Lab {
    /// A subset of layers, networks and seeds.
    pub(super) quick: bool,
    /// Threads that may be used.
    pub(super) threads: NonZeroUsize,
    judged: RefCell<Known>,
    native: RefCell<Option<Rc<Report>>>,
}

/// Layers as mapped, by machine and scheduler.
type Known = BTreeMap<(String, String), Rc<Vec<Judged>>>;

/// A layer as one scheduler maps it.
pub(super) struct Judged {
    pub(super) network: String,
    pub(super) layer: String,
    pub(super) problem: Problem,
    pub(super) mapping: Mapping,
    /// Simulated.
    pub(super) cycles: u64,
    /// Of the simulated counts.
    pub(super) energy_pj: f64,
    /// Of the search alone.
    pub(super) cpu_s: f64,
}

/// A distinct layer.
pub(super) struct Job {
    pub(super) network: String,
    pub(super) layer: String,
    pub(super) problem: Problem,
}

impl Lab {
    pub(super) fn new(quick: bool, threads: NonZeroUsize) -> Self {
        Lab {
            quick,
            threads,
            judged: RefCell::default(),
            native: RefCell::default(),
        }
    }

    /// The distinct layers of networks; a quick run takes a few of each, evenly spread.
    pub(super) fn layers(&self, networks: &[&str]) -> Vec<Job> {
        let mut jobs = Vec::new();
        for &name in networks {
            let network = cyclonest_workloads::bundled::load(name).expect("bundled");
            let distinct = network.distinct();
            let step = if self.quick { distinct.len().div_ceil(FEW) } else { 1 };
            jobs.extend(distinct.into_iter().step_by(step).map(|layer| Job {
                network: name.to_string(),
                layer: layer.name,
                problem: layer.problem,
            }));
        }
        jobs
    }

    /// The published convolutions on this computer, beside what libraries there are, with SConv's cycles predicted; a
    /// quick run takes one in twelve.
    pub(super) fn native(&self) -> Result<Rc<Report>, String> {
        if let Some(known) = self.native.borrow().as_ref() {
            return Ok(known.clone());
        }
        let step = if self.quick { 12 } else { 1 };
        let chosen: Vec<_> = layers::published().into_iter().step_by(step).collect();
        let library = |name: &str| std::env::var_os(name).map(std::path::PathBuf::from);
        let config = Config {
            paths: Paths {
                openblas: library("CYCLONEST_OPENBLAS"),
                onednn: library("CYCLONEST_ONEDNN"),
            },
            samples: if self.quick { 3 } else { 7 },
            ablations: false,
        };
        let mut report = native::measure(&chosen, &config, &mut |_, _| {});
        native::add_predictions(&mut report, &Host::measure().accelerator(), config.samples)?;
        let report = Rc::new(report);
        *self.native.borrow_mut() = Some(report.clone());
        Ok(report)
    }

    /// CoSA's networks on a machine, mapped by a scheduler and simulated. Layers that do not map are left out.
    pub(super) fn judged(&self, arch: &str, scheduler: &str) -> Result<Rc<Vec<Judged>>, String> {
        let key = (arch.to_string(), scheduler.to_string());
        if let Some(known) = self.judged.borrow().get(&key) {
            return Ok(known.clone());
        }
        let machine = accelerator(arch)?;
        let jobs = self.layers(&COSA_NETWORKS);
        let judged = parallel::map(
            &jobs,
            self.threads,
            |job| job.problem.macs(),
            |job| judge(job, &machine, scheduler),
            |_| {},
        );
        let judged: Rc<Vec<Judged>> = Rc::new(judged.into_iter().flatten().collect());
        self.judged.borrow_mut().insert(key, judged.clone());
        Ok(judged)
    }
}

/// A bundled accelerator.
pub(super) fn accelerator(name: &str) -> Result<Accelerator, String> {
    cyclonest_arch::bundled::load(name).ok_or_else(|| format!("no machine `{name}`"))
}

/// Maps and simulates one layer.
pub(super) fn judge(job: &Job, arch: &Accelerator, scheduler: &str) -> Option<Judged> {
    let scheduler = cyclonest_scheduler::by_name(scheduler)?;
    let start = cpu_seconds();
    let scheduled = scheduler.schedule(&Request::new(&job.problem, arch)).ok()?;
    let cpu_s = cpu_seconds() - start;
    let outcome = cyclonest_sim::simulate(&job.problem, arch, &scheduled.mapping, Options::default()).ok()?;
    Some(Judged {
        network: job.network.clone(),
        layer: job.layer.clone(),
        problem: job.problem.clone(),
        mapping: scheduled.mapping,
        cycles: outcome.cycles,
        energy_pj: outcome.counts.energy_pj(arch),
        cpu_s,
    })
}

/// Layers that both lists have: `value` of the first ÷ that of the second, by network.
pub(super) fn ratios(first: &[Judged], second: &[Judged], value: impl Fn(&Judged) -> f64) -> Vec<(String, f64)> {
    first
        .iter()
        .filter_map(|a| {
            let b = second.iter().find(|b| b.network == a.network && b.layer == a.layer)?;
            Some((a.network.clone(), value(a) / value(b)))
        })
        .collect()
}

/// A network on a platform by a flow, every folding judged.
pub(super) struct Stage {
    pub(super) flow: Box<dyn Backend>,
    pub(super) graph: Graph,
    pub(super) platform: Platform,
    pub(super) coefficients: Coefficients,
}

impl Stage {
    /// Builds the graph of a bundled network.
    pub(super) fn new(network: &str, flow: &str, platform: &str, coefficients: Coefficients) -> Result<Self, String> {
        let bundled = cyclonest_workloads::bundled::load(network).ok_or_else(|| format!("no network `{network}`"))?;
        let front = Front::from_network(&bundled).map_err(|error| error.to_string())?;
        let flow = backend(flow).ok_or_else(|| format!("no backend `{flow}`"))?;
        let graph = flow.graph(&front).map_err(|error| error.to_string())?;
        let platform = Platform::named(platform).map_err(|error| error.to_string())?;
        Ok(Stage {
            flow,
            graph,
            platform,
            coefficients,
        })
    }

    /// The space that optimisers search.
    pub(super) fn space(&self) -> Space<'_> {
        Space::new(&self.graph, self.flow.as_ref(), &self.platform, &self.coefficients)
    }

    /// The best design of an optimiser.
    pub(super) fn solve(
        &self,
        optimiser: &dyn Optimiser,
        objective: Objective,
        budget: Budget,
    ) -> Result<Found, OptimiseError> {
        optimiser.optimise(&self.space(), objective, budget)
    }
}
