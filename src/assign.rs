//! Which mapping of a file belongs to which layer of a network.

use std::path::Path;

use cyclonest_arch::{Accelerator, Diagnostic, Mapping, Mappings};
use cyclonest_workloads::DistinctLayer;

use crate::faults::Faults;
use crate::inputs::{self, MappingFile};

/// A file of mappings that was read.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
    pub(crate) file: &'a MappingFile,
}

impl Given<'_> {
    /// The mapping of each of `layers`, `None` where the file has none. Every mapping of the file is checked
    /// against its layer and `arch`, the ones of other layers of the network (`all`) too.
    pub(crate) fn assign(
        &self,
        arch: &Accelerator,
        all: &[DistinctLayer],
        layers: &[DistinctLayer],
    ) -> Result<Vec<Option<Mapping>>, Faults> {
        match self.file {
            MappingFile::One(mapping) => self.only(arch, mapping, layers),
            MappingFile::Many(many) => self.by_name(arch, many, all, layers),
        }
    }

    fn only(
        &self,
        arch: &Accelerator,
        mapping: &Mapping,
        layers: &[DistinctLayer],
    ) -> Result<Vec<Option<Mapping>>, Faults> {
        let [layer] = layers else {
            return Err(Faults::one(format!(
                "{}: one mapping for {} layer shapes\n  help: name the layer with --layer",
                self.path.display(),
                layers.len()
            )));
        };
        let violations = mapping.check(&layer.problem, arch);
        if violations.is_empty() {
            return Ok(vec![Some(mapping.clone())]);
        }
        let diagnostics = Mapping::diagnose(self.text, &violations);
        Err(inputs::placed(self.path, self.text, &diagnostics))
    }

    fn by_name(
        &self,
        arch: &Accelerator,
        many: &Mappings,
        all: &[DistinctLayer],
        layers: &[DistinctLayer],
    ) -> Result<Vec<Option<Mapping>>, Faults> {
        let mut faults = None;
        for (name, mapping) in &many.layers {
            let diagnostics = match all.iter().find(|layer| layer.names.contains(name)) {
                None => vec![self.unknown_layer(name, all)],
                Some(layer) => Mappings::diagnose(self.text, name, &mapping.check(&layer.problem, arch)),
            };
            if !diagnostics.is_empty() {
                let placed = Err::<(), _>(inputs::placed(self.path, self.text, &diagnostics));
                Faults::collect(&mut faults, placed);
            }
        }
        let mut assigned = Vec::new();
        for layer in layers {
            let own: Vec<(&String, &Mapping)> = layer
                .names
                .iter()
                .filter_map(|n| many.layers.get_key_value(n))
                .collect();
            if let Some((other, _)) = own.iter().find(|(_, mapping)| *mapping != own[0].1) {
                let message = format!("{} and {other} have the same shape and different mappings", own[0].0);
                let diagnostics = [self.at_layer(other, message, None)];
                let placed = Err::<(), _>(inputs::placed(self.path, self.text, &diagnostics));
                Faults::collect(&mut faults, placed);
            }
            assigned.push(own.first().map(|(_, mapping)| (*mapping).clone()));
        }
        faults.map_or(Ok(assigned), Err)
    }

    fn unknown_layer(&self, name: &str, all: &[DistinctLayer]) -> Diagnostic {
        let known = all.iter().flat_map(|layer| &layer.names).map(String::as_str);
        let help = cyclonest_arch::nearest(name, known).map(|near| format!("did you mean `{near}`?"));
        self.at_layer(name, format!("unknown layer `{name}`"), help)
    }

    /// A fault at the name of a layer.
    fn at_layer(&self, name: &str, message: String, help: Option<String>) -> Diagnostic {
        let offset = self.text.find(&format!("\"{name}\"")).unwrap_or(0);
        let before = &self.text[..offset];
        Diagnostic {
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|&c| c != '\n').count() + 1,
            message,
            help,
        }
    }
}
