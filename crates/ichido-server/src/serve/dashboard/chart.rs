//! Bars over time, as paths of an SVG.
//!
//! Guarantee: a chart has one unit of width for each point and a fixed height, so it looks the same however large the numbers are, and its
//! size does not depend on them. A number above zero is visible. Nothing here knows a language or a store.

use std::fmt::Write as _;

/// The height of a chart in its own units.
pub(super) const HEIGHT: u32 = 40;
/// The height of the smallest number above zero.
const MIN_BAR: f64 = 2.0;

/// Bars over time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chart {
    /// The width: one for each point.
    pub(super) points: usize,
    /// What is drawn, from back to front.
    pub(super) layers: Vec<ChartLayer>,
    /// The largest number, which is as high as the chart.
    pub(super) peak: f64,
}

/// Bars of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChartLayer {
    /// The class in the style sheet.
    pub(super) class: &'static str,
    /// A line for each bar, from its foot to its head.
    pub(super) path: String,
}

impl Chart {
    /// Draws bars in front of each other, each from the ground: the first list is at the back.
    pub(super) fn overlaid(lists: &[(&'static str, Vec<f64>)]) -> Self {
        let peak = lists.iter().flat_map(|(_, list)| list).fold(0.0, |peak: f64, number| peak.max(*number));
        let layers = lists.iter().map(|(class, list)| {
            let bars = list.iter().map(|number| (0.0, *number));
            ChartLayer { class, path: path(bars, peak) }
        });
        Self { points: lists.first().map_or(0, |(_, list)| list.len()), layers: layers.collect(), peak }
    }

    /// Draws bars on top of each other: the first list is at the foot.
    pub(super) fn stacked(lists: &[(&'static str, Vec<f64>)]) -> Self {
        let points = lists.first().map_or(0, |(_, list)| list.len());
        let sum_until = |end: usize, at: usize| -> f64 {
            lists.iter().take(end).filter_map(|(_, list)| list.get(at)).sum()
        };
        let peak = (0..points).map(|at| sum_until(lists.len(), at)).fold(0.0, f64::max);
        let layers = lists.iter().enumerate().map(|(index, (class, _))| {
            let bars = (0..points).map(|at| (sum_until(index, at), sum_until(index + 1, at)));
            ChartLayer { class, path: path(bars, peak) }
        });
        Self { points, layers: layers.collect(), peak }
    }

    /// Whether there is nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.peak <= 0.0
    }
}

/// Returns a path with a vertical line for each bar that is not empty.
fn path(bars: impl Iterator<Item = (f64, f64)>, peak: f64) -> String {
    let ground = f64::from(HEIGHT);
    let mut path = String::new();
    for (at, (from, to)) in bars.enumerate() {
        if to <= from || peak <= 0.0 {
            continue;
        }
        let foot = ground - from / peak * ground;
        let head = (ground - to / peak * ground).min(foot - MIN_BAR).max(0.0);
        // Whole units are exact enough, and short. Writing to a string does not fail.
        let _ = write!(path, "M{at}.5 {foot:.0}V{head:.0}");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_share_of_the_peak() {
        let chart = Chart::overlaid(&[("calm", vec![0.0, 10.0, 20.0, 5.0])]);
        assert_eq!((chart.points, chart.peak, chart.is_empty()), (4, 20.0, false));
        assert_eq!(chart.layers[0].path, "M1.5 40V20M2.5 40V0M3.5 40V30");
    }

    #[test]
    fn one_among_a_million_is_visible() {
        let chart = Chart::overlaid(&[("calm", vec![1.0, 1_000_000.0])]);
        assert_eq!(chart.layers[0].path, "M0.5 40V38M1.5 40V0");
        let stacked = Chart::stacked(&[("bad", vec![1.0, 999_999.0]), ("doubt", vec![0.0, 1.0])]);
        assert!(stacked.layers.iter().all(|layer| !layer.path.contains('-')), "{stacked:?}");
    }

    #[test]
    fn stacked_bars_stand_on_each_other() {
        let chart = Chart::stacked(&[("bad", vec![1.0, 0.0]), ("doubt", vec![3.0, 2.0])]);
        assert_eq!((chart.points, chart.peak), (2, 4.0));
        assert_eq!(chart.layers[0].path, "M0.5 40V30");
        assert_eq!(chart.layers[1].path, "M0.5 30V0M1.5 40V20");
    }

    #[test]
    fn no_numbers_draw_nothing() {
        for chart in [
            Chart::overlaid(&[]),
            Chart::stacked(&[("bad", Vec::new())]),
            Chart::overlaid(&[("calm", vec![0.0; 30])]),
        ] {
            assert!(chart.is_empty() && chart.layers.iter().all(|layer| layer.path.is_empty()), "{chart:?}");
        }
    }
}
