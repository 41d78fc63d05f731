//! What the screen looks like, letter by letter, at several sizes; and that no size is too small or too large.

use super::super::model::tests::{opened, overview, status, training};
use super::super::model::{KeyPress, Update};
use super::*;

const FULL: Signs = Signs { colour: true, unicode: true };

/// The screen as text.
fn shown(model: &mut WatchModel, signs: Signs, width: u16, height: u16) -> String {
    let buffer = drawn(model, signs, width, height);
    let line = |y: u16| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    (0..height).map(line).collect()
}

fn drawn(model: &mut WatchModel, signs: Signs, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width, height });
    draw(model, signs, &mut buffer);
    buffer
}

fn with_table() -> WatchModel {
    let mut model = opened();
    let table = "method        depth=2        depth=4\nGCN           61.2 ± 2.1     63.0 ± 1.8\nGCN-TOGL-1    70.4 ± 1.2▲    71.9 ± 0.9▲\n\n▲ best of its column";
    let lines = table.lines().map(str::to_owned).collect();
    model.take(Update::Table { sweep: "zinc-depth".to_owned(), lines });
    model
}

#[test]
fn a_sweep_with_its_table_on_a_wide_screen() {
    insta::assert_snapshot!("wide_table", shown(&mut with_table(), FULL, 120, 40));
}

#[test]
fn the_usual_size_with_failures() {
    let mut model = with_table();
    model.key(KeyPress::Char('3'));
    insta::assert_snapshot!("failures", shown(&mut model, FULL, 80, 24));
}

#[test]
fn all_sweeps_at_the_usual_size() {
    insta::assert_snapshot!("all_sweeps", shown(&mut overview(), FULL, 80, 24));
}

#[test]
fn a_small_screen_has_one_pane() {
    let mut model = with_table();
    model.key(KeyPress::Char('2'));
    insta::assert_snapshot!("one_pane", shown(&mut model, FULL, 60, 16));
    insta::assert_snapshot!("short_words", shown(&mut model, FULL, 50, 12));
}

#[test]
fn a_tiny_screen_has_one_line() {
    let text = shown(&mut with_table(), FULL, 39, 8);
    assert_eq!(text.trim_end(), "zinc-depth 61 %, 38 running, 14 failed");
    assert_eq!(shown(&mut overview(), FULL, 39, 8).trim_end(), "2 sweeps, 2 workers");
}

#[test]
fn without_unicode_every_sign_is_ascii() {
    let signs = Signs { colour: true, unicode: false };
    let mut model = with_table();
    for view in '1'..='6' {
        model.key(KeyPress::Char(view));
        let text = shown(&mut model, signs, 120, 40);
        assert!(text.is_ascii(), "{text}");
    }
    model.key(KeyPress::Char('1'));
    let text = shown(&mut model, signs, 80, 24);
    assert!(text.contains("61.2 +- 2.1") && text.contains("##############.........."), "{text}");
}

#[test]
fn without_colour_nothing_is_coloured_and_what_is_chosen_is_reversed() {
    let signs = Signs { colour: false, unicode: true };
    let mut model = overview();
    let buffer = drawn(&mut model, signs, 80, 24);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(buffer.content.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
    let coloured = drawn(&mut model, FULL, 80, 24);
    assert!(coloured.content.iter().any(|cell| cell.fg == Color::Green));
    assert!(coloured.content.iter().all(|cell| cell.bg == Color::Reset), "the background is the user's");
}

#[test]
fn what_others_wrote_is_shown_and_not_obeyed() {
    let mut model = with_table();
    model.key(KeyPress::Char('3'));
    let buffer = drawn(&mut model, FULL, 120, 24);
    let signs = buffer.content.iter().flat_map(|cell| cell.symbol().chars());
    assert!(signs.into_iter().all(|sign| !sign.is_control()));
    assert!(shown(&mut model, FULL, 120, 24).contains("\\u{1b}[#J"));
}

#[test]
fn keys_and_questions_stand_where_they_are_seen() {
    let mut model = with_table();
    model.key(KeyPress::Char('C'));
    let text = shown(&mut model, FULL, 100, 24);
    let asked = " cancel zinc-depth? running folds are stopped, results are kept  [N]o  [y]es  [w]hy\n";
    assert!(text.ends_with(asked), "{text}");
    model.key(KeyPress::Char('n'));
    model.key(KeyPress::Char('?'));
    assert!(shown(&mut model, FULL, 80, 24).contains("P R T C"), "keys of operators");
    model.may_steer = false;
    model.key(KeyPress::Char('x'));
    model.key(KeyPress::Char('?'));
    assert!(!shown(&mut model, FULL, 80, 24).contains("P R T C"), "who may not steer is not told how");
}

#[test]
fn no_size_and_no_content_is_too_much() {
    let mut seed = 0x5eed_u64;
    eprintln!("seed {seed}");
    let mut draw_below = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let odd =
        ["", "a", "日本語の名前", "e\u{301}\u{301}", "\u{202e}\u{1b}]0;x\u{7}", "👩‍👩‍👧‍👧", "w\u{ad}\u{200b}"];
    for _ in 0..2_000 {
        let mut model = if draw_below(2) == 0 { overview() } else { with_table() };
        let title = odd[draw_below(odd.len() as u64) as usize].repeat(draw_below(40) as usize);
        let mut running = training(&title, 3, 0.5);
        running.title.clone_from(&title);
        running.worker = title.clone();
        model.take(Update::Status(Box::new(status(vec![running; draw_below(30) as usize])), [7_800, 9_600]));
        model.take(Update::Away(title.clone()));
        for _ in 0..draw_below(8) {
            let keys = ['1', '2', '3', '4', '5', '6', 's', '?', '/', 'j', 'k', 'P', ' ', 'w'];
            model.key(KeyPress::Char(keys[draw_below(keys.len() as u64) as usize]));
            model.key([KeyPress::Enter, KeyPress::End, KeyPress::Escape][draw_below(3) as usize]);
        }
        let signs = Signs { colour: draw_below(2) == 0, unicode: draw_below(2) == 0 };
        let (width, height) = (draw_below(200) as u16, draw_below(60) as u16);
        drawn(&mut model, signs, width, height);
    }
}
