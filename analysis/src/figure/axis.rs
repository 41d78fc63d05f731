//! Where the values of a setting stand along an axis, and which ticks say so. Numbers stand to scale, by their logarithm
//! where they span decades; words, and decades with a zero among them, stand evenly, and the axis says which. A tick is
//! at every value where there is room for it, else at round numbers. Draws nothing.

use super::style::text_width;

/// More steps than this have no room for a tick each.
const MOST_STEPS: f64 = 11.0;

/// Distances that differ by less than this share of a step are equal.
const SAME: f64 = 1e-6;

/// Room for the ticks of a panel of the usual width.
const ROOM: f64 = 290.0;

/// Ticks at round numbers that an axis has, about.
const ROUND_TICKS: f64 = 6.0;

/// The places of all values of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct XAxis {
    /// Where ticks stand and what they say.
    pub ticks: Vec<(f64, String)>,
    /// How places relate to values.
    pub scale: Spacing,
    /// The shown part, a little wider than the values.
    pub range: (f64, f64),
    /// The smallest distance of two places: lines may be moved apart by less.
    pub step: f64,
    places: Vec<(String, f64)>,
}

/// How places relate to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Equal distances are equal differences.
    Linear,
    /// Equal distances are equal ratios.
    Logarithmic,
    /// Numbers stand evenly although their distances differ.
    Uneven,
    /// Words stand evenly.
    Words,
}

impl XAxis {
    /// The axis of these different values, in the order in which words are to stand.
    pub fn of(values: &[String]) -> Self {
        let numbers: Option<Vec<(String, f64)>> = values
            .iter()
            .map(|value| Some((value.clone(), value.parse().ok().filter(|number: &f64| number.is_finite())?)))
            .collect();
        let Some(mut numbers) = numbers else { return Self::evenly(values, Spacing::Words) };
        numbers.sort_by(|a, b| a.1.total_cmp(&b.1));
        match scale(&numbers) {
            Spacing::Linear => Self::placed(numbers, Spacing::Linear),
            Spacing::Logarithmic => {
                let logarithms = numbers.into_iter().map(|(value, number)| (value, number.log10()));
                Self::placed(logarithms.collect(), Spacing::Logarithmic)
            }
            even @ (Spacing::Uneven | Spacing::Words) => {
                let sorted: Vec<String> = numbers.into_iter().map(|(value, _)| value).collect();
                Self::evenly(&sorted, even)
            }
        }
    }

    /// An axis of numbers, such as epochs, with ticks at round ones.
    pub fn round(from: f64, to: f64) -> Self {
        let beside = 0.02 * (to - from).max(1.0);
        let ticks = round_ticks(from, to, 1.0);
        Self {
            ticks,
            scale: Spacing::Linear,
            range: (from - beside, to + beside),
            step: 0.0,
            places: Vec::new(),
        }
    }

    /// Where a value stands.
    pub fn place(&self, value: &str) -> Option<f64> {
        self.places.iter().find(|(known, _)| known == value).map(|(_, place)| *place)
    }

    /// What stands at a tick.
    pub fn name(&self, place: f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| (tick - place).abs() < 1e-9);
        tick.map(|(_, name)| name.clone()).unwrap_or_default()
    }

    /// Room that its ticks need, beyond that of a panel of the usual width.
    pub fn more_room(&self) -> i32 {
        (widest(&self.ticks, self.range.1 - self.range.0, self.step) - ROOM).max(0.0).ceil() as i32
    }

    fn evenly(values: &[String], scale: Spacing) -> Self {
        let places: Vec<(String, f64)> =
            values.iter().enumerate().map(|(at, value)| (value.clone(), at as f64)).collect();
        let ticks = places.iter().map(|(value, place)| (*place, value.clone())).collect();
        let range = (-0.5, values.len() as f64 - 0.5);
        Self { ticks, scale, range, step: 1.0, places }
    }

    fn placed(places: Vec<(String, f64)>, scale: Spacing) -> Self {
        let (from, to) = ends(&places);
        let step = smallest_gap(&places).unwrap_or(1.0);
        let beside = if to > from { (step / 2.0).max(0.04 * (to - from)) } else { 0.5 };
        let range = (from - beside, to + beside);
        let every: Vec<(f64, String)> = places.iter().map(|(value, place)| (*place, value.clone())).collect();
        let fits = widest(&every, range.1 - range.0, step) <= ROOM;
        let ticks = match (fits, scale) {
            (true, _) => every,
            (false, Spacing::Logarithmic) => powers(from, to),
            (false, Spacing::Linear | Spacing::Uneven | Spacing::Words) => round_ticks(from, to, 0.0),
        };
        Self { ticks, scale, range, step, places }
    }
}

