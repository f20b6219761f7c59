//! The designs that share a mapping choice and a number of PEs: what does not depend on the rest is analysed once.

use cyclonest_arch::Technology;
use cyclonest_arch::directives::Style;
use cyclonest_workloads::DistinctLayer;

use super::machine::{self, Mapped};
use super::plan::{MappingChoice, Model, Objective};
use super::space::{Design, Space};
use crate::cost::maestro::{Link, Profile};
use crate::{Request, Scheduler};

/// What all layers cost together, and the buffers that they need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) cycles: f64,
    pub(crate) energy: f64,
    pub(crate) l1: u64,
    pub(crate) l2: u64,
}

/// Why a design has no figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A buffer is too small.
    Capacity,
    /// The model or the scheduler says why.
    Model(String),
}

/// Designs with the same mapping choice and PEs.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    space: &'a Space,
    kind: Kind,
    /// No design of the group has smaller figures.
    pub(crate) least: Figures,
    scratch: Vec<i64>,
}

enum Kind {
    /// Per layer, the styles to choose from.
    Styles(Vec<Vec<Candidate>>),
    Scheduler(Box<dyn Scheduler>),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Styles(layers) => f.debug_list().entries(layers).finish(),
            Kind::Scheduler(scheduler) => f.write_str(scheduler.name()),
        }
    }
}

/// What a layer is mapped with.
enum Chosen {
    Style(Style),
    Scheduled(Box<Mapped>),
}

/// A layer in one style.
#[derive(Debug)]
struct Candidate {
    style: Style,
    l1: u64,
    l2: u64,
    cost: Cost,
}

#[derive(Debug)]
enum Cost {
    Maestro { profile: Box<Profile>, energy: f64 },
    Exact(Box<Mapped>),
}

/// The styles that a choice allows.
pub(super) fn styles(choice: &MappingChoice) -> &[Style] {
    match choice {
        MappingChoice::Style(style) => std::slice::from_ref(style),
        MappingChoice::Adaptive => &Style::ALL,
        MappingChoice::Scheduler(_) => &[],
    }
}

impl<'a> Group<'a> {
    /// Analyses the mapping choice and the PEs of `design`.
    ///
    /// # Errors
    /// If the model refuses a layer however the other values are chosen.
    pub(crate) fn new(space: &'a Space, design: &Design) -> Result<Self, String> {
        let mut group = Group {
            space,
            kind: Kind::Styles(Vec::new()),
            least: Figures {
                cycles: 0.0,
                energy: 0.0,
                l1: 0,
                l2: 0,
            },
            scratch: Vec::new(),
        };
        let choice = &space.plan.mappings[design.mapping];
        let macs = space.macs() as f64;
        if let MappingChoice::Scheduler(name) = choice {
            let scheduler = crate::by_name(name).ok_or_else(|| format!("there is no scheduler {name}"))?;
            group.kind = Kind::Scheduler(scheduler);
            if space.plan.model != Model::Maestro {
                group.least.cycles = macs / design.pes() as f64;
                group.least.energy = macs * space.technology.energy.mac;
            }
            return Ok(group);
        }
        let fastest = fastest(space);
        let mut layers = Vec::with_capacity(space.layers.len());
        for layer in &space.layers {
            let mut refusal = String::new();
            let mut candidates = Vec::new();
            let mut least: Option<Figures> = None;
            for &style in styles(choice) {
                let candidate = Candidate::new(style, layer, design.pes(), space);
                let candidate = candidate.and_then(|c| {
                    let bound = c.bound(design, fastest, &mut group)?;
                    Ok((c, bound))
                });
                match candidate {
                    Ok((candidate, bound)) => {
                        candidates.push(candidate);
                        let least = least.get_or_insert(bound);
                        least.cycles = least.cycles.min(bound.cycles);
                        least.energy = least.energy.min(bound.energy);
                        least.l1 = least.l1.min(bound.l1);
                        least.l2 = least.l2.min(bound.l2);
                    }
                    Err(why) if refusal.is_empty() => refusal = format!("{}: {}: {why}", layer.name, style.name()),
                    Err(_) => {}
                }
            }
            let Some(least) = least else { return Err(refusal) };
            group.least.cycles += layer.count as f64 * least.cycles;
            group.least.energy += layer.count as f64 * least.energy;
            group.least.l1 = group.least.l1.max(least.l1);
            group.least.l2 = group.least.l2.max(least.l2);
            layers.push(candidates);
        }
        group.kind = Kind::Styles(layers);
        Ok(group)
    }

    /// True if the figures of a design depend on its L1 and L2, beyond whether the mapping fits.
    pub(crate) fn depends_on_sizes(&self) -> bool {
        match &self.kind {
            Kind::Styles(layers) => layers.iter().any(|candidates| candidates.len() > 1),
            Kind::Scheduler(_) => true,
        }
    }

