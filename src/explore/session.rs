//! From a plan to a complete folder, over any number of interruptions.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cyclonest_arch::{Diagnostic, Technology, Violation, placed};
use cyclonest_scheduler::explore::{self, Explored, Kept, Plan, Space, Tally};

use super::identity::{difference, hash, identity};
use super::log::{self, Extent, Log, Record};
use super::results::describe;
use super::verify::{self, Simulated};
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;
use crate::report::thousands;

/// Name of the plan's copy in the folder.
const PLAN: &str = "plan.ron";
/// Name of the log.
const LOG: &str = "log";

/// An exploration in a folder.
#[derive(Debug)]
pub(crate) struct Session {
    folder: PathBuf,
    pub(crate) space: Space,
    identity: String,
    prune: bool,
    /// Held from before it was read until the end; `None` while it is only looked at.
    log: Option<Log>,
    extent: Extent,
    /// What the log says is done.
    pub(crate) explored: Explored,
    done: Vec<bool>,
    pub(crate) simulated: BTreeMap<u64, Simulated>,
}

/// Who wants to know how far it is.
pub(crate) trait Progress {
    /// `designs` more are done; the tally is that of all.
    fn swept(&self, designs: u64, tally: &Tally);
    /// So many of the designs to be simulated are.
    fn simulated(&self, done: u64, of: u64);
}

/// The log could not be written; what was done until then is kept.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) String);

/// The space of the plan `given` (a bundled one by its name, or a file), with the plan's text.
pub(crate) fn load(given: &str) -> Result<(Space, String), Faults> {
    if let Some(text) = explore::text(given) {
        return Ok((load_from(Path::new(given), text)?, text.to_owned()));
    }
    if !inputs::is_path(given) {
        let known: Vec<String> = explore::names().map(String::from).collect();
        return Err(Faults::unknown("plan", given, &known));
    }
    let text = inputs::read(Path::new(given))?;
    Ok((load_from(Path::new(given), &text)?, text))
}

/// The space of the plan in `text`, which `path` contains.
pub(crate) fn load_from(path: &Path, text: &str) -> Result<Space, Faults> {
    let plan = Plan::from_ron(text).map_err(|faults| inputs::placed(path, text, &faults))?;
    let mut faults = None;
    // What a plan names is at fault there.
    let at = |field: &str, faults: Faults| -> Faults {
        let message = faults.to_string();
        let violation = Violation {
            path: field.to_owned(),
            message: message.trim_start_matches("error: ").trim_end().to_owned(),
            help: None,
        };
        inputs::placed(path, text, &placed(text, vec![violation]))
    };
    let network = inputs::network(&plan.network, None).map_err(|f| at("network", f));
    let network = Faults::collect(&mut faults, network);
    let technology = technology(&plan.technology).map_err(|f| at("technology", f));
    let technology = Faults::collect(&mut faults, technology);
    let (Some(network), Some(technology)) = (network, technology) else {
        return Err(faults.unwrap_or_else(|| Faults::one("nothing to explore")));
    };
    Space::new(plan, technology, &network.network).map_err(|errors| {
        let violation = |error: &explore::SpaceError| Violation {
            path: error.path().unwrap_or_default().to_owned(),
            message: error.to_string(),
            help: None,
        };
        let found: Vec<Diagnostic> = placed(text, errors.iter().map(violation).collect());
        inputs::placed(path, text, &found)
    })
}

/// The technology `given`: a bundled one by its name, or a file.
fn technology(given: &str) -> Result<Technology, Faults> {
    if let Some(technology) = Technology::load(given) {
        return Ok(technology);
    }
    if !inputs::is_path(given) {
        let known: Vec<String> = Technology::names().map(String::from).collect();
        return Err(Faults::unknown("technology", given, &known));
    }
    let path = Path::new(given);
    let text = inputs::read(path)?;
    Technology::from_ron(&text).map_err(|faults| inputs::placed(path, &text, &faults))
}

