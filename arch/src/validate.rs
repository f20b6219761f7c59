//! The rules that a machine must keep, whatever it is mapped onto it.

use cyclonest_workloads::{Tensor, TensorSet};

use crate::text::nearest;
use crate::{Accelerator, Bank, Capacity, Channels, Clock, Network, NetworkKind, Ports, Reduction, Width};

/// A rule that a machine breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The offending value in the RON, such as `levels[2].banks[0].latency`.
    pub path: String,
    /// What was found and what was expected.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl Accelerator {
    /// Every rule that the machine breaks, in the order of its fields; none for a sound machine.
    #[must_use]
    pub fn check(&self) -> Vec<Violation> {
        let mut check = Check::default();
        check.clock("clock", self.clock, "the accelerator");
        check.words(self);
        check.levels(self);
        check.compute(self);
        check.totals(self);
        // Paths of constants mean something on a sound machine only.
        if check.found.is_empty() {
            check.sources(self);
        }
        check.found
    }
}

#[derive(Default)]
struct Check {
    found: Vec<Violation>,
}

impl Check {
    fn add(&mut self, path: impl Into<String>, message: String) {
        self.help(path, message, None);
    }

    fn help(&mut self, path: impl Into<String>, message: String, help: Option<String>) {
        let path = path.into();
        self.found.push(Violation { path, message, help });
    }

    fn positive(&mut self, path: String, value: u64, what: &str) {
        if value == 0 {
            self.add(path, format!("{what} is 0; at least 1 is expected"));
        }
    }

    /// A number of cycles: few enough that sums of many stay within 64 bits.
    fn cycles(&mut self, path: String, value: u64, what: &str) {
        if value > u64::from(u32::MAX) {
            self.add(
                path,
                format!("{what} is {value} cycles; at most {} are expected", u32::MAX),
            );
        }
    }

    fn clock(&mut self, path: &str, clock: Clock, of: &str) {
        let mhz = clock.mhz();
        if !(1e-6..=1e9).contains(&mhz) {
            self.add(
                path,
                format!("the clock of {of} is {mhz} MHz; 1e-6 to 1e9 are expected"),
            );
        }
    }

    fn energy(&mut self, path: String, value: f64, what: &str) {
        // The bound keeps sums over any number of accesses finite.
        if !(0.0..=1e15).contains(&value) {
            self.add(path, format!("{what} is {value} pJ; 0 to 1e15 are expected"));
        }
    }

    fn mesh(&mut self, path: String, (x, y): (u64, u64), of: &str) {
        for (i, (axis, n)) in [("X", x), ("Y", y)].into_iter().enumerate() {
            self.positive(format!("{path}[{i}]"), n, &format!("the extent of {of} along {axis}"));
        }
    }

    fn width(&mut self, path: String, width: Width, what: &str) {
        let (number, per_unit) = match width {
            Width::Bits(n) | Width::Words(n) => (n, 1),
            Width::Bytes(n) => (n, 8),
            Width::Unlimited => return,
        };
        self.positive(path.clone(), number, what);
        if number.checked_mul(per_unit).is_none() {
            self.add(
                path,
                format!("{what} of {number} bytes does not fit 64 bits when counted in bits"),
            );
        }
    }

    fn words(&mut self, arch: &Accelerator) {
        for (tensor, word) in arch.words.iter() {
            let path = format!("words.{tensor}");
            if word.bits == 0 || word.bits > 64 {
                self.add(
                    format!("{path}.bits"),
                    format!("{tensor} have {} bits per element; 1 to 64 are expected", word.bits),
                );
            }
            match word.partial {
                Some(partial) if partial < word.bits || partial > 64 => self.add(
                    format!("{path}.partial"),
                    format!(
                        "partial sums of {tensor} have {partial} bits; {} (the final precision) to 64 are expected",
                        word.bits
                    ),
                ),
                _ => {}
            }
        }
    }

