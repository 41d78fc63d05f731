//! The view of learning curves: validation values of the folds that run, since somebody looks.

use super::model::{Observation, RunningCurve};
use super::sheet::{Sheet, SheetCell, SheetRow, Tint};

/// Columns of a curve.
const WIDTH: usize = 32;

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub fn sheet(picture: &Observation) -> Sheet {
    let row = |(fold, curve): (&String, &RunningCurve)| {
        let last = curve.points.last().map(|(_, value)| curve.scale.show(*value)).unwrap_or_default();
        let first = curve.points.first().map(|(epoch, _)| epoch.to_string()).unwrap_or_default();
        let cells = vec![
            SheetCell::tinted(spark(&curve.points), Tint::Good),
            SheetCell::new(last),
            SheetCell::tinted(first, Tint::Faint),
            SheetCell::new(&curve.title),
        ];
        SheetRow { id: fold.clone(), cells }
    };
    Sheet {
        heads: vec!["VALIDATION", "NOW", "FROM EPOCH", "WHAT"],
        rows: picture.curves.iter().map(row).collect(),
        empty: "no fold has reported an epoch since you look".to_owned(),
    }
}

/// A curve in one line, from its lowest to its highest value.
fn spark(points: &[(u32, f64)]) -> String {
    let shares: Vec<f64> = points.iter().map(|(_, share)| *share).filter(|share| share.is_finite()).collect();
    let (low, high) =
        shares.iter().fold((f64::MAX, f64::MIN), |(low, high), share| (low.min(*share), high.max(*share)));
    let wide = shares.len().min(WIDTH);
    let step = |at: usize| {
        let share = shares[at * shares.len() / wide.max(1)];
        let part = if high > low { (share - low) / (high - low) } else { 0.5 };
        STEPS[((part * 7.0).round() as usize).min(7)]
    };
    (0..wide).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_its_lowest_to_its_highest_value() {
        assert_eq!(spark(&[(1, 0.25), (2, 0.5), (3, 0.75)]), "▁▅█");
        assert_eq!((spark(&[]), spark(&[(1, 0.5)])), (String::new(), "▅".to_owned()));
        assert_eq!(spark(&[(1, f64::NAN)]), "");
        let long: Vec<(u32, f64)> = (0..500).map(|n| (n, f64::from(n))).collect();
        assert_eq!(spark(&long).chars().count(), WIDTH);
    }
}
