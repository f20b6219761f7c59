//! The results of a complete exploration, as files and for people.

use std::collections::BTreeMap;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use cyclonest_scheduler::explore::{Objective, Row, Tally};
use cyclonest_validation::compare::{Agreement, Pair};
use serde::Serialize;

use super::session::Session;
use super::verify::{Measured, Simulated};
use crate::faults::Faults;
use crate::output::Destination;
use crate::report::{render, thousands};

/// Everything that was found; the same for any number of threads and interruptions.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    schema: u32,
    command: &'static str,
    plan: String,
    plan_hash: String,
    network: String,
    technology: String,
    model: &'static str,
    objective: Objective,
    macs: u64,
    designs: Tally,
    /// The first design that was refused.
    refused: Option<Refused>,
    /// How well the model orders the designs that were simulated.
    fidelity: Vec<Fidelity>,
    #[serde(skip)]
    lines: Vec<Line>,
    #[serde(skip)]
    time: f64,
}

#[derive(Debug, Serialize)]
struct Refused {
    design: u64,
    reason: String,
}

/// The model against the simulation, over one list of designs.
#[derive(Debug, Serialize)]
struct Fidelity {
    /// `throughput`, `energy`, `edp` or `front`.
    list: &'static str,
    /// Figure that is compared.
    figure: &'static str,
    /// Designs of the list that were simulated.
    designs: usize,
    /// Simulated figure of the model's best (of equals the first), relative to the best simulated one, less 1.
    regret: f64,
    /// Errors and correlations with their intervals; Kendall's τ-b is `null` if one of the two orders has ties only.
    agreement: Agreement,
    /// The pair that the model orders the most wrongly: it prefers `first`, and simulation says by how much wrongly.
    worst_swap: Option<Swap>,
}

#[derive(Debug, Serialize)]
struct Swap {
    first: u64,
    second: u64,
    /// Simulated figure of `first` ÷ that of `second`, at least 1.
    ratio: f64,
}

/// One kept design.
#[derive(Debug)]
struct Line {
    row: Row,
    /// Places from 1 by throughput, energy and EDP.
    ranks: [Option<usize>; 3],
    front: bool,
    simulated: Option<Simulated>,
}

const OBJECTIVES: [(Objective, &str, &str); 3] = [
    (Objective::Throughput, "throughput", "cycles"),
    (Objective::Energy, "energy", "energy"),
    (Objective::Edp, "edp", "edp"),
];

impl Results {
    /// The results of a session that has done all its work.
    pub(crate) fn new(session: &Session) -> Result<Self, Faults> {
        let (space, explored) = (&session.space, &session.explored);
        let rows = explored.rows(space).map_err(Faults::one)?;
        let mut ranks: BTreeMap<u64, [Option<usize>; 3]> = BTreeMap::new();
        for (o, (objective, ..)) in OBJECTIVES.iter().enumerate() {
            for (place, entry) in explored.kept.best(*objective).iter().enumerate() {
                ranks.entry(entry.design).or_default()[o] = Some(place + 1);
            }
        }
        let front: Vec<u64> = explored.kept.front().iter().map(|e| e.design).collect();
        let mut on_front = front.clone();
        on_front.sort_unstable();
        let line = |row: Row| Line {
            ranks: ranks.get(&row.design.number).copied().unwrap_or_default(),
            front: on_front.binary_search(&row.design.number).is_ok(),
            simulated: session.simulated.get(&row.design.number).cloned(),
            row,
        };
        let lines: Vec<Line> = rows.into_iter().map(line).collect();
        // The sweep and the design by itself are two ways to the same figures.
        let entries = OBJECTIVES.iter().flat_map(|(o, ..)| explored.kept.best(*o));
        for entry in entries {
            let found = lines.binary_search_by_key(&entry.design, |l| l.row.design.number);
            let same = found.is_ok_and(|at| {
                let row = &lines[at].row;
                (row.cycles, row.energy) == (entry.cycles, entry.energy)
            });
            if !same {
                let fault = format!(
                    "design {}: its figures in the sweep are not those by itself",
                    entry.design
                );
                return Err(Faults::one(fault));
            }
        }
        let fidelity = OBJECTIVES
            .iter()
            .enumerate()
            .filter_map(|(o, &(_, list, figure))| {
                let mut of: Vec<&Line> = lines.iter().filter(|l| l.ranks[o].is_some()).collect();
                of.sort_by_key(|l| l.ranks[o]);
                Fidelity::new(list, figure, &of)
            })
            .chain(["cycles", "energy"].into_iter().filter_map(|figure| {
                let of: Vec<&Line> = lines.iter().filter(|l| l.front).collect();
                Fidelity::new("front", figure, &of)
            }))
            .collect();
        Ok(Results {
            schema: 1,
            command: "explore",
            plan: space.plan.name.clone(),
            plan_hash: session.hash(),
            network: space.plan.network.clone(),
            technology: space.technology.name.clone(),
            model: space.plan.model.cost_model().name(),
            objective: space.plan.objective,
            macs: space.macs(),
            designs: explored.tally,
            refused: explored
                .refusal
                .clone()
                .map(|(design, reason)| Refused { design, reason }),
            fidelity,
            lines,
            time: explored.time.as_secs_f64(),
        })
    }