impl Session {
    /// Begins an exploration in `folder`, which is made if need be.
    pub(crate) fn create(folder: &Path, space: Space, text: &str, prune: bool) -> Result<Self, Faults> {
        let plan = folder.join(PLAN);
        for name in [PLAN, LOG] {
            if folder.join(name).exists() {
                return Err(Faults::one(format!(
                    "{}: there is an exploration already\n  help: go on with it: explore --resume {}",
                    folder.display(),
                    folder.display()
                )));
            }
        }
        fs::create_dir_all(folder)
            .map_err(|error| Faults::one(format!("{}: cannot be made: {error}", folder.display())))?;
        let identity = identity(&space);
        Destination::prepare(Some(&plan))?.write(text)?;
        let mut session = Session::empty(folder, space, identity, prune);
        session.log = Some(Log::open(&folder.join(LOG)).map_err(|error| unwritable(&folder.join(LOG), &error))?);
        Ok(session)
    }

    /// The exploration in `folder` with what its log says is done; to go on with it, or only to look. If `given` is a
    /// plan, it has to be the same. `prune` counts if nothing has been written down yet.
    pub(crate) fn resume(
        folder: &Path,
        given: Option<(Space, String)>,
        prune: bool,
        go_on: bool,
    ) -> Result<Self, Faults> {
        let plan = folder.join(PLAN);
        if !plan.is_file() {
            return Err(Faults::one(format!(
                "{}: there is no exploration: {PLAN} is missing\n  help: begin one: explore PLAN.ron -o {}",
                folder.display(),
                folder.display()
            )));
        }
        let (space, origin) = match given {
            Some((space, _)) => (space, None),
            None => (load_from(&plan, &inputs::read(&plan)?)?, Some(&plan)),
        };
        let identity = identity(&space);
        let mut session = Session::empty(folder, space, identity, prune);
        let path = folder.join(LOG);
        if go_on {
            session.log = Some(Log::open(&path).map_err(|error| unwritable(&path, &error))?);
        } else if !path.is_file() {
            // Killed before anything was done.
            return Ok(session);
        }
        let mut begun: Option<String> = None;
        let mut foreign = false;
        let extent = log::read(&path, |record| match record {
            Record::Begin {
                format,
                prune,
                identity,
                ..
            } => {
                foreign |= format != FORMAT || begun.is_some();
                session.prune = prune;
                begun = Some(identity);
            }
            Record::Swept { swept, seconds } => match session.done.get_mut(swept.chunk as usize) {
                // The same chunk twice is the same result twice.
                Some(true) => {}
                Some(done) => {
                    *done = true;
                    session.explored.add(&swept);
                    session.explored.time += Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
                }
                None => foreign = true,
            },
            Record::Simulated(simulated) => {
                session.simulated.insert(simulated.design, simulated);
            }
        })
        .map_err(|error| Faults::one(format!("{}: {error}", path.display())))?;
        session.extent = extent;
        // If even the first record was cut off, nothing is done.
        if let Some(text) = begun {
            let now = &session.identity;
            if text != *now || foreign {
                let plan = origin.map_or_else(|| "the plan".to_owned(), |path| path.display().to_string());
                return Err(Faults::one(format!(
                    "{}: the exploration was begun with another plan ({:016x}, now {:016x}); from what it was to \
                     what {plan} says now:\n{}",
                    folder.display(),
                    hash(text.as_bytes()),
                    hash(now.as_bytes()),
                    difference(&text, now).trim_end(),
                )));
            }
        }
        Ok(session)
    }

    fn empty(folder: &Path, space: Space, identity: String, prune: bool) -> Self {
        Session {
            folder: folder.to_owned(),
            identity,
            prune,
            log: None,
            extent: Extent { length: 0, torn: false },
            explored: Explored {
                tally: Tally::default(),
                kept: Kept::new(&space.plan),
                refusal: None,
                time: Duration::ZERO,
            },
            done: vec![false; space.chunks() as usize],
            simulated: BTreeMap::new(),
            space,
        }
    }

