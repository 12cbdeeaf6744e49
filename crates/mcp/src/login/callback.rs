//! Where a browser comes back to after a login: a listener on this machine that lives as long as the login.

use std::io;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long a browser may take to say what it wants.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A longer request is not read.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// A listener for one login.
pub(super) struct Callback {
    listener: TcpListener,
    address: String,
}

/// A browser that came back.
pub(super) struct Visitor {
    /// Where it was sent.
    pub url: Url,
    stream: TcpStream,
}

impl Callback {
    pub(super) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://127.0.0.1:{}/callback", listener.local_addr()?.port());
        Ok(Self { listener, address })
    }

    /// Where browsers are to be sent.
    pub(super) fn redirect_address(&self) -> &str {
        &self.address
    }

    /// The next browser that brings this state. Others learn that they are wrong here.
    pub(super) async fn wait_for_redirect(&self, state: &str) -> io::Result<Visitor> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            let asked = tokio::time::timeout(REQUEST_TIMEOUT, read_callback_request(&mut stream)).await;
            let asked = asked.ok().and_then(Result::ok).and_then(|head| self.parse_redirect(&head));
            match asked.filter(|url| url.query_pairs().any(|(name, value)| name == "state" && value == state)) {
                Some(url) => return Ok(Visitor { url, stream }),
                None => {
                    write_callback_response(&mut stream, "404 Not Found", "There is no login for this address.").await
                }
            }
        }
    }

    fn parse_redirect(&self, head: &str) -> Option<Url> {
        let path = head.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
        let url = Url::parse(&self.address).ok()?.join(path).ok()?;
        (path.starts_with("/callback?") && url.as_str().starts_with(&self.address)).then_some(url)
    }
}

impl Visitor {
    /// Tells the person how it went.
    pub(super) async fn answer_browser(mut self, end: &Result<(), String>) {
        match end {
            Ok(()) => {
                write_callback_response(&mut self.stream, "200 OK", "You are logged in. This page can be closed.").await
            }
            Err(_) => {
                write_callback_response(&mut self.stream, "400 Bad Request", "The login failed. gander says why.").await
            }
        }
    }
}

async fn read_callback_request(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_REQUEST_BYTES {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    String::from_utf8(head).map_err(io::Error::other)
}

async fn write_callback_response(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>gander</title><p>{text}</p>");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    if let Err(error) = stream.write_all(answer.as_bytes()).await {
        tracing::debug!(%error, "a browser did not wait for its answer");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn browse(url: &str) -> String {
        let url = Url::parse(url).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
        let request = format!("GET {}?{} HTTP/1.1\r\n\r\n", url.path(), url.query().unwrap_or_default());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_who_brings_the_state_is_heard() {
        let callback = Callback::open().await.unwrap();
        let address = callback.redirect_address().to_owned();
        let browser = async {
            assert!(browse(&format!("{address}?code=a&state=other")).await.starts_with("HTTP/1.1 404"));
            assert!(browse(&address.replace("/callback", "/?state=right")).await.starts_with("HTTP/1.1 404"));
            browse(&format!("{address}?code=b&state=right")).await
        };
        let gander = async {
            let visitor = callback.wait_for_redirect("right").await.unwrap();
            assert!(visitor.url.as_str().contains("code=b"));
            visitor.answer_browser(&Ok(())).await;
        };
        let (page, ()) = tokio::join!(browser, gander);
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("You are logged in"), "{page}");
    }
}