/// Pixels that an axis needs so that the closest of its ticks do not touch.
fn widest(ticks: &[(f64, String)], range: f64, step: f64) -> f64 {
    if step <= 0.0 {
        return 0.0;
    }
    let needs = |pair: &[(f64, String)]| {
        let texts = f64::from(text_width(&pair[0].1) + text_width(&pair[1].1)) / 2.0 + 8.0;
        texts * range / (pair[1].0 - pair[0].0).max(1e-12)
    };
    ticks.windows(2).map(needs).fold(0.0, f64::max)
}

/// How sorted numbers are best shown.
fn scale(sorted: &[(String, f64)]) -> Spacing {
    let (from, to) = ends(sorted);
    let Some(step) = smallest_gap(sorted) else { return Spacing::Linear };
    let gaps = || sorted.windows(2).map(|pair| (pair[1].1 - pair[0].1) / step);
    let on_grid = gaps().all(|gap| (gap - gap.round()).abs() < SAME) && (to - from) / step <= MOST_STEPS;
    let even = sorted.len() > 2 && gaps().all(|gap| (gap - 1.0).abs() < SAME);
    let smallest = sorted.iter().map(|(_, number)| *number).find(|number| *number > 0.0).unwrap_or(to);
    let decades = to / smallest >= 100.0 || (to / smallest >= 10.0 && !on_grid);
    match (even || !decades, from > 0.0) {
        (true, _) => Spacing::Linear,
        (false, true) => Spacing::Logarithmic,
        // Zero has no logarithm; many values would not have room side by side.
        (false, false) if from == 0.0 && sorted.len() as f64 <= MOST_STEPS => Spacing::Uneven,
        (false, false) => Spacing::Linear,
    }
}

fn ends(sorted: &[(String, f64)]) -> (f64, f64) {
    let end = |at: Option<&(String, f64)>| at.map_or(0.0, |(_, number)| *number);
    (end(sorted.first()), end(sorted.last()))
}

/// None for fewer than two different numbers.
fn smallest_gap(sorted: &[(String, f64)]) -> Option<f64> {
    let gaps = sorted.windows(2).map(|pair| pair[1].1 - pair[0].1).filter(|gap| *gap > 0.0);
    gaps.reduce(f64::min)
}

/// Ticks at round numbers, no closer than `least`.
fn round_ticks(from: f64, to: f64, least: f64) -> Vec<(f64, String)> {
    let step = round_step((to - from) / ROUND_TICKS).max(least);
    let digits = digits(step);
    let (first, last) = ((from / step - SAME).ceil() as i64, (to / step + SAME).floor() as i64);
    (first..=last).map(|at| (at as f64 * step, format!("{:.digits$}", at as f64 * step))).collect()
}

/// Digits after the decimal point that tell numbers apart which are this far from each other.
pub fn digits(step: f64) -> usize {
    (-step.log10().floor()).clamp(0.0, 9.0) as usize
}

/// Ticks at powers of ten; on an axis with few of those, at small multiples of them as well.
fn powers(from: f64, to: f64) -> Vec<(f64, String)> {
    let decades = (from.floor() as i32..=to.ceil() as i32).collect::<Vec<i32>>();
    let every = decades.len().div_ceil(7);
    let factors: &[u32] = match to - from {
        short if short < 1.5 => &[1, 2, 5],
        medium if medium < 3.0 => &[1, 3],
        _ => &[1],
    };
    let ticks = decades.iter().step_by(every).flat_map(|decade| {
        factors.iter().map(move |factor| {
            let place = f64::from(*decade) + f64::from(*factor).log10();
            (place, power(*factor, *decade))
        })
    });
    ticks.filter(|(place, _)| (from - SAME..=to + SAME).contains(place)).collect()
}

