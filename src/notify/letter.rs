//! What is posted: a notice with all that belongs to it, as a document for programs or as text for a channel. Writes words; what
//! others wrote in them is shown and not obeyed, neither by a terminal nor by a chat.

use serde::{Deserialize, Serialize};
use serde_json::json;
use togl_sweeps::visible::visible;

use super::decide::{FoldCounts, Matter, Notice};
use super::file::Form;
use crate::cli;

/// Bytes that a table may have in a letter; what is longer is cut after a whole line.
const MOST_TABLE: usize = 16 << 10;
/// Bytes that a text in a channel may have: Slack cuts what is longer.
const MOST_TEXT: usize = 3_500;
/// Bytes of a sentence.
const MOST_SENTENCE: usize = 1_000;

/// A notice that was given to the post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The same with every attempt to deliver it, and of no other letter.
    pub id: String,
    /// When it was written, in seconds since 1970.
    pub at: u64,
    /// What happened, as [`super::decide::Occasion`] spells it, or `test`.
    pub occasion: String,
    /// To which sweep, host or data set.
    pub about: String,
    /// It in one sentence.
    pub text: String,
    /// How far the sweep is.
    pub sweep: Option<FoldCounts>,
    /// The table of the sweep as text.
    pub table: Option<String>,
    /// What people did to the sweep lately.
    pub acts: Vec<Steering>,
}

/// Something that somebody did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steering {
    pub at: String,
    pub by: String,
    pub act: String,
    pub reason: String,
}

/// What belongs to a notice and has to be asked for.
#[derive(Debug, Default)]
pub struct Enclosed {
    /// The table of the sweep as text.
    pub table: Option<String>,
    /// What people did to the sweep lately.
    pub acts: Vec<Steering>,
}

impl Letter {
    /// A letter of this moment.
    pub fn new(id: String, at: u64, notice: Notice, enclosed: Enclosed) -> Self {
        let Notice { matter: Matter { occasion, about }, text, sweep } = notice;
        let Enclosed { table, acts } = enclosed;
        let table = table.map(|table| shortened(&table, MOST_TABLE));
        let text = cut(&text, MOST_SENTENCE).to_owned();
        Self { id, at, occasion: occasion.to_string(), about, text, sweep, table, acts }
    }

    /// A letter that says only that letters come.
    pub fn test(id: String, at: u64) -> Self {
        let text = "a test by `togl notify test`: notifications arrive here".to_owned();
        let occasion = "test".to_owned();
        Self { id, at, occasion, about: String::new(), text, sweep: None, table: None, acts: Vec::new() }
    }

    /// It as a webhook wants it.
    pub fn body(&self, form: Form) -> String {
        match form {
            Form::Json => self.document(),
            Form::Slack => json!({"text": self.channel_text()}).to_string(),
        }
    }

    fn document(&self) -> String {
        let Self { id: _, at, occasion, about, text, sweep, table, acts } = self;
        let mut data = json!({"about": about, "text": text});
        let more = [
            ("sweep", sweep.map(|counts| json!(counts))),
            ("table", table.as_ref().map(|table| json!(table))),
            ("acts", (!acts.is_empty()).then(|| json!(acts))),
        ];
        for (key, value) in more {
            if let Some(value) = value {
                data[key] = value;
            }
        }
        let at = cli::rfc3339(i64::try_from(at.saturating_mul(1000)).unwrap_or(i64::MAX));
        json!({"type": occasion, "timestamp": at, "data": data}).to_string()
    }

    /// The sentence, who did something to the sweep, the table; what is marked up is what we mark up.
    fn channel_text(&self) -> String {
        let mut text = as_text(&format!("togl: {}", self.text));
        for Steering { at, by, act, reason } in &self.acts {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            text += &as_text(&format!("\n{at} {act} by {by}{why}"));
        }
        let mut text = cut(&text, MOST_TEXT).to_owned();
        let room = MOST_TEXT.saturating_sub(text.len() + 16);
        if let Some(table) = self.table.as_ref().filter(|_| room > 200) {
            let table = as_text(table).replace("```", "'''");
            text += &format!("\n```\n{}\n```", shortened(table.trim_end(), room));
        }
        text
    }
}

