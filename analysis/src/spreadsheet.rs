//! Fields of CSV that a spreadsheet does not run: text that it would take for a formula gets a `'` in front, which
//! [`read_back`] takes away again. Owns that rule and the quoting of every CSV line of ours; reads no files.

use std::borrow::Cow;

/// A field as it stands in a line of CSV: guarded, and quoted where it must be.
fn field(text: &str) -> String {
    let text = guarded(text);
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.into_owned()
}

/// A line of CSV with these fields.
pub fn line(fields: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    fields.into_iter().map(|text| field(text.as_ref())).collect::<Vec<_>>().join(",") + "\n"
}

/// The text with a `'` in front if it would run.
pub fn guarded(text: &str) -> Cow<'_, str> {
    if would_run(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// What [`guarded`] was given.
pub fn read_back(text: &str) -> &str {
    text.strip_prefix('\'').filter(|_| would_run(text)).unwrap_or(text)
}

/// Whether text begins as formulas do and is no number. What is guarded already counts as well, so that it gets a second
/// guard and comes back as it was.
fn would_run(text: &str) -> bool {
    let bare = text.trim_start_matches('\'');
    bare.starts_with(['=', '+', '-', '@', '\t', '\r']) && bare.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_are_guarded_and_numbers_are_not() {
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-"] {
            assert_eq!(guarded(formula), format!("'{formula}"));
        }
        for harmless in ["", "-5", "+1.5e-3", "GCN-4", "a=b", "'tis", "'-5"] {
            assert_eq!(guarded(harmless), harmless);
        }
        assert_eq!(field("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
    }

    proptest! {
        #[test]
        fn what_is_guarded_comes_back_as_it_was(text in "['=+@\t\r0-9-]{0,3}\\PC{0,4}") {
            let written = guarded(&text);
            prop_assert!(written.parse::<f64>().is_ok() || !written.starts_with(['=', '+', '-', '@', '\t', '\r']));
            prop_assert_eq!(read_back(&written), text.as_str());
        }
    }
}
