//! The plan of an exploration: what is swept, under which budgets, and what is kept.

use cyclonest_arch::directives::Style;
use cyclonest_arch::{Diagnostic, Violation, from_ron, placed};
use serde::{Deserialize, Serialize};

use crate::cost::CostModel;
use crate::cost::exact::{Exact, Quick};
use crate::cost::maestro::MaestroModel;

/// A plan, as it is written in RON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// A bundled network or a file.
    pub network: String,
    /// Only these layers; all if empty.
    #[serde(default)]
    pub layers: Vec<String>,
    /// A bundled technology or a file.
    #[serde(default = "technology")]
    pub technology: String,
    /// How the layers are mapped.
    pub mappings: Vec<MappingChoice>,
    /// The PEs.
    pub pes: Pes,
    /// L1 of one PE \[elements\].
    #[serde(default)]
    pub l1: Size,
    /// L2 \[elements\].
    #[serde(default)]
    pub l2: Size,
    /// Elements that the network moves per cycle.
    pub noc_bandwidth: Values,
    /// Cycles until the first of them arrives.
    #[serde(default = "one")]
    pub noc_latency: Values,
    /// Elements per cycle to and from the outside; what `maestro` limits the delay of a tile with.
    #[serde(default = "unlimited")]
    pub offchip_bandwidth: Values,
    /// Whether one pass of the network serves several PEs.
    #[serde(default = "yes")]
    pub multicast: Vec<bool>,
    /// Whether the network adds the partial sums of several PEs.
    #[serde(default = "yes")]
    pub reduction: Vec<bool>,
    /// Nothing larger or hungrier is considered.
    #[serde(default)]
    pub budget: Budget,
    /// What is looked for.
    pub objective: Objective,
    /// The figures of the Pareto front, which is kept with objective `Pareto`.
    #[serde(default = "front")]
    pub front: Vec<Axis>,
    /// Who says what a design costs.
    pub model: Model,
    /// How many of the best are kept.
    #[serde(default = "keep")]
    pub keep: usize,
    /// How many of them are simulated, and how many points of the front.
    #[serde(default)]
    pub verify: usize,
}

/// How the layers are mapped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MappingChoice {
    /// All in one dataflow style.
    Style(#[serde(with = "style")] Style),
    /// Every layer in the best of the five styles, by the objective (by EDP with `Pareto`).
    Adaptive,
    /// By this scheduler, on the machine with its sizes.
    Scheduler(String),
}

/// Styles as strings: their names are no identifiers.
mod style {
    use cyclonest_arch::directives::Style;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(style: &Style, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(style.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Style, D::Error> {
        let name = String::deserialize(deserializer)?;
        Style::from_name(&name).ok_or_else(|| {
            let known = Style::ALL.map(Style::name);
            let help = match cyclonest_arch::nearest(&name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("one of {} is expected", known.join(", ")),
            };
            D::Error::custom(format!("unknown dataflow style `{name}`; {help}"))
        })
    }
}

/// The PEs of a design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pes {
    /// By their number. Schedulers see the most nearly square mesh of that many.
    Count(Values),
    /// As meshes of columns × rows, none with fewer PEs than the one before.
    Mesh(Vec<(u64, u64)>),
}

/// A range of integers, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Values {
    /// These.
    List(Vec<u64>),
    /// `from`, `from + step`, … up to `to`.
    Range {
        /// The first.
        from: u64,
        /// None is larger.
        to: u64,
        /// From one to the next.
        step: u64,
    },
    /// `from`, `2 from`, `4 from`, … up to `to`.
    Doubling {
        /// The first.
        from: u64,
        /// None is larger.
        to: u64,
    },
}

/// Sizes of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Size {
    /// Just what the mapping needs.
    #[default]
    AsNeeded,
    /// These; a mapping that needs more does not fit.
    Sizes(Values),
}

/// Limits of a design.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Area \[mm²\].
    #[serde(default)]
    pub area_mm2: Option<f64>,
    /// Power \[mW\].
    #[serde(default)]
    pub power_mw: Option<f64>,
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Objective {
    /// The most MACs per cycle.
    Throughput,
    /// The least energy.
    Energy,
    /// The least energy × latency.
    Edp,
    /// The best by each of the three, and the front.
    Pareto,
}

/// A figure of the Pareto front; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Axis {
    /// Latency. Throughput is its inverse, EDP its product with energy: a front over latency and energy has the best
    /// by each.
    Cycles,
    /// Energy.
    Energy,
    /// Area.
    Area,
}

/// A cost model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Model {
    /// MAESTRO.
    Maestro,
    /// The project's own, with a rehearsed latency.
    Exact,
    /// The same with a latency in closed form: faster, less accurate.
    ExactQuick,
}