    /// Latency that no bandwidth undercuts, with the latency and off-chip bandwidth of `design`.
    pub(crate) fn least_cycles(&mut self, design: &Design) -> f64 {
        let Kind::Styles(layers) = &self.kind else {
            return self.least.cycles;
        };
        let link = Link {
            bandwidth: fastest(self.space).bandwidth,
            latency: design.noc_latency,
            offchip_bandwidth: design.offchip_bandwidth,
        };
        let mut sum = 0.0;
        for (layer, candidates) in self.space.layers.iter().zip(layers) {
            let cycles = candidates.iter().map(|c| match &c.cost {
                Cost::Maestro { profile, .. } => {
                    profile.runtime(link, &mut self.scratch).map_or(f64::MAX, |c| c as f64)
                }
                Cost::Exact(mapped) => mapped.problem.macs() as f64 / design.pes() as f64,
            });
            sum += layer.count as f64 * cycles.fold(f64::MAX, f64::min);
        }
        sum
    }

    /// The figures of a design of the group.
    pub(crate) fn figures(&mut self, design: &Design) -> Result<Figures, Refusal> {
        self.each(design, &mut Vec::new())
    }

    /// The figures of a design, and what each layer is mapped to.
    pub(crate) fn mapped(&mut self, design: &Design) -> Result<Vec<(Option<Style>, Mapped)>, Refusal> {
        let mut chosen = Vec::new();
        self.each(design, &mut chosen)?;
        let space = self.space;
        let layers = space.layers.iter().zip(chosen);
        let mapped = layers.map(|(layer, chosen)| match chosen {
            Chosen::Style(style) => {
                let mut mapped = machine::styled(style, &layer.problem, design.pes(), &space.technology)
                    .map_err(|why| Refusal::Model(format!("{}: {why}", layer.name)))?;
                machine::configure(&mut mapped.arch, design);
                Ok((Some(style), mapped))
            }
            Chosen::Scheduled(mapped) => Ok((None, *mapped)),
        });
        mapped.collect()
    }

    /// Chooses a mapping for every layer and adds up what they cost.
    fn each(&mut self, design: &Design, chosen: &mut Vec<Chosen>) -> Result<Figures, Refusal> {
        let mut sum = Figures {
            cycles: 0.0,
            energy: 0.0,
            l1: 0,
            l2: 0,
        };
        let space = self.space;
        for (l, layer) in space.layers.iter().enumerate() {
            let figures = match &mut self.kind {
                Kind::Styles(layers) => {
                    let mut best: Option<(f64, Style, Figures)> = None;
                    for candidate in &mut layers[l] {
                        if design.l1.is_some_and(|l1| candidate.l1 > l1)
                            || design.l2.is_some_and(|l2| candidate.l2 > l2)
                        {
                            continue;
                        }
                        let figures = candidate
                            .figures(design, space.plan.model, &mut self.scratch)
                            .map_err(|why| Refusal::Model(format!("{}: {why}", layer.name)))?;
                        let score = match space.plan.objective {
                            Objective::Throughput => figures.cycles,
                            Objective::Energy => figures.energy,
                            Objective::Edp | Objective::Pareto => figures.cycles * figures.energy,
                        };
                        if best.as_ref().is_none_or(|b| score < b.0) {
                            best = Some((score, candidate.style, figures));
                        }
                    }
                    let (_, style, figures) = best.ok_or(Refusal::Capacity)?;
                    chosen.push(Chosen::Style(style));
                    figures
                }
                Kind::Scheduler(scheduler) => {
                    let (figures, mapped) = schedule(scheduler.as_ref(), space, layer, design)
                        .map_err(|why| Refusal::Model(format!("{}: {why}", layer.name)))?;
                    chosen.push(Chosen::Scheduled(Box::new(mapped)));
                    figures
                }
            };
            sum.cycles += layer.count as f64 * figures.cycles;
            sum.energy += layer.count as f64 * figures.energy;
            sum.l1 = sum.l1.max(figures.l1);
            sum.l2 = sum.l2.max(figures.l2);
        }
        // Buffers of a given size have that size.
        sum.l1 = design.l1.unwrap_or(sum.l1);
        sum.l2 = design.l2.unwrap_or(sum.l2);
        Ok(sum)
    }
}

/// The fastest network of a space.
fn fastest(space: &Space) -> Link {
    let last = |values: &[u64]| values.last().copied().unwrap_or(1);
    Link {
        bandwidth: last(&space.bandwidths),
        latency: space.latencies.first().copied().unwrap_or(1),
        offchip_bandwidth: last(&space.offchip),
    }
}

