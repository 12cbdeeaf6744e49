//! `gander token`: the owner's token, and those of others.

use gander::app::open_store;
use gander_services::shared_credentials::SharedCredentials;
use gander_services::token::{self, TokenGrant};
use secrecy::ExposeSecret;

use super::flags::TokenCommand;
use crate::commands::{Context, Exit};
use crate::output::clean_output_text;
use crate::terminal::list_table::print_list_table;

pub(super) async fn run(context: Context, command: Option<TokenCommand>) -> anyhow::Result<Exit> {
    let (paths, output) = (&context.config.paths, context.output);
    paths.create_folders()?;
    match command.unwrap_or(TokenCommand::Show) {
        TokenCommand::Show => output.line(token::owner_token(paths)?.expose_secret())?,
        TokenCommand::Add { name, scopes, adk_user } => {
            let token = match shared_credentials(&context).await? {
                Some(shared) => token::add_shared_token(paths, &shared, &name, &scopes, adk_user).await?,
                None => token::add_token(paths, &name, &scopes, adk_user)?,
            };
            output.line(token.expose_secret())?;
            output.note("It is shown only this once.");
        }
        TokenCommand::List => {
            let shared = shared_credentials(&context).await?;
            let mut rows = vec![owner_row("owner".to_owned())];
            for (_, label) in shared.iter().flat_map(SharedCredentials::owner_tokens) {
                rows.push(owner_row(format!("owner@{}", clean_output_text(&label))));
            }
            let everywhere = shared.iter().flat_map(SharedCredentials::list_tokens);
            rows.extend(token::list_tokens(paths)?.into_iter().chain(everywhere).map(token_row));
            print_list_table(output, &["NAME", "SCOPES", "ADK USER"], &rows)?;
        }
        TokenCommand::Revoke { name } => {
            match shared_credentials(&context).await? {
                Some(shared) => token::revoke_shared_token(paths, &shared, &name).await?,
                None => token::revoke_token(paths, &name)?,
            }
            output.note(&format!("Revoked {name}."));
        }
    }
    Ok(Exit::Done)
}

fn owner_row(name: String) -> Vec<String> {
    vec![name, "read,prompt,approve,admin".to_owned(), String::new()]
}

fn token_row(grant: TokenGrant) -> Vec<String> {
    let scopes: Vec<&str> = grant.scopes.iter().map(|scope| scope.name()).collect();
    vec![grant.name, scopes.join(","), grant.adk_user.unwrap_or_default()]
}

/// What counts at every node, if sessions are in a database. Servers on it notice a change by themselves.
async fn shared_credentials(context: &Context) -> anyhow::Result<Option<SharedCredentials>> {
    if context.config.sections.store.url.is_none() {
        return Ok(None);
    }
    Ok(Some(SharedCredentials::load(open_store(&context.config).await?).await?))
}
