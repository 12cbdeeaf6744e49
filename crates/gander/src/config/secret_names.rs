//! Which environment variables hold a secret, by their names.

/// At the end of a name, also without a mark before it: `APIKEY`.
const ENDINGS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"];

/// As a word of a name, wherever it stands: `AWS_ACCESS_KEY_ID`, `GITHUB_PAT`. Not `TOKENS`, which are counted.
const WORDS: [&str; 11] = [
    "KEY",
    "KEYS",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASS",
    "PAT",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTHORIZATION",
];

/// Variables that hold what nobody should read have names that say so.
pub(super) fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|mark: char| !mark.is_ascii_alphanumeric());
    ENDINGS.iter().any(|ending| name.ends_with(ending)) || words.any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_wherever_the_word_stands() {
        let secret = "OPENAI_API_KEY apikey GH_TOKEN CLIENT_SECRET PGPASSWORD GITHUB_PAT MYSQL_PASSWD AWS_ACCESS_KEY_ID \
            AZURE_KEYS TOKEN_FILE_SECRET_V2 DB_PASS KEY_PASSPHRASE GOOGLE_CREDENTIALS";
        assert_eq!(secret.split_whitespace().find(|name| !is_secret_variable(name)), None);
        let open = "PATH PATHEXT PWD HOME KEYBOARD_LAYOUT MAX_OUTPUT_TOKENS LANG MONKEYS COMPASS_URL PATTERN";
        assert_eq!(open.split_whitespace().find(|name| is_secret_variable(name)), None);
    }
}
