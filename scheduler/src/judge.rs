//! Counts what a search tries, asks the oracle, and keeps the best.

use cyclonest_arch::Mapping;

use crate::cost::exact::Quick;
use crate::cost::{CostModel, Estimate};
use crate::{Request, ScheduleError, Scheduled};

/// Judge of one search.
pub(crate) struct Judge<'a> {
    request: Request<'a>,
    oracle: &'a dyn CostModel,
    /// Candidates drawn.
    pub(crate) tried: u64,
    /// Of them, valid ones.
    pub(crate) valid: u64,
    /// Evaluations of the oracle.
    pub(crate) evaluations: u64,
    best: Option<(f64, Mapping, Estimate)>,
    convergence: Vec<(u64, f64)>,
    /// What the oracle said when it first refused a mapping.
    refusal: Option<String>,
}

impl<'a> Judge<'a> {
    /// A judge that has seen nothing; its oracle is [`Quick`] unless the request brings one.
    pub(crate) fn new(request: &Request<'a>) -> Self {
        Judge {
            request: *request,
            oracle: request.oracle.unwrap_or(&Quick),
            tried: 0,
            valid: 0,
            evaluations: 0,
            best: None,
            convergence: Vec::new(),
            refusal: None,
        }
    }

    /// Score of a valid mapping; `None` if the oracle refuses it.
    pub(crate) fn score(&mut self, mapping: &Mapping) -> Option<f64> {
        self.evaluations += 1;
        let Request { problem, arch, .. } = self.request;
        let estimate = match self.oracle.evaluate(problem, arch, mapping) {
            Ok(estimate) => estimate,
            Err(error) => {
                self.refusal.get_or_insert_with(|| error.to_string());
                return None;
            }
        };
        let score = self.request.objective.score(&estimate);
        if self.best.as_ref().is_none_or(|best| score < best.0) {
            self.convergence.push((self.evaluations, score));
            if let Some(observer) = self.request.observer {
                observer.improved(self.evaluations, score);
            }
            self.best = Some((score, mapping.clone(), estimate));
        }
        Some(score)
    }

    /// Adds what `other` has done after this one: of equally good mappings the earlier one stays.
    pub(crate) fn append(&mut self, other: Judge<'a>) {
        for (evaluations, score) in other.convergence {
            if self.best_score().is_none_or(|best| score < best)
                && self.convergence.last().is_none_or(|last| score < last.1)
            {
                self.convergence.push((self.evaluations + evaluations, score));
            }
        }
        if let Some(theirs) = other.best
            && self.best.as_ref().is_none_or(|mine| theirs.0 < mine.0)
        {
            self.best = Some(theirs);
        }
        self.tried += other.tried;
        self.valid += other.valid;
        self.evaluations += other.evaluations;
        self.refusal = self.refusal.take().or(other.refusal);
    }

    /// Score of the best mapping so far.
    pub(crate) fn best_score(&self) -> Option<f64> {
        self.best.as_ref().map(|best| best.0)
    }

    /// The best mapping, or why there is none.
    pub(crate) fn finish(self) -> Result<Scheduled, ScheduleError> {
        let Some((_, mapping, estimate)) = self.best else {
            let why = match self.refusal {
                Some(refusal) => format!("the oracle {} refuses all: {refusal}", self.oracle.name()),
                None => format!("{} candidates, none of them valid", self.tried),
            };
            return Err(ScheduleError::NotFound(why));
        };
        let violations = mapping.check(self.request.problem, self.request.arch);
        if !violations.is_empty() {
            // A search that judges an invalid mapping has a fault of its own.
            let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
            return Err(ScheduleError::NotFound(texts.join("; ")));
        }
        Ok(Scheduled {
            mapping,
            estimate: Some(estimate),
            tried: self.tried,
            valid: self.valid,
            evaluations: self.evaluations,
            convergence: self.convergence,
            proof: None,
        })
    }
}