impl Candidate {
    fn new(style: Style, layer: &DistinctLayer, pes: u64, space: &Space) -> Result<Self, String> {
        let technology = &space.technology;
        match space.plan.model {
            Model::Maestro => {
                let directives = style
                    .layer(&layer.name, &layer.problem, pes)
                    .map_err(|e| e.to_string())?;
                let profile = Profile::new(&directives, pes).map_err(|e| e.to_string())?;
                let evaluation = profile.evaluation();
                let size =
                    |n: i64| u64::try_from(n).map_err(|_| "MAESTRO says that it needs a negative buffer".to_owned());
                if evaluation.average_bandwidth.is_nan() || evaluation.runtime <= 0 {
                    return Err("MAESTRO finds no valid iteration and says 0 cycles".to_owned());
                }
                Ok(Candidate {
                    style,
                    l1: size(evaluation.l1_required())?,
                    l2: size(evaluation.l2_required())?,
                    cost: Cost::Maestro {
                        energy: maestro_energy(&profile, technology),
                        profile: Box::new(profile),
                    },
                })
            }
            Model::Exact | Model::ExactQuick => {
                let mapped = machine::styled(style, &layer.problem, pes, technology)?;
                Ok(Candidate {
                    style,
                    l1: mapped.l1,
                    l2: mapped.l2,
                    cost: Cost::Exact(Box::new(mapped)),
                })
            }
        }
    }

    /// Figures that no design with this candidate undercuts.
    fn bound(&self, design: &Design, fastest: Link, group: &mut Group<'_>) -> Result<Figures, String> {
        let (cycles, energy) = match &self.cost {
            Cost::Maestro { profile, energy } => {
                let runtime = profile
                    .runtime(fastest, &mut group.scratch)
                    .map_err(|e| e.to_string())?;
                (runtime as f64, *energy)
            }
            // Traffic is least with all switches on, but a plan may have them off: a bound for all of them.
            Cost::Exact(mapped) => {
                let macs = mapped.problem.macs() as f64;
                (macs / design.pes() as f64, macs * mapped.arch.compute.energy_per_mac)
            }
        };
        Ok(Figures {
            cycles,
            energy,
            l1: self.l1,
            l2: self.l2,
        })
    }

    fn figures(&mut self, design: &Design, model: Model, scratch: &mut Vec<i64>) -> Result<Figures, String> {
        let (cycles, energy) = match &mut self.cost {
            Cost::Maestro { profile, energy } => {
                let link = Link {
                    bandwidth: design.noc_bandwidth,
                    latency: design.noc_latency,
                    offchip_bandwidth: design.offchip_bandwidth,
                };
                let runtime = profile.runtime(link, scratch).map_err(|e| e.to_string())?;
                (runtime as f64, *energy)
            }
            Cost::Exact(mapped) => {
                machine::configure(&mut mapped.arch, design);
                let estimate = model
                    .cost_model()
                    .evaluate(&mapped.problem, &mapped.arch, &mapped.mapping)
                    .map_err(|e| e.to_string())?;
                (estimate.cycles, estimate.energy_pj)
            }
        };
        Ok(Figures {
            cycles,
            energy,
            l1: self.l1,
            l2: self.l2,
        })
    }
}

/// Energy as MAESTRO adds it up, with the technology's energies.
fn maestro_energy(profile: &Profile, technology: &Technology) -> f64 {
    let evaluation = profile.evaluation();
    let energy = &technology.energy;
    let (mut l1, mut l2) = (0, 0);
    for tensor in &evaluation.tensors {
        l1 += tensor.l1_read + tensor.l1_write;
        l2 += tensor.l2_read + tensor.l2_write;
    }
    l2 as f64 * energy.l2 + l1 as f64 * energy.l1 + evaluation.macs as f64 * energy.mac
}

/// Maps a layer to the machine of `design` and judges the mapping.
fn schedule(
    scheduler: &dyn Scheduler,
    space: &Space,
    layer: &DistinctLayer,
    design: &Design,
) -> Result<(Figures, Mapped), String> {
    let (Some(l1), Some(l2)) = (design.l1, design.l2) else {
        return Err("schedulers need the sizes of the buffers".to_owned());
    };
    let arch = machine::scheduled(design, l1, l2, &space.technology);
    let objective = match space.plan.objective {
        Objective::Throughput => crate::Objective::Cycles,
        Objective::Energy => crate::Objective::Energy,
        Objective::Edp | Objective::Pareto => crate::Objective::Edp,
    };
    let request = Request {
        objective,
        ..Request::new(&layer.problem, &arch)
    };
    let scheduled = scheduler.schedule(&request).map_err(|e| e.to_string())?;
    let estimate = (space.plan.model.cost_model())
        .evaluate(&layer.problem, &arch, &scheduled.mapping)
        .map_err(|e| e.to_string())?;
    let figures = Figures {
        cycles: estimate.cycles,
        energy: estimate.energy_pj,
        l1,
        l2,
    };
    let mapped = Mapped {
        problem: layer.problem.clone(),
        arch,
        mapping: scheduled.mapping,
        l1,
        l2,
    };
    Ok((figures, mapped))
}
