//! Tokens of a data directory.
#![allow(clippy::unwrap_used)]
use std::os::unix::fs::MetadataExt;

use super::*;

fn paths(root: &tempfile::TempDir) -> Paths {
    let paths = Paths::new(root.path().join("data"), None);
    paths.create_folders().unwrap();
    paths
}

#[test]
fn the_owners_token_is_made_once_of_32_random_bytes_for_its_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(&root);
    let token = owner_token(&paths).unwrap();
    assert_eq!(token.expose_secret().len(), "gander_".len() + 64);
    assert_eq!(owner_token(&paths).unwrap().expose_secret(), token.expose_secret());
    assert_eq!(std::fs::metadata(paths.token_file()).unwrap().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(paths.data_directory()).unwrap().mode() & 0o777, 0o700);
    let other = tempfile::tempdir().unwrap();
    assert_ne!(owner_token(&self::paths(&other)).unwrap().expose_secret(), token.expose_secret());
}

#[test]
fn only_the_whole_token_is_the_owner() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(&root);
    let token = owner_token(&paths).unwrap().expose_secret().to_owned();
    let tokens = Tokens::open(&paths).unwrap();
    assert_eq!(tokens.identify_token(&token), Some(Identity::owner()));
    for wrong in ["", &token[1..], &token[..token.len() - 1], &format!("{token}0"), &token.to_uppercase()] {
        assert_eq!(tokens.identify_token(wrong), None, "{wrong}");
    }
}

#[test]
fn a_listeners_key_counts_there_alone_and_as_long_as_it_is_held() {
    let root = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(&paths(&root)).unwrap();
    let (here, elsewhere) = (SocketAddr::from(([127, 0, 0, 1], 7)), SocketAddr::from(([127, 0, 0, 1], 8)));
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 9));
    let key = |text: &str| TokenId::of_secret(&SecretString::from(text.to_owned()));
    let (first, _second) = (tokens.accept_at(here, key("k")), tokens.accept_at(everywhere, key("k2")));
    let known = |token: &str, at: SocketAddr| tokens.identify_at(token, at).is_some();
    assert_eq!((known("k", here), known("k", elsewhere), known("k2", here)), (true, false, false));
    assert!(known("k2", SocketAddr::from(([10, 0, 0, 1], 9))));
    assert_eq!(tokens.identity_of(&key("k")), Some(Identity::owner()));
    drop(first);
    assert_eq!((known("k", here), tokens.identity_of(&key("k"))), (false, None));
}

#[test]
fn others_have_what_they_were_given_until_it_is_taken_back() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(&root);
    let tokens = Tokens::open(&paths).unwrap();
    let token = add_token(&paths, "phone", &[Scope::Approve], Some("ann".into())).unwrap();
    let identity = Identity {
        principal: Principal::named("phone"),
        scopes: [Scope::Read, Scope::Approve].into(),
        adk_user: Some("ann".into()),
        roots: None,
    };
    assert_eq!(tokens.identify_token(token.expose_secret()), Some(identity));
    assert!(!std::fs::read_to_string(paths.tokens_file()).unwrap().contains(token.expose_secret()));
    revoke_token(&paths, "phone").unwrap();
    assert_eq!(tokens.identify_token(token.expose_secret()), None);
}

#[test]
fn names_are_checked_and_unique() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(&root);
    for bad in ["", "owner", "a b", "../x"] {
        assert!(matches!(add_token(&paths, bad, &[], None), Err(TokenError::BadName(_))), "{bad}");
    }
    add_token(&paths, "a", &[], None).unwrap();
    assert!(matches!(add_token(&paths, "a", &[], None), Err(TokenError::Exists(_))));
    assert!(matches!(revoke_token(&paths, "b"), Err(TokenError::Unknown(_))));
}
