//! The files that browsers load: ours, readable, and part of the program. What is served is what lies in `page/`.

use std::borrow::Cow;

/// Path, kind and content of every file.
const FILES: &[(&str, &str, &[u8])] = &[
    ("/style.css", "text/css; charset=utf-8", include_bytes!("../page/style.css")),
    ("/app.js", JS, include_bytes!("../page/app.js")),
    ("/dom.js", JS, include_bytes!("../page/dom.js")),
    ("/views.js", JS, include_bytes!("../page/views.js")),
    ("/sweep.js", JS, include_bytes!("../page/sweep.js")),
    ("/figure.js", JS, include_bytes!("../page/figure.js")),
    ("/parallel.js", JS, include_bytes!("../page/parallel.js")),
    ("/favicon.svg", "image/svg+xml", include_bytes!("../page/favicon.svg")),
];

const JS: &str = "text/javascript; charset=utf-8";

/// The page itself, whatever view its address names.
pub(crate) const PAGE: &[u8] = include_bytes!("../page/index.html");

/// Addresses of views begin like this.
const VIEWS: [&str; 5] = ["/sweeps/", "/folds/", "/workers", "/workers/", "/compare"];

/// Kind and content of a file.
pub(crate) fn find(path: &str) -> Option<(&'static str, Cow<'static, [u8]>)> {
    if path == "/" || VIEWS.iter().any(|view| path.starts_with(view)) {
        return Some(("text/html; charset=utf-8", Cow::Owned(page(path))));
    }
    FILES.iter().find(|(known, ..)| *known == path).map(|(_, kind, content)| (*kind, Cow::Borrowed(*content)))
}

/// The page for an address: whatever it names, the files of the page are as many steps up as the address is deep, so that the page
/// also works below a path that somebody else puts before it.
fn page(path: &str) -> Vec<u8> {
    let up = match path.matches('/').count().saturating_sub(1) {
        0 => "\"./".to_owned(),
        steps => format!("\"{}", "../".repeat(steps)),
    };
    String::from_utf8_lossy(PAGE).replace("\"./", &up).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_finds_its_files_however_deep_its_address_is() {
        for (path, up) in [
            ("/", "\"./app.js\""),
            ("/workers", "\"./app.js\""),
            ("/workers/w", "\"../app.js\""),
            ("/sweeps/a/table", "\"../../app.js\""),
            ("/folds/0/1/2", "\"../../../app.js\""),
        ] {
            let (_, content) = find(path).unwrap();
            let text = std::str::from_utf8(&content).unwrap();
            assert!(text.contains(up), "{path}: {text}");
            assert!(!text.contains("=\"/"), "{path}: an address from the root is lost below a path");
        }
    }

    #[test]
    fn the_files_of_the_page_are_small_and_take_nothing_as_markup() {
        let all = FILES.iter().map(|(.., content)| *content).chain([PAGE]);
        let size: usize = all.clone().map(<[u8]>::len).sum();
        assert!(size <= 100 * 1024, "{size} bytes");
        for content in all {
            let text = std::str::from_utf8(content).unwrap();
            // What others wrote must never become markup or code, and the policy forbids inline styles and scripts.
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "DOMParser",
                "createContextualFragment",
                "srcdoc",
                " style=\"",
                "onclick=",
                "http://",
                "https://",
            ] {
                let text = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains(word), "{word}");
            }
        }
    }
}
