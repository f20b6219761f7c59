//! `dataflow:C-P`, `X-P`, `YX-P`, `YR-P`, `KC-P`: the fixed styles, as templates of data-centric directives that are
//! lowered to loops and put onto the machine. No search: what does not fit the machine's meshes is an error.

use cyclonest_arch::directives::{Style, lower};

use crate::judge::Judge;
use crate::{Request, ScheduleError, Scheduled, Scheduler};

/// One style as a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataflow {
    name: String,
    style: Style,
}

impl Dataflow {
    /// The scheduler of `style`.
    #[must_use]
    pub fn new(style: Style) -> Self {
        Dataflow {
            name: format!("dataflow:{}", style.name()),
            style,
        }
    }
}

impl Scheduler for Dataflow {
    fn name(&self) -> &str {
        &self.name
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let Request { problem, arch, .. } = *request;
        let pes = arch.lanes();
        let infeasible =
            |why: String| ScheduleError::Infeasible(format!("{} on {}: {why}", self.style.name(), arch.name));
        let layer = self
            .style
            .layer("layer", problem, pes)
            .map_err(|error| infeasible(error.to_string()))?;
        let lowered = lower(&layer, pes).map_err(|error| infeasible(error.to_string()))?;
        let mapping = lowered
            .onto(problem, arch)
            .map_err(|error| infeasible(error.to_string()))?;
        let violations = mapping.check(problem, arch);
        if !violations.is_empty() {
            let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
            return Err(infeasible(texts.join("; ")));
        }
        let mut judge = Judge::new(request);
        (judge.tried, judge.valid) = (1, 1);
        judge.score(&mapping);
        judge.finish()
    }
}
