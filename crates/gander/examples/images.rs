//! An agent that takes images and has slash commands: it says what the header of a PNG or GIF file says.
//!
//! `/size` gives the size alone, `/report NAME` saves the description as an artifact.

use gander::{
    Agent, AgentInfo, Artifact, Capabilities, Command, HandlerError, Media, PromptRequest, PromptResult, ServeError,
    StopReason, UpdateSink,
};

pub fn agent() -> Agent {
    Agent::new(AgentInfo::new("images", "1.0.0").title("Images").description("Describes images by their headers"))
        .capabilities(Capabilities::new().image())
        .commands([
            Command::new("size", "The size of each image, nothing else"),
            Command::new("report", "Save the description as an artifact").input("name of the artifact"),
        ])
        .on_prompt(describe)
}

async fn describe(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    let images = request.images().map(read_header).collect::<Result<Vec<_>, _>>()?;
    if images.is_empty() {
        return Err(HandlerError::invalid_input("send an image along"));
    }
    let full = |image: &Header| {
        format!("{}, {} x {} pixels, {} bytes\n", image.format, image.width, image.height, image.bytes)
    };
    let text: String = images.iter().map(full).collect();
    match request.command() {
        None => sink.text(text).await?,
        Some(command) if command.name == "size" => {
            let sizes: Vec<String> = images.iter().map(|image| format!("{}x{}", image.width, image.height)).collect();
            sink.text(sizes.join(", ")).await?;
        }
        Some(command) if command.input.is_empty() => {
            return Err(HandlerError::invalid_input("/report needs the name of the artifact"));
        }
        Some(command) => {
            sink.artifact(Artifact::text(&command.input, "text/plain", text)).await?;
            sink.text(format!("Saved as {}", command.input)).await?;
        }
    }
    Ok(StopReason::EndTurn)
}

struct Header {
    format: &'static str,
    width: u32,
    height: u32,
    bytes: usize,
}

fn read_header(image: Media<'_>) -> Result<Header, HandlerError> {
    let data = image.decode()?;
    let at = |place: usize| data.get(place).copied().map(u32::from);
    let (format, size) = match image.mime {
        "image/png" => ("PNG", word(&data, 16).zip(word(&data, 20))),
        "image/gif" => ("GIF", (|| Some((at(6)? | at(7)? << 8, at(8)? | at(9)? << 8)))()),
        other => return Err(HandlerError::invalid_input(format!("I read PNG and GIF only: {other}"))),
    };
    let (width, height) = size.ok_or_else(|| HandlerError::invalid_input("the image is cut off"))?;
    Ok(Header { format, width, height, bytes: data.len() })
}

/// Four bytes, the highest first.
fn word(data: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_be_bytes(data.get(place..place + 4)?.try_into().ok()?))
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    agent().serve().await
}
