//! The files that browsers load: ours, readable, and part of the program. What is served is what lies in `page/`.

/// Path, kind and content of every file.
const FILES: &[(&str, &str, &[u8])] = &[
    ("/style.css", "text/css; charset=utf-8", include_bytes!("../page/style.css")),
    ("/app.js", JS, include_bytes!("../page/app.js")),
    ("/dom.js", JS, include_bytes!("../page/dom.js")),
    ("/views.js", JS, include_bytes!("../page/views.js")),
    ("/sweep.js", JS, include_bytes!("../page/sweep.js")),
    ("/parallel.js", JS, include_bytes!("../page/parallel.js")),
    ("/favicon.svg", "image/svg+xml", include_bytes!("../page/favicon.svg")),
];

const JS: &str = "text/javascript; charset=utf-8";

/// The page itself, whatever view its address names.
pub(crate) const PAGE: &[u8] = include_bytes!("../page/index.html");

/// Addresses of views begin like this.
const VIEWS: [&str; 5] = ["/sweeps/", "/folds/", "/workers", "/workers/", "/compare"];

/// Kind and content of a file.
pub(crate) fn find(path: &str) -> Option<(&'static str, &'static [u8])> {
    if path == "/" || VIEWS.iter().any(|view| path.starts_with(view)) {
        return Some(("text/html; charset=utf-8", PAGE));
    }
    FILES.iter().find(|(known, ..)| *known == path).map(|(_, kind, content)| (*kind, *content))
}

#[cfg(test)]
mod tests {
    use super::*;

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
