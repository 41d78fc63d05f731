//! The file of `togl serve --notify`: which webhooks there are, what they are told, and from when on something is worth telling.
//! Its addresses and keys are secrets: the file is refused unless it is its owner's alone, and nothing here puts a value of it into
//! words. Sends nothing.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_yaml::{Error, Location};
use togl_sweeps::{bounded, nearest};

use super::decide::{Occasion, Rules};
use crate::problem::Problem;

/// How keys begin, so that nobody takes one for something else.
const KEY_MARK: &str = "whsec_";
/// Bytes that a key may have.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// So many webhooks are enough.
const MOST: usize = 32;

togl_sweeps::words!(
    /// What is posted.
    Form {
        /// A document with everything in it.
        Json = "json",
        /// `{"text": ...}`, which Slack, Mattermost, Rocket.Chat and others show in a channel.
        Slack = "slack",
    }
);

/// A whole file.
#[derive(Debug, Clone)]
pub struct NotifyFile {
    /// Who is told.
    pub hooks: Vec<Hook>,
    /// When something is worth telling.
    pub rules: Rules,
    /// PEM file of further authorities to believe.
    pub ca_file: Option<PathBuf>,
}

/// Somebody who is told. Its `Debug` shows neither address nor key.
#[derive(Clone)]
pub struct Hook {
    /// What it is called in logs and files.
    pub name: String,
    /// What is posted.
    pub form: Form,
    /// What it is told.
    pub on: Vec<Occasion>,
    url: String,
    key: Option<Vec<u8>>,
}

impl Hook {
    /// Where to post. A secret.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What messages are signed with. A secret.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.name)
            .field("form", &self.form)
            .field("on", &self.on)
            .finish_non_exhaustive()
    }
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    webhooks: Vec<WrittenHook>,
    failures: Option<u64>,
    no_worker_minutes: Option<u32>,
    ca_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHook {
    name: String,
    url: String,
    #[serde(default = "usual_form")]
    form: Form,
    #[serde(default = "everything")]
    on: Vec<Occasion>,
    secret: Option<String>,
}

fn usual_form() -> Form {
    Form::Json
}

fn everything() -> Vec<Occasion> {
    Occasion::ALL.to_vec()
}

impl NotifyFile {
    /// Reads a file that is for its owner alone.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let name = path.display();
        let refuse = |error: std::io::Error| {
            Problem::usage(format!("cannot read the file of webhooks {name}: {error}"))
                .hint("name a YAML file with `webhooks:`; docs/notifications.md shows one")
        };
        let file = File::open(path).map_err(refuse)?;
        // Asked of what was opened, so that it cannot be exchanged in between.
        if file.metadata().map_err(refuse)?.permissions().mode() & 0o077 != 0 {
            return Err(Problem::usage(format!(
                "others than its owner may use {name}, whose addresses and keys are secrets"
            ))
            .hint(format!("`chmod 600 {name}` keeps them out")));
        }
        let text = bounded::text(file, bounded::SECRET).map_err(refuse)?;
        let mut read = Self::parse(&text).map_err(|said| Problem::usage(format!("{name}:{said}")))?;
        read.ca_file = read.ca_file.map(|file| path.parent().unwrap_or(Path::new("")).join(file));
        Ok(read)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let options = serde_yaml::options! { with_snippet: false, strict_booleans: true, };
        let written: Written =
            serde_yaml::from_str_with_options(text, options).map_err(|error| explain(&error))?;
        let Written { webhooks, failures, no_worker_minutes, ca_file } = written;
        if webhooks.is_empty() || webhooks.len() > MOST {
            return Err(format!(" webhooks: from 1 to {MOST} are possible"));
        }
        let mut hooks: Vec<Hook> = Vec::new();
        for (at, hook) in webhooks.into_iter().enumerate() {
            let hook = hook.checked(at + 1).map_err(|said| format!(" {said}"))?;
            if hooks.iter().any(|other| other.name == hook.name) {
                return Err(format!(" {}: given twice; every webhook has a name of its own", hook.name));
            }
            hooks.push(hook);
        }
        let usual = Rules::default();
        if failures == Some(0) {
            return Err(" failures: at least 1".to_owned());
        }
        let rules = Rules {
            failures: failures.unwrap_or(usual.failures),
            no_worker: no_worker_minutes
                .map_or(usual.no_worker, |minutes| Duration::from_secs(u64::from(minutes) * 60)),
        };
        Ok(Self { hooks, rules, ca_file })
    }
}