impl Model {
    /// The model.
    #[must_use]
    pub fn cost_model(self) -> &'static dyn CostModel {
        match self {
            Model::Maestro => &MaestroModel,
            Model::Exact => &Exact,
            Model::ExactQuick => &Quick,
        }
    }
}

fn technology() -> String {
    "maestro_28nm".to_owned()
}

fn one() -> Values {
    Values::List(vec![1])
}

fn unlimited() -> Values {
    Values::List(vec![u64::from(u32::MAX)])
}

fn yes() -> Vec<bool> {
    vec![true]
}

fn front() -> Vec<Axis> {
    vec![Axis::Cycles, Axis::Energy]
}

const fn keep() -> usize {
    50
}

/// No range is longer.
pub(crate) const LONGEST: u64 = 1_000_000;

/// No value is larger; products of any two fit 64 bits.
const LARGEST: u64 = u32::MAX as u64;

/// More kept designs would not be read, and are held by every thread.
const MOST_KEPT: usize = 100_000;

impl Values {
    /// The values; at most a million.
    #[must_use]
    pub fn values(&self) -> Vec<u64> {
        match *self {
            Values::List(ref list) => list.clone(),
            Values::Range { from, to, step } => (from..=to).step_by(step.max(1) as usize).collect(),
            Values::Doubling { from, to } => {
                std::iter::successors(Some(from), |n| n.checked_mul(2).filter(|&n| n <= to && n > from)).collect()
            }
        }
    }

    fn check(&self, path: &str, faults: &mut Faults) {
        match *self {
            Values::List(ref list) => {
                faults.require(!list.is_empty(), path, || "the list is empty".to_owned());
                for (i, &n) in list.iter().enumerate() {
                    let at = format!("{path}[{i}]");
                    faults.in_range(n, &at);
                    if i > 0 && n <= list[i - 1] {
                        faults.add(&at, format!("{n} after {}: ascending values are expected", list[i - 1]));
                    }
                }
            }
            Values::Range { from, to, step } => {
                faults.in_range(from, &format!("{path}.from"));
                faults.in_range(to, &format!("{path}.to"));
                faults.require(step > 0, &format!("{path}.step"), || {
                    "a step of 0 never ends".to_owned()
                });
                faults.require(from <= to, &format!("{path}.to"), || {
                    format!("{to} is less than the first value, {from}")
                });
                if step > 0 && from <= to && to <= LARGEST {
                    let count = (to - from) / step + 1;
                    faults.require(count <= LONGEST, path, || {
                        format!("{count} values; at most {LONGEST} are possible")
                    });
                }
            }
            Values::Doubling { from, to } => {
                faults.in_range(from, &format!("{path}.from"));
                faults.in_range(to, &format!("{path}.to"));
                faults.require(from <= to, &format!("{path}.to"), || {
                    format!("{to} is less than the first value, {from}")
                });
            }
        }
    }
}

#[derive(Default)]
struct Faults(Vec<Violation>);

impl Faults {
    fn add(&mut self, path: &str, message: String) {
        self.0.push(Violation {
            path: path.to_owned(),
            message,
            help: None,
        });
    }

    fn require(&mut self, holds: bool, path: &str, message: impl FnOnce() -> String) {
        if !holds {
            self.add(path, message());
        }
    }

    fn in_range(&mut self, n: u64, path: &str) {
        self.require((1..=LARGEST).contains(&n), path, || {
            format!("{n}: a number from 1 to {LARGEST} is expected")
        });
    }
}

impl Plan {
    /// Reads a plan and checks its rules. Names of networks, layers, technologies and schedulers are looked up by
    /// [`Space::new`](super::Space::new) and its caller.
    ///
    /// # Errors
    /// The first syntax error, unknown name or wrong type; otherwise every broken rule, each at its value.
    pub fn from_ron(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let plan: Plan = from_ron(text).map_err(|fault| vec![fault])?;
        match plan.check() {
            faults if faults.is_empty() => Ok(plan),
            faults => Err(placed(text, faults)),
        }
    }

