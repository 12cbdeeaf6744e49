//! `/run_live`: what its address names, and the frames that a client sends.

use gander_domain::State;
use serde_json::{Map, Value, json};

use super::error::Refusal;
use super::input::{Address, RunRequest, map, object};
use super::key_case::field;

/// What may be named as a way to answer. Only text is answered.
const MODALITIES: [&str; 3] = ["TEXT", "AUDIO", "VIDEO"];

/// A turn that is told in more frames than this is none.
const MOST_PARTS: usize = 10_000;

/// The client's side of a live connection.
#[derive(Clone, Debug)]
pub struct Live {
    address: Address,
    /// Parts of a turn whose last frame did not come yet.
    parts: Vec<Value>,
    /// Bytes of that turn's frames so far, and how many there may be.
    bytes: usize,
    most_bytes: usize,
}

/// What one frame means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// Values to be set.
    pub state_delta: State,
    /// A turn.
    pub run: Option<Box<RunRequest>>,
    /// Nothing more will be said.
    pub close: bool,
}

impl Live {
    /// The connection that these parameters of an address name: Python's names, and those of Go. The frames of one turn
    /// have together at most so many bytes as a prompt may have.
    pub fn read(query: &[(String, String)], most_bytes: usize) -> Result<Self, Refusal> {
        let given = |snake: &str, camel: &str| {
            let found = query.iter().find(|(name, _)| name == snake || name == camel);
            let missing = || Refusal::new(403, format!("{snake} is missing in the address of the WebSocket"));
            found.map(|(_, value)| value.clone()).ok_or_else(missing)
        };
        let app = given("app_name", "appName")?;
        let (user, session) = (given("user_id", "userId")?, given("session_id", "sessionId")?);
        let unknown = |(name, value): &&(String, String)| name == "modalities" && !MODALITIES.contains(&value.as_str());
        if let Some((_, value)) = query.iter().find(unknown) {
            return Err(Refusal::new(403, format!("modalities are TEXT, AUDIO or VIDEO, not {value:?}")));
        }
        Ok(Self { address: Address { app, user, session }, parts: Vec::new(), bytes: 0, most_bytes })
    }

    /// Where its turns belong.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What a frame means. Signals about voices mean nothing where there are only words.
    pub fn hear(&mut self, frame: &[u8]) -> Result<Heard, Refusal> {
        let object = object(frame)?;
        if field(&object, "blob").is_some() {
            return Err(Refusal::new(501, "only text is understood here, no audio and no video"));
        }
        let run = match field(&object, "content") {
            Some(content) => {
                self.count(frame)?;
                self.content(content, field(&object, "partial") == Some(&Value::Bool(true)))?
            }
            None => None,
        };
        let close = field(&object, "close") == Some(&Value::Bool(true));
        Ok(Heard { state_delta: map(&object, "stateDelta")?, run, close })
    }

    /// A turn is kept until its last frame is there, so all its frames count.
    fn count(&mut self, frame: &[u8]) -> Result<(), Refusal> {
        self.bytes = self.bytes.saturating_add(frame.len());
        let words = || format!("a turn has at most {} bytes in all its frames", self.most_bytes);
        if self.bytes > self.most_bytes { Err(Refusal::new(413, words())) } else { Ok(()) }
    }

    /// A turn, once its last frame is there.
    fn content(&mut self, content: &Value, partial: bool) -> Result<Option<Box<RunRequest>>, Refusal> {
        let mut content = content.clone();
        if let Some(parts) = content.get_mut("parts").and_then(Value::as_array_mut) {
            self.parts.append(parts);
        }
        if self.parts.len() > MOST_PARTS {
            return Err(Refusal::new(413, format!("a turn has at most {MOST_PARTS} parts")));
        }
        if partial {
            return Ok(None);
        }
        self.bytes = 0;
        if let Some(fields) = content.as_object_mut() {
            fields.insert("parts".to_owned(), std::mem::take(&mut self.parts).into());
        }
        let body = Map::from_iter([("newMessage".to_owned(), content), ("streaming".to_owned(), json!(true))]);
        let run = RunRequest::of(&body, Some(self.address.clone()))?;
        Ok(Some(Box::new(RunRequest { live: true, ..run })))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use gander_domain::Part;

    use super::*;
    use crate::adk::Said;

    const MOST: usize = 200;

    fn live() -> Live {
        Live::read(&query("app_name=a&user_id=u&session_id=s"), MOST).unwrap()
    }

    fn query(text: &str) -> Vec<(String, String)> {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn both_spellings_name_a_session_and_nothing_less_does() {
        for names in ["app_name=a&user_id=u&session_id=s&modalities=TEXT", "appName=a&userId=u&sessionId=s"] {
            let live = Live::read(&query(names), MOST).unwrap();
            assert_eq!(live.address().session, "s");
        }
        for names in
            ["user_id=u&session_id=s", "app_name=a&user_id=u", "app_name=a&user_id=u&session_id=s&modalities=X"]
        {
            assert_eq!(Live::read(&query(names), MOST).unwrap_err().status, 403, "{names}");
        }
    }

    #[test]
    fn a_turn_of_many_frames_is_one_run() {
        let mut live = live();
        let heard = live.hear(br#"{"partial":true,"content":{"parts":[{"text":"a"}]}}"#).unwrap();
        assert_eq!(heard, Heard::default());
        let heard = live.hear(br#"{"content":{"role":"user","parts":[{"text":"b"}]}}"#).unwrap();
        let run = heard.run.unwrap();
        assert_eq!(run.said, Said::Parts(vec![Part::text("a"), Part::text("b")]));
        assert!(run.live && run.streaming && !heard.close);
    }

    #[test]
    fn a_turn_has_so_many_bytes_in_all_its_frames_and_the_next_one_too() {
        let frame = |partial: bool, length: usize| {
            let content = json!({ "parts": [{ "text": "x".repeat(length) }] });
            json!({ "partial": partial, "content": content }).to_string().into_bytes()
        };
        let mut live = live();
        for _ in 0..3 {
            assert_eq!(live.hear(&frame(true, 40)).unwrap(), Heard::default());
            assert!(live.hear(&frame(false, 40)).unwrap().run.is_some(), "every turn begins with nothing");
        }
        live.hear(&frame(true, 40)).unwrap();
        let refused = live.hear(&frame(true, 100)).unwrap_err();
        assert_eq!((refused.status, refused.error.as_str()), (413, "a turn has at most 200 bytes in all its frames"));
    }

    #[test]
    fn voices_are_refused_and_their_signals_mean_nothing() {
        let mut live = live();
        assert_eq!(live.hear(br#"{"blob":{"mime_type":"audio/pcm","data":"AAEC"}}"#).unwrap_err().status, 501);
        assert_eq!(live.hear(br#"{"activity_start":{}}"#).unwrap(), Heard::default());
        assert_eq!(live.hear(b"{nope").unwrap_err().status, 422);
        let heard = live.hear(br#"{"close":true,"state_delta":{"k":1}}"#).unwrap();
        assert!(heard.close && heard.state_delta.contains_key("k"));
    }
}