    fn levels(&mut self, arch: &Accelerator) {
        let Some(outermost) = arch.levels.first() else {
            self.add(
                "levels",
                "the machine has no storage level; at least one (DRAM) is expected".into(),
            );
            return;
        };
        let names: Vec<&str> = arch.levels.iter().map(|l| l.name.as_str()).collect();
        let missing: Vec<String> = Tensor::ALL
            .into_iter()
            .filter(|&t| outermost.bank(t).is_none())
            .map(|t| t.to_string())
            .collect();
        if !missing.is_empty() {
            self.add(
                "levels[0].banks",
                format!(
                    "the outermost level {} must hold all three tensors; {} missing",
                    outermost.name,
                    missing.join(" and ")
                ),
            );
        }
        if outermost.mesh != (1, 1) && outermost.mesh.0 != 0 && outermost.mesh.1 != 0 {
            self.add(
                "levels[0].mesh",
                format!(
                    "the outermost level {} has no parent, so its mesh is (1, 1), not ({}, {})",
                    outermost.name, outermost.mesh.0, outermost.mesh.1
                ),
            );
        }
        for (i, level) in arch.levels.iter().enumerate() {
            let path = format!("levels[{i}]");
            if level.name.is_empty() {
                self.add(format!("{path}.name"), format!("level {i} has an empty name"));
            } else if let Some(first) = names[..i].iter().position(|n| *n == level.name) {
                self.add(
                    format!("{path}.name"),
                    format!(
                        "level {i} is called {} like level {first}; names are unique",
                        level.name
                    ),
                );
            }
            self.mesh(format!("{path}.mesh"), level.mesh, &level.name);
            if let Some(refresh) = level.refresh {
                self.positive(format!("{path}.refresh.every"), refresh.every, "the refresh interval");
                self.cycles(format!("{path}.refresh.every"), refresh.every, "the refresh interval");
                if refresh.takes >= refresh.every {
                    self.add(
                        format!("{path}.refresh.takes"),
                        format!(
                            "a refresh of {} takes {} cycles; fewer than the {} from one to the next are expected",
                            level.name, refresh.takes, refresh.every
                        ),
                    );
                }
            }
            self.banks(&path, level);
            match (&level.below, arch.levels.get(i + 1)) {
                (None, Some(child)) => self.help(
                    path,
                    format!("no network between {} and {}", level.name, child.name),
                    Some(format!("add `below: Network(kind: …)` to {}", level.name)),
                ),
                (Some(_), None) => self.add(
                    format!("{path}.below"),
                    format!(
                        "{} is the innermost level: its lanes read its ports directly, a network has no place below it",
                        level.name
                    ),
                ),
                (Some(network), Some(_)) => {
                    self.network(&format!("{path}.below"), &level.name, network, arch.child_mesh(i));
                }
                (None, None) => {}
            }
        }
        if let Some(wanted) = &arch.event_level
            && !names.contains(&wanted.as_str())
        {
            let near = nearest(wanted, names.iter().copied()).map(|n| format!("did you mean `{n}`? "));
            self.help(
                "event_level",
                format!("no level is called {wanted}"),
                Some(format!("{}levels are {}", near.unwrap_or_default(), names.join(", "))),
            );
        } else if arch.event_level() == 0 {
            // Transfers go from one level to the next: the PEs need a parent to fetch from.
            let path = if arch.event_level.is_some() {
                "event_level"
            } else {
                "levels"
            };
            self.add(
                path,
                format!(
                    "the PE level {} is the outermost level; a level further in is expected",
                    outermost.name
                ),
            );
        }
    }

    fn banks(&mut self, path: &str, level: &crate::Level) {
        if level.banks.is_empty() {
            self.add(format!("{path}.banks"), format!("{} has no bank", level.name));
        }
        let mut held = TensorSet::EMPTY;
        for (i, bank) in level.banks.iter().enumerate() {
            let path = format!("{path}.banks[{i}]");
            if bank.holds.is_empty() {
                self.add(
                    format!("{path}.holds"),
                    format!("bank {i} of {} holds no tensor", level.name),
                );
            }
            for tensor in bank.holds.iter() {
                if held.contains(tensor) {
                    self.add(
                        format!("{path}.holds"),
                        format!(
                            "{} holds {tensor} in two banks; a tensor has one place in a level",
                            level.name
                        ),
                    );
                }
                held.insert(tensor);
            }
            self.bank(&path, &level.name, bank);
        }
    }