impl WrittenHook {
    fn checked(self, number: usize) -> Result<Hook, String> {
        let Self { name, url, form, on, secret } = self;
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
        // What is no name may be an address that got here by mistake, so it is not repeated.
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            return Err(format!(
                "webhook {number}: its name has 1 to 64 letters, digits, `-`, `_` and `.`, such as chat"
            ));
        }
        if !is_safe_address(&url) {
            return Err(format!(
                "{name}: its url is not https://HOST/... (http:// only for this machine, such as http://127.0.0.1:8065/...)"
            ));
        }
        if on.is_empty() {
            return Err(format!("{name}: on: nothing is left to tell; leave `on` out to tell everything"));
        }
        let key = secret.map(|secret| key(&secret)).transpose().map_err(|said| format!("{name}: {said}"))?;
        Ok(Hook { name, form, on, url, key })
    }
}

/// Whether what is posted there cannot be read on its way.
fn is_safe_address(url: &str) -> bool {
    if url.len() > 2048 || !url.chars().all(|sign| sign.is_ascii_graphic()) {
        return false;
    }
    let Ok(parsed) = url.parse::<ureq::http::Uri>() else { return false };
    let host = parsed.host().unwrap_or_default();
    match parsed.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => is_this_machine(host),
        _ => false,
    }
}

