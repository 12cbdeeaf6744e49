//! How long it takes to refuse a token says nothing about how much of it was right.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::hint::black_box;
use std::time::Instant;

use secrecy::ExposeSecret as _;

use crate::paths::Paths;
use crate::token::{Tokens, owner_token};

/// Of both classes together.
const SAMPLES: usize = 100_000;

/// Beyond this the two classes differ, by the convention of leakage tests.
const THRESHOLD: f64 = 4.5;

/// A loaded machine disturbs a try now and then, in either direction: what is alike stays so in one of them.
const TRIES: usize = 5;

/// Welch's t of two classes that are measured in turns, without the slowest tenth of each, which is the machine's own doing.
fn welch_t(mut measure: impl FnMut(bool)) -> f64 {
    let mut times: [Vec<f64>; 2] = Default::default();
    for sample in 0..SAMPLES {
        // In turns that do not follow any rhythm of the machine.
        let class = (sample.wrapping_mul(2_654_435_761) >> 7) & 1;
        let began = Instant::now();
        measure(class == 1);
        times[class].push(began.elapsed().as_nanos() as f64);
    }
    let [a, b] = times.map(|mut class| {
        class.sort_by(f64::total_cmp);
        class.truncate(class.len() * 9 / 10);
        let mean = class.iter().sum::<f64>() / class.len() as f64;
        let variance = class.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (class.len() - 1) as f64;
        (mean, variance / class.len() as f64)
    });
    (a.0 - b.0).abs() / (a.1 + b.1).sqrt().max(f64::MIN_POSITIVE)
}

/// The right token with its first and with its last letter changed.
fn wrong_tokens(token: &str) -> [String; 2] {
    let other = |letter: &str| if letter == "0" { "1" } else { "0" };
    let last = token.len() - 1;
    [format!("{}{}", other(&token[..1]), &token[1..]), format!("{}{}", &token[..last], other(&token[last..]))]
}

#[test]
fn a_wrong_token_is_refused_in_the_same_time_wherever_it_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::new(folder.path().join("data"), None);
    paths.create_folders().unwrap();
    let tokens = Tokens::open(&paths).unwrap();
    let token = owner_token(&paths).unwrap();
    let wrong = wrong_tokens(token.expose_secret());
    let mut values = Vec::new();
    for _ in 0..TRIES {
        let t = welch_t(|last| assert!(tokens.identify_token(black_box(&wrong[usize::from(last)])).is_none()));
        values.push(t);
        if t < THRESHOLD {
            break;
        }
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    eprintln!("token comparison: Welch t {least:.2} of {values:.2?}, {SAMPLES} samples");
    assert!(least < THRESHOLD, "{values:?}");
}

/// The same measurement finds what it is to find.
#[test]
fn a_naive_comparison_is_told_apart() {
    let token = "0123456789abcdef".repeat(16);
    let wrong = wrong_tokens(&token);
    let naive = |given: &str| given.bytes().zip(token.bytes()).all(|(a, b)| black_box(a) == black_box(b));
    let values: Vec<f64> =
        (0..TRIES).map(|_| welch_t(|last| assert!(!naive(black_box(&wrong[usize::from(last)]))))).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    eprintln!("naive comparison: Welch t {most:.2} of {values:.2?}, {SAMPLES} samples");
    assert!(most > THRESHOLD, "{values:?}");
}
