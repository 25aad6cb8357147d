//! Authorization of requests: token, Host header with a loopback name, and same origin.

use std::fmt::Write;
use std::io;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use subtle::ConstantTimeEq;

/// Secret in the URL of the page, which other programs and pages cannot guess.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token with 128 random bits.
    ///
    /// # Errors
    /// The system provides no random bits.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let mut text = String::new();
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// Compares with another text in constant time, because the duration could reveal the token.
    pub fn is(&self, found: &str) -> bool {
        self.0.as_bytes().ct_eq(found.as_bytes()).into()
    }

    /// The token as text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Reason for rejecting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The Host header is not one of the loopback names, as after DNS rebinding.
    Host,
    /// The request was sent by a page of another origin.
    Origin,
    /// The token is missing or wrong.
    Token,
}

impl Rejection {
    /// The reason as text for the response.
    pub fn message(self) -> &'static str {
        match self {
            Rejection::Host => "refused: this page answers only to 127.0.0.1 and localhost\n",
            Rejection::Origin => "refused: the request comes from another page\n",
            Rejection::Token => {
                "refused: the address has no token, or a wrong one; open the address that `anabranch explore` printed\n"
            }
        }
    }
}

/// Accepted values of the Host header for a server at this port.
fn names(port: u16) -> [String; 2] {
    ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"))
}

/// Checks the authorization of a request for `path` at a server on `port`.
///
/// # Errors
/// [`Rejection`].
pub fn check(token: &Token, port: u16, path: &str, headers: &HeaderMap) -> Result<(), Rejection> {
    let names = names(port);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if headers.get_all(HOST).iter().count() != 1 || !names.iter().any(|name| host == Some(name)) {
        return Err(Rejection::Host);
    }
    // If there is an Origin header, it must be that of the page: browsers send it with all requests
    // that can change state, and modern browsers with others too.
    let own = |origin: &str| names.iter().any(|name| origin == format!("http://{name}"));
    let mut origins = headers.get_all(ORIGIN).iter();
    if !origins.all(|origin| origin.to_str().is_ok_and(own)) {
        return Err(Rejection::Origin);
    }
    // A link to the page may be followed from any origin, but all other requests must come from the
    // page itself.
    let said = |name: &str| headers.get(name).map(|value| value.as_bytes());
    let followed = said("sec-fetch-mode") == Some(b"navigate");
    let site = said("sec-fetch-site").unwrap_or(b"none");
    if !followed && site != b"same-origin" && site != b"none" {
        return Err(Rejection::Origin);
    }
    let found = path.strip_prefix('/').unwrap_or(path);
    let found = found.split('/').next().unwrap_or_default();
    match token.is(found) {
        true => Ok(()),
        false => Err(Rejection::Token),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::{Rejection, Token};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a header"));
        }
        headers
    }

    fn check(path: &str, pairs: &[(&'static str, &'static str)]) -> Result<(), Rejection> {
        super::check(&Token("secret".to_owned()), 80, path, &headers(pairs))
    }

    #[test]
    fn only_this_machines_names_this_origin_and_the_token_pass() {
        let host = ("host", "127.0.0.1:80");
        assert_eq!(check("/secret/", &[host]), Ok(()));
        assert_eq!(check("/secret/run", &[("host", "localhost:80")]), Ok(()));
        let own = [host, ("origin", "http://127.0.0.1:80")];
        assert_eq!(check("/secret/run", &own), Ok(()));
        for hosts in [
            &[][..],
            &[("host", "evil.example")],
            &[("host", "127.0.0.1")],
            &[("host", "127.0.0.1:81")],
            &[host, ("host", "evil.example")],
        ] {
            assert_eq!(check("/secret/", hosts), Err(Rejection::Host), "{hosts:?}");
        }
        for origin in ["null", "https://127.0.0.1:80", "http://evil.example"] {
            let with = [host, ("origin", origin)];
            assert_eq!(check("/secret/", &with), Err(Rejection::Origin), "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            let with = [host, ("sec-fetch-site", site)];
            assert_eq!(check("/secret/", &with), Err(Rejection::Origin), "{site}");
        }
        let link = [
            host,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
        ];
        assert_eq!(check("/secret/", &link), Ok(()));
        for path in ["/", "/secre/", "/secrets/", "//secret/", "/run?secret"] {
            assert_eq!(check(path, &[host]), Err(Rejection::Token), "{path}");
        }
    }

    #[test]
    fn two_tokens_differ_and_are_long() {
        let [one, two] = [(); 2].map(|()| Token::random().expect("random bits"));
        assert!(!one.is(two.text()));
        assert_eq!(one.text().len(), 32);
    }
}