    /// Every rule that the plan breaks.
    #[must_use]
    pub fn check(&self) -> Vec<Violation> {
        let mut faults = Faults::default();
        faults.require(!self.mappings.is_empty(), "mappings", || {
            "no mapping; Style(\"KC-P\"), Adaptive or Scheduler(\"greedy\") is expected".to_owned()
        });
        for (i, mapping) in self.mappings.iter().enumerate() {
            let at = format!("mappings[{i}]");
            faults.require(!self.mappings[..i].contains(mapping), &at, || {
                "the same mapping stands before".to_owned()
            });
            if let MappingChoice::Scheduler(_) = mapping {
                for (size, name) in [(&self.l1, "l1"), (&self.l2, "l2")] {
                    faults.require(*size != Size::AsNeeded, name, || {
                        format!("`{name}` is as needed, but a scheduler fits its mappings to the sizes; Sizes(…) is expected")
                    });
                }
            }
        }
        match &self.pes {
            Pes::Count(values) => values.check("pes", &mut faults),
            Pes::Mesh(meshes) => {
                faults.require(!meshes.is_empty(), "pes", || "the list is empty".to_owned());
                let mut largest = 0;
                for (i, &(x, y)) in meshes.iter().enumerate() {
                    let at = format!("pes[{i}]");
                    faults.in_range(x, &format!("{at}[0]"));
                    faults.in_range(y, &format!("{at}[1]"));
                    let pes = x.saturating_mul(y);
                    faults.require(pes <= LARGEST, &at, || {
                        format!("{x}×{y} PEs; at most {LARGEST} are possible")
                    });
                    faults.require(pes >= largest, &at, || {
                        format!("{pes} PEs after {largest}: an ascending order is expected")
                    });
                    faults.require(!meshes[..i].contains(&(x, y)), &at, || {
                        "the same mesh stands before".to_owned()
                    });
                    largest = largest.max(pes);
                }
            }
        }
        for (size, path) in [(&self.l1, "l1"), (&self.l2, "l2")] {
            if let Size::Sizes(values) = size {
                values.check(path, &mut faults);
            }
        }
        for (values, path) in [
            (&self.noc_bandwidth, "noc_bandwidth"),
            (&self.noc_latency, "noc_latency"),
            (&self.offchip_bandwidth, "offchip_bandwidth"),
        ] {
            values.check(path, &mut faults);
        }
        for (switch, path) in [(&self.multicast, "multicast"), (&self.reduction, "reduction")] {
            faults.require(!switch.is_empty(), path, || "the list is empty".to_owned());
            faults.require(
                switch.len() < 2 || switch[..] == [true, false] || switch[..] == [false, true],
                path,
                || "each of true and false at most once is expected".to_owned(),
            );
        }
        for (limit, path) in [
            (self.budget.area_mm2, "budget.area_mm2"),
            (self.budget.power_mw, "budget.power_mw"),
        ] {
            if let Some(limit) = limit {
                faults.require(limit.is_finite() && limit > 0.0, path, || {
                    format!("{limit}: a positive number is expected")
                });
            }
        }
        faults.require((1..=MOST_KEPT).contains(&self.keep), "keep", || {
            format!("{}: a number from 1 to {MOST_KEPT} is expected", self.keep)
        });
        faults.require(self.verify <= self.keep, "verify", || {
            format!("{} are to be simulated of {} that are kept", self.verify, self.keep)
        });
        let twice = (1..self.front.len()).any(|i| self.front[..i].contains(&self.front[i]));
        faults.require(self.front.len() >= 2 && !twice, "front", || {
            "two or three different figures of Cycles, Energy and Area are expected".to_owned()
        });
        faults.0
    }
}

/// The plans that come with the crate: MAESTRO's published sweeps, and what docs/explore.md measures.
const BUNDLED: &[(&str, &str)] = &[
    ("kc_p_vgg16_early", include_str!("../../plans/kc_p_vgg16_early.ron")),
    ("kc_p_vgg16_late", include_str!("../../plans/kc_p_vgg16_late.ron")),
    ("yr_p_vgg16_early", include_str!("../../plans/yr_p_vgg16_early.ron")),
    ("yr_p_vgg16_late", include_str!("../../plans/yr_p_vgg16_late.ron")),
    (
        "kc_p_vgg16_late_exact",
        include_str!("../../plans/kc_p_vgg16_late_exact.ron"),
    ),
    (
        "yr_p_vgg16_late_exact",
        include_str!("../../plans/yr_p_vgg16_late_exact.ron"),
    ),
    (
        "switches_vgg16_late",
        include_str!("../../plans/switches_vgg16_late.ron"),
    ),
    ("buffers_vgg16_late", include_str!("../../plans/buffers_vgg16_late.ron")),
    ("fidelity", include_str!("../../plans/fidelity.ron")),
    ("ten_million", include_str!("../../plans/ten_million.ron")),
    ("billion", include_str!("../../plans/billion.ron")),
];

/// Names of the bundled plans.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|(name, _)| *name)
}

/// Text of a bundled plan; `None` if there is none of that name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    BUNDLED.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}
