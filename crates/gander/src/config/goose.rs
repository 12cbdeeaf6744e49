//! Names of goose's environment that are understood: under everything that is said in our own.

use secrecy::SecretString;

use super::Environment;

/// The key that goose's clients send as `X-Secret-Key`.
const SECRET: &str = "GOOSE_SERVER__SECRET_KEY";

/// Our settings as goose's variables say them: key, value, and the variable for people.
pub(super) fn goose_settings(environment: &Environment) -> Vec<(&'static str, String, &'static str)> {
    let model = environment
        .get("GOOSE_PROVIDER")
        .zip(environment.get("GOOSE_MODEL"))
        .map(|(provider, model)| ("model.default", format!("{provider}/{model}"), "GOOSE_MODEL"));
    let port = environment.get("GOOSE_PORT").map(|port| {
        let host = environment.get("GOOSE_HOST").unwrap_or("127.0.0.1");
        ("server.listen", format!("{host}:{port}"), "GOOSE_PORT")
    });
    let files = environment.get("CONTEXT_FILE_NAMES");
    let files = files.map(|files| ("agent.context_files", files.to_owned(), "CONTEXT_FILE_NAMES"));
    model.into_iter().chain(port).chain(files).collect()
}

/// A key chosen by whoever starts the server: it stands for the owner, like the token.
pub(super) fn goose_secret_key(environment: &Environment) -> Option<SecretString> {
    environment.get(SECRET).map(|secret| SecretString::from(secret.to_owned()))
}
