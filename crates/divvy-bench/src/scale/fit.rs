//! The exponent of a power law.

/// So many of the largest points are looked at: below them, fixed costs bend the curve.
const POINTS: usize = 3;

/// The slope of the least-squares line through the logarithms of the last points.
pub(super) fn exponent(points: &[(usize, f64)]) -> Option<f64> {
    let upper = &points[points.len().saturating_sub(POINTS)..];
    if upper.len() < 2 {
        return None;
    }
    let logs = || {
        upper
            .iter()
            .map(|&(size, cost)| ((size as f64).ln(), cost.ln()))
    };
    let count = upper.len() as f64;
    let mean_x = logs().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = logs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs().map(|(x, _)| (x - mean_x).powi(2)).sum();
    Some(covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_found() {
        let points: Vec<(usize, f64)> = (1..6).map(|x| (x * 10, (x as f64).powf(1.5))).collect();
        let exponent = exponent(&points).expect("enough points");
        assert!((exponent - 1.5).abs() < 1e-9, "{exponent}");
    }

    #[test]
    fn one_point_has_no_slope() {
        assert_eq!(exponent(&[(10, 1.0)]), None);
    }
}
