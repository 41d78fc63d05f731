//! What a command says when it cannot do what was asked: one message, perhaps a hint, and the exit code.
//! Owns the table of exit codes; prints only through [`Problem::print`].

use std::fmt;
use std::process::ExitCode;

use crate::output;

/// Nothing to complain about.
pub const DONE: u8 = 0;
/// The work was done and the outcome is negative: failed folds, nothing found.
pub const NEGATIVE: u8 = 1;
/// Bad usage or input.
pub const USAGE: u8 = 2;
/// The coordinator cannot be reached.
pub const UNREACHABLE: u8 = 3;
/// Our fault.
pub const OURS: u8 = 4;
/// Interrupted by the user.
pub const INTERRUPTED: u8 = 130;

/// A message, a hint and an exit code.
#[derive(Debug)]
pub struct Problem {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Problem {
    fn new(code: u8, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string(), hint: None }
    }

    /// The user asked for something that cannot be.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(USAGE, message)
    }

    /// The same, for an error that has causes: all of them are told.
    pub fn usage_of(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let reason = inner.to_string();
            if !message.ends_with(&reason) {
                message = format!("{message}: {reason}"); // some errors spell out their cause themselves
            }
            cause = inner.source();
        }
        Self::usage(message)
    }

    /// The words of another process about what was asked of it, which bring their hint along.
    pub fn told(words: &str) -> Self {
        let (message, hint) = togl_sweeps::hint::split(words);
        Self { hint: hint.map(str::to_owned), ..Self::usage(message) }
    }

    /// There is an answer and it is no.
    pub fn negative(message: impl fmt::Display) -> Self {
        Self::new(NEGATIVE, message)
    }

    /// Nobody answers.
    pub fn unreachable(message: impl fmt::Display) -> Self {
        Self::new(UNREACHABLE, message)
    }

    /// What to exit with.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Message and hint in one line.
    pub fn in_one_line(&self) -> String {
        self.hint.iter().fold(self.message.clone(), |text, hint| format!("{text}; {hint}"))
    }

    /// Whether nobody answered.
    pub fn is_unreachable(&self) -> bool {
        self.code == UNREACHABLE
    }

    /// This should not have happened.
    pub fn ours(message: impl fmt::Display) -> Self {
        Self::new(OURS, message)
    }

    /// The user pressed Ctrl-C.
    pub fn interrupted(message: impl fmt::Display) -> Self {
        Self::new(INTERRUPTED, message)
    }

    /// What to do about it.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Tells the user and gives the exit code.
    pub fn print(&self) -> ExitCode {
        let word = if self.code == INTERRUPTED { "stopped" } else { "error" };
        output::complain(&format!("{word}: {}\n", self.message));
        if let Some(hint) = &self.hint {
            output::complain(&format!("\n  hint: {hint}\n"));
        }
        ExitCode::from(self.code)
    }
}

/// The message alone, where it is part of a longer one.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<togl_data::Error> for Problem {
    fn from(error: togl_data::Error) -> Self {
        Self { hint: error.hint(), ..Self::usage_of(&error) }
    }
}

impl From<togl_data::FetchError> for Problem {
    fn from(error: togl_data::FetchError) -> Self {
        Self { hint: error.hint(), ..Self::usage_of(&error) }
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::ours(error)
    }
}
