//! What others wrote, made fit for a terminal: characters that a terminal would obey (escapes and other control
//! characters, overrides of the direction of writing, unusual line ends) are spelt out instead. Only for people's eyes;
//! data that programs read goes without it.

use std::borrow::Cow;
use std::fmt;

/// The text with every character that a terminal obeys spelt out, such as `\u{1b}`. Lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    spelt_out(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'), |c| c.escape_unicode().collect())
}

/// The same for text that must stay on its line, such as the cell of a list: line ends and tabs are spelt out as well.
pub fn visible_in_line(text: &str) -> Cow<'_, str> {
    let spelling =
        |c: char| if c.is_ascii() { c.escape_default().collect() } else { c.escape_unicode().collect() };
    spelt_out(text, is_obeyed, spelling)
}

/// The same for the text of a JSON document, where these characters stand only inside of strings: it means what it meant.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    spelt_out(
        text,
        |c| is_obeyed(c) && !matches!(c, '\n' | '\r' | '\t'),
        |c| format!("\\u{:04x}", u32::from(c)),
    )
}

/// A field of a log entry, as `name=value`; the message goes without its name, and what the `log` crate adds is left out.
pub fn log_field(name: &str, value: &dyn fmt::Debug) -> String {
    match name {
        "message" => visible(&format!("{value:?}")).into_owned(),
        name if name.starts_with("log.") => String::new(),
        name => format!("{name}={}", visible(&format!("{value:?}"))),
    }
}

fn spelt_out(text: &str, obeyed: impl Fn(char) -> bool, spelling: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(&obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if obeyed(c) { shown.push_str(&spelling(c)) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Control characters of ASCII and Latin 1, marks and overrides of direction, and the line ends of Unicode.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        assert_eq!(visible("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(visible("\u{9b}31m \u{7f} \u{202e}txt \r"), "\\u{9b}31m \\u{7f} \\u{202e}txt \\u{d}");
        assert_eq!(visible("two\nlines\tand Ünïcode ± 字"), "two\nlines\tand Ünïcode ± 字");
        assert_eq!(visible_in_line("x\ny\t\u{1b}"), "x\\ny\\t\\u{1b}");
    }

    #[test]
    fn a_log_entry_shows_what_others_wrote() {
        assert_eq!(log_field("message", &format_args!("from \u{1b}[2J")), "from \\u{1b}[2J");
        assert_eq!(log_field("worker", &format_args!("w\u{7}")), "worker=w\\u{7}");
        assert_eq!(log_field("log.target", &"h2"), "");
    }

    proptest! {
        #[test]
        fn nothing_is_left_to_obey_and_harmless_text_is_untouched(text in any::<String>()) {
            prop_assert!(!visible_in_line(&text).contains(is_obeyed));
            prop_assert!(visible(&text).chars().all(|c| !is_obeyed(c) || c == '\n' || c == '\t'));
            if !text.contains(is_obeyed) {
                prop_assert_eq!(visible(&text), text.as_str());
            }
        }

        #[test]
        fn json_means_what_it_meant(text in "[\\x00-\\x20\\x7f-\\u{a0}\\u{2020}-\\u{2070}\"\\\\a-z]*") {
            let json = serde_json::to_string(&text).unwrap();
            let shown = visible_json(&json);
            prop_assert!(!shown.contains(is_obeyed));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
