//! Work is left and nothing moves (rule 26): who waits for whom.

use cyclonest_arch::Accelerator;
use cyclonest_workloads::Tensor;

use super::Engine;
use super::components::{Flow, PeId, StoreId};
use crate::observe::Observer;

impl<O: Observer> Engine<'_, O> {
    /// The chain of blame, from the PE that is furthest behind.
    pub(super) fn chain_of_blame(&self, arch: &Accelerator) -> String {
        let behind = (0..self.pes.len())
            .filter(|&i| !self.pes[i].cursor.finished)
            .min_by_key(|&i| self.pes[i].cursor.rank);
        let Some(pe) = behind else {
            return "all PEs are finished, but outputs are not".into();
        };
        let id = PeId(pe as u32);
        let Some(need) = self.missing(id) else {
            return format!("PE {pe} has all operands and does not start");
        };
        let need = self.pes[pe].needs[need];
        let mut chain = format!("PE {pe} waits for {}", self.stores[need.store.at()].tensor);
        self.follow(arch, need.store, need.next - 1, &mut chain);
        chain
    }

    fn follow(&self, arch: &Accelerator, id: StoreId, ordinal: u64, chain: &mut String) {
        let store = &self.stores[id.at()];
        let Some(feeder) = store.feeder else { return };
        let q = &self.sequencers[feeder.at()];
        let name = |level: usize| &arch.levels[level].name;
        let (here, above) = (name(q.level), name(q.parent_level));
        let tile = format!("tile {ordinal} of {} at {here}[{}]", q.tensor, store.instance);
        if store.requested > ordinal {
            chain.push_str(&format!(" ← {tile} was requested from {above} and has not arrived"));
            return;
        }
        if store.requested < ordinal {
            chain.push_str(&format!(" ← {tile} comes after tile {}", store.requested));
            return self.follow(arch, id, store.requested, chain);
        }
        let record = store.record(ordinal);
        if !self.stores[q.parent.at()].record(record.parent).resident {
            chain.push_str(&format!(" ← {tile} waits for its parent"));
            return self.follow(arch, q.parent, record.parent, chain);
        }
        if q.tensor == Tensor::Outputs && q.visit(record.group).blocked {
            chain.push_str(&format!(" ← {tile} waits for partial sums on their way to {above}"));
            return;
        }
        let waiting: Vec<String> = match q.flow {
            Flow::Operand | Flow::Stream => {
                let group = &q.groups[(record.group - q.first) as usize];
                let members = self.s.shape(group.shape).stores.iter().map(|m| &self.stores[m.at()]);
                members
                    .filter(|m| !m.offered)
                    .map(|m| format!("{here}[{}]", m.instance))
                    .collect()
            }
            _ => vec![format!("{here}[{}]", store.instance)],
        };
        chain.push_str(&format!(" ← {tile} waits for a free slot at {}", waiting.join(", ")));
    }
}
