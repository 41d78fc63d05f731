//! Hints where they have to be text: in messages on the wire, in what another process printed, in stored failures.
//! Everywhere else a hint is a field of its error. Owns both spellings, which stores and older programs know.

use std::fmt::Display;

/// A message with its hint below it, as it travels.
pub fn below(message: impl Display, hint: impl Display) -> String {
    format!("{message}\n\nhint: {hint}")
}

/// A message with its hint, if it has one, in the same line, as it is stored.
pub fn beside(message: impl Display, hint: Option<impl Display>) -> String {
    hint.map_or_else(|| message.to_string(), |hint| format!("{message}; {}", alone(hint)))
}

/// A hint that follows a message which somebody else writes.
pub fn alone(hint: impl Display) -> String {
    format!("hint: {hint}")
}

/// Takes the hint off that stands below a message.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once("\n\n").map(|(message, below)| (message, below.trim_start().strip_prefix("hint: ")))
    {
        Some((message, Some(hint))) => (message, Some(hint.trim_end())),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_comes_off_as_it_was_put_on() {
        assert_eq!(split(&below("no token", "set TOGL_TOKEN")), ("no token", Some("set TOGL_TOKEN")));
        assert_eq!(
            split("no token\n\n  hint: set one\n"),
            ("no token", Some("set one")),
            "as programs print it"
        );
        assert_eq!(split("two\n\nparagraphs"), ("two\n\nparagraphs", None));
        assert_eq!(beside("no token", Some("set one")), "no token; hint: set one");
    }
}