    /// Writes `results.csv` and `summary.json` into `folder`.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Faults> {
        let mut json = serde_json::to_string_pretty(self).map_err(|e| Faults::one(e.to_string()))?;
        json.push('\n');
        let csv = self.to_csv().map_err(|e| Faults::one(e.to_string()))?;
        Destination::prepare(Some(&folder.join("results.csv")))?.write(&csv)?;
        Destination::prepare(Some(&folder.join("summary.json")))?.write(&json)
    }

    /// One line per kept design, by number; docs/explore.md has the columns.
    fn to_csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record([
            "design",
            "mapping",
            "pes",
            "mesh_x",
            "mesh_y",
            "l1",
            "l2",
            "noc_bandwidth",
            "noc_latency",
            "offchip_bandwidth",
            "multicast",
            "reduction",
            "cycles",
            "macs_per_cycle",
            "energy",
            "edp",
            "area_mm2",
            "power_mw",
            "rank_throughput",
            "rank_energy",
            "rank_edp",
            "pareto",
            "simulated_cycles",
            "simulated_energy",
            "cycles_error",
            "energy_error",
            "simulation_failed",
        ])?;
        let rank = |rank: Option<usize>| rank.map_or_else(String::new, |place| place.to_string());
        for line in &self.lines {
            let (row, d) = (&line.row, &line.row.design);
            let outcome = line.simulated.as_ref().map(|s| &s.outcome);
            let measured = outcome.and_then(|o| o.as_ref().ok());
            let figure = |f: &dyn Fn(&Measured) -> String| measured.map_or_else(String::new, f);
            writer.write_record([
                d.number.to_string(),
                row.mapping.clone(),
                d.pes().to_string(),
                d.mesh.0.to_string(),
                d.mesh.1.to_string(),
                row.l1.to_string(),
                row.l2.to_string(),
                d.noc_bandwidth.to_string(),
                d.noc_latency.to_string(),
                d.offchip_bandwidth.to_string(),
                d.multicast.to_string(),
                d.reduction.to_string(),
                row.cycles.to_string(),
                row.throughput.to_string(),
                row.energy.to_string(),
                (row.cycles * row.energy).to_string(),
                row.area_mm2.to_string(),
                row.power_mw.to_string(),
                rank(line.ranks[0]),
                rank(line.ranks[1]),
                rank(line.ranks[2]),
                u8::from(line.front).to_string(),
                figure(&|m| m.cycles.to_string()),
                figure(&|m| m.energy().to_string()),
                figure(&|m| (row.cycles / m.cycles as f64 - 1.0).to_string()),
                figure(&|m| (row.energy / m.energy() - 1.0).to_string()),
                outcome.and_then(|o| o.as_ref().err()).cloned().unwrap_or_default(),
            ])?;
        }
        let table = writer.into_inner().map_err(|e| csv::Error::from(e.into_error()))?;
        Ok(format!(
            "# cyclonest explore, plan {} ({}), technology {}, model {}\n{}",
            self.plan,
            self.plan_hash,
            self.technology,
            self.model,
            String::from_utf8_lossy(&table)
        ))
    }

    /// True if every simulation has an outcome.
    pub(crate) fn is_complete(&self) -> bool {
        let failed = |line: &Line| line.simulated.as_ref().is_some_and(|s| s.outcome.is_err());
        !self.lines.iter().any(failed)
    }

    /// What the sweep did, the best designs, and where the model's order was wrong.
    pub(crate) fn to_human(&self) -> String {
        let mut out = format!(
            "{} ({}): {} by {}, technology {}\n{}",
            self.plan,
            self.plan_hash,
            self.network,
            self.model,
            self.technology,
            describe(&self.designs, self.time)
        );
        if let Some(refused) = &self.refused {
            out += &format!("first refused: design {}: {}\n", refused.design, refused.reason);
        }
        out.push('\n');
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "best",
            "design",
            "mapping",
            "PEs",
            "L1",
            "L2",
            "bandwidth",
            "MACs/cycle",
            "energy",
            "mm²",
            "mW",
            "simulated",
            "energy",
        ]);
        let names = ["throughput", "energy", "EDP"];
        for (o, name) in names.iter().enumerate() {
            let mut best: Vec<&Line> = self
                .lines
                .iter()
                .filter(|l| l.ranks[o].is_some_and(|r| r <= 5))
                .collect();
            best.sort_by_key(|l| l.ranks[o]);
            for line in best {
                let (row, d) = (&line.row, &line.row.design);
                let measured = line.simulated.as_ref().map(|s| &s.outcome);
                let (rate, energy) = match measured {
                    Some(Ok(m)) => {
                        let rate = self.macs as f64 / m.cycles as f64;
                        (format!("{rate:.2}"), format!("{:.4e}", m.energy()))
                    }
                    Some(Err(_)) => ("failed".to_owned(), "failed".to_owned()),
                    None => ("–".to_owned(), "–".to_owned()),
                };
                table.add_row([
                    format!("{name} {}", line.ranks[o].unwrap_or_default()),
                    d.number.to_string(),
                    row.mapping.clone(),
                    d.pes().to_string(),
                    thousands(row.l1),
                    thousands(row.l2),
                    d.noc_bandwidth.to_string(),
                    format!("{:.2}", row.throughput),
                    format!("{:.4e}", row.energy),
                    format!("{:.3}", row.area_mm2),
                    format!("{:.1}", row.power_mw),
                    rate,
                    energy,
                ]);
            }
        }
        for column in table.column_iter_mut().skip(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        out += &render(&table);
        let front = self.lines.iter().filter(|l| l.front).count();
        if front > 0 {
            out += &format!("{front} designs on the Pareto front\n");
        }
        for fidelity in &self.fidelity {
            out += &fidelity.to_human();
        }
        for line in &self.lines {
            if let Some(Err(why)) = line.simulated.as_ref().map(|s| &s.outcome) {
                out += &format!("design {} cannot be simulated: {why}\n", line.row.design.number);
            }
        }
        out
    }
}

