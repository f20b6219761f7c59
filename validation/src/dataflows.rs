//! MAESTRO's claims (Kwon et al., MICRO 2019, section 5), measured again with the simulator.
//!
//! Every layer runs in the five dataflow styles on the machine that MAESTRO imagines: an L2 that holds the layer, PEs
//! with an L1 as large as it has to be, a network with multicast and reduction between them. Which style wins on which
//! kind of layer, what a choice per layer saves against the best fixed style, and what a network without multicast or
//! reduction costs in energy, is then a matter of counting.

use cyclonest_arch::directives::{Style, lower};
use cyclonest_arch::{Accelerator, LevelMapping, Mapping, Reduction};
use cyclonest_scheduler::cost::exact::Exact;
use cyclonest_scheduler::cost::{CostModel, maestro};
use cyclonest_sim::{FastForward, Options, simulate};
use cyclonest_workloads::{Dim, Problem, TensorSet};
use serde::{Deserialize, Serialize};

/// The machine that a style runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processing elements.
    pub pes: u64,
    /// Elements per cycle of the network between L2 and the PEs.
    pub bandwidth: u64,
    /// Cycles until the first of them arrives.
    pub latency: u64,
}

/// Kinds of layers, as the paper tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// More rows than input channels.
    Early,
    /// More input channels than rows.
    Late,
    /// A 1×1 filter.
    Pointwise,
    /// One channel per group.
    Depthwise,
    /// One row and one column.
    FullyConnected,
}

impl Kind {
    /// The kind of a layer.
    #[must_use]
    pub fn of(problem: &Problem) -> Self {
        let b = &problem.bounds;
        let (pixels, filter) = (b[Dim::P] * b[Dim::Q], b[Dim::R] * b[Dim::S]);
        if b[Dim::G] > 1 && b[Dim::K] == 1 && b[Dim::C] == 1 {
            Kind::Depthwise
        } else if pixels == 1 {
            Kind::FullyConnected
        } else if filter == 1 {
            Kind::Pointwise
        } else if problem.padded_extent().0 > b[Dim::C] {
            Kind::Early
        } else {
            Kind::Late
        }
    }

    /// All kinds.
    pub const ALL: [Kind; 5] = [
        Kind::Early,
        Kind::Late,
        Kind::Pointwise,
        Kind::Depthwise,
        Kind::FullyConnected,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Early => "early",
            Kind::Late => "late",
            Kind::Pointwise => "point-wise",
            Kind::Depthwise => "depthwise",
            Kind::FullyConnected => "fully connected",
        }
    }
}

/// What of the network is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Without {
    /// One pass serves one PE.
    pub multicast: bool,
    /// Every partial sum is added at L2.
    pub reduction: bool,
}

impl Without {
    /// Everything on, and each combination switched off.
    pub const ALL: [Without; 4] = [
        Without {
            multicast: false,
            reduction: false,
        },
        Without {
            multicast: true,
            reduction: false,
        },
        Without {
            multicast: false,
            reduction: true,
        },
        Without {
            multicast: true,
            reduction: true,
        },
    ];

    /// What is off.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.multicast, self.reduction) {
            (false, false) => "nothing",
            (true, false) => "multicast",
            (false, true) => "reduction",
            (true, true) => "both",
        }
    }

    fn from(self, arch: &mut Accelerator) {
        for network in arch.levels.iter_mut().filter_map(|level| level.below.as_mut()) {
            if self.multicast {
                network.multicast = TensorSet::EMPTY;
            }
            if self.reduction {
                network.reduction = Reduction::None;
            }
        }
    }
}

/// Latency and energy, in cycles and in MACs' worth of energy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Latency \[cycles\].
    pub cycles: f64,
    /// Energy \[energy of a MAC\]: 18.61 per L2 access, 1.68 per L1 access, as MAESTRO has them.
    pub energy: f64,
}

/// One layer in one style.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Network.
    pub network: String,
    /// Layer.
    pub layer: String,
    /// How often the network runs it.
    pub count: u64,
    /// Its kind.
    pub kind: Kind,
    /// The style.
    pub style: Style,
    /// Simulated.
    pub simulated: Cost,
    /// The model `exact`.
    pub exact: Cost,
    /// The model `maestro`.
    pub maestro: Cost,
    /// Simulated and `exact` energy per setting of [`Without::ALL`]; empty unless asked for, and not simulated beyond
    /// [`Switches::most_steps`]. The model `maestro` does not know these switches.
    pub without: Vec<(Without, Option<f64>, f64)>,
}

