//! An object with long lists, written while it is read.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::Stream;
use gander_store::StoreError;
use serde_json::{Map, Value};

use crate::log_list::{Items, Recount};

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As JSON.
    Plain,
    /// As the text of a file, itself a JSON string.
    File,
}

/// A piece of an object to be.
enum Piece<R> {
    Text(String),
    /// The items of a list; whether one was written.
    List(Items<R>, bool),
    /// How many items the last list had.
    Count,
}

/// An object with long lists.
pub(crate) struct Written<R> {
    style: Style,
    pieces: VecDeque<Piece<R>>,
    count: usize,
}

impl<R: Recount> Written<R> {
    /// These fields, then these lists by name, then the length of the last one under another name.
    pub(crate) fn new(
        style: Style,
        object: &Map<String, Value>,
        lists: Vec<(&str, Items<R>)>,
        count: Option<&str>,
    ) -> Self {
        let listed = |name: &String| count == Some(name.as_str()) || lists.iter().any(|(list, _)| list == name);
        let fields = object.iter().filter(|(name, _)| !listed(name));
        let object: Map<String, Value> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        let (comma, indent, last) = match style {
            Style::Plain => (",", "", ""),
            Style::File => (",\n", "  ", "\n"),
        };
        let fields = match style {
            Style::Plain => serde_json::to_string(&object),
            Style::File => serde_json::to_string_pretty(&object),
        };
        let fields = fields.unwrap_or_default();
        let fields = fields.strip_suffix('}').unwrap_or_default().trim_end();
        let mut pieces = VecDeque::from([Piece::Text(fields.to_owned())]);
        let mut before = if object.is_empty() { "" } else { comma };
        for (name, items) in lists {
            pieces.push_back(Piece::Text(format!("{before}{indent}\"{name}\":[")));
            pieces.push_back(Piece::List(items, false));
            pieces.push_back(Piece::Text("]".to_owned()));
            before = comma;
        }
        if let Some(name) = count {
            pieces.push_back(Piece::Text(format!("{before}{indent}\"{name}\":")));
            pieces.push_back(Piece::Count);
        }
        pieces.push_back(Piece::Text(format!("{last}}}")));
        Self { style, pieces, count: 0 }
    }

    /// The pieces of it.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
        let begin = self.style == Style::File;
        futures::stream::try_unfold((self, begin, false), |(mut written, begin, ended)| async move {
            if begin {
                return Ok(Some((Bytes::from_static(b"\""), (written, false, false))));
            }
            match written.next().await? {
                Some(text) => Ok(Some((written.quoted(text), (written, false, ended)))),
                None if written.style == Style::File && !ended => {
                    Ok(Some((Bytes::from_static(b"\""), (written, false, true))))
                }
                None => Ok(None),
            }
        })
    }

    fn quoted(&self, text: String) -> Bytes {
        match self.style {
            Style::Plain => text.into(),
            Style::File => {
                let quoted = Bytes::from(Value::String(text).to_string());
                quoted.slice(1..quoted.len() - 1)
            }
        }
    }

    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        while let Some(piece) = self.pieces.pop_front() {
            match piece {
                Piece::Text(text) => return Ok(Some(text)),
                Piece::Count => return Ok(Some(self.count.to_string())),
                Piece::List(mut items, begun) => {
                    let Some(more) = items.next().await? else { continue };
                    let text = self.items(&more, begun);
                    self.count = if begun { self.count } else { 0 } + more.len();
                    let begun = begun || !more.is_empty();
                    self.pieces.push_front(Piece::List(items, begun));
                    if !text.is_empty() {
                        return Ok(Some(text));
                    }
                }
            }
        }
        Ok(None)
    }

    fn items(&self, items: &[Value], begun: bool) -> String {
        let mut text = String::new();
        for (index, item) in items.iter().enumerate() {
            if begun || index > 0 {
                text.push(',');
            }
            match self.style {
                Style::Plain => text.push_str(&item.to_string()),
                Style::File => {
                    let pretty = serde_json::to_string_pretty(item).unwrap_or_default();
                    text.push_str("\n    ");
                    text.push_str(&pretty.replace('\n', "\n    "));
                }
            }
        }
        text
    }
}
