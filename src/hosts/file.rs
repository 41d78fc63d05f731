//! The file of hosts: reads and checks what the user wrote. Whatever is in a [`HostEntry`] may stand in a script and in the command
//! line of `ssh`. Opens no connection and knows nothing of the hosts themselves.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_yaml::{Error, Location};
use togl_proto::client;
use togl_sweeps::{bounded, nearest};

use crate::problem::Problem;

/// Where everything of ours lies on a host, unless the file says otherwise.
const FOLDER: &str = "~/.local/share/togl";

/// What slots train on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostDevice {
    /// GPUs where there is an NVIDIA driver, processors elsewhere.
    #[default]
    Auto,
    /// Processors, also where there is a GPU.
    Cpu,
    /// GPUs, or it is a failure.
    Cuda,
}

/// What the user wants of one host.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// As `ssh` knows it.
    pub host: String,
    /// Folds at once; the worker's own default if none.
    pub slots: Option<u32>,
    /// What to train on.
    #[serde(default)]
    pub device: HostDevice,
    /// Numbers of the GPUs to use; all if none are named.
    #[serde(default)]
    pub devices: Vec<u32>,
    /// A Python environment on the host, or a `torch` folder there.
    pub torch: Option<String>,
    /// Where everything of ours lies on the host.
    #[serde(default = "usual_folder")]
    pub folder: String,
    /// More options of `ssh`, before those of the whole file.
    #[serde(default)]
    pub ssh_options: Vec<String>,
    /// More options of `togl-worker join`.
    #[serde(default)]
    pub worker_options: Vec<String>,
}

/// A whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsFile {
    /// The coordinator as the hosts reach it, `HOST:PORT`.
    pub join: String,
    /// File on this machine that holds the worker token; the state directory's own if none.
    pub token_file: Option<PathBuf>,
    /// More options of `ssh` for all hosts.
    #[serde(default)]
    ssh_options: Vec<String>,
    /// The hosts.
    pub hosts: Vec<HostEntry>,
}

fn usual_folder() -> String {
    FOLDER.to_owned()
}

impl HostsFile {
    /// Reads a file; errors carry its name and line.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let name = path.display();
        let text = std::fs::File::open(path).and_then(|file| bounded::text(file, bounded::WRITTEN_BY_HAND));
        let text = text.map_err(|error| {
            Problem::usage(format!("cannot read the file of hosts {name}: {error}"))
                .hint("name a YAML file with `join: HOST:PORT` and `hosts:`; docs/cli.md shows one")
        })?;
        let mut file = Self::parse(&text).map_err(|error| Problem::usage(format!("{name}:{error}")))?;
        let beside = path.parent().unwrap_or(Path::new(""));
        file.token_file = file.token_file.map(|token| beside.join(token));
        Ok(file)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let options = serde_yaml::options! { with_snippet: false, strict_booleans: true, };
        let file: Self = serde_yaml::from_str_with_options(text, options).map_err(|error| explain(&error))?;
        let mut file = file.checked().map_err(|reason| format!(" {reason}"))?;
        for host in &mut file.hosts {
            host.ssh_options.extend(file.ssh_options.iter().cloned());
        }
        Ok(file)
    }

    fn checked(self) -> Result<Self, String> {
        client::check_address(&self.join).map_err(|error| format!("join: {error}"))?;
        if !is_plain(&self.join.replace(['[', ']'], "")) {
            return Err(format!("join: `{}` is no address; write HOST:PORT", self.join));
        }
        if self.hosts.is_empty() {
            return Err("hosts: at least one is needed".to_owned());
        }
        for (number, host) in self.hosts.iter().enumerate() {
            host.check()?;
            let same = |other: &HostEntry| other.host == host.host && other.folder == host.folder;
            if self.hosts[..number].iter().any(same) {
                return Err(format!(
                    "{}: given twice; for a second worker there give it another `folder`",
                    host.host
                ));
            }
        }
        Ok(self)
    }
}

impl HostEntry {
    fn check(&self) -> Result<(), String> {
        let Self { host, folder, .. } = self;
        let is_name = !host.is_empty() && is_plain(&host.replace(['[', ']', '%'], ""));
        if host.starts_with('-') || !is_name {
            return Err(format!(
                "host: `{host}` is no name for ssh; it has letters, digits and any of ._-@:/"
            ));
        }
        let refuse = |reason: &str| Err(format!("{host}: {reason}"));
        if self.slots.is_some_and(|slots| !(1..=1024).contains(&slots)) {
            return refuse("slots: use 1 to 1024");
        }
        if self.device == HostDevice::Cpu && !self.devices.is_empty() {
            return refuse("devices: these are numbers of GPUs, and `device` is cpu");
        }
        let path = folder.strip_prefix('~').unwrap_or(folder);
        let goes_up = path.split('/').any(|part| part == "..");
        if !path.starts_with('/') || path.len() < 2 || !is_plain(path) || goes_up {
            return refuse(
                "folder: begins with / or ~/ and has letters, digits and any of ._-+@:,=/ (no spaces, no `..`)",
            );
        }
        let lines = self.worker_options.iter().chain(&self.torch).chain(&self.ssh_options);
        if lines.into_iter().any(|text| text.contains(char::is_control)) {
            return refuse("options and paths are text of one line");
        }
        Ok(())
    }
}