    fn bank(&mut self, path: &str, level: &str, bank: &Bank) {
        match bank.size {
            Capacity::Unbounded => {}
            Capacity::Words(n) | Capacity::Bytes(n) | Capacity::KiB(n) | Capacity::MiB(n) => {
                self.positive(format!("{path}.size"), n, &format!("the capacity of {level}"));
                if bank.size.words().is_none() && bank.size.bits().is_none() {
                    self.add(
                        format!("{path}.size"),
                        format!("the capacity of {level} does not fit 64 bits when counted in bits"),
                    );
                }
            }
        }
        for (&tensor, &slots) in &bank.slots {
            let path = format!("{path}.slots.{tensor}");
            self.positive(
                path.clone(),
                slots,
                &format!("the number of slots of {tensor} in {level}"),
            );
            self.held(path, level, bank, tensor, "slots");
        }
        for tensor in bank.halo.iter() {
            self.held(format!("{path}.halo"), level, bank, tensor, "halo reuse");
        }
        let latency = format!("the latency of {level}");
        self.positive(format!("{path}.latency"), bank.latency, &latency);
        self.cycles(format!("{path}.latency"), bank.latency, &latency);
        self.energy(
            format!("{path}.energy.read"),
            bank.energy.read,
            &format!("the energy of a read of {level}"),
        );
        self.energy(
            format!("{path}.energy.write"),
            bank.energy.write,
            &format!("the energy of a write of {level}"),
        );
        match bank.ports {
            Ports::Ideal => {}
            Ports::Shared { read, write } | Ports::ReadWrite { read, write } => {
                self.width(
                    format!("{path}.ports.read"),
                    read,
                    &format!("the read width of {level}"),
                );
                self.width(
                    format!("{path}.ports.write"),
                    write,
                    &format!("the write width of {level}"),
                );
            }
            Ports::PerTensor(pairs) => {
                for (tensor, pair) in pairs.iter() {
                    let path = format!("{path}.ports.{tensor}");
                    match pair {
                        Some(pair) => {
                            self.held(path.clone(), level, bank, tensor, "ports");
                            let of = format!("of {tensor} in {level}");
                            self.width(format!("{path}.read"), pair.read, &format!("the read width {of}"));
                            self.width(format!("{path}.write"), pair.write, &format!("the write width {of}"));
                        }
                        None if bank.holds.contains(tensor) => {
                            self.add(path, format!("{level} holds {tensor} but has no ports for them"));
                        }
                        None => {}
                    }
                }
            }
        }
    }

    fn held(&mut self, path: String, level: &str, bank: &Bank, tensor: Tensor, what: &str) {
        if !bank.holds.contains(tensor) {
            self.add(
                path,
                format!("{what} for {tensor}, which this bank of {level} does not hold"),
            );
        }
    }

    fn network(&mut self, path: &str, level: &str, network: &Network, children: (u64, u64)) {
        let name = format!("the network below {level}");
        if let Some(clock) = network.clock {
            self.clock(&format!("{path}.clock"), clock, &name);
        }
        self.energy(
            format!("{path}.energy_per_bit_hop"),
            network.energy_per_bit_hop,
            &format!("the energy per bit and hop of {name}"),
        );
        let kind = format!("{path}.kind");
        match network.kind {
            NetworkKind::Pipe { down, up } => {
                self.channels(&format!("{kind}.down"), &name, &down, TensorSet::ALL, "down");
                let outputs = [Tensor::Outputs].into_iter().collect();
                self.channels(&format!("{kind}.up"), &name, &up, outputs, "up");
            }
            NetworkKind::Bus(channels) => self.channels(&kind, &name, &channels, TensorSet::ALL, "on the bus"),
            NetworkKind::HierarchicalBus { width } => {
                self.width(format!("{kind}.width"), width, &format!("the width of {name}"));
            }
            NetworkKind::Crossbar { link } | NetworkKind::Mesh { link } => {
                let path = format!("{kind}.link");
                self.width(path.clone(), link, &format!("the link width of {name}"));
                let (Width::Bits(bits) | Width::Bytes(bits) | Width::Words(bits)) = link else {
                    return;
                };
                let links = u128::from(children.0) * u128::from(children.1);
                if u128::from(bits) * 8 * links > u128::from(u64::MAX) {
                    self.add(
                        path,
                        format!("the width of all {links} links of {name} overflows 64 bits"),
                    );
                }
            }
        }
        if let Reduction::Tree { stage: n } | Reduction::Chain { hop: n } = network.reduction
            && n > u64::from(u32::MAX)
        {
            self.add(
                format!("{path}.reduction"),
                format!(
                    "a reduction step of {name} takes {n} cycles; at most {} are expected",
                    u32::MAX
                ),
            );
        }
    }

