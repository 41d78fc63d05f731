//! `togl web`: the page of a coordinator, for browsers on this machine. Says where it is and serves; what is on it is in
//! `src/web` and `togl-web`.

use std::io::{BufRead, IsTerminal};

use tokio::sync::mpsc;

use super::serve::{interrupted, stdin_closed};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;
use crate::web::{Page, USUAL, bind, open};

/// Show sweeps, tables and workers as a page in the browser
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  togl web                            the page of the coordinator on this machine; prints a link
  togl web --open                     the same, and the browser shows it
  togl web --coordinator HOST:7447 --token-file FILE
  ssh -L 7448:127.0.0.1:7448 HOST     then the link that `togl web` printed on HOST opens here

A link opens the page once and within ten minutes; the Enter key prints another one.")]
pub struct Web {
    #[command(flatten)]
    target: CoordinatorTarget,
    /// Where to serve it; only addresses of this machine
    #[arg(long, value_name = "IP:PORT", default_value = USUAL)]
    listen: String,
    /// Leave the buttons out that change something, whatever the token may do
    #[arg(long)]
    look: bool,
    /// Show it in the browser at once: what BROWSER names, or what opens pages here
    #[arg(long)]
    open: bool,
    /// Stop when standard input is closed: for programs that start a page and may be killed
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

impl Web {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let interrupted = interrupted();
        let listener = bind(&self.listen).await?;
        let state = self.target.state()?;
        let page = Page::open(self.target, &listener, self.look).await?;
        eprintln!("{}\n{}", page.sentence(), page.elsewhere());
        let _opened = if self.open { Some(open(&state, &page.link())?) } else { None };
        let stop = async {
            match self.until_stdin_closes {
                true => tokio::select! { () = interrupted => {} () = stdin_closed() => {} },
                false => tokio::select! { () = interrupted => {} () = further_links(&page) => {} },
            }
        };
        page.serve(listener, stop).await
    }
}

/// Prints a link for each line that somebody at the terminal enters.
async fn further_links(page: &Page) {
    let (entered, mut lines) = mpsc::channel(1);
    let read = move || {
        let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
        lines.all(|_| entered.blocking_send(()).is_ok())
    };
    if std::io::stdin().is_terminal()
        && std::thread::Builder::new().name("stdin".to_owned()).spawn(read).is_ok()
    {
        while lines.recv().await.is_some() {
            eprintln!("{}", page.sentence());
        }
    }
    std::future::pending().await
}