/// Whether a host of an address is this machine and nothing else.
pub fn is_this_machine(host: &str) -> bool {
    let plain = host.trim_matches(['[', ']']);
    host == "localhost" || plain.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn key(secret: &str) -> Result<Vec<u8>, String> {
    let key = secret.strip_prefix(KEY_MARK).and_then(|text| STANDARD.decode(text).ok());
    key.filter(|key| KEY_BYTES.contains(&key.len())).ok_or_else(|| {
        format!(
            "its secret is not `{KEY_MARK}` and {} to {} random bytes in base64; `echo {KEY_MARK}$(openssl rand -base64 32)` makes one",
            KEY_BYTES.start(),
            KEY_BYTES.end()
        )
    })
}

/// The parser's error with its place. Only names are repeated, and only those that look like names: all else may be a secret.
fn explain(error: &Error) -> String {
    let error = error.without_snippet();
    let at = error.location().filter(|at| *at != Location::UNKNOWN);
    let at = at.map_or_else(String::new, |at| format!("{}:{}:", at.line(), at.column()));
    let name = |word: &str| {
        let is_name = word.len() <= 32 && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if is_name { format!("`{word}`") } else { "what stands here".to_owned() }
    };
    let reason = match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("{} is no key; {}", name(field), nearest::hint(field, expected.iter().copied()))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!("{} is not known; {}", name(variant), nearest::hint(variant, expected.iter().copied()))
        }
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        Error::DuplicateMappingKey { .. } => "a key is given twice; keep one of them".to_owned(),
        _ => "this cannot be read; docs/notifications.md shows what belongs where".to_owned(),
    };
    format!("{at} {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn refused(text: &str) -> String {
        NotifyFile::parse(text).map(|_| ()).expect_err("a bad file")
    }

    #[test]
    fn a_file_says_as_much_as_is_needed() {
        let text = format!(
            "webhooks:\n  - name: chat\n    url: https://hooks.example/a\n    form: slack\n  - name: pager\n    \
             url: http://127.0.0.1:9/x\n    secret: {SECRET}\n    on: [no-worker]\nfailures: 3\nno_worker_minutes: 5\n"
        );
        let file = NotifyFile::parse(&text).expect("a good file");
        assert_eq!(file.hooks.len(), 2);
        assert_eq!((file.hooks[0].form, file.hooks[0].on.len()), (Form::Slack, Occasion::ALL.len()));
        assert_eq!(file.hooks[1].key(), Some(b"0123456789abcdef0123456789abcdef".as_slice()));
        assert_eq!(file.hooks[1].on, [Occasion::NoWorker]);
        assert_eq!((file.rules.failures, file.rules.no_worker), (3, Duration::from_secs(300)));
        let plain = NotifyFile::parse("webhooks: [{name: a, url: 'https://a/'}]").expect("a good file");
        assert_eq!((plain.rules, plain.hooks[0].form), (Rules::default(), Form::Json));
    }

    #[test]
    fn no_message_about_a_bad_file_repeats_a_secret() {
        let wrong = [
            "webhooks: [https://hooks.example/SECRET]",
            "webhooks: {https://hooks.example/SECRET: a}",
            "webhooks: https://hooks.example/SECRET",
            "webhooks: [{name: https://hooks.example/SECRET, url: https://a/}]",
            "webhooks: [{name: a, url: ftp://hooks.example/SECRET}]",
            "webhooks: [{name: a, url: http://hooks.example/SECRET}]",
            "webhooks: [{name: a, url: [https://hooks.example/SECRET]}]",
            "webhooks: [{name: a, url: https://a/, secret: SECRET}]",
            "webhooks: [{name: a, url: https://a/, secret: whsec_SECRET}]",
            "webhooks: [{name: a, url: https://a/, form: https://hooks.example/SECRET}]",
            "webhooks: [{name: a, url: https://a/, on: [https://hooks.example/SECRET]}]",
            "webhooks: [{name: a, url: https://a/, on: https://hooks.example/SECRET}]",
            "webhooks: [{name: a, url: https://a/}]\nfailures: https://hooks.example/SECRET",
            "webhooks: [{name: a, url: https://a/}]\nhttps://hooks.example/SECRET: 1",
            "webhooks: [{name: a, url: https://a/SECRET}, {name: a, url: https://b/SECRET}]",
            "webhooks: [{name: a, url: \"https://a/SECRET}]",
            "https://hooks.example/SECRET",
        ];
        for text in wrong {
            let said = refused(text);
            assert!(!said.contains("SECRET") && !said.contains("hooks.example"), "{text}: {said}");
            assert!(said.len() > 12, "{text}: {said}");
        }
        let hook =
            NotifyFile::parse(&format!("webhooks: [{{name: a, url: https://a/SECRET, secret: {SECRET}}}]"));
        let shown = format!("{:?}", hook.expect("a good file"));
        assert!(!shown.contains("SECRET") && !shown.contains("MDEy") && !shown.contains("0123"), "{shown}");
    }

    #[test]
    fn a_slip_of_the_finger_is_told_with_its_line() {
        let said = refused("webhooks:\n  - name: a\n    url: https://a/\n    from: json\n");
        assert!(said.starts_with("4:") && said.contains("did you mean `form`?"), "{said}");
        let said = refused("webhooks:\n  - name: a\n    url: https://a/\n    on: [sweep-don]\n");
        assert!(said.starts_with("4:") && said.contains("did you mean `sweep-done`?"), "{said}");
        assert!(refused("webhooks: []").contains("from 1 to 32"));
        assert!(refused("webhooks: [{name: a, url: https://a/, on: []}]").contains("nothing is left"));
        assert!(refused("webhooks: [{name: a, url: https://a/}]\nfailures: 0").contains("at least 1"));
        assert!(refused("failures: 3").contains("`webhooks` is missing"));
    }

    #[test]
    fn only_this_machine_is_told_without_tls() {
        for good in [
            "https://a/",
            "https://a:8443/b?c=d",
            "http://127.0.0.1:1/",
            "http://localhost/",
            "http://[::1]:1/",
        ] {
            assert!(is_safe_address(good), "{good}");
        }
        for bad in [
            "http://a/",
            "http://10.0.0.1/",
            "https://",
            "a",
            "",
            "https:///x",
            "http://127.0.0.1.example/",
            "https://a/\n",
        ] {
            assert!(!is_safe_address(bad), "{bad}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify.yaml");
        std::fs::write(&path, "webhooks: [{name: a, url: https://a/}]").expect("a file");
        let allow = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            allow(mode);
            let problem = NotifyFile::read(&path).map(|_| ()).expect_err("a public file");
            assert!(problem.in_one_line().contains("chmod 600"), "{mode:o}: {problem}");
        }
        for mode in [0o600, 0o400] {
            allow(mode);
            NotifyFile::read(&path).expect("a private file");
        }
    }
}
