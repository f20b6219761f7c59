//! Records of MAESTRO against the model `maestro`.
//!
//! A record has the mapping as MAESTRO's text in `m_text`, the machine, and what the tool said. Where it failed, a
//! record has its exit code `rc` and no results; our model must give an error. The machine is in `num_pes`,
//! `noc_bw`, `noc_latency` and `offchip_bw`, or in `hw` as `pes`, `bw`, `lat` and `off`. A figure that is `null` was
//! not a number.

use std::path::Path;

use cyclonest_arch::directives::{Layer, parse};
use cyclonest_scheduler::cost::maestro::{Evaluation, Machine, TensorCosts, evaluate};
use serde::Deserialize;
use serde_json::Value;

use super::{Comparison, ReferenceError, Report, Verdict};

/// One record.
#[derive(Debug, Clone, Deserialize)]
pub struct Record {
    case: Option<String>,
    layer: Option<String>,
    layer_idx: Option<usize>,
    m_text: String,
    hw: Option<Value>,
    rc: Option<i64>,
    num_pes: Option<u64>,
    noc_bw: Option<u64>,
    noc_latency: Option<u64>,
    offchip_bw: Option<u64>,
    #[serde(flatten)]
    figures: serde_json::Map<String, Value>,
}

/// Judges the records of `files`.
///
/// # Errors
/// If a file cannot be read or a line is not a record of the format.
pub fn validate(files: &[impl AsRef<Path>]) -> Result<Report, ReferenceError> {
    super::run(files, |record: Record| record.judge())
}

/// What our model says of the records on which MAESTRO failed.
///
/// # Errors
/// If a file cannot be read or a line is not a record of the format.
pub fn refusals(files: &[impl AsRef<Path>]) -> Result<Vec<String>, ReferenceError> {
    let refused = |record: Record| -> Result<Option<String>, String> {
        if record.figures.contains_key("runtime") {
            return Ok(None);
        }
        Ok(record.evaluated(&record.machine()?).err())
    };
    Ok(super::each(files, refused)?.into_iter().flatten().collect())
}

impl Record {
    fn name(&self) -> String {
        let layer = self.layer.as_deref().unwrap_or("layer");
        let hw = self.hw.as_ref().and_then(Value::as_str).unwrap_or_default();
        match &self.case {
            Some(case) => format!("{case} {layer} {hw}"),
            None => {
                let text: Vec<&str> = self.m_text.split_whitespace().collect();
                format!("{} ({})", layer, text.join(" "))
            }
        }
    }

    fn mapped(&self) -> Result<Layer, String> {
        let network = parse(&self.m_text).map_err(|found| {
            let all: Vec<String> = found
                .iter()
                .map(|d| format!("{}:{}: {}", d.line, d.column, d.message))
                .collect();
            format!("m_text: {}", all.join("; "))
        })?;
        let named = |l: &&Layer| self.layer.as_ref().is_some_and(|name| *name == l.name);
        let indexed = || network.layers.get(self.layer_idx.unwrap_or(0));
        let found = network
            .layers
            .iter()
            .find(named)
            .or_else(indexed)
            .or(network.layers.first());
        found.cloned().ok_or_else(|| "m_text: no layer".to_owned())
    }

    fn machine(&self) -> Result<Machine, String> {
        let get = |field: Option<u64>, name: &str, short: &str| {
            let of_hw = || self.hw.as_ref()?.get(short)?.as_u64();
            field
                .or_else(of_hw)
                .ok_or_else(|| format!("neither {name} nor hw.{short} is given"))
        };
        Ok(Machine {
            pes: get(self.num_pes, "num_pes", "pes")?,
            noc_bandwidth: get(self.noc_bw, "noc_bw", "bw")?,
            noc_latency: get(self.noc_latency, "noc_latency", "lat")?,
            offchip_bandwidth: get(self.offchip_bw, "offchip_bw", "off")?,
        })
    }

    /// What our model says. A text that cannot be read is refused like any other.
    fn evaluated(&self, machine: &Machine) -> Result<Evaluation, String> {
        evaluate(&self.mapped()?, machine).map_err(|e| e.to_string())
    }

    fn judge(&self) -> Result<Verdict, String> {
        let machine = self.machine()?;
        let mut c = Comparison::default();
        match (self.evaluated(&machine), self.figures.contains_key("runtime")) {
            (Ok(ours), true) => self.compare(&ours, &machine, &mut c)?,
            (Ok(_), false) => c.note(
                "result",
                format!("an error (exit code {})", self.rc.unwrap_or(-1)),
                "figures",
            ),
            (Err(e), true) => c.note("result", "figures", e),
            (Err(_), false) => {}
        }
        Ok(Verdict {
            id: self.name(),
            differences: c.differences,
        })
    }

