//! The same engine over plain vectors: what it would be without an entity component system, for the benchmark.

use specs::{Component, Join, World, WorldExt};

use super::components::{Pe, Resource, Sequencer, Store};
use super::{Built, Engine, Shared};
use crate::observe::Silent;
use crate::{Outcome, SimError};
use cyclonest_arch::Accelerator;

/// The columns of a world, taken out of it.
pub(crate) struct PlainColumns {
    resources: Vec<Resource>,
    stores: Vec<Store>,
    sequencers: Vec<Sequencer>,
    pes: Vec<Pe>,
    shared: Shared,
}

fn column<C: Component>(world: &World) -> Vec<C> {
    // Entities are joined in the order in which they were created, which is the order of the ids.
    world.write_component::<C>().drain().join().collect()
}

impl PlainColumns {
    pub(crate) fn new(built: Built) -> Self {
        let mut world = built.world;
        PlainColumns {
            resources: column(&world),
            stores: column(&world),
            sequencers: column(&world),
            pes: column(&world),
            shared: world
                .remove::<Option<Shared>>()
                .flatten()
                .expect("inserted when the world was built"),
        }
    }

    pub(crate) fn run(mut self, arch: &Accelerator) -> Result<Outcome, SimError> {
        Engine {
            resources: &mut self.resources,
            stores: &mut self.stores,
            sequencers: &mut self.sequencers,
            pes: &mut self.pes,
            s: &mut self.shared,
            observer: &mut Silent,
        }
        .run_to_end(arch);
        Built::reduce(&self.resources, &self.pes, &mut self.shared, arch)
    }
}
