//! How many terminal columns a text takes: none for combining marks, two for East Asian wide characters and
//! emoji, one for the rest. Covers what data-set and method names contain, not every script's finest rules.

/// Ranges that take no room of their own.
const ZERO: [(u32, u32); 8] = [
    (0x0000, 0x001f),
    (0x007f, 0x009f),
    (0x0300, 0x036f),
    (0x1ab0, 0x1aff),
    (0x200b, 0x200f),
    (0x20d0, 0x20ff),
    (0xfe00, 0xfe0f),
    (0xfe20, 0xfe2f),
];

/// Ranges that take two columns.
const WIDE: [(u32, u32); 9] = [
    (0x1100, 0x115f),
    (0x2e80, 0x303e),
    (0x3041, 0xa4cf),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe30, 0xfe6f),
    (0xff00, 0xff60),
    (0x1f300, 0x1faff),
    (0x20000, 0x3fffd),
];

/// Terminal columns that `text` takes.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(character: char) -> usize {
    let code = u32::from(character);
    let within = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    match (within(&ZERO), within(&WIDE)) {
        (true, _) => 0,
        (_, true) => 2,
        _ => 1,
    }
}

/// `text` filled up with spaces on the right.
pub fn left(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(width(text))))
}

/// `text` filled up with spaces on the left.
pub fn right(text: &str, room: usize) -> String {
    format!("{}{text}", " ".repeat(room.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_combining_characters_are_counted_as_terminals_show_them() {
        let texts =
            [("GCN-4", 5), ("67.9 ± 3.6", 10), ("グラフ", 6), ("e\u{301}", 1), ("データ-1", 8), ("🙂", 2)];
        for (text, expected) in texts {
            assert_eq!(width(text), expected, "{text}");
        }
        assert_eq!(right("グ", 4), "  グ");
        assert_eq!(left("±", 3), "±  ");
    }
}