/// A power of ten times a digit, plainly where that is short.
fn power(factor: u32, decade: i32) -> String {
    match decade {
        -4..=-1 => format!("0.{}{factor}", "0".repeat(decade.unsigned_abs() as usize - 1)),
        0..=4 => format!("{factor}{}", "0".repeat(decade as usize)),
        _ => format!("{factor}e{decade}"),
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below this.
pub fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least)
        .unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[&str]) -> XAxis {
        XAxis::of(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    }

    fn places(axis: &XAxis, values: &[&str]) -> Vec<f64> {
        values.iter().map(|value| axis.place(value).unwrap()).collect()
    }

    fn names(axis: &XAxis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    /// No two neighbours touch in a panel that is as wide as the axis asks for.
    fn readable(axis: &XAxis) -> bool {
        widest(&axis.ticks, axis.range.1 - axis.range.0, 1.0) <= ROOM + f64::from(axis.more_room())
    }

    #[test]
    fn depths_stand_at_themselves_with_a_tick_each() {
        let depths = axis(&["3", "1", "8"]);
        assert_eq!((depths.scale, places(&depths, &["1", "3", "8"])), (Spacing::Linear, vec![1.0, 3.0, 8.0]));
        assert_eq!(names(&depths), ["1", "3", "8"]);
    }

    #[test]
    fn fractions_stand_to_scale() {
        let dropout = axis(&["0.5", "0.0", "0.1", "0.2"]);
        assert_eq!((dropout.scale, names(&dropout)), (Spacing::Linear, vec!["0.0", "0.1", "0.2", "0.5"]));
    }

    #[test]
    fn decades_stand_by_their_logarithm() {
        let rates = axis(&["0.1", "0.0001", "0.001"]);
        assert_eq!((rates.scale, names(&rates)), (Spacing::Logarithmic, vec!["0.0001", "0.001", "0.1"]));
        let apart = |a: &str, b: &str| rates.place(b).unwrap() - rates.place(a).unwrap();
        assert!((apart("0.001", "0.1") - 2.0 * apart("0.0001", "0.001")).abs() < 1e-9, "to scale");
        let widths = axis(&["16", "32", "64", "128", "256"]);
        assert_eq!((widths.scale, names(&widths).len()), (Spacing::Logarithmic, 5));
        let words = axis(&["random", "original"]);
        assert!(words.scale == Spacing::Words && words.place("original") == Some(1.0));
        assert!(words.place("0.5").is_none());
    }

    #[test]
    fn zero_among_decades_stands_beside_them_and_the_axis_says_that_this_is_not_to_scale() {
        let decay = axis(&["0.0", "0.00001", "0.001"]);
        assert_eq!((decay.scale, places(&decay, &["0.0", "0.001"])), (Spacing::Uneven, vec![0.0, 2.0]));
    }

    #[test]
    fn ticks_of_random_draws_do_not_overlap() {
        let draws: Vec<String> =
            (0..40).map(|at| format!("{:.9}", 10f64.powf(-4.0 + 3.0 * f64::from(at) / 39.0))).collect();
        let rates = XAxis::of(&draws);
        assert_eq!(
            (rates.scale, names(&rates)),
            (Spacing::Logarithmic, vec!["0.0001", "0.001", "0.01", "0.1"])
        );
        let draws: Vec<String> =
            (0..40).map(|at| format!("{:.9}", 0.3 + 0.0071 * f64::from(at * at % 41))).collect();
        let dropout = XAxis::of(&draws);
        assert!(dropout.scale == Spacing::Linear && names(&dropout).len() < 9, "{:?}", dropout.ticks);
        let fewer: Vec<String> = (0..40).map(|at| format!("{:.9}", 0.0003 * 1.15f64.powi(at))).collect();
        let fewer = XAxis::of(&fewer);
        assert_eq!(names(&fewer), ["0.0003", "0.001", "0.003", "0.01", "0.03"]);
        let within = axis(&["0.0011", "0.00112", "0.0023", "0.0035", "0.0078", "0.0111", "0.01112"]);
        assert_eq!((within.scale, names(&within)), (Spacing::Logarithmic, vec!["0.002", "0.005", "0.01"]));
        let words = axis(&["a-data-set-with-a-long-name", "another-one-of-those", "and-a-third-one-here"]);
        assert!(words.more_room() > 0);
        for axis in [rates, dropout, fewer, within, words, XAxis::round(0.0, 1000.0)] {
            assert!(readable(&axis), "{:?}", axis.ticks);
        }
    }

    #[test]
    fn epochs_have_ticks_at_round_numbers() {
        assert_eq!(names(&XAxis::round(0.0, 19.0)), ["0", "5", "10", "15"]);
        assert_eq!(names(&XAxis::round(0.0, 2.0)), ["0", "1", "2"]);
    }

    #[test]
    fn one_value_has_its_own_tick() {
        assert_eq!(names(&axis(&["0.5"])), ["0.5"]);
        assert_eq!(axis(&["4"]).place("4"), Some(4.0));
    }
}
