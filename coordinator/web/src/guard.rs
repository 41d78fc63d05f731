//! What every request is asked before anybody listens to it: does it mean this page (DNS rebinding), does it come from this
//! page (cross-site requests), has it signed in. Pure: looks at headers, says yes or what to answer.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};

/// What page and data may do, said with every answer. There are no inline scripts, so no hash is needed.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A header that other sites cannot send without asking first, which nobody allows them.
pub(crate) const OURS: HeaderName = HeaderName::from_static("x-togl");

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A request that is not listened to.
pub(crate) type Turned = (StatusCode, &'static str);

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut all = headers.get_all(name).iter();
    let only = all.next().filter(|_| all.next().is_none())?; // which of two would a proxy have believed?
    only.to_str().ok().map(str::to_owned)
}

/// The name before the port, if it is one of this machine itself.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a request means this page and, if it changes something, comes from it.
pub(crate) fn check(method: &Method, headers: &HeaderMap, is_data: bool) -> Result<(), Turned> {
    let host = text(headers, &header::HOST).filter(|host| is_loopback(host));
    let Some(host) = host else {
        return Err((StatusCode::MISDIRECTED_REQUEST, "this page is served as 127.0.0.1 or localhost only"));
    };
    let site = text(headers, &SEC_FETCH_SITE);
    if is_data && site.is_some_and(|site| site != "same-origin" && (site != "none" || method != Method::GET))
    {
        return Err((StatusCode::FORBIDDEN, "another site must not ask for this"));
    }
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        Method::POST => check_change(&host, headers),
        _ => Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are understood")),
    }
}

fn check_change(host: &str, headers: &HeaderMap) -> Result<(), Turned> {
    if text(headers, &header::ORIGIN) != Some(format!("http://{host}")) {
        return Err((StatusCode::FORBIDDEN, "a change must come from this page (Origin)"));
    }
    if text(headers, &OURS).as_deref() != Some("1") {
        return Err((StatusCode::FORBIDDEN, "a change needs the header `X-Togl: 1`"));
    }
    let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    match kind.split(';').next().map(str::trim) {
        Some("application/json") => Ok(()),
        _ => Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "a change is sent as application/json")),
    }
}

/// What is said with every answer.
pub(crate) fn harden(headers: &mut HeaderMap, is_data: bool) {
    let said = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // Files change with the program, so they are asked for again, too; that costs a few kilobytes from this machine.
        (header::CACHE_CONTROL, if is_data { "no-store" } else { "no-cache" }),
    ];
    for (name, value) in said {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The value of a cookie.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_names_of_this_machine_are_listened_to() {
        for (host, good) in [
            ("127.0.0.1:7448", true),
            ("localhost", true),
            ("LocalHost:1", true),
            ("[::1]:9000", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("localhost:80@evil.example", false),
            ("localhost:", false),
            ("", false),
            ("0.0.0.0:7448", false),
        ] {
            let checked = check(&Method::GET, &headers(&[("host", host)]), true);
            assert_eq!(checked.is_ok(), good, "{host}");
        }
        assert!(check(&Method::GET, &HeaderMap::new(), true).is_err());
    }

    #[test]
    fn a_change_comes_from_this_page_or_not_at_all() {
        let whole = [
            ("host", "localhost:7448"),
            ("origin", "http://localhost:7448"),
            ("x-togl", "1"),
            ("content-type", "application/json"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(check(&Method::POST, &headers(&whole), true), Ok(()));
        assert_eq!(
            check(&Method::POST, &headers(&whole[..4]), true),
            Ok(()),
            "older browsers do not say where"
        );
        for (name, other) in [
            ("origin", "http://localhost:7449"),
            ("origin", "https://localhost:7448"),
            ("origin", "null"),
            ("x-togl", "0"),
            ("content-type", "text/plain"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "none"),
        ] {
            let changed =
                whole.map(|(known, value)| if known == name { (name, other) } else { (known, value) });
            assert!(check(&Method::POST, &headers(&changed), true).is_err(), "{name}: {other}");
        }
        for missing in 0..4 {
            let rest: Vec<_> = whole.iter().copied().enumerate().filter(|(at, _)| *at != missing).collect();
            let rest: Vec<_> = rest.into_iter().map(|(_, pair)| pair).collect();
            assert!(check(&Method::POST, &headers(&rest), true).is_err(), "without {}", whole[missing].0);
        }
        for method in [Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH] {
            assert!(check(&method, &headers(&whole), true).is_err());
        }
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let sent = headers(&[("cookie", "togl-1=a; togl-7448=b"), ("cookie", "x=y")]);
        assert_eq!(cookie(&sent, "togl-7448").as_deref(), Some("b"));
        assert_eq!(cookie(&sent, "togl-74"), None);
    }
}
