//! A mixed-integer program as plain data.

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
    pub(super) fn gathered(&self) -> Vec<(Var, f64)> {
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
pub(super) struct Definition {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) integer: bool,
}

/// Minimise the objective such that every row is ≤ 0 (= 0 for equalities).
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Program {
    pub(super) variables: Vec<Definition>,
    /// Rows, and whether they are equalities.
    pub(super) rows: Vec<(Linear, bool)>,
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
    /// Branch-and-bound nodes; none where the solver does not tell.
    pub(crate) nodes: Option<u64>,
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

    /// The program with some variables fixed.
    #[cfg(test)]
    pub(crate) fn fixed(&self, values: &[(Var, f64)]) -> Program {
        let mut fixed = self.clone();
        for &(v, value) in values {
            (fixed.variables[v].low, fixed.variables[v].high) = (value, value);
        }
        fixed
    }

    /// Integers and rows.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let integers = self.variables.iter().filter(|v| v.integer).count();
        (integers, self.rows.len())
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
