//! Syslog: records as messages of RFC 5424, sent as datagrams or, octet-counted (RFC 6587), over TCP.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UdpSocket, UnixDatagram};

use super::AuditRecord;

/// Facility `authpriv`, severity `info`.
const PRIORITY: u8 = 10 * 8 + 6;
/// The longest message: what every receiver of datagrams takes.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a syslog listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SyslogAddress {
    /// `unix:/dev/log`
    Unix(PathBuf),
    /// `udp://host:514`
    Udp(String),
    /// `tcp://host:601`
    Tcp(String),
}

impl FromStr for SyslogAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let has_port = |host: &str| {
            host.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        match text.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(PathBuf::from(path))),
            Some(("udp", rest)) if rest.strip_prefix("//").is_some_and(has_port) => Ok(Self::Udp(rest[2..].to_owned())),
            Some(("tcp", rest)) if rest.strip_prefix("//").is_some_and(has_port) => Ok(Self::Tcp(rest[2..].to_owned())),
            Some(_) | None => Err(format!("not unix:/dev/log, udp://host:514 or tcp://host:601: {text}")),
        }
    }
}

impl TryFrom<String> for SyslogAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<SyslogAddress> for String {
    fn from(address: SyslogAddress) -> Self {
        address.to_string()
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Udp(host) => write!(f, "udp://{host}"),
            Self::Tcp(host) => write!(f, "tcp://{host}"),
        }
    }
}

impl SyslogAddress {
    /// Sends these, or fails: what was sent before the failure is sent again.
    pub(super) async fn send(&self, records: &[AuditRecord]) -> io::Result<()> {
        tokio::time::timeout(SEND_TIMEOUT, self.send_all(records)).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    async fn send_all(&self, records: &[AuditRecord]) -> io::Result<()> {
        match self {
            Self::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                for record in records {
                    socket.send(syslog_message(record).as_bytes()).await?;
                }
            }
            Self::Udp(host) => {
                let addresses: Vec<_> = tokio::net::lookup_host(host).await?.collect();
                let target = addresses.first().ok_or(io::ErrorKind::NotFound)?;
                let socket = UdpSocket::bind(if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).await?;
                socket.connect(target).await?;
                for record in records {
                    socket.send(syslog_message(record).as_bytes()).await?;
                }
            }
            Self::Tcp(host) => {
                let mut stream = TcpStream::connect(host).await?;
                for record in records {
                    let message = syslog_message(record);
                    stream.write_all(format!("{} {message}", message.len()).as_bytes()).await?;
                }
                stream.shutdown().await?;
            }
        }
        Ok(())
    }
}

fn syslog_message(record: &AuditRecord) -> String {
    let head = syslog_header(record);
    let rest = MAX_MESSAGE_BYTES.saturating_sub(head.len() + 1);
    format!("{head} {}", audit_record_text(record, rest))
}

/// One record as JSON. What makes it too long is left out, and it says so.
pub(super) fn audit_record_text(record: &AuditRecord, max_bytes: usize) -> String {
    let mut short = serde_json::to_value(record).unwrap_or_default();
    let whole = short.to_string();
    if whole.len() <= max_bytes {
        return whole;
    }
    if let Value::Object(fields) = &mut short {
        ["arguments", "shown", "title"].iter().for_each(|name| drop(fields.remove(*name)));
        fields.insert("truncated".to_owned(), Value::Bool(true));
    }
    // Names come from agents too, and may be as long as they like: a receiver that refuses one message would get none after it.
    for longest in [1024, 128, 16] {
        if short.to_string().len() <= max_bytes {
            break;
        }
        cut_audit_texts(&mut short, longest);
    }
    short.to_string()
}

