//! Solves a program through good_lp: with microlp (pure Rust), or with HiGHS where the feature `highs` is on.
//!
//! Both search to a proof within an absolute gap or to a number of branch-and-bound nodes, never to a clock, on one
//! thread, so that the answer is the same on every run. good_lp knows neither nodes nor bounds; they are asked of the
//! solver below it.

use good_lp::{Expression, SolverModel, Variable, variable, variables};

use super::program::{Program, Solved, Var};

impl Program {
    /// The best solution within `nodes` branch-and-bound nodes, or one within the absolute gap of the optimum;
    /// `None` if there is none, an error if the nodes did not suffice to find one. `start` may give the integers of a
    /// solution to begin with.
    pub(crate) fn solve(&self, nodes: u64, absolute_gap: f64, start: &[(Var, f64)]) -> Result<Option<Solved>, String> {
        let mut set = variables!();
        let vars: Vec<Variable> = self
            .variables
            .iter()
            .map(|v| {
                let definition = variable().min(v.low).max(v.high);
                set.add(if v.integer { definition.integer() } else { definition })
            })
            .collect();
        let expression = |linear: &super::program::Linear| {
            let mut sum = Expression::from(linear.constant);
            for (v, c) in linear.gathered() {
                sum.add_mul(c, vars[v]);
            }
            sum
        };
        let mut model = set.minimise(expression(&self.objective)).using(backend::SOLVER);
        for (row, equality) in &self.rows {
            let row = expression(row);
            model.add_constraint(if *equality { row.eq(0.0) } else { row.leq(0.0) });
        }
        let found = backend::solve(self, model, nodes, absolute_gap, start)?;
        Ok(found.map(|found| {
            let solution = found.values.into_iter().zip(&self.variables);
            let values: Vec<f64> = solution
                .map(|(value, v)| if v.integer { value.round() } else { value })
                .collect();
            let objective = self.objective.value(&values);
            let bound = found.bound.map_or(f64::NEG_INFINITY, |b| b + self.objective.constant);
            Solved {
                objective,
                bound: bound.min(objective),
                nodes: found.nodes,
                values,
            }
        }))
    }
}

/// What a solver says.
struct Found {
    values: Vec<f64>,
    /// Of the objective without its constant.
    bound: Option<f64>,
    nodes: Option<u64>,
}

#[cfg(not(feature = "highs"))]
mod backend {
    use good_lp::solvers::microlp::MicroLpProblem;

    use super::{Found, Program, Var};

    pub(super) const SOLVER: fn(good_lp::variable::UnsolvedProblem) -> MicroLpProblem = good_lp::microlp;

    pub(super) fn solve(
        program: &Program,
        model: MicroLpProblem,
        nodes: u64,
        absolute_gap: f64,
        start: &[(Var, f64)],
    ) -> Result<Option<Found>, String> {
        let mut options = ::microlp::SolveOptions::default();
        options.node_limit = Some(nodes);
        // The objective is a sum of logarithms, far below 64: an absolute gap in relative terms.
        options.mip_gap = absolute_gap / 64.0;
        if !start.is_empty() {
            // A handle is the position of a variable: a second problem with as many variables hands out the same.
            let mut handles = ::microlp::Problem::new(::microlp::OptimizationDirection::Minimize);
            let handles: Vec<_> = program
                .variables
                .iter()
                .map(|_| handles.add_var(0.0, (0.0, 0.0)))
                .collect();
            options.warm_start = Some(start.iter().map(|&(v, value)| (handles[v], value)).collect());
        }
        let outcome = match model.as_inner().solve_with(options) {
            Ok(outcome) => outcome,
            Err(::microlp::Error::Infeasible) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let stats = outcome.stats();
        let Some(solution) = outcome.solution() else {
            return Err(format!("no solution within {nodes} nodes"));
        };
        Ok(Some(Found {
            values: solution.iter().map(|(_, value)| value).collect(),
            bound: stats.best_bound,
            nodes: Some(stats.nodes_solved),
        }))
    }
}

#[cfg(feature = "highs")]
mod backend {
    use good_lp::solvers::highs::HighsProblem;
    use highs::{HighsModelStatus, HighsSolutionStatus};

    use super::{Found, Program, Var};

    pub(super) const SOLVER: fn(good_lp::variable::UnsolvedProblem) -> HighsProblem = good_lp::highs;

    pub(super) fn solve(
        program: &Program,
        model: HighsProblem,
        nodes: u64,
        absolute_gap: f64,
        start: &[(Var, f64)],
    ) -> Result<Option<Found>, String> {
        let mut model = model.try_into_inner().map_err(|error| error.to_string())?;
        model.make_quiet();
        model.set_option("threads", 1);
        model.set_option("random_seed", 0);
        model.set_option("mip_rel_gap", 0.0);
        model.set_option("mip_abs_gap", absolute_gap);
        model.set_option("mip_max_nodes", i32::try_from(nodes).unwrap_or(i32::MAX));
        if !start.is_empty() {
            // HiGHS completes the reals for the integers that it is given.
            let mut values = vec![0.0; program.variables.len()];
            start.iter().for_each(|&(v, value)| values[v] = value);
            model.set_solution(Some(values.as_slice()), None, None, None);
        }
        let solved = model.try_solve().map_err(|status| format!("HiGHS: {status:?}"))?;
        match solved.status() {
            HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible => return Ok(None),
            _ if solved.primal_solution_status() == HighsSolutionStatus::Feasible => {}
            status => return Err(format!("no solution within {nodes} nodes ({status:?})")),
        }
        Ok(Some(Found {
            values: solved.get_solution().columns().to_vec(),
            bound: solved.double_info_value(c"mip_dual_bound").ok(),
            // HiGHS counts in 64 bits, and the crate `highs` reads 32-bit figures only.
            nodes: None,
        }))
    }
}
