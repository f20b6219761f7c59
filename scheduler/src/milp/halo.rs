//! The height of an input tile in log form.
//!
//! `p` windows of `r` taps touch h(p, r) rows, less than p·r where they overlap. log h is no linear function of log p
//! and log r, but over the tile sizes that the factors allow it is the maximum of planes: for every r one plane
//! through each pair of neighbouring p. Where log h is not convex (dilation with overlaps, taps that are no prime and can be
//! split), some planes lie above it: what fits by them always fits.

/// log₂ h ≥ `windows`·log₂ p + `taps`·log₂ r + `constant`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plane {
    pub(crate) windows: f64,
    pub(crate) taps: f64,
    pub(crate) constant: f64,
}

impl Plane {
    /// The plane at `p` windows of `r` taps.
    pub(crate) fn at(&self, p: u64, r: u64) -> f64 {
        self.windows * log(p) + self.taps * log(r) + self.constant
    }
}

/// Rows that `p` windows of `r` taps touch, without a border.
pub(crate) fn rows(p: u64, r: u64, stride: u64, dilation: u64) -> u64 {
    let g = gcd(stride, dilation);
    p * r - p.saturating_sub(dilation / g) * r.saturating_sub(stride / g)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn log(n: u64) -> f64 {
    (n as f64).log2()
}

/// The planes over all `windows` × `taps` (ascending). Planes that rise above log₂ h by at most `slack` where another
/// one is exact may stand for it.
pub(crate) fn planes(windows: &[u64], taps: &[u64], stride: u64, dilation: u64, slack: f64) -> Vec<Plane> {
    let height = |p: u64, r: u64| log(rows(p, r, stride, dilation));
    let mut planes = Vec::new();
    for &r in taps {
        let mut from = 0;
        loop {
            // The longest chord that stays within the slack.
            let mut to = (from + 1).min(windows.len() - 1);
            while to + 1 < windows.len() {
                let chord = Chord::new(&height, r, windows[from], windows[to + 1]);
                let close = |&p: &u64| (-1e-9..=slack).contains(&(chord.at(p) - height(p, r)));
                if !windows[from..=to + 1].iter().all(close) {
                    break;
                }
                to += 1;
            }
            let chord = Chord::new(&height, r, windows[from], windows[to]);
            let slope = |other: u64| {
                let per = |&p: &u64| (chord.at(p) - height(p, other)) / (log(r) - log(other));
                windows.iter().map(per).collect::<Vec<f64>>()
            };
            // Steep enough to lie below at fewer taps; gentle enough to lie below at more.
            let least = taps
                .iter()
                .filter(|&&t| t < r)
                .flat_map(|&t| slope(t))
                .fold(f64::NEG_INFINITY, f64::max);
            let most = taps
                .iter()
                .filter(|&&t| t > r)
                .flat_map(|&t| slope(t))
                .fold(f64::INFINITY, f64::min);
            let steep = match (least.is_finite(), most.is_finite()) {
                (true, _) => least,
                (false, true) => most,
                (false, false) => 0.0,
            };
            planes.push(Plane {
                windows: chord.slope,
                taps: steep,
                constant: chord.constant - steep * log(r),
            });
            if to + 1 >= windows.len() {
                break;
            }
            from = to;
        }
    }
    // A plane that is nowhere the largest is not needed.
    let grid: Vec<(u64, u64)> = taps
        .iter()
        .flat_map(|&r| windows.iter().map(move |&p| (p, r)))
        .collect();
    let mut index = 0;
    while index < planes.len() {
        let others = |p, r| {
            let rest = planes.iter().enumerate().filter(|&(i, _)| i != index);
            rest.map(|(_, plane)| plane.at(p, r)).fold(f64::NEG_INFINITY, f64::max)
        };
        if grid
            .iter()
            .all(|&(p, r)| others(p, r) >= planes[index].at(p, r) - 1e-12)
        {
            planes.remove(index);
        } else {
            index += 1;
        }
    }
    planes
}

/// The line through log h at two tile sizes, as a function of log p.
struct Chord {
    slope: f64,
    constant: f64,
}

impl Chord {
    fn new(height: &impl Fn(u64, u64) -> f64, r: u64, from: u64, to: u64) -> Self {
        let slope = match from == to {
            true => 0.0,
            false => (height(to, r) - height(from, r)) / (log(to) - log(from)),
        };
        Chord {
            slope,
            constant: height(from, r) - slope * log(from),
        }
    }

    fn at(&self, p: u64) -> f64 {
        self.slope * log(p) + self.constant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(planes: &[Plane], p: u64, r: u64) -> f64 {
        planes
            .iter()
            .map(|plane| plane.at(p, r))
            .fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn taps_that_stay_together_give_every_tile_height_exactly() {
        let windows = [1, 2, 4, 7, 8, 14, 16, 28, 56, 112];
        for (taps, stride) in [
            (vec![1, 3], 1),
            (vec![1, 3], 2),
            (vec![1, 7], 2),
            (vec![1], 2),
            (vec![1, 11], 4),
        ] {
            let planes = planes(&windows, &taps, stride, 1, 0.0);
            for &r in &taps {
                for &p in &windows {
                    let exact = log(rows(p, r, stride, 1));
                    assert!(
                        (largest(&planes, p, r) - exact).abs() < 1e-9,
                        "{p} windows, {r} taps, stride {stride}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_fits_by_the_planes_fits() {
        let windows = [1, 2, 3, 5, 6, 10, 15, 30];
        for stride in 1..4 {
            for dilation in 1..4 {
                for slack in [0.0, 0.1] {
                    let planes = planes(&windows, &[1, 2, 4], stride, dilation, slack);
                    for r in [1, 2, 4] {
                        for p in windows {
                            let exact = log(rows(p, r, stride, dilation));
                            assert!(largest(&planes, p, r) >= exact - 1e-9, "{p}, {r}, {stride}, {dilation}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn slack_saves_planes() {
        let windows = [1, 2, 4, 7, 8, 14, 16, 28, 56, 112];
        let exact = planes(&windows, &[1, 3], 1, 1, 0.0).len();
        let coarse = planes(&windows, &[1, 3], 1, 1, 0.05).len();
        assert!(coarse < exact, "{coarse} {exact}");
    }
}
