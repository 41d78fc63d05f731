//! The terminal of the full-screen watch: the only file that touches it. Takes it over, draws what changed, hands out keys, and
//! gives it back as it was, also after a panic.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use termion::event::Key as Pressed;
use termion::input::TermRead;
use termion::raw::{IntoRawMode, RawTerminal};
use termion::{clear, color, cursor, screen, style};
use tokio::sync::mpsc;

use super::draw::{self, Signs};
use super::model::{KeyPress, WatchModel};
use crate::output;

/// The terminal while we have it, with how it was before.
static TAKEN: Mutex<Option<RawTerminal<File>>> = Mutex::new(None);

fn taken() -> MutexGuard<'static, Option<RawTerminal<File>>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether somebody sits at a terminal that can be drawn on.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && !output::is_dumb()
}

/// What the terminal can show, as far as the environment says.
pub fn signs() -> Signs {
    let said = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(said).unwrap_or_default().to_lowercase();
    let unicode = locale.contains("utf-8") || locale.contains("utf8");
    Signs { colour: !output::plain(), unicode }
}

/// A terminal that is ours.
pub struct Screen {
    terminal: Terminal<Lines>,
    signs: Signs,
}

impl Screen {
    /// Takes the terminal over.
    pub fn enter() -> io::Result<Self> {
        restore_after_panic();
        *taken() = Some(termion::get_tty()?.into_raw_mode()?);
        let mut screen = Self { terminal: Terminal::new(Lines(io::stdout()))?, signs: signs() };
        screen.show()?;
        Ok(screen)
    }

    /// Draws the model where it differs from what stands there.
    pub fn draw(&mut self, model: &mut WatchModel) -> io::Result<()> {
        let signs = self.signs;
        self.terminal.draw(|frame| draw::draw(model, signs, frame.buffer_mut()))?;
        Ok(())
    }

    /// Gives the terminal to the shell until somebody comes back.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        if let Some(terminal) = taken().as_ref() {
            terminal.activate_raw_mode()?;
        }
        self.show()
    }

    /// Gives the terminal back; what is drawn afterwards is lost.
    pub fn leave() {
        restore();
        *taken() = None;
    }

    fn show(&mut self) -> io::Result<()> {
        write!(io::stdout(), "{}{}", screen::ToAlternateScreen, cursor::Hide)?;
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        Self::leave();
    }
}

/// Gives the terminal back as it was, if it is ours.
fn restore() {
    if let Some(terminal) = taken().as_ref() {
        // Nothing can be done about a terminal that does not answer.
        _ = write!(io::stdout(), "{}{}{}", style::Reset, cursor::Show, screen::ToMainScreen);
        _ = io::stdout().flush();
        _ = terminal.suspend_raw_mode();
    }
}

/// A panic is read on the screen that stays.
fn restore_after_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            usual(panic);
        }));
    });
}

