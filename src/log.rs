//! The log of `togl`: to standard error, for people or for programs. What strangers send can make a library warn with
//! every packet, so each place in the code of others gets one line a minute; what we say ourselves is not touched.

use std::io::IsTerminal;

use togl_coordinator::clock::{Clock, SystemClock};
use togl_coordinator::log_limit::LogLimit;
use togl_sweeps::visible::log_field;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::cli::LogFormat;
use crate::{output, progress};

/// The HTTP client logs whole requests, whose addresses may be secrets (`serve --notify`): not even `RUST_LOG` gets these.
const SILENT: [&str; 2] = ["ureq=off", "ureq_proto=off"];

/// Logs from `level` on, unless `RUST_LOG` says otherwise. The PNG writer warns of every line of length zero, which is
/// nothing to bother a user with.
pub fn start(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new(format!("{level},resvg=off,usvg=off,tiny_skia=off,tiny_skia_path=off"))
    });
    let filter = SILENT.iter().filter_map(|who| who.parse().ok()).fold(filter, EnvFilter::add_directive);
    // What others wrote is shown and not obeyed, also in a log.
    let fields =
        debug_fn(|out, field, value| write!(out, "{}", log_field(field.name(), value))).delimited(" ");
    let lines = fmt::layer().with_writer(|| progress::LogLine);
    let lines = match format {
        LogFormat::Human => {
            let ansi = std::io::stderr().is_terminal() && !output::plain();
            lines.fmt_fields(fields).with_ansi(ansi).with_target(false).boxed()
        }
        LogFormat::Json => lines.json().with_ansi(false).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(Others::new()).with(lines).init();
}

/// Keeps what others say short. Whoever asks for more than `info` gets all of it.
struct Others {
    said: LogLimit<Identifier>,
    clock: SystemClock,
}

impl Others {
    fn new() -> Self {
        Self { said: LogLimit::default(), clock: SystemClock::new() }
    }
}

impl<S: Subscriber> Layer<S> for Others {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let (library, level, place) =
            (event.metadata().target(), event.metadata().level(), event.metadata().callsite());
        if library.starts_with("togl") || *level > Level::INFO {
            return true;
        }
        let due = self.said.due(place.clone(), || place, self.clock.now());
        if let Some(more @ 1..) = due {
            tracing::warn!(library, more, "left out lines like the next one");
        }
        due.is_some()
    }
}