/// Cuts every text in it.
fn cut_audit_texts(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) => text.truncate(text.floor_char_boundary(longest)),
        Value::Array(values) => values.iter_mut().for_each(|value| cut_audit_texts(value, longest)),
        Value::Object(fields) => fields.values_mut().for_each(|value| cut_audit_texts(value, longest)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn syslog_header(record: &AuditRecord) -> String {
    let at = jiff::Timestamp::from_microsecond(record.at.as_micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let system = rustix::system::uname();
    let host: String = system.nodename().to_string_lossy().chars().filter(char::is_ascii_graphic).take(255).collect();
    let host = if host.is_empty() { "-" } else { &host };
    format!("<{PRIORITY}>1 {at:.6} {host} gander {} audit -", std::process::id())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gander_domain::{Principal, Seq, Timestamp};
    use serde_json::json;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::super::AuditDecision;
    use super::*;

    fn record(title: &str) -> AuditRecord {
        let session = serde_json::from_value(json!("0199c2f4-0000-7000-8000-000000000001")).unwrap();
        AuditRecord {
            session,
            owner: Principal::owner(),
            seq: Seq::ZERO,
            at: Timestamp::from_micros(1_700_000_000_123_456),
            run: None,
            asked_by: None,
            protocol: None,
            tool: "shell".into(),
            hash: "00".into(),
            title: Some(title.into()),
            arguments: None,
            shown: None,
            decision: AuditDecision::Unasked,
            answered_by: None,
            answered_from: None,
            answered_at: None,
            started_at: None,
            ended_at: None,
            end: None,
            exit_code: None,
            deleted_by: None,
        }
    }

    /// The header's fields and the JSON behind it.
    fn parsed(message: &str) -> (Vec<&str>, Value) {
        let fields: Vec<&str> = message.splitn(8, ' ').collect();
        (fields[..7].to_vec(), serde_json::from_str(fields[7]).unwrap())
    }

    #[test]
    fn a_message_has_the_header_of_rfc_5424_and_the_record_as_json() {
        let message = syslog_message(&record("ls"));
        let (header, body) = parsed(&message);
        assert_eq!((header[0], header[1], header[3]), ("<86>1", "2023-11-14T22:13:20.123456Z", "gander"));
        assert_eq!((header[5], header[6], &body["title"]), ("audit", "-", &json!("ls")));
    }

    #[test]
    fn a_message_that_is_too_long_says_so() {
        let message = syslog_message(&record(&"x".repeat(10_000)));
        let (_, body) = parsed(&message);
        assert!(message.len() <= MAX_MESSAGE_BYTES && body["title"].is_null());
        assert_eq!((&body["truncated"], &body["tool"]), (&json!(true), &json!("shell")));
    }

    #[test]
    fn a_message_with_a_long_name_is_cut_to_what_a_receiver_takes() {
        let tool = "ü".repeat(100_000);
        let message = syslog_message(&AuditRecord { tool: tool.clone(), ..record("ls") });
        let (_, body) = parsed(&message);
        assert!(message.len() <= MAX_MESSAGE_BYTES, "{}", message.len());
        assert!(body["tool"].as_str().is_some_and(|cut| cut.len() > 500 && tool.starts_with(cut)));
    }

    #[test]
    fn an_address_names_its_transport() {
        for good in ["unix:/dev/log", "udp://127.0.0.1:514", "tcp://[::1]:601", "udp://logs.example.com:514"] {
            assert_eq!(good.parse::<SyslogAddress>().unwrap().to_string(), good);
        }
        for bad in
            ["/dev/log", "unix:log", "udp://host", "udp:host:514", "http://host:1", "tcp://:601", "tcp://host:99999"]
        {
            assert!(bad.parse::<SyslogAddress>().is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn messages_arrive_over_tcp_counted_and_over_a_unix_socket_one_by_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SyslogAddress = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
        let records = [record("one"), record("two")];
        let (sent, accepted) = tokio::join!(address.send(&records), listener.accept());
        sent.unwrap();
        let mut text = String::new();
        accepted.unwrap().0.read_to_string(&mut text).await.unwrap();
        for expected in &records {
            let (count, rest) = text.split_once(' ').unwrap();
            let (message, rest) = rest.split_at(count.parse().unwrap());
            assert_eq!(parsed(message).1["title"], json!(expected.title));
            text = rest.to_owned();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let socket = UnixDatagram::bind(&path).unwrap();
        SyslogAddress::Unix(path).send(&records).await.unwrap();
        let mut buffer = [0; 4096];
        for expected in &records {
            let length = socket.recv(&mut buffer).await.unwrap();
            assert_eq!(parsed(std::str::from_utf8(&buffer[..length]).unwrap()).1["title"], json!(expected.title));
        }
    }
}
