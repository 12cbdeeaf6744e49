//! `/run_live`: what its address names, and the frames that a client sends.

use gander_domain::State;
use serde_json::{Map, Value, json};

use super::key_case::either_key_case_field;
use super::refusal::AdkRefusal;
use super::requests::{AdkRunRequest, SessionAddress, read_adk_object, read_optional_adk_object};

/// What may be named as a way to answer. Only text is answered.
const RESPONSE_MODALITIES: [&str; 3] = ["TEXT", "AUDIO", "VIDEO"];

/// A turn that is told in more frames than this is none.
const MAX_TURN_FRAMES: usize = 10_000;

/// The client's side of a live connection.
#[derive(Clone, Debug)]
pub struct LiveInput {
    address: SessionAddress,
    /// Parts of a turn whose last frame did not come yet.
    parts: Vec<Value>,
    /// Bytes of that turn's frames so far, and how many there may be.
    bytes: usize,
    most_bytes: usize,
}

/// What one frame means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveFrame {
    /// Values to be set.
    pub state_delta: State,
    /// A turn.
    pub run: Option<Box<AdkRunRequest>>,
    /// Nothing more will be said.
    pub close: bool,
}

impl LiveInput {
    /// The connection that these parameters of an address name: Python's names, and those of Go. The frames of one turn
    /// have together at most so many bytes as a prompt may have.
    pub fn from_query(query: &[(String, String)], most_bytes: usize) -> Result<Self, AdkRefusal> {
        let given = |snake: &str, camel: &str| {
            let found = query.iter().find(|(name, _)| name == snake || name == camel);
            let missing = || AdkRefusal::new(403, format!("{snake} is missing in the address of the WebSocket"));
            found.map(|(_, value)| value.clone()).ok_or_else(missing)
        };
        let app = given("app_name", "appName")?;
        let (user, session) = (given("user_id", "userId")?, given("session_id", "sessionId")?);
        let unknown =
            |(name, value): &&(String, String)| name == "modalities" && !RESPONSE_MODALITIES.contains(&value.as_str());
        if let Some((_, value)) = query.iter().find(unknown) {
            return Err(AdkRefusal::new(403, format!("modalities are TEXT, AUDIO or VIDEO, not {value:?}")));
        }
        Ok(Self { address: SessionAddress { app, user, session }, parts: Vec::new(), bytes: 0, most_bytes })
    }

    /// Where its turns belong.
    pub fn address(&self) -> &SessionAddress {
        &self.address
    }

    /// What a frame means. Signals about voices mean nothing where there are only words.
    pub fn handle_frame(&mut self, frame: &[u8]) -> Result<LiveFrame, AdkRefusal> {
        let object = read_adk_object(frame)?;
        if either_key_case_field(&object, "blob").is_some() {
            return Err(AdkRefusal::new(501, "only text is understood here, no audio and no video"));
        }
        let run = match either_key_case_field(&object, "content") {
            Some(content) => {
                self.count_frame(frame)?;
                self.handle_content(content, either_key_case_field(&object, "partial") == Some(&Value::Bool(true)))?
            }
            None => None,
        };
        let close = either_key_case_field(&object, "close") == Some(&Value::Bool(true));
        Ok(LiveFrame { state_delta: read_optional_adk_object(&object, "stateDelta")?, run, close })
    }

    /// A turn is kept until its last frame is there, so all its frames count.
    fn count_frame(&mut self, frame: &[u8]) -> Result<(), AdkRefusal> {
        self.bytes = self.bytes.saturating_add(frame.len());
        let words = || format!("a turn has at most {} bytes in all its frames", self.most_bytes);
        if self.bytes > self.most_bytes { Err(AdkRefusal::new(413, words())) } else { Ok(()) }
    }

    /// A turn, once its last frame is there.
    fn handle_content(&mut self, content: &Value, partial: bool) -> Result<Option<Box<AdkRunRequest>>, AdkRefusal> {
        let mut content = content.clone();
        if let Some(parts) = content.get_mut("parts").and_then(Value::as_array_mut) {
            self.parts.append(parts);
        }
        if self.parts.len() > MAX_TURN_FRAMES {
            return Err(AdkRefusal::new(413, format!("a turn has at most {MAX_TURN_FRAMES} parts")));
        }
        if partial {
            return Ok(None);
        }
        self.bytes = 0;
        if let Some(fields) = content.as_object_mut() {
            fields.insert("parts".to_owned(), std::mem::take(&mut self.parts).into());
        }
        let body = Map::from_iter([("newMessage".to_owned(), content), ("streaming".to_owned(), json!(true))]);
        let run = AdkRunRequest::from_object(&body, Some(self.address.clone()))?;
        Ok(Some(Box::new(AdkRunRequest { live: true, ..run })))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use gander_domain::Part;

    use super::*;
    use crate::adk::RunInput;

    const MOST: usize = 200;

    fn live() -> LiveInput {
        LiveInput::from_query(&query("app_name=a&user_id=u&session_id=s"), MOST).unwrap()
    }

    fn query(text: &str) -> Vec<(String, String)> {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn both_spellings_name_a_session_and_nothing_less_does() {
        for names in ["app_name=a&user_id=u&session_id=s&modalities=TEXT", "appName=a&userId=u&sessionId=s"] {
            let live = LiveInput::from_query(&query(names), MOST).unwrap();
            assert_eq!(live.address().session, "s");
        }
        for names in
            ["user_id=u&session_id=s", "app_name=a&user_id=u", "app_name=a&user_id=u&session_id=s&modalities=X"]
        {
            assert_eq!(LiveInput::from_query(&query(names), MOST).unwrap_err().status, 403, "{names}");
        }
    }

    #[test]
    fn a_turn_of_many_frames_is_one_run() {
        let mut live = live();
        let heard = live.handle_frame(br#"{"partial":true,"content":{"parts":[{"text":"a"}]}}"#).unwrap();
        assert_eq!(heard, LiveFrame::default());
        let heard = live.handle_frame(br#"{"content":{"role":"user","parts":[{"text":"b"}]}}"#).unwrap();
        let run = heard.run.unwrap();
        assert_eq!(run.said, RunInput::Parts(vec![Part::text("a"), Part::text("b")]));
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
            assert_eq!(live.handle_frame(&frame(true, 40)).unwrap(), LiveFrame::default());
            assert!(live.handle_frame(&frame(false, 40)).unwrap().run.is_some(), "every turn begins with nothing");
        }
        live.handle_frame(&frame(true, 40)).unwrap();
        let refused = live.handle_frame(&frame(true, 100)).unwrap_err();
        assert_eq!((refused.status, refused.error.as_str()), (413, "a turn has at most 200 bytes in all its frames"));
    }

    #[test]
    fn voices_are_refused_and_their_signals_mean_nothing() {
        let mut live = live();
        assert_eq!(live.handle_frame(br#"{"blob":{"mime_type":"audio/pcm","data":"AAEC"}}"#).unwrap_err().status, 501);
        assert_eq!(live.handle_frame(br#"{"activity_start":{}}"#).unwrap(), LiveFrame::default());
        assert_eq!(live.handle_frame(b"{nope").unwrap_err().status, 422);
        let heard = live.handle_frame(br#"{"close":true,"state_delta":{"k":1}}"#).unwrap();
        assert!(heard.close && heard.state_delta.contains_key("k"));
    }
}
