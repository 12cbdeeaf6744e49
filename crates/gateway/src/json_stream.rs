//! An object with long lists, written while it is read.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::Stream;
use gander_store::StoreError;
use serde_json::{Map, Value};

use crate::log_list::{ListProjection, LogList};

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStyle {
    /// As JSON.
    Plain,
    /// As the text of a file, itself a JSON string.
    File,
}

/// A piece of an object to be.
enum JsonPiece<R> {
    Text(String),
    /// The items of a list; whether one was written.
    List(LogList<R>, bool),
    /// How many items the last list had.
    Count,
}

/// An object with long lists.
pub struct JsonStream<R> {
    style: JsonStyle,
    pieces: VecDeque<JsonPiece<R>>,
    count: usize,
}

impl<R: ListProjection> JsonStream<R> {
    /// These fields, then these lists by name, then the length of the last one under another name.
    pub fn new(
        style: JsonStyle,
        object: &Map<String, Value>,
        lists: Vec<(&str, LogList<R>)>,
        count: Option<&str>,
    ) -> Self {
        let listed = |name: &String| count == Some(name.as_str()) || lists.iter().any(|(list, _)| list == name);
        let fields = object.iter().filter(|(name, _)| !listed(name));
        let object: Map<String, Value> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        let (comma, indent, last) = match style {
            JsonStyle::Plain => (",", "", ""),
            JsonStyle::File => (",\n", "  ", "\n"),
        };
        let fields = match style {
            JsonStyle::Plain => serde_json::to_string(&object),
            JsonStyle::File => serde_json::to_string_pretty(&object),
        };
        let fields = fields.unwrap_or_default();
        let fields = fields.strip_suffix('}').unwrap_or_default().trim_end();
        let mut pieces = VecDeque::from([JsonPiece::Text(fields.to_owned())]);
        let mut before = if object.is_empty() { "" } else { comma };
        for (name, items) in lists {
            pieces.push_back(JsonPiece::Text(format!("{before}{indent}\"{name}\":[")));
            pieces.push_back(JsonPiece::List(items, false));
            pieces.push_back(JsonPiece::Text("]".to_owned()));
            before = comma;
        }
        if let Some(name) = count {
            pieces.push_back(JsonPiece::Text(format!("{before}{indent}\"{name}\":")));
            pieces.push_back(JsonPiece::Count);
        }
        pieces.push_back(JsonPiece::Text(format!("{last}}}")));
        Self { style, pieces, count: 0 }
    }

    /// The pieces of it.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
        let begin = self.style == JsonStyle::File;
        futures::stream::try_unfold((self, begin, false), |(mut written, begin, ended)| async move {
            if begin {
                return Ok(Some((Bytes::from_static(b"\""), (written, false, false))));
            }
            match written.next_piece().await? {
                Some(text) => Ok(Some((written.quote(text), (written, false, ended)))),
                None if written.style == JsonStyle::File && !ended => {
                    Ok(Some((Bytes::from_static(b"\""), (written, false, true))))
                }
                None => Ok(None),
            }
        })
    }

    fn quote(&self, text: String) -> Bytes {
        match self.style {
            JsonStyle::Plain => text.into(),
            JsonStyle::File => {
                let quoted = Bytes::from(Value::String(text).to_string());
                quoted.slice(1..quoted.len() - 1)
            }
        }
    }

    async fn next_piece(&mut self) -> Result<Option<String>, StoreError> {
        while let Some(piece) = self.pieces.pop_front() {
            match piece {
                JsonPiece::Text(text) => return Ok(Some(text)),
                JsonPiece::Count => return Ok(Some(self.count.to_string())),
                JsonPiece::List(mut items, begun) => {
                    let Some(more) = items.next_items().await? else { continue };
                    let text = self.write_items(&more, begun);
                    self.count = if begun { self.count } else { 0 } + more.len();
                    let begun = begun || !more.is_empty();
                    self.pieces.push_front(JsonPiece::List(items, begun));
                    if !text.is_empty() {
                        return Ok(Some(text));
                    }
                }
            }
        }
        Ok(None)
    }

    fn write_items(&self, items: &[Value], begun: bool) -> String {
        let mut text = String::new();
        for (index, item) in items.iter().enumerate() {
            if begun || index > 0 {
                text.push(',');
            }
            match self.style {
                JsonStyle::Plain => text.push_str(&item.to_string()),
                JsonStyle::File => {
                    let pretty = serde_json::to_string_pretty(item).unwrap_or_default();
                    text.push_str("\n    ");
                    text.push_str(&pretty.replace('\n', "\n    "));
                }
            }
        }
        text
    }
}