    /// Every figure of the record that our model has.
    fn compare(&self, ours: &Evaluation, machine: &Machine, c: &mut Comparison) -> Result<(), String> {
        let [l2_write, l2_read, l1_write, l1_read] = ours.energy_parts();
        let (area, power) = (ours.area(machine), ours.power(machine));
        let reads: i64 = ours.tensors.iter().map(|t| t.l1_read).sum();
        let writes: i64 = ours.tensors.iter().map(|t| t.l1_write).sum();
        // Integers must be equal; MAESTRO prints the others with ten digits.
        let (exact, digits) = (0.0, 1e-9);
        let figures = [
            ("runtime", ours.runtime as f64, exact),
            ("num_macs", ours.macs as f64, exact),
            ("num_results", ours.analyses as f64, exact),
            ("peak_bw_req", ours.peak_bandwidth as f64, exact),
            ("offchip_bw_req", ours.offchip_bandwidth as f64, exact),
            ("l1_total_req", ours.l1_required() as f64, exact),
            ("l2_total_req", ours.l2_required() as f64, exact),
            ("avg_bw_req", ours.average_bandwidth, 1e-6),
            ("avg_active_pes", ours.active_pes, 1e-6),
            ("arith_intensity", ours.arithmetic_intensity, digits),
            ("throughput", ours.macs as f64 / ours.runtime as f64, digits),
            ("overall_reuse_factor", reads as f64 / writes as f64, digits),
            ("energy_l2_write", l2_write, digits),
            ("energy_l2_read", l2_read, digits),
            ("energy_l1_write", l1_write, digits),
            ("energy_l1_read", l1_read, digits),
            ("energy_total_xMAC", ours.energy_macs(), digits),
            ("area_um2", area.total(), digits),
            ("power_mW", power.total(), digits),
            ("pe_power", power.pe, digits),
            ("l1_power", power.l1, digits),
            ("l2_power", power.l2, digits),
            ("noc_power", power.noc, 1e-7),
        ];
        for (name, got, tolerance) in figures {
            if let Some(expected) = self.figures.get(name) {
                figure(name.to_owned(), expected, got, tolerance, c)?;
            }
        }
        for (name, tensor) in ["input", "weight", "output"].into_iter().zip(&ours.tensors) {
            if let Some(expected) = self.figures.get(name) {
                compare_tensor(name, expected, tensor, c)?;
            }
        }
        for (name, delay) in ["delay_ingress", "delay_egress", "delay_computation"]
            .into_iter()
            .zip(ours.delays)
        {
            // Without a valid case there are no delays; the original prints what its variables started with.
            if let Some([min, max, average]) = self.figures.get(name).and_then(Value::as_array).map(Vec::as_slice)
                && !ours.average_bandwidth.is_nan()
            {
                figure(format!("{name}.min"), min, delay.min as f64, exact, c)?;
                figure(format!("{name}.max"), max, delay.max as f64, exact, c)?;
                figure(format!("{name}.average"), average, delay.average as f64, exact, c)?;
            }
        }
        Ok(())
    }
}

fn compare_tensor(name: &str, expected: &Value, ours: &TensorCosts, c: &mut Comparison) -> Result<(), String> {
    let fields = [
        ("l2_write", ours.l2_write),
        ("l2_read", ours.l2_read),
        ("l1_write", ours.l1_write),
        ("l1_read", ours.l1_read),
        ("l2_req", ours.l2_required),
        ("l1_req", ours.l1_required),
    ];
    for (field, got) in fields {
        if let Some(expected) = expected.get(field) {
            figure(format!("{name}.{field}"), expected, got as f64, 0.0, c)?;
        }
    }
    if let Some(expected) = expected.get("reuse_factor") {
        let got = ours.l1_read as f64 / ours.l1_write as f64;
        figure(format!("{name}.reuse_factor"), expected, got, 1e-9, c)?;
    }
    Ok(())
}

/// Compares a figure; `null` is one that is not a finite number.
fn figure(field: String, expected: &Value, got: f64, tolerance: f64, c: &mut Comparison) -> Result<(), String> {
    if expected.is_null() {
        if got.is_finite() {
            c.note(field, "null", got.to_string());
        }
        return Ok(());
    }
    let expected = expected
        .as_f64()
        .ok_or_else(|| format!("{field} is {expected}, expected a number or null"))?;
    c.number(field, expected, got, tolerance, true);
    Ok(())
}