    /// Hash of everything that the results depend on.
    pub(crate) fn hash(&self) -> String {
        format!("{:016x}", hash(self.identity.as_bytes()))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Chunks that are done, and all.
    pub(crate) fn chunks(&self) -> (usize, usize) {
        (self.done.iter().filter(|&&done| done).count(), self.done.len())
    }

    /// How far it is, for people.
    pub(crate) fn status(&self) -> String {
        let plan = &self.space.plan;
        let (done, all) = self.chunks();
        let tally = &self.explored.tally;
        let mut out = format!(
            "{} ({}): {} of {} chunks, {} of {} designs\n",
            plan.name,
            self.hash(),
            done,
            all,
            thousands(tally.designs),
            thousands(self.space.designs()),
        );
        out += &describe(tally, self.explored.time.as_secs_f64());
        if done == all {
            let selection = verify::selection(&self.space, &self.explored.kept);
            let simulated = selection.iter().filter(|n| self.simulated.contains_key(n)).count();
            out += &format!("{simulated} of {} designs simulated\n", selection.len());
        }
        for objective in self.explored.kept.objectives() {
            if let Some(best) = self.explored.kept.best(objective).first() {
                out += &format!(
                    "best {objective:?} so far: design {}: {} cycles, energy {:.4e}, {:.3} mm²\n",
                    best.design,
                    thousands(best.cycles as u64),
                    best.energy,
                    best.area * 1e-6
                );
            }
        }
        if self.extent.torn {
            out += "the last record was cut off; what it said will be done again\n";
        }
        out
    }

    /// Does what is not done yet.
    pub(crate) fn work(&mut self, threads: NonZeroUsize, progress: &dyn Progress) -> Result<(), Stopped> {
        let path = self.folder.join(LOG);
        let stopped = |error: std::io::Error| Stopped(format!("{}: cannot be written: {error}", path.display()));
        let Some(log) = &mut self.log else {
            return Err(Stopped(format!("{}: was opened to be looked at", path.display())));
        };
        log.go_on(self.extent.length).map_err(stopped)?;
        if self.extent.length == 0 {
            let begin = Record::Begin {
                format: FORMAT,
                plan: format!("{:016x}", hash(self.identity.as_bytes())),
                prune: self.prune,
                identity: self.identity.clone(),
            };
            log.append(&begin).map_err(stopped)?;
        }
        let todo: Vec<u64> = (0..self.done.len() as u64)
            .filter(|&c| !self.done[c as usize])
            .collect();
        let mut failure = None;
        explore::run(&self.space, &todo, threads, self.prune, |swept, took| {
            let record = Record::Swept {
                swept,
                seconds: took.as_secs_f64(),
            };
            if let Err(error) = log.append(&record) {
                failure = Some(stopped(error));
                return ControlFlow::Break(());
            }
            if let Record::Swept { swept, .. } = record {
                self.done[swept.chunk as usize] = true;
                self.explored.add(&swept);
                self.explored.time += took;
                progress.swept(swept.tally.designs, &self.explored.tally);
            }
            ControlFlow::Continue(())
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let selection = verify::selection(&self.space, &self.explored.kept);
        let of = selection.len() as u64;
        let todo: Vec<u64> = selection
            .into_iter()
            .filter(|n| !self.simulated.contains_key(n))
            .collect();
        verify::simulate_all(&self.space, &todo, threads, |simulated| {
            let record = Record::Simulated(simulated);
            if let Err(error) = log.append(&record) {
                failure = Some(stopped(error));
                return ControlFlow::Break(());
            }
            if let Record::Simulated(simulated) = record {
                self.simulated.insert(simulated.design, simulated);
                progress.simulated(self.simulated.len() as u64, of);
            }
            ControlFlow::Continue(())
        });
        match failure {
            Some(failure) => Err(failure),
            None => log.sync().map_err(stopped),
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Faults {
    Faults::one(format!("{}: cannot be written: {error}", path.display()))
}

/// Version of the log.
const FORMAT: u32 = 1;
