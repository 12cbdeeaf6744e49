//! `gander token`: the owner's token, and those of others.

use gander_services::token;
use secrecy::ExposeSecret;

use super::flags::TokenCommand;
use crate::commands::{Context, Exit};
use crate::terminal::list_table::print_list_table;

pub(super) fn run(context: &Context, command: Option<TokenCommand>) -> anyhow::Result<Exit> {
    let (paths, output) = (&context.config.paths, context.output);
    paths.create_folders()?;
    match command.unwrap_or(TokenCommand::Show) {
        TokenCommand::Show => output.line(token::owner_token(paths)?.expose_secret())?,
        TokenCommand::Add { name, scopes, adk_user } => {
            let token = token::add_token(paths, &name, &scopes, adk_user)?;
            output.line(token.expose_secret())?;
            output.note("It is shown only this once.");
        }
        TokenCommand::List => {
            let mut rows = vec![vec!["owner".to_owned(), "read,prompt,approve,admin".to_owned(), String::new()]];
            for grant in token::list_tokens(paths)? {
                let scopes: Vec<&str> = grant.scopes.iter().map(|scope| scope.name()).collect();
                rows.push(vec![grant.name, scopes.join(","), grant.adk_user.unwrap_or_default()]);
            }
            print_list_table(output, &["NAME", "SCOPES", "ADK USER"], &rows)?;
        }
        TokenCommand::Revoke { name } => {
            token::revoke_token(paths, &name)?;
            output.note(&format!("Revoked {name}."));
        }
    }
    Ok(Exit::Done)
}
