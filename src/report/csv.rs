//! CSV: one row per distinct layer, the units in the names of the columns.

use std::collections::BTreeSet;

use cyclonest_workloads::Tensor;

use super::Report;

impl Report {
    /// The report as CSV. Layers without a result have their error in the last column and nothing between.
    pub(crate) fn to_csv(&self) -> Result<String, csv::Error> {
        let reasons: BTreeSet<&String> = self.layers.iter().flat_map(|l| l.stall_cycles.keys()).collect();
        let mut header: Vec<String> = [
            "arch",
            "network",
            "layer",
            "count",
            "macs",
            "cycles",
            "utilization_fraction",
            "energy_pJ",
            "values",
            "mapped_by",
            "busy_PE_cycles",
        ]
        .map(String::from)
        .to_vec();
        header.extend(reasons.iter().map(|reason| format!("stalled_PE_cycles {reason}")));
        for level in &self.totals.levels {
            for tensor in Tensor::ALL {
                for access in ["reads", "fills", "updates", "drains"] {
                    header.push(format!("{} {tensor} {access}_elements", level.name));
                }
                if level.network.is_some() {
                    header.push(format!("{} {tensor} down_words", level.name));
                    header.push(format!("{} {tensor} up_words", level.name));
                    header.push(format!("{} {tensor} network_bit_hops", level.name));
                }
            }
        }
        header.push("error".to_string());

        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&header)?;
        for layer in &self.layers {
            let mut row = vec![
                self.arch.clone(),
                self.network.clone(),
                layer.name.clone(),
                layer.count.to_string(),
                layer.macs.to_string(),
                layer.cycles.to_string(),
                layer.utilization.to_string(),
                layer.energy_pj.to_string(),
                layer.values.to_string(),
                layer.mapped_by.clone(),
                layer.busy_cycles.to_string(),
            ];
            let stalled = |reason| layer.stall_cycles.get(reason).copied().unwrap_or(0).to_string();
            row.extend(reasons.iter().map(|&reason| stalled(reason)));
            for level in &layer.levels {
                for tensor in Tensor::ALL {
                    let accesses = &level.tensors[tensor];
                    row.extend(
                        [accesses.reads, accesses.fills, accesses.updates, accesses.drains].map(|n| n.to_string()),
                    );
                    if let Some(network) = &level.network {
                        let traffic = &network[tensor];
                        let down: u64 = traffic.down.values().map(|p| p.words).sum();
                        let up: u64 = traffic.up.values().map(|p| p.words).sum();
                        row.extend([down, up, traffic.bit_hops].map(|n| n.to_string()));
                    }
                }
            }
            row.push(String::new());
            writer.write_record(&row)?;
        }
        for failed in &self.failed {
            let mut row = vec![
                self.arch.clone(),
                self.network.clone(),
                failed.name.clone(),
                failed.count.to_string(),
                failed.macs.to_string(),
            ];
            row.resize(header.len() - 1, String::new());
            row.push(failed.error.clone());
            writer.write_record(&row)?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
