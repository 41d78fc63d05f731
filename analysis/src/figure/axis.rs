//! Where the values of a setting stand along an axis. Values on a coarse grid stand to scale, in steps of their smallest
//! distance; values that are spread over decades, or words, stand evenly, and the axis says so. Either way a tick is at
//! every value and neighbours are at least one unit apart, so that lines can be moved apart by less. Draws nothing.

/// More steps than this have no room for a tick each.
const MOST_STEPS: f64 = 11.0;

/// Distances that differ by less than this share of a step are equal.
const SAME: f64 = 1e-6;

/// The places of all values of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What stands at 0, 1, ... along the axis; none where places are the values themselves.
    pub names: Vec<String>,
    /// Whether numbers stand evenly although their distances differ.
    pub uneven: bool,
    places: Vec<(String, f64)>,
}

impl Axis {
    /// The axis of these different values, in the order in which words are to stand.
    pub fn of(values: &[String]) -> Self {
        let numbers: Option<Vec<(String, f64)>> = values
            .iter()
            .map(|value| Some((value.clone(), value.parse().ok().filter(|number: &f64| number.is_finite())?)))
            .collect();
        let Some(mut numbers) = numbers else { return Self::evenly(values, false) };
        numbers.sort_by(|a, b| a.1.total_cmp(&b.1));
        let whole = numbers.iter().all(|(_, number)| number.fract() == 0.0);
        let steps = Steps::of(&numbers);
        let sorted: Vec<String> = numbers.iter().map(|(value, _)| value.clone()).collect();
        match steps {
            None if whole => Self { names: Vec::new(), uneven: false, places: numbers },
            None => Self::evenly(&sorted, false),
            Some(steps) if whole && (steps.count * steps.size <= MOST_STEPS || steps.even) => {
                Self { names: Vec::new(), uneven: false, places: numbers }
            }
            Some(steps) if steps.on_grid && steps.count <= MOST_STEPS => Self::to_scale(&numbers, &steps),
            Some(steps) => Self::evenly(&sorted, !steps.even),
        }
    }

    /// Where a value stands.
    pub fn place(&self, value: &str) -> Option<f64> {
        self.places.iter().find(|(known, _)| known == value).map(|(_, place)| *place)
    }

    fn evenly(values: &[String], uneven: bool) -> Self {
        let places = values.iter().enumerate().map(|(at, value)| (value.clone(), at as f64)).collect();
        Self { names: values.to_vec(), uneven, places }
    }

    fn to_scale(numbers: &[(String, f64)], steps: &Steps) -> Self {
        let places: Vec<(String, f64)> =
            numbers.iter().map(|(value, number)| (value.clone(), steps.place(*number))).collect();
        let mut names = vec![String::new(); steps.count.round() as usize + 1];
        for (value, place) in &places {
            names[*place as usize].clone_from(value);
        }
        Self { names, uneven: false, places }
    }
}

/// The smallest distance between two neighbours, and how the others relate to it.
struct Steps {
    from: f64,
    size: f64,
    /// From the first value to the last.
    count: f64,
    /// Whether all distances are multiples of the smallest.
    on_grid: bool,
    /// Whether all distances are the same.
    even: bool,
}

impl Steps {
    /// None for fewer than two values.
    fn of(sorted: &[(String, f64)]) -> Option<Self> {
        let gaps: Vec<f64> = sorted.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
        let size = gaps.iter().copied().filter(|gap| *gap > 0.0).fold(f64::INFINITY, f64::min);
        if !size.is_finite() {
            return None;
        }
        let (from, to) = (sorted.first()?.1, sorted.last()?.1);
        let whole_steps =
            |number: f64| ((number - from) / size - ((number - from) / size).round()).abs() < SAME;
        Some(Self {
            from,
            size,
            count: (to - from) / size,
            on_grid: sorted.iter().all(|(_, number)| whole_steps(*number)),
            even: gaps.iter().all(|gap| (gap / size - 1.0).abs() < SAME),
        })
    }

    fn place(&self, number: f64) -> f64 {
        ((number - self.from) / self.size).round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[&str]) -> Axis {
        Axis::of(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    }

    fn places(axis: &Axis, values: &[&str]) -> Vec<f64> {
        values.iter().map(|value| axis.place(value).unwrap()).collect()
    }

    #[test]
    fn depths_stand_at_themselves() {
        let depths = axis(&["3", "1", "8"]);
        assert_eq!((depths.names.len(), places(&depths, &["1", "3", "8"])), (0, vec![1.0, 3.0, 8.0]));
    }

    #[test]
    fn fractions_stand_to_scale_with_a_tick_at_each() {
        let dropout = axis(&["0.5", "0.0", "0.1", "0.2"]);
        assert_eq!(dropout.names, ["0.0", "0.1", "0.2", "", "", "0.5"]);
        assert_eq!(places(&dropout, &["0.0", "0.1", "0.2", "0.5"]), [0.0, 1.0, 2.0, 5.0]);
        assert!(!dropout.uneven);
    }

    #[test]
    fn decades_and_words_stand_evenly() {
        let rates = axis(&["0.1", "0.0001", "0.001"]);
        assert_eq!(rates.names, ["0.0001", "0.001", "0.1"]);
        assert!(rates.uneven && rates.place("0.1") == Some(2.0));
        let words = axis(&["random", "original"]);
        assert!(!words.uneven && words.names == ["random", "original"] && words.place("0.5").is_none());
    }

    #[test]
    fn one_fraction_has_its_own_tick() {
        assert_eq!(axis(&["0.5"]).names, ["0.5"]);
        assert_eq!(axis(&["4"]).place("4"), Some(4.0));
    }
}
