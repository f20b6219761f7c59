//! Counts what a search tries, asks the oracle, and keeps the best.
//!
//! With a referee, the best mapping of every *niche* is kept too: a descent, a restart, a sample. An oracle that errs
//! errs alike on neighbours, so candidates for the referee come from different parts of the search. Those that are
//! pinned, where searches begin, are always among them.

use cyclonest_arch::Mapping;

use crate::cost::exact::Quick;
use crate::cost::{CostModel, Estimate};
use crate::{Request, ScheduleError, Scheduled};

/// Niches that are kept for the referee.
const POOL: usize = 8;

/// A mapping and what the oracle says of it.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    score: f64,
    mapping: Mapping,
    estimate: Estimate,
}

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
    best: Option<Candidate>,
    convergence: Vec<(u64, f64)>,
    /// What the oracle said when it first refused a mapping.
    refusal: Option<String>,
    /// Whether scores lean towards less of the other figure.
    leans: bool,
    niche: u64,
    /// The best of each niche, without order.
    pool: Vec<(u64, Candidate)>,
    pinned: Vec<Candidate>,
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
            leans: false,
            niche: 0,
            pool: Vec::new(),
            pinned: Vec::new(),
        }
    }

    /// A judge whose scores lean towards less of the figure that is not the objective.
    pub(crate) fn leaning(request: &Request<'a>) -> Self {
        Judge {
            leans: true,
            ..Judge::new(request)
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
        let score = self.value(&estimate);
        let pure = self.request.objective.score(&estimate);
        if self.convergence.last().is_none_or(|last| pure < last.1) {
            self.convergence.push((self.evaluations, pure));
            if let Some(observer) = self.request.observer {
                observer.improved(self.evaluations, pure);
            }
        }
        let best = self.best.as_ref().is_none_or(|best| score < best.score);
        let pooled = self.request.referee.is_some() && self.enters(score, mapping);
        if best || pooled {
            let candidate = Candidate {
                score,
                mapping: mapping.clone(),
                estimate,
            };
            if pooled {
                self.enter(candidate.clone());
            }
            if best {
                self.best = Some(candidate);
            }
        }
        Some(score)
    }

    /// What is minimised of an estimate.
    fn value(&self, estimate: &Estimate) -> f64 {
        match self.leans {
            true => self.request.objective.lean(estimate),
            false => self.request.objective.score(estimate),
        }
    }

    /// What follows is another part of the search.
    pub(crate) fn new_niche(&mut self) {
        self.niche += 1;
    }

    /// Keeps a mapping for the referee, however the oracle scores it.
    pub(crate) fn pin(&mut self, mapping: &Mapping) {
        self.new_niche();
        let score = self.score(mapping);
        if let (Some(score), Some(_)) = (score, self.request.referee) {
            let Request { problem, arch, .. } = self.request;
            if let Ok(estimate) = self.oracle.evaluate(problem, arch, mapping) {
                self.pinned.push(Candidate {
                    score,
                    mapping: mapping.clone(),
                    estimate,
                });
            }
        }
        self.new_niche();
    }

    /// Whether a mapping of this niche with `score` is one for the referee.
    fn enters(&self, score: f64, mapping: &Mapping) -> bool {
        let open = match self.pool.iter().find(|(niche, _)| *niche == self.niche) {
            Some((_, own)) => score < own.score,
            None => self.pool.len() < POOL || self.pool.iter().any(|(_, other)| score < other.score),
        };
        open && self.pool.iter().all(|(_, other)| other.mapping != *mapping)
    }

    fn enter(&mut self, candidate: Candidate) {
        match self.pool.iter_mut().find(|(niche, _)| *niche == self.niche) {
            Some((_, own)) => *own = candidate,
            None => self.pool.push((self.niche, candidate)),
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.pool.len() > POOL {
            let scores = self.pool.iter().map(|(_, c)| c.score).enumerate();
            let worst = scores.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |worst| worst.0);
            self.pool.remove(worst);
        }
    }

    /// Adds what `other` has done after this one: of equally good mappings the earlier one stays.
    pub(crate) fn append(&mut self, other: Judge<'a>) {
        for (evaluations, score) in other.convergence {
            if self.convergence.last().is_none_or(|last| score < last.1) {
                self.convergence.push((self.evaluations + evaluations, score));
            }
        }
        if let Some(theirs) = other.best
            && self.best.as_ref().is_none_or(|mine| theirs.score < mine.score)
        {
            self.best = Some(theirs);
        }
        self.tried += other.tried;
        self.valid += other.valid;
        self.evaluations += other.evaluations;
        self.refusal = self.refusal.take().or(other.refusal);
        let first = self.niche + 1;
        self.niche = first + other.niche;
        for (niche, candidate) in other.pool {
            if self.pool.iter().all(|(_, mine)| mine.mapping != candidate.mapping) {
                self.pool.push((first + niche, candidate));
            }
        }
        self.trim();
        self.pinned.extend(other.pinned);
    }

    /// Score of the best mapping so far.
    pub(crate) fn best_score(&self) -> Option<f64> {
        self.best.as_ref().map(|best| best.score)
    }

    /// The candidate that the referee finds best, and what it says of it; the first of equals.
    fn referee(&self) -> Option<(Candidate, Estimate)> {
        let Request { problem, arch, .. } = self.request;
        let referee = self.request.referee?;
        let pool = self.pool.iter().map(|(_, candidate)| candidate);
        let mut asked: Vec<&Candidate> = Vec::new();
        let mut found: Option<(&Candidate, Estimate)> = None;
        for candidate in self.pinned.iter().chain(&self.best).chain(pool) {
            if asked.iter().any(|other| other.mapping == candidate.mapping) {
                continue;
            }
            asked.push(candidate);
            let Ok(said) = referee.evaluate(problem, arch, &candidate.mapping) else {
                continue;
            };
            if found
                .as_ref()
                .is_none_or(|(_, best)| self.value(&said) < self.value(best))
            {
                found = Some((candidate, said));
            }
        }
        found.map(|(candidate, said)| (candidate.clone(), said))
    }

    /// The best mapping, or why there is none.
    pub(crate) fn finish(mut self) -> Result<Scheduled, ScheduleError> {
        let mut refereed = None;
        if let Some((candidate, said)) = self.referee() {
            self.best = Some(candidate);
            refereed = Some(said);
        }
        let Some(Candidate { mapping, estimate, .. }) = self.best else {
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
            refereed,
            proof: None,
        })
    }
}
