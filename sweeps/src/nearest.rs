//! "Did you mean": the known name nearest to a misspelt one. Owns the threshold, so that every hint of the
//! program is equally cautious.

/// The candidate nearest to `word`, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed || word.len() > 2 && candidate.contains(word))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The end of an error message: a hint with the nearest name, or the list of all when none is near.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, candidates.clone()) {
        Some(found) => format!("did you mean `{found}`?"),
        None => {
            let all: Vec<&str> = candidates.into_iter().collect();
            format!("known: {}", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_name_and_nonsense_finds_none() {
        let known = ["depth", "deepset", "dataset", "seeds"];
        assert_eq!(nearest("dpeth", known), Some("depth"));
        assert_eq!(nearest("deepsets", known), Some("deepset"));
        assert_eq!(nearest("epochs", ["max_epochs", "depth"]), Some("max_epochs"), "what others call it");
        assert_eq!(nearest("zebra", known), None);
        assert!(hint("zebra", known).starts_with("known: depth"));
    }
}