/// Counts and rates of a sweep that took `seconds`, summed over its threads.
pub(super) fn describe(tally: &Tally, seconds: f64) -> String {
    let rate = |n: u64| match seconds > 0.0 {
        true => format!("{}/s per core", thousands((n as f64 / seconds) as u64)),
        false => "no time".to_owned(),
    };
    format!(
        "{} designs ({}): {} evaluated ({}), {} of them over budget; skipped: {} by area, {} by power, {} by what was \
         found before; {} buffers too small, {} refused\n",
        thousands(tally.designs),
        rate(tally.designs),
        thousands(tally.evaluated),
        rate(tally.evaluated),
        thousands(tally.over_budget),
        thousands(tally.area),
        thousands(tally.power),
        thousands(tally.bound),
        thousands(tally.capacity),
        thousands(tally.refused),
    )
}

impl Fidelity {
    /// The model against the simulation over `lines`, the model's best first.
    fn new(list: &'static str, figure: &'static str, lines: &[&Line]) -> Option<Self> {
        let measured = lines.iter().filter_map(|line| {
            let m = line.simulated.as_ref()?.outcome.as_ref().ok()?;
            let (cycles, row) = (m.cycles as f64, &line.row);
            let pair = match figure {
                "cycles" => (row.cycles, cycles),
                "energy" => (row.energy, m.energy()),
                _ => (row.cycles * row.energy, cycles * m.energy()),
            };
            Some((row.design.number, pair.0, pair.1))
        });
        let all: Vec<(u64, f64, f64)> = measured.collect();
        // The lists are in the model's order, but for the front.
        let favourite = all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let best = all.iter().map(|&(_, _, t)| t).min_by(f64::total_cmp)?;
        let pairs: Vec<Pair> = all
            .iter()
            .map(|&(_, estimated, measured)| Pair { measured, estimated })
            .collect();
        let mut worst: Option<Swap> = None;
        for &(first, m, t) in &all {
            for &(second, other_m, other_t) in &all {
                let ratio = t / other_t;
                if m < other_m && ratio > 1.0 && worst.as_ref().is_none_or(|w| ratio > w.ratio) {
                    worst = Some(Swap { first, second, ratio });
                }
            }
        }
        Some(Fidelity {
            list,
            figure,
            designs: all.len(),
            regret: favourite.2 / best - 1.0,
            agreement: Agreement::of(&pairs, true, 0),
            worst_swap: worst,
        })
    }

    fn to_human(&self) -> String {
        let Agreement {
            kendall, mean_error, ..
        } = &self.agreement;
        let tau = kendall.as_ref().map_or_else(
            || "– (no order)".to_owned(),
            |tau| format!("{:.3} [{:.3}, {:.3}]", tau.value, tau.low, tau.high),
        );
        let mut out = format!(
            "{} of the {} best by {} simulated: Kendall τ {tau}, regret {:.2} %, mean error {:.2} %",
            self.figure,
            self.designs,
            self.list,
            100.0 * self.regret,
            100.0 * mean_error.as_ref().map_or(f64::NAN, |error| error.value),
        );
        if let Some(swap) = &self.worst_swap {
            out += &format!(
                "; most wrong: prefers design {} to {}, which is {:.2} % better",
                swap.first,
                swap.second,
                100.0 * (1.0 - 1.0 / swap.ratio)
            );
        }
        out + "\n"
    }
}