/// What is asked about the network's hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// Steps of all PEs together up to which a layer is simulated without hardware; beyond, `exact` alone says what it
    /// costs. Sums that reach L2 one by one make simulations long.
    pub most_steps: u64,
}

/// Steps of all PEs together (rule 1).
fn steps(arch: &Accelerator, mapping: &Mapping) -> u64 {
    let outside = &mapping.levels[..arch.event_level()];
    let trips = |level: &LevelMapping| {
        let temporal: u64 = level.temporal.iter().map(|l| l.1).product();
        temporal * level.spatial.iter().map(|l| l.1).product::<u64>()
    };
    outside.iter().map(trips).product()
}

/// Runs a layer in a style.
///
/// # Errors
/// Where the style cannot be put onto loops or a model fails.
pub fn run(
    (network, layer, count): (&str, &str, u64),
    problem: &Problem,
    style: Style,
    machine: Machine,
    switches: Option<Switches>,
) -> Result<Row, String> {
    let fault = |error: String| format!("{network} {layer} {}: {error}", style.name());
    let described = style
        .layer(layer, problem, machine.pes)
        .map_err(|e| fault(e.to_string()))?;
    let lowered = lower(&described, machine.pes).map_err(|e| fault(e.to_string()))?;
    let (arch, mapping) = lowered
        .machine(machine.bandwidth, machine.latency)
        .map_err(|e| fault(e.to_string()))?;
    let simulated = |arch: &Accelerator| -> Result<Cost, String> {
        let options = Options {
            fast_forward: FastForward::On,
            ..Options::default()
        };
        let outcome = simulate(&lowered.problem, arch, &mapping, options).map_err(|e| fault(e.to_string()))?;
        Ok(Cost {
            cycles: outcome.cycles as f64,
            energy: outcome.counts.energy_pj(arch),
        })
    };
    let estimated = |arch: &Accelerator| -> Result<Cost, String> {
        let exact = Exact
            .evaluate(&lowered.problem, arch, &mapping)
            .map_err(|e| fault(e.to_string()))?;
        Ok(Cost {
            cycles: exact.cycles,
            energy: exact.energy_pj,
        })
    };
    let mut without = Vec::new();
    if let Some(Switches { most_steps }) = switches {
        let short = steps(&arch, &mapping) <= most_steps;
        for off in Without::ALL {
            let mut bare = arch.clone();
            off.from(&mut bare);
            let measured = short.then(|| simulated(&bare)).transpose()?;
            without.push((off, measured.map(|cost| cost.energy), estimated(&bare)?.energy));
        }
    }
    let hardware = maestro::Machine {
        pes: machine.pes,
        noc_bandwidth: machine.bandwidth,
        noc_latency: machine.latency,
        offchip_bandwidth: u64::from(u32::MAX),
    };
    let evaluation = maestro::evaluate(&described, &hardware).map_err(|e| fault(e.to_string()))?;
    Ok(Row {
        network: network.to_owned(),
        layer: layer.to_owned(),
        count,
        kind: Kind::of(problem),
        style,
        simulated: simulated(&arch)?,
        exact: estimated(&arch)?,
        maestro: Cost {
            cycles: evaluation.runtime as f64,
            energy: evaluation.energy_macs(),
        },
        without,
    })
}

/// Who says what something costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// The simulator.
    Simulated,
    /// The model `exact`.
    Exact,
    /// The model `maestro`.
    Maestro,
}

impl Judge {
    /// All three.
    pub const ALL: [Judge; 3] = [Judge::Simulated, Judge::Exact, Judge::Maestro];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Judge::Simulated => "simulation",
            Judge::Exact => "exact",
            Judge::Maestro => "maestro",
        }
    }

    fn cost(self, row: &Row) -> Cost {
        match self {
            Judge::Simulated => row.simulated,
            Judge::Exact => row.exact,
            Judge::Maestro => row.maestro,
        }
    }
}

/// How often each style is the fastest, and the one that needs the least energy, on the layers of one kind (each layer as
/// often as its network runs it).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Winners {
    /// The kind.
    pub kind: Kind,
    /// Who judges.
    pub judge: Judge,
    /// Layers of this kind.
    pub layers: u64,
    /// Per style: wins in cycles and in energy.
    pub wins: Vec<(Style, u64, u64)>,
}

