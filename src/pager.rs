//! Long lists, a screen at a time, as git does it: through `PAGER`, or `less`, where a person sits at the terminal. Where there is
//! none, or the list fits, nothing happens here.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;

/// Lets people read a text that does not fit their terminal. Says whether they could.
pub fn shown(text: &str) -> bool {
    let Some(pager) = pager(std::env::var("PAGER").ok()) else { return false };
    if !io::stdout().is_terminal() || fits(text) {
        return false;
    }
    // Ctrl-C is for the pager, as long as it is there.
    let ignored = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    let mut command = Command::new("sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        _ = input.write_all(text.as_bytes()); // whoever has read enough closes it early
    }
    let ended = child.wait();
    if let Ok(id) = ignored {
        signal_hook::low_level::unregister(id);
    }
    ended.is_ok_and(|status| status.code() != Some(NOT_FOUND))
}

/// Silent where it is not there.
const USUAL: &str = "command -v less >/dev/null || exit 127; exec less";

/// What a shell says of a program that is not there.
const NOT_FOUND: i32 = 127;

/// The program, unless the user wants none.
fn pager(named: Option<String>) -> Option<String> {
    let named = named.unwrap_or_else(|| USUAL.to_owned());
    (!matches!(named.trim(), "" | "cat")).then_some(named)
}

fn fits(text: &str) -> bool {
    let lines = text.lines().count();
    termion::terminal_size().is_ok_and(|(_, height)| lines < usize::from(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pager_and_cat_mean_none() {
        assert_eq!(pager(None).as_deref(), Some(USUAL));
        assert_eq!(pager(Some("more -s".to_owned())).as_deref(), Some("more -s"));
        assert_eq!((pager(Some(String::new())), pager(Some("cat".to_owned()))), (None, None));
    }
}
