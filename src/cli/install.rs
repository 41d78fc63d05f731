//! The line that installs a worker on a new machine: where the wheel of this very version lies, with its digest. Owns the
//! rule that no line of ours names a package without saying where it is from; fetches nothing.

use crate::problem::Problem;

/// The package's name; `togl` belongs to somebody else in the index of Python packages.
const PACKAGE: &str = "togl-sweeps";

/// Where new machines get their worker from.
#[derive(Debug, clap::Args)]
pub(super) struct InstallFrom {
    /// Where this version's wheel lies, as URL#sha256=DIGEST; the line to paste then installs it before it joins
    #[arg(long = "install-from", value_name = "URL", env = "TOGL_INSTALL_FROM")]
    url: Option<String>,
}

impl InstallFrom {
    /// How a worker comes to a machine that has none: the line that installs it, or what brings it there where no place is
    /// known.
    pub(super) fn advice(&self) -> Result<String, Problem> {
        Ok(match self.url.as_deref().map(line).transpose()? {
            Some(line) => format!("on a new machine, install first:\n\n  {line}\n"),
            None => "to machines that you reach over ssh, `togl hosts up FILE` brings workers".to_owned(),
        })
    }
}

fn line(url: &str) -> Result<String, Problem> {
    let wheel = format!("togl_sweeps-{}-", env!("CARGO_PKG_VERSION"));
    let refuse = |why: String| {
        Problem::usage(format!("--install-from: {why}")).hint(format!(
            "such as https://HOST/{wheel}...whl#sha256=DIGEST, as `make dist` wrote it to SHA256SUMS"
        ))
    };
    // It is pasted into a shell: nothing that one could obey.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~:/?#[]@&=+,;%".contains(letter);
    if !url.chars().all(is_plain) {
        return Err(refuse("the URL has letters that do not belong into one".to_owned()));
    }
    if !["https://", "http://", "file:///"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(refuse(format!("`{url}` is no URL that begins with https://, http:// or file:///")));
    }
    let Some((place, digest)) = url.split_once("#sha256=") else {
        return Err(refuse(
            "the URL has no #sha256= at its end, so nobody could tell what is installed".to_owned(),
        ));
    };
    if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refuse("a SHA-256 digest is 64 hexadecimal digits".to_owned()));
    }
    let file = place.rsplit('/').next().unwrap_or_default();
    if !file.starts_with(&wheel) || !file.ends_with(".whl") {
        return Err(refuse(format!("`{file}` is not the wheel of this version")));
    }
    Ok(format!("pip install '{PACKAGE}[worker] @ {url}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn wheel() -> String {
        format!("togl_sweeps-{}-py3-none-manylinux_2_34_x86_64.whl", env!("CARGO_PKG_VERSION"))
    }

    #[test]
    fn the_line_names_place_and_digest() {
        let url = format!("https://lab.example/{}#sha256={DIGEST}", wheel());
        assert_eq!(line(&url).unwrap(), format!("pip install 'togl-sweeps[worker] @ {url}'"));
    }

    #[test]
    fn without_a_place_the_way_over_ssh_is_named_and_no_package() {
        let advice = InstallFrom { url: None }.advice().unwrap();
        assert!(advice.contains("`togl hosts up FILE`") && !advice.contains("pip"), "{advice}");
    }

    #[test]
    fn a_line_that_could_install_something_else_is_not_printed() {
        let wheel = wheel();
        for (url, says) in [
            (format!("https://lab.example/{wheel}"), "no #sha256="),
            (format!("https://lab.example/{wheel}#sha256=12"), "64 hexadecimal digits"),
            (
                format!("https://lab.example/togl_sweeps-0.0.9-py3-none-any.whl#sha256={DIGEST}"),
                "not the wheel of this version",
            ),
            (
                format!("https://lab.example/';rm -rf ~;'/{wheel}#sha256={DIGEST}"),
                "letters that do not belong",
            ),
            (format!("ftp://lab.example/{wheel}#sha256={DIGEST}"), "no URL that begins"),
            ("togl-sweeps".to_owned(), "no URL that begins"),
        ] {
            let said = format!("{:?}", line(&url).unwrap_err());
            assert!(said.contains(says), "{said}");
        }
    }
}
