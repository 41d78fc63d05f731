//! Shows the page in the user's browser. The link goes through a file that only its user may read and that sends the browser on:
//! whoever lists processes sees the name of that file and no code.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use togl_coordinator::private;

use crate::problem::Problem;
use crate::state::StateDir;

/// Programs that open a file in whatever the user reads pages with.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];

/// The file, for as long as the page is served.
pub struct Opened(PathBuf);

impl Drop for Opened {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0); // what it leads to was good once
    }
}

/// A page that leads to another.
fn leading_to(link: &str) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>togl</title><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\"><p><a href=\"{link}\">togl</a></p>\n"
    )
}

/// Opens a link of ours; its letters are digits and what addresses are made of.
pub fn open(state: &StateDir, link: &str) -> Result<Opened, Problem> {
    let file = state.path().join(format!("web-{}.html", std::process::id()));
    state.create()?;
    private::write(&file, leading_to(link).as_bytes())
        .map_err(|error| Problem::usage(format!("cannot write {}: {error}", file.display())))?;
    let opened = Opened(file);
    let chosen = std::env::var("BROWSER").ok().filter(|program| !program.is_empty());
    let programs = chosen.as_deref().into_iter().chain(OPENERS);
    for program in programs {
        let mut command = Command::new(program);
        command.arg(&opened.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.spawn().is_ok() {
            return Ok(opened);
        }
    }
    Err(Problem::usage("nothing here opens pages")
        .hint("set BROWSER to a program that does, or open the link yourself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_leads_on_and_asks_nobody_else() {
        let text = leading_to("http://127.0.0.1:7448/#0123abcd");
        assert!(
            text.contains("url=http://127.0.0.1:7448/#0123abcd\"") && !text.contains("<script"),
            "{text}"
        );
    }
}
