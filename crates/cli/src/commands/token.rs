//! `gander token`: the owner's token, and those of others.

use gander_services::token;
use secrecy::ExposeSecret;

use super::options::TokenCommand;
use crate::commands::{Context, Exit};

pub(super) fn run(context: &Context, command: Option<TokenCommand>) -> anyhow::Result<Exit> {
    let (paths, output) = (&context.config.paths, context.output);
    paths.create_folders()?;
    match command.unwrap_or(TokenCommand::Show) {
        TokenCommand::Show => output.line(token::owner_token(paths)?.expose_secret())?,
        TokenCommand::Add { name, scopes, adk_user } => {
            let token = token::add_token(paths, &name, &scopes, adk_user)?;
            output.line(token.expose_secret())?;
            output.note("this is the only time it is shown");
        }
        TokenCommand::List => {
            output.line("owner\tread,prompt,approve,admin")?;
            for grant in token::list_tokens(paths)? {
                let scopes: Vec<String> =
                    grant.scopes.iter().map(|scope| format!("{scope:?}").to_lowercase()).collect();
                let user = grant.adk_user.map(|user| format!("\tadk user {user}")).unwrap_or_default();
                output.line(&format!("{}\t{}{user}", grant.name, scopes.join(",")))?;
            }
        }
        TokenCommand::Revoke { name } => token::revoke_token(paths, &name)?,
    }
    Ok(Exit::Done)
}
