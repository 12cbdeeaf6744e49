//! Temperature, turns and budget as config options, and back.

use gander_domain::{Budget, Settings, SettingsPatch};

use super::schema::{SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption};

pub(super) const TEMPERATURE: &str = "temperature";
pub(super) const MAX_TURNS: &str = "max_turns";
pub(super) const BUDGET: &str = "budget";

/// Each with its current value. Any other number can be set too.
pub(super) fn limit_options(settings: &Settings) -> Vec<SessionConfigOption> {
    let temperature = settings.temperature.map(|hundredths| format_limit_decimal(u64::from(hundredths), 100));
    let turns = settings.max_turns.map(|turns| turns.to_string());
    let unset = Some("default");
    vec![
        limit_option(TEMPERATURE, "Temperature", temperature, &["0", "0.3", "0.7", "1"], unset),
        limit_option(MAX_TURNS, "Most model calls", turns, &["10", "50", "200"], unset),
        limit_option(
            BUDGET,
            "Budget",
            budget_option_text(settings.budget),
            &["100000", "1000000", "$1", "$10"],
            Some("none"),
        ),
    ]
}

/// The change that a value means; `None` if it means nothing.
pub(super) fn limit_patch(option: &str, value: &str) -> Option<SettingsPatch> {
    let unchanged = SettingsPatch::default();
    match option {
        TEMPERATURE => {
            let given = parse_limit_hundredths(value).filter(|given| *given <= 200)?;
            Some(SettingsPatch { temperature: u16::try_from(given).ok(), ..unchanged })
        }
        MAX_TURNS => {
            let turns = value.parse().ok().filter(|turns| (1..=1_000).contains(turns))?;
            Some(SettingsPatch { max_turns: Some(turns), ..unchanged })
        }
        BUDGET => Some(SettingsPatch { budget: Some(parse_budget_option(value)?), ..unchanged }),
        _ => None,
    }
}

/// `none`, a number of tokens, or an amount of dollars after `$`.
fn parse_budget_option(value: &str) -> Option<Budget> {
    if value == "none" {
        return Some(Budget::default());
    }
    match value.strip_prefix('$') {
        Some(dollars) => {
            Some(Budget { tokens: None, cost: Some(parse_limit_hundredths(dollars)?.checked_mul(10_000)?) })
        }
        None => Some(Budget { tokens: Some(value.parse().ok().filter(|tokens| *tokens > 0)?), cost: None }),
    }
}

fn budget_option_text(budget: Budget) -> Option<String> {
    let money = || budget.cost.map(|cost| format!("${}", format_limit_decimal(cost / 10_000, 100)));
    budget.tokens.map(|tokens| tokens.to_string()).or_else(money)
}

/// A decimal with at most two places, in hundredths.
fn parse_limit_hundredths(text: &str) -> Option<u64> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || places.len() > 2 || !digits(whole) || !digits(places) {
        return None;
    }
    Some(whole.parse::<u64>().ok()? * 100 + format!("{places:0<2}").parse::<u64>().ok()?)
}

fn format_limit_decimal(value: u64, scale: u64) -> String {
    let (whole, places) = (value / scale, value % scale);
    if places == 0 { whole.to_string() } else { format!("{whole}.{places:02}").trim_end_matches('0').to_owned() }
}

/// What is in force is among the choices; nothing is a choice only where it can be gone back to.
fn limit_option(
    id: &str,
    name: &str,
    current: Option<String>,
    usual: &[&str],
    unset: Option<&str>,
) -> SessionConfigOption {
    let fallback = unset.unwrap_or_default();
    let shown = current.clone().unwrap_or_else(|| fallback.to_owned());
    let has_unset = current.is_none() || id == BUDGET;
    let first = has_unset.then(|| limit_select_choice(fallback, if id == BUDGET { "None" } else { "Default" }));
    let odd = current.filter(|current| !usual.contains(&current.as_str()));
    let rest =
        usual.iter().map(|value| (*value).to_owned()).chain(odd).map(|value| limit_select_choice(&value, &value));
    SessionConfigOption::select(id.to_owned(), name, shown, first.into_iter().chain(rest).collect::<Vec<_>>())
        .category(SessionConfigOptionCategory::Other("_limits".to_owned()))
}

pub(super) fn limit_select_choice(id: &str, name: &str) -> SessionConfigSelectOption {
    SessionConfigSelectOption::new(id.to_owned(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_shown_exactly() {
        let temperature = |value: &str| limit_patch(TEMPERATURE, value).and_then(|patch| patch.temperature);
        assert_eq!((temperature("0.7"), temperature("1"), temperature("0.05")), (Some(70), Some(100), Some(5)));
        let wrong = ["2.01", "-1", "0.123", "", ".5", "NaN", "1e1", "99999999999999999999"];
        assert!(wrong.iter().all(|value| temperature(value).is_none()));
        let turns = |value: &str| limit_patch(MAX_TURNS, value).and_then(|patch| patch.max_turns);
        assert_eq!((turns("7"), turns("0"), turns("1001"), turns("many")), (Some(7), None, None, None));
        let budget = |value: &str| limit_patch(BUDGET, value).and_then(|patch| patch.budget);
        assert_eq!(budget("none"), Some(Budget::default()));
        assert_eq!(budget("5000"), Some(Budget { tokens: Some(5_000), cost: None }));
        assert_eq!(budget("$2.5"), Some(Budget { tokens: None, cost: Some(2_500_000) }));
        assert_eq!((budget("$"), budget("0"), budget("-5"), budget("$-1")), (None, None, None, None));
        assert_eq!(self::budget_option_text(Budget { tokens: None, cost: Some(2_500_000) }).as_deref(), Some("$2.5"));
        assert_eq!(
            (format_limit_decimal(70, 100), format_limit_decimal(100, 100), format_limit_decimal(5, 100)),
            ("0.7".into(), "1".into(), "0.05".into())
        );
    }
}
