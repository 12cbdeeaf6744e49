//! What is asked: the words on the command line, what comes on stdin, and files and pictures that go with them.

use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_client::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, TextContent, TextResourceContents,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use super::flags::RunOptions;
use crate::output::Output;

/// How long a pipe may take to say its first word before the prompt goes without it.
const STDIN_TIMEOUT: Duration = Duration::from_secs(3);

/// A larger text is no prompt.
const MAX_TEXT: u64 = 4 << 20;

/// Larger pictures are refused by every provider.
const MAX_IMAGE: u64 = 20 << 20;

/// What is asked, as far as the command line says it: a recipe may add to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Prompt {
    /// The words.
    pub(super) text: Option<String>,
    /// What goes with them.
    pub(super) attachments: Vec<ContentBlock>,
}

impl Prompt {
    /// Reads it, stdin included.
    pub(super) fn read(options: &RunOptions, output: Output) -> anyhow::Result<Self> {
        let from_dash = options.prompt.as_deref() == Some("-");
        let typed = options.prompt.as_deref().filter(|_| !from_dash).map(str::to_owned);
        if from_dash && io::stdin().is_terminal() {
            output.note("Type your prompt; ctrl-d on a line of its own ends it.");
        }
        let piped = match typed.is_some() && !options.stdin {
            _ if from_dash => Some(read_prompt_from_stdin()?),
            _ if !has_prompt_on_stdin() => None,
            true if !is_prompt_stdin_ready(STDIN_TIMEOUT) => {
                output.note("No input on stdin within 3 s: continuing without it (--stdin waits for it).");
                None
            }
            true | false => Some(read_prompt_from_stdin()?),
        };
        let piped = piped.filter(|piped| from_dash || !piped.trim().is_empty());
        let text = match (typed, piped) {
            (Some(typed), Some(piped)) => Some(format!("{typed}\n\n{piped}")),
            (typed, piped) => typed.or(piped),
        };
        if let Some(text) = &text {
            ensure!(!text.trim().is_empty(), "the prompt is empty");
        }
        let files = options.files.iter().map(|path| prompt_file_block(path));
        let images = options.images.iter().map(|path| prompt_image_block(path));
        Ok(Self { text, attachments: files.chain(images).collect::<anyhow::Result<_>>()? })
    }

    /// True if nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_none() && self.attachments.is_empty()
    }

    /// With what a recipe asks first.
    pub(super) fn after(self, first: Option<String>) -> Self {
        let text: Vec<String> = first.into_iter().chain(self.text).collect();
        Self { text: (!text.is_empty()).then(|| text.join("\n\n")), ..self }
    }

    /// As the protocol sends it.
    pub(super) fn blocks(&self) -> Vec<ContentBlock> {
        let text = self.text.iter().map(|text| ContentBlock::Text(TextContent::new(text.clone())));
        text.chain(self.attachments.iter().cloned()).collect()
    }
}

/// A pipe or a file. A terminal is a person, and `/dev/null` is nobody.
fn has_prompt_on_stdin() -> bool {
    let kind = rustix::fs::fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile | FileType::Socket))
}

/// True once there is something to read, or the end.
fn is_prompt_stdin_ready(timeout: Duration) -> bool {
    let stdin = io::stdin();
    let mut polled = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: 0 };
    poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

fn read_prompt_from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    io::stdin().take(MAX_TEXT + 1).read_to_string(&mut text).context("cannot read the prompt from stdin")?;
    ensure!(text.len() as u64 <= MAX_TEXT, "stdin is too long for a prompt, at most {} MiB", MAX_TEXT >> 20);
    Ok(text)
}

fn prompt_file_block(path: &Path) -> anyhow::Result<ContentBlock> {
    let bytes = read_prompt_file(path, MAX_TEXT)?;
    let Ok(text) = String::from_utf8(bytes) else {
        bail!("not a text file, use --image for images: {}", path.display());
    };
    let uri = format!("file://{}", path.canonicalize()?.display());
    let contents = TextResourceContents::new(text, uri);
    Ok(ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(contents))))
}

fn prompt_image_block(path: &Path) -> anyhow::Result<ContentBlock> {
    let bytes = read_prompt_file(path, MAX_IMAGE)?;
    let Some(mime) = prompt_image_type(&bytes) else {
        bail!("not an image (png, jpeg, gif or webp): {}", path.display());
    };
    Ok(ContentBlock::Image(ImageContent::new(STANDARD.encode(bytes), mime)))
}

fn read_prompt_file(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {shown}"))?;
    ensure!(bytes.len() as u64 <= most, "larger than {} MiB: {shown}", most >> 20);
    Ok(bytes)
}

/// What a picture's first bytes say. Its name proves nothing.
fn prompt_image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