/// What choosing the style per layer saves against the best fixed style, over the layers of one network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adaptive {
    /// The network.
    pub network: String,
    /// Who judges.
    pub judge: Judge,
    /// The best fixed style in cycles, and the share of its cycles that choosing saves.
    pub cycles: (Style, f64),
    /// Likewise in energy.
    pub energy: (Style, f64),
}

/// Energy of one style without hardware, relative to that with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bare {
    /// The style.
    pub style: Style,
    /// What is switched off.
    pub without: Without,
    /// Layers (each as often as its network runs it), and those of them that were simulated without hardware.
    pub layers: (u64, u64),
    /// By `exact`, over all layers: 0.47 is 47 % more.
    pub exact: f64,
    /// Over the simulated layers, by `exact` and simulated; `None` if there are none.
    pub measured: Option<(f64, f64)>,
}

/// Rows of the same layer: those of all styles.
fn layers(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut layers: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match layers
            .iter_mut()
            .find(|l| (&l[0].network, &l[0].layer) == (&row.network, &row.layer))
        {
            Some(layer) => layer.push(row),
            None => layers.push(vec![row]),
        }
    }
    layers
}

fn least<'a>(rows: &[&'a Row], of: impl Fn(&Row) -> f64) -> Option<&'a Row> {
    rows.iter().copied().reduce(|a, b| if of(b) < of(a) { b } else { a })
}

/// Winners per kind of layer.
#[must_use]
pub fn winners(rows: &[Row]) -> Vec<Winners> {
    let layers = layers(rows);
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let of_kind: Vec<&Vec<&Row>> = layers.iter().filter(|l| l[0].kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        for judge in Judge::ALL {
            let count = |style: Style, of: fn(Cost) -> f64| -> u64 {
                let won = |l: &&&Vec<&Row>| least(l, |row| of(judge.cost(row))).is_some_and(|best| best.style == style);
                of_kind.iter().filter(won).map(|l| l[0].count).sum()
            };
            all.push(Winners {
                kind,
                judge,
                layers: of_kind.iter().map(|l| l[0].count).sum(),
                wins: Style::ALL
                    .map(|style| (style, count(style, |c| c.cycles), count(style, |c| c.energy)))
                    .to_vec(),
            });
        }
    }
    all
}

/// Savings of an adaptive choice, per network.
#[must_use]
pub fn adaptive(rows: &[Row]) -> Vec<Adaptive> {
    let mut networks: Vec<&str> = Vec::new();
    for row in rows {
        if !networks.contains(&row.network.as_str()) {
            networks.push(&row.network);
        }
    }
    let mut all = Vec::new();
    for network in networks {
        let layers: Vec<Vec<&Row>> = layers(rows).into_iter().filter(|l| l[0].network == network).collect();
        for judge in Judge::ALL {
            let saved = |of: fn(Cost) -> f64| {
                let total = |style: Style| -> f64 {
                    let own = layers.iter().flatten().filter(|row| row.style == style);
                    own.map(|row| row.count as f64 * of(judge.cost(row))).sum()
                };
                let fixed = Style::ALL
                    .into_iter()
                    .reduce(|a, b| if total(b) < total(a) { b } else { a });
                let chosen: f64 = layers
                    .iter()
                    .filter_map(|l| least(l, |row| of(judge.cost(row))))
                    .map(|row| row.count as f64 * of(judge.cost(row)))
                    .sum();
                let fixed = fixed.unwrap_or(Style::KCP);
                (fixed, 1.0 - chosen / total(fixed))
            };
            all.push(Adaptive {
                network: network.to_owned(),
                judge,
                cycles: saved(|c| c.cycles),
                energy: saved(|c| c.energy),
            });
        }
    }
    all
}

