//! A mixed-integer program as plain data, and its solution through good_lp.

use good_lp::{Expression, SolverModel as _, Variable, microlp, variable, variables};

/// Position of a variable.
pub(crate) type Var = usize;

/// A linear expression.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Linear {
    /// Coefficients; a variable may appear several times.
    pub(crate) terms: Vec<(Var, f64)>,
    /// What is added.
    pub(crate) constant: f64,
}

impl Linear {
    /// Adds `by` × `other`.
    pub(crate) fn add(&mut self, by: f64, other: &Linear) -> &mut Self {
        self.terms.extend(other.terms.iter().map(|&(v, c)| (v, by * c)));
        self.constant += by * other.constant;
        self
    }

    /// Adds `coefficient` × `var`.
    pub(crate) fn plus(&mut self, coefficient: f64, var: Var) -> &mut Self {
        self.terms.push((var, coefficient));
        self
    }

    /// Value at `values`.
    pub(crate) fn value(&self, values: &[f64]) -> f64 {
        self.constant + self.terms.iter().map(|&(v, c)| c * values[v]).sum::<f64>()
    }

    /// One coefficient per variable, zeros left out, in the order of the variables.
    fn gathered(&self) -> Vec<(Var, f64)> {
        let mut sorted = self.terms.clone();
        sorted.sort_by_key(|&(v, _)| v);
        let mut gathered: Vec<(Var, f64)> = Vec::new();
        for (v, c) in sorted {
            match gathered.last_mut() {
                Some(last) if last.0 == v => last.1 += c,
                _ => gathered.push((v, c)),
            }
        }
        gathered.retain(|&(_, c)| c.abs() > 1e-12);
        gathered
    }
}

/// Bounds and kind of a variable.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Definition {
    low: f64,
    high: f64,
    integer: bool,
}

/// Minimise the objective such that every row is ≤ 0 (= 0 for equalities).
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Program {
    variables: Vec<Definition>,
    rows: Vec<(Linear, bool)>,
    pub(crate) objective: Linear,
}

/// A solution and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Solved {
    /// Values of the variables; integers are exact.
    pub(crate) values: Vec<f64>,
    /// Objective.
    pub(crate) objective: f64,
    /// No solution is below.
    pub(crate) bound: f64,
    /// Branch-and-bound nodes.
    pub(crate) nodes: u64,
}

impl Program {
    /// A new variable in `[low, high]`.
    pub(crate) fn real(&mut self, low: f64, high: f64) -> Var {
        self.define(low, high, false)
    }

    /// A new integer in `[0, high]`.
    pub(crate) fn integer(&mut self, high: u64) -> Var {
        self.define(0.0, high as f64, true)
    }

    fn define(&mut self, low: f64, high: f64, integer: bool) -> Var {
        self.variables.push(Definition { low, high, integer });
        self.variables.len() - 1
    }

    /// Requires `left` ≤ `right`.
    pub(crate) fn at_most(&mut self, mut left: Linear, right: &Linear) {
        left.add(-1.0, right);
        self.rows.push((left, false));
    }

    /// Requires `left` = `right`.
    pub(crate) fn equal(&mut self, mut left: Linear, right: f64) {
        left.constant -= right;
        self.rows.push((left, true));
    }

    /// Integers and rows.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let integers = self.variables.iter().filter(|v| v.integer).count();
        (integers, self.rows.len())
    }

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
        let expression = |linear: &Linear| {
            let mut sum = Expression::from(linear.constant);
            for (v, c) in linear.gathered() {
                sum.add_mul(c, vars[v]);
            }
            sum
        };
        let mut model = set.minimise(expression(&self.objective)).using(microlp);
        for (row, equality) in &self.rows {
            let row = expression(row);
            model.add_constraint(if *equality { row.eq(0.0) } else { row.leq(0.0) });
        }
        // good_lp has no node limit and no bound, microlp has both.
        let mut options = ::microlp::SolveOptions::default();
        options.node_limit = Some(nodes);
        // The objective is a sum of logarithms, far below 64: an absolute gap in relative terms.
        options.mip_gap = absolute_gap / 64.0;
        if !start.is_empty() {
            // A handle is the position of a variable: a second problem with as many variables hands out the same.
            let mut handles = ::microlp::Problem::new(::microlp::OptimizationDirection::Minimize);
            let handles: Vec<_> = vars.iter().map(|_| handles.add_var(0.0, (0.0, 0.0))).collect();
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
        let values: Vec<f64> = solution
            .iter()
            .zip(&self.variables)
            .map(|((_, value), v)| if v.integer { value.round() } else { value })
            .collect();
        let objective = self.objective.value(&values);
        let bound = stats
            .best_bound
            .map_or(f64::NEG_INFINITY, |b| b + self.objective.constant);
        Ok(Some(Solved {
            objective,
            bound: bound.min(objective),
            nodes: stats.nodes_solved,
            values,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_knapsack_is_solved_and_proven() {
        // Weights 5 4 3 in a sack of 10, values 10 40 30 (maximised).
        let mut program = Program::default();
        let mut weight = Linear::default();
        for (w, value) in [(5.0, 10.0), (4.0, 40.0), (3.0, 30.0)] {
            let take = program.integer(2);
            weight.plus(w, take);
            program.objective.plus(-value, take);
        }
        program.at_most(
            weight,
            &Linear {
                terms: vec![],
                constant: 10.0,
            },
        );
        let solved = program.solve(1000, 1e-6, &[]).expect("solved").expect("feasible");
        assert_eq!(solved.values, [0.0, 1.0, 2.0]);
        assert!((solved.objective + 100.0).abs() < 1e-6 && solved.objective - solved.bound < 1e-6);
    }

    #[test]
    fn no_solution_is_not_an_error() {
        let mut program = Program::default();
        let x = program.integer(1);
        let mut twice = Linear::default();
        twice.plus(2.0, x);
        program.equal(twice, 1.0);
        assert_eq!(program.solve(1000, 1e-6, &[]), Ok(None));
    }
}