/// Whether text means itself to every shell, to systemd and to `ssh`.
pub fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+@:,=/".contains(c))
}

/// The parser's error with its place, and the nearest name where one is misspelt.
fn explain(error: &Error) -> String {
    let error = error.without_snippet();
    let at = error.location().filter(|at| *at != Location::UNKNOWN);
    let at = at.map_or_else(String::new, |at| format!("{}:{}:", at.line(), at.column()));
    let reason = match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("no key `{field}`; {}", nearest::hint(field, expected.iter().copied()))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!("`{variant}` is not known; {}", nearest::hint(variant, expected.iter().copied()))
        }
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        Error::DuplicateMappingKey { key, .. } => {
            format!("the key `{}` is given twice; keep one of them", key.as_deref().unwrap_or("?"))
        }
        other => {
            let text = other.to_string();
            text.rsplit_once(" at line ").map_or(text.clone(), |(before, _)| before.to_owned())
        }
    };
    format!("{at} {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        HostsFile::parse(text).unwrap_err()
    }

    #[test]
    fn a_file_says_as_much_as_is_needed() {
        let text = "join: lab:7447\nssh_options: [-F, config]\nhosts:\n  - host: gpu1\n  - {host: me@gpu2, slots: 4, \
                    device: cuda, devices: [0, 2], torch: ~/ml, folder: /scratch/togl, ssh_options: [-v]}\n";
        let file = HostsFile::parse(text).unwrap();
        assert_eq!((file.join.as_str(), file.hosts.len()), ("lab:7447", 2));
        assert_eq!((file.hosts[0].folder.as_str(), file.hosts[0].device), (FOLDER, HostDevice::Auto));
        assert_eq!(file.hosts[1].ssh_options, ["-v", "-F", "config"]);
        assert_eq!((file.hosts[1].slots, file.hosts[1].device), (Some(4), HostDevice::Cuda));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_name() {
        let said = refused("join: lab:7447\nhosts:\n  - host: a\n    slot: 3\n");
        assert!(said.starts_with("4:") && said.contains("no key `slot`; did you mean `slots`?"), "{said}");
        let said = refused("join: lab:7447\nhosts:\n  - {host: a, device: cude}\n");
        assert!(said.starts_with("3:") && said.contains("did you mean `cuda`?"), "{said}");
        assert!(refused("hosts: [{host: a}]").contains("`join` is missing"));
        assert!(refused("join: a:1\njoin: b:1\nhosts: [{host: a}]").contains("given twice"));
        assert!(refused("join: a:1\nhosts: []").contains("at least one"));
        assert!(refused("join: a\nhosts: [{host: a}]").contains("join"));
    }

    #[test]
    fn a_name_that_ssh_or_a_shell_would_obey_is_refused() {
        let hostile =
            ["-oProxyCommand=id", "a b", "a;id", "$(id)", "a\\nb", "`id`", "a'b", "", "a|b", "a&b", "a>b"];
        for name in hostile {
            let said = refused(&format!("join: a:1\nhosts: [{{host: \"{name}\"}}]"));
            assert!(said.contains("no name for ssh"), "{name}: {said}");
        }
        for name in ["gpu1", "me@gpu1.lab", "ssh://me@gpu1:2222", "me@[fe80::1%eth0]"] {
            HostsFile::parse(&format!("join: a:1\nhosts: [{{host: \"{name}\"}}]")).unwrap();
        }
    }

    #[test]
    fn a_folder_is_a_plain_path_and_hosts_are_given_once() {
        for folder in ["relative", "/", "~", "/a b", "/a/../b", "/$HOME", "/a'b", "~root/x"] {
            let said = refused(&format!("join: a:1\nhosts: [{{host: a, folder: \"{folder}\"}}]"));
            assert!(said.contains("a: folder:"), "{folder}: {said}");
        }
        assert!(refused("join: a:1\nhosts: [{host: a}, {host: a}]").contains("given twice"));
        HostsFile::parse("join: a:1\nhosts: [{host: a}, {host: a, folder: /b}]").unwrap();
        assert!(refused("join: a:1\nhosts: [{host: a, device: cpu, devices: [0]}]").contains("devices:"));
        assert!(refused("join: a:1\nhosts: [{host: a, slots: 0}]").contains("slots:"));
    }
}