    fn channels(&mut self, path: &str, name: &str, channels: &Channels, needed: TensorSet, way: &str) {
        let link = |check: &mut Check, path: &str, link: crate::Link, of: &str| {
            check.width(
                format!("{path}.width"),
                link.width,
                &format!("the width of {of}, {way},"),
            );
            let latency = format!("the latency of {of}, {way},");
            check.positive(format!("{path}.latency"), link.latency, &latency);
            check.cycles(format!("{path}.latency"), link.latency, &latency);
        };
        match channels {
            Channels::OneForAll(one) => link(self, path, *one, name),
            Channels::PerTensor(links) => {
                for (tensor, entry) in links.iter() {
                    match entry {
                        Some(entry) => link(
                            self,
                            &format!("{path}.{tensor}"),
                            *entry,
                            &format!("{name} for {tensor}"),
                        ),
                        None if needed.contains(tensor) => self.add(
                            path,
                            format!("{name} has no channel {way} for {tensor}, which must pass it"),
                        ),
                        None => {}
                    }
                }
            }
        }
    }

    fn compute(&mut self, arch: &Accelerator) {
        self.mesh("compute.lanes".into(), arch.compute.lanes, "the lanes");
        let interval = "the interval between two MACs of a lane";
        self.positive("compute.interval".into(), arch.compute.interval, interval);
        self.cycles("compute.interval".into(), arch.compute.interval, interval);
        self.cycles("compute.depth".into(), arch.compute.depth, "the pipeline depth");
        self.energy(
            "compute.energy_per_mac".into(),
            arch.compute.energy_per_mac,
            "the energy of a MAC",
        );
    }

    /// Instances and lanes of the whole machine: few enough that instances × cycles stay within 64 bits.
    fn totals(&mut self, arch: &Accelerator) {
        let most = u64::from(u32::MAX);
        let within = |n: u64, (x, y): (u64, u64)| n.checked_mul(x)?.checked_mul(y).filter(|&n| n <= most);
        let mut instances = 1;
        for (i, level) in arch.levels.iter().enumerate() {
            match within(instances, level.mesh) {
                Some(n) => instances = n,
                None => {
                    let message = format!(
                        "more than {most} instances of {}; at most that many are expected",
                        level.name
                    );
                    self.add(format!("levels[{i}].mesh"), message);
                    return;
                }
            }
        }
        if within(instances, arch.compute.lanes).is_none() {
            let message = format!("more than {most} lanes in all; at most that many are expected");
            self.add("compute.lanes", message);
        }
    }

    fn sources(&mut self, arch: &Accelerator) {
        if arch.sources.is_empty() {
            return;
        }
        let constants = arch.constants();
        let prefixes = |path: &'_ String| -> Vec<String> {
            let ends = path.match_indices('.').map(|(i, _)| i).chain([path.len()]);
            ends.map(|end| path[..end].to_string()).collect()
        };
        let known: Vec<String> = constants.iter().flat_map(prefixes).collect();
        for entry in arch.sources.keys() {
            if !constants.iter().any(|path| crate::sources::covers(entry, path)) {
                let near = nearest(entry, known.iter().map(String::as_str));
                self.help(
                    format!("sources[\"{entry}\"]"),
                    format!("`{entry}` names no constant of this machine"),
                    near.map(|n| format!("did you mean `{n}`?")),
                );
            }
        }
    }
}
