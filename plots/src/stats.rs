//! The statistics that figures state.

/// Geometric mean; the values are above 0. `None` without values.
#[must_use]
pub fn geomean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// Coefficient of determination of `predicted` for `actual`: 1 − Σ(actual − predicted)² ÷ Σ(actual − mean)². It is 1 for
/// a perfect prediction and negative for one that is worse than the mean; a prediction that is off by a constant factor
/// is not perfect. `None` for fewer than two pairs or a constant `actual`.
#[must_use]
pub fn r_squared(predicted: &[f64], actual: &[f64]) -> Option<f64> {
    if actual.len() < 2 {
        return None;
    }
    let mean = actual.iter().sum::<f64>() / actual.len() as f64;
    let total: f64 = actual.iter().map(|a| (a - mean).powi(2)).sum();
    let residual: f64 = predicted.iter().zip(actual).map(|(p, a)| (a - p).powi(2)).sum();
    (total > 0.0).then(|| 1.0 - residual / total)
}

/// Mean of |predicted − actual| ÷ actual; the actual values are above 0. `None` without pairs.
#[must_use]
pub fn mape(predicted: &[f64], actual: &[f64]) -> Option<f64> {
    (!actual.is_empty()).then(|| {
        predicted
            .iter()
            .zip(actual)
            .map(|(p, a)| (p - a).abs() / a)
            .sum::<f64>()
            / actual.len() as f64
    })
}

/// Quantile of sorted values with linear interpolation between neighbours (Hyndman and Fan's type 7).
#[must_use]
pub fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = fraction.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-12)
    }

    #[test]
    fn statistics_by_hand() {
        assert!(close(geomean(&[1.0, 4.0]), 2.0));
        assert_eq!(geomean(&[]), None);
        assert!(close(r_squared(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1.0));
        // Residuals 1, 2, 3 against deviations −1, 0, 1: 1 − 14 ÷ 2.
        assert!(close(r_squared(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]), -6.0));
        assert_eq!(r_squared(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert!(close(mape(&[90.0, 220.0], &[100.0, 200.0]), 0.1));
        assert!(close(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), 1.75));
        assert!(close(quantile(&[5.0], 0.75), 5.0));
    }
}