/// What missing hardware costs in energy, per style over all layers.
#[must_use]
pub fn bare(rows: &[Row]) -> Vec<Bare> {
    let mut all = Vec::new();
    for style in Style::ALL {
        let own: Vec<&Row> = rows
            .iter()
            .filter(|row| row.style == style && !row.without.is_empty())
            .collect();
        if own.is_empty() {
            continue;
        }
        let measured: Vec<&Row> = own
            .iter()
            .copied()
            .filter(|row| row.without.iter().all(|w| w.1.is_some()))
            .collect();
        let count = |rows: &[&Row]| rows.iter().map(|row| row.count).sum();
        for (index, without) in Without::ALL.into_iter().enumerate().skip(1) {
            let more = |rows: &[&Row], of: fn(&(Without, Option<f64>, f64)) -> f64| {
                let total =
                    |index: usize| -> f64 { rows.iter().map(|row| row.count as f64 * of(&row.without[index])).sum() };
                total(index) / total(0) - 1.0
            };
            all.push(Bare {
                style,
                without,
                layers: (count(&own), count(&measured)),
                exact: more(&own, |w| w.2),
                measured: (!measured.is_empty())
                    .then(|| (more(&measured, |w| w.2), more(&measured, |w| w.1.unwrap_or(0.0)))),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_workloads::{DimMap, Pair};

    fn problem(bounds: &[(Dim, u64)]) -> Problem {
        let mut map = DimMap::ones();
        for &(dim, bound) in bounds {
            map[dim] = bound;
        }
        Problem {
            stride: Pair::ONE,
            ..Problem::new(map)
        }
    }

    #[test]
    fn a_long_layer_is_judged_without_hardware_by_exact_alone() {
        use Dim::{C, K, P, Q};
        let problem = problem(&[(K, 8), (C, 4), (P, 6), (Q, 6)]);
        let machine = Machine {
            pes: 16,
            bandwidth: 4,
            latency: 1,
        };
        let row = |most_steps| {
            let switches = Some(Switches { most_steps });
            run(("net", "layer", 1), &problem, Style::KCP, machine, switches).unwrap()
        };
        let (long, short) = (bare(&[row(1)]), bare(&[row(1_000_000)]));
        assert!(long.iter().all(|b| b.measured.is_none() && b.layers == (1, 0)));
        assert!(short.iter().all(|b| b.measured.is_some() && b.layers == (1, 1)));
        assert!(long.iter().zip(&short).all(|(a, b)| a.exact == b.exact));
    }

    fn rows() -> Vec<Row> {
        use Dim::{C, G, K, P, Q, R, S};
        let layers = [
            ("early", problem(&[(K, 8), (C, 3), (P, 12), (Q, 12), (R, 3), (S, 3)])),
            ("late", problem(&[(K, 24), (C, 16), (P, 4), (Q, 4), (R, 3), (S, 3)])),
            ("point", problem(&[(K, 16), (C, 12), (P, 6), (Q, 6)])),
            ("depth", problem(&[(G, 12), (P, 6), (Q, 6), (R, 3), (S, 3)])),
        ];
        let machine = Machine {
            pes: 64,
            bandwidth: 16,
            latency: 1,
        };
        let styles = |(name, problem): &(&str, Problem)| {
            Style::ALL.map(|style| {
                run(
                    ("net", name, 2),
                    problem,
                    style,
                    machine,
                    Some(Switches { most_steps: u64::MAX }),
                )
                .unwrap()
            })
        };
        layers.iter().flat_map(styles).collect()
    }

    #[test]
    fn every_layer_has_its_kind_and_one_winner() {
        let rows = rows();
        let winners = winners(&rows);
        assert_eq!(winners.len(), 4 * 3);
        for w in &winners {
            assert_eq!(w.layers, 2);
            assert_eq!(w.wins.iter().map(|x| x.1).sum::<u64>(), 2, "{w:?}");
            assert_eq!(w.wins.iter().map(|x| x.2).sum::<u64>(), 2, "{w:?}");
        }
    }

    #[test]
    fn an_adaptive_choice_saves_something_or_nothing() {
        for a in adaptive(&rows()) {
            assert!(
                (0.0..1.0).contains(&a.cycles.1) && (0.0..1.0).contains(&a.energy.1),
                "{a:?}"
            );
        }
    }

    #[test]
    fn missing_hardware_costs_the_same_by_simulation_and_by_exact() {
        let rows = rows();
        let bare = bare(&rows);
        assert_eq!(bare.len(), 5 * 3);
        for b in &bare {
            let (exact, simulated) = b.measured.expect("all are simulated");
            assert!(simulated >= 0.0, "{b:?}");
            assert!((simulated - exact).abs() < 1e-9 && exact == b.exact, "{b:?}");
            assert_eq!(b.layers, (8, 8));
        }
        assert!(bare.iter().any(|b| b.without.multicast && b.exact > 0.1));
        // Accesses are counted, so the energy of the model is that of the simulation.
        assert!(
            rows.iter()
                .all(|row| (row.simulated.energy - row.exact.energy).abs() < 1e-6 * row.exact.energy)
        );
    }
}
