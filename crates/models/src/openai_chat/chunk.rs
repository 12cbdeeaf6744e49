//! The JSON of one chunk, borrowed where it can be: this is read once per token.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Map, Value};

#[derive(Deserialize)]
pub struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Choices<'a>,
    pub usage: Option<UsageBody>,
    pub error: Option<Value>,
}

/// The first choice; there is never a second one.
#[derive(Default)]
pub struct Choices<'a>(pub Option<Choice<'a>>);

#[derive(Deserialize)]
pub struct Choice<'a> {
    #[serde(borrow)]
    pub delta: Option<DeltaBody<'a>>,
    #[serde(borrow)]
    pub finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub struct DeltaBody<'a> {
    #[serde(borrow)]
    pub content: Option<Content<'a>>,
    #[serde(borrow)]
    pub reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
    pub reasoning_details: Option<Value>,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<CallDelta<'a>>>,
    pub images: Option<Vec<Value>>,
}

#[derive(Deserialize)]
pub struct CallDelta<'a> {
    pub index: Option<u32>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub function: Option<FunctionDelta<'a>>,
    pub extra_content: Option<Value>,
}

#[derive(Default, Deserialize)]
pub struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub struct UsageBody {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub prompt_cache_hit_tokens: Option<u64>,
    pub prompt_tokens_details: Option<Map<String, Value>>,
    pub completion_tokens_details: Option<Map<String, Value>>,
}

/// A string that borrows also inside an `Option`, unlike a bare `Cow`.
#[derive(Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Text, or typed parts.
pub enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoicesVisitor)
    }
}

struct ChoicesVisitor;

impl<'de> Visitor<'de> for ChoicesVisitor {
    type Value = Choices<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Choices(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut choices: A) -> Result<Self::Value, A::Error> {
        let first = choices.next_element()?;
        while choices.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Choices(first))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of parts")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(part) = parts.next_element()? {
            kept.push(part);
        }
        Ok(Content::Parts(kept))
    }
}