/// Keys as they are pressed, read on a thread that ends with the process: nothing can wake it earlier.
pub fn keys() -> io::Result<mpsc::Receiver<KeyPress>> {
    let (sender, receiver) = mpsc::channel(64);
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        for pressed in io::stdin().keys() {
            let Ok(pressed) = pressed else { return };
            if let Some(key) = key(pressed)
                && sender.blocking_send(key).is_err()
            {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn key(pressed: Pressed) -> Option<KeyPress> {
    Some(match pressed {
        Pressed::Char('\n' | '\r') => KeyPress::Enter,
        Pressed::Char('\t') => KeyPress::Right,
        Pressed::BackTab => KeyPress::Left,
        Pressed::Char(sign) => KeyPress::Char(sign),
        Pressed::Up => KeyPress::Up,
        Pressed::Down => KeyPress::Down,
        Pressed::Left => KeyPress::Left,
        Pressed::Right => KeyPress::Right,
        Pressed::PageUp => KeyPress::PageUp,
        Pressed::PageDown => KeyPress::PageDown,
        Pressed::Home => KeyPress::Home,
        Pressed::End => KeyPress::End,
        Pressed::Backspace | Pressed::Delete => KeyPress::Backspace,
        Pressed::Esc => KeyPress::Escape,
        Pressed::Ctrl('c') => KeyPress::CtrlC,
        Pressed::Ctrl('z') => KeyPress::CtrlZ,
        _ => return None,
    })
}

/// Writes cells to the terminal.
struct Lines(io::Stdout);

impl Backend for Lines {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let (mut text, mut last, mut look) = (String::new(), None, None);
        for (x, y, cell) in content {
            if last != Some((x, y)) {
                text += &cursor::Goto(x.saturating_add(1), y.saturating_add(1)).to_string();
            }
            let now = (cell.fg, cell.modifier);
            if look != Some(now) {
                text += &looks(cell.fg, cell.modifier);
                look = Some(now);
            }
            text += cell.symbol();
            last = Some((x.saturating_add(1), y)); // a wide sign moves further, and the next cell then says where it is
            if cell.symbol().len() > 1 {
                last = None;
            }
        }
        text += style::Reset.as_ref();
        self.0.write_all(text.as_bytes())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        write!(self.0, "{}", cursor::Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        write!(self.0, "{}", cursor::Show)
    }

    /// Nobody who draws on the whole screen needs to know; asking would read keys.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        write!(self.0, "{}", cursor::Goto(x.saturating_add(1), y.saturating_add(1)))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        match region {
            ClearType::All => write!(self.0, "{}", clear::All),
            ClearType::AfterCursor => write!(self.0, "{}", clear::AfterCursor),
            ClearType::BeforeCursor => write!(self.0, "{}", clear::BeforeCursor),
            ClearType::CurrentLine => write!(self.0, "{}", clear::CurrentLine),
            ClearType::UntilNewLine => write!(self.0, "{}", clear::UntilNewline),
        }
    }

    fn size(&self) -> io::Result<Size> {
        let (width, height) = termion::terminal_size()?;
        Ok(Size { width, height })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The escapes of a look: those of the sixteen colours that the palette uses, on the background that the user has.
fn looks(colour: Color, modifier: Modifier) -> String {
    let mut text = style::Reset.to_string();
    let escapes: [(Modifier, &str); 3] = [
        (Modifier::BOLD, style::Bold.as_ref()),
        (Modifier::DIM, style::Faint.as_ref()),
        (Modifier::REVERSED, style::Invert.as_ref()),
    ];
    for (has, escape) in escapes {
        if modifier.contains(has) {
            text += escape;
        }
    }
    match colour {
        Color::Green => text += color::Green.fg_str(),
        Color::Yellow => text += color::Yellow.fg_str(),
        Color::Red => text += color::Red.fg_str(),
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Played on a terminal by the test below.
    #[test]
    #[ignore = "takes a terminal over and panics"]
    fn panics_on_the_screen() {
        let _screen = Screen::enter().unwrap();
        panic!("on purpose");
    }

    #[test]
    fn a_panic_is_read_on_the_screen_of_the_shell_and_leaves_the_terminal_as_it_was() {
        if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
            return eprintln!("skipped: there is no `script` to play a terminal");
        }
        let program = std::env::current_exe().unwrap();
        let test = "watch::screen::tests::panics_on_the_screen";
        let line = format!("stty -g; {} --exact {test} --ignored --nocapture; stty -g", program.display());
        let mut script = Command::new("script");
        script.args(["-qefc", &line, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
        let output = script.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let modes: Vec<&str> =
            text.lines().map(str::trim).filter(|line| line.matches(':').count() > 20).collect();
        assert_eq!(modes.len(), 2, "{text}");
        assert_eq!(modes[0], modes[1]);
        let (left, said) =
            (text.find(&screen::ToMainScreen.to_string()).unwrap(), text.find("on purpose").unwrap());
        assert!(text.contains(&screen::ToAlternateScreen.to_string()) && left < said, "{text:?}");
        assert!(text.contains(&cursor::Show.to_string()));
    }

    #[test]
    fn keys_are_those_of_terminals() {
        let read =
            |bytes: &[u8]| bytes.keys().filter_map(|pressed| key(pressed.unwrap())).collect::<Vec<_>>();
        assert_eq!(
            read(b"q\x1b[A\x1b[6~\r\x03\x1a\x7f"),
            [
                KeyPress::Char('q'),
                KeyPress::Up,
                KeyPress::PageDown,
                KeyPress::Enter,
                KeyPress::CtrlC,
                KeyPress::CtrlZ,
                KeyPress::Backspace
            ]
        );
        assert_eq!(read("ä\u{1b}[200~".as_bytes())[0], KeyPress::Char('ä'), "and nonsense is no key");
    }
}