/// Text that a channel shows as it is: no mentions, links or commands of others, nothing that a terminal would obey.
fn as_text(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As many whole lines as there is room for, and how many more there were.
fn shortened(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut lines = text.lines();
    for line in lines.by_ref() {
        if kept.len() + line.len() + 80 > room {
            break;
        }
        kept += line;
        kept.push('\n');
    }
    let left_out = lines.count() + 1;
    format!("{kept}({left_out} more lines; `togl table` shows all)")
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::super::decide::Occasion;
    use super::*;

    fn letter(text: &str, table: Option<String>) -> Letter {
        let matter = Matter { occasion: Occasion::SweepDone, about: "zinc".to_owned() };
        let sweep = Some(FoldCounts { folds: 9, finished: 8, failed: 1, running: 0, pending: 0 });
        let act = Steering {
            at: "2026-11-19T01:00:00Z".to_owned(),
            by: "anna".to_owned(),
            act: "retry".to_owned(),
            reason: "the disk is mended".to_owned(),
        };
        let notice = Notice { matter, text: text.to_owned(), sweep };
        Letter::new("msg_1".to_owned(), 1_794_812_999, notice, Enclosed { table, acts: vec![act] })
    }

    #[test]
    fn a_document_has_everything_in_it() {
        let body = letter("sweep zinc is done", Some("method  MUTAG\nGCN     61.2 ± 2.1\n".to_owned()))
            .body(Form::Json);
        let read: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(read["type"], "sweep-done");
        assert_eq!(read["timestamp"], "2026-11-16T07:09:59.000Z");
        assert_eq!(read["data"]["sweep"]["failed"], 1);
        assert_eq!(read["data"]["acts"][0]["by"], "anna");
        assert!(read["data"]["table"].as_str().expect("text").contains("61.2 ± 2.1"));
        let test: serde_json::Value =
            serde_json::from_str(&Letter::test("msg_2".to_owned(), 0).body(Form::Json)).expect("JSON");
        assert_eq!((&test["type"], test["data"].get("table")), (&json!("test"), None));
    }

    #[test]
    fn a_channel_obeys_nothing_that_others_wrote() {
        let hostile = "<!channel> <https://evil.example|click> & \u{1b}[2J\u{202e}";
        let table = format!("```\n{hostile}\n```");
        let body = letter(hostile, Some(table)).body(Form::Slack);
        let read: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        let text = read["text"].as_str().expect("text");
        assert!(
            !text.contains('<')
                && !text.contains('>')
                && !text.contains('\u{1b}')
                && !text.contains('\u{202e}'),
            "{text}"
        );
        assert_eq!(text.matches("```").count(), 2, "{text}");
        assert!(
            text.contains("&lt;!channel&gt;") && text.contains("retry by anna: the disk is mended"),
            "{text}"
        );
    }

    #[test]
    fn what_is_long_is_cut_after_a_whole_line_and_says_so() {
        let table: String = (0..2_000).map(|row| format!("row {row} ± 1.0\n")).collect();
        let letter = letter(&"ä".repeat(5_000), Some(table));
        assert!(
            letter
                .table
                .as_ref()
                .is_some_and(|table| table.len() <= MOST_TABLE && table.contains("more lines"))
        );
        assert!(letter.text.len() <= MOST_SENTENCE);
        let body: serde_json::Value = serde_json::from_str(&letter.body(Form::Slack)).expect("JSON");
        let text = body["text"].as_str().expect("text");
        assert!(
            text.len() <= MOST_TEXT + 16 && text.ends_with("more lines; `togl table` shows all)\n```"),
            "{text}"
        );
        let rows = text.lines().filter(|line| line.starts_with("row ")).count();
        let left_out: usize =
            text.rsplit('(').next().and_then(|end| end.split(' ').next()?.parse().ok()).expect("a number");
        assert!(rows > 10 && left_out > rows, "{rows} shown, {left_out} left out");
    }
}
