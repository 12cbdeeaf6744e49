//! When a session has used up what it may.

use gander_domain::Budget;
use gander_domain::view::UsageTotals;

/// What there is to say if the budget is used up.
pub fn exceeded_budget(budget: Budget, spent: UsageTotals) -> Option<String> {
    let tokens = spent.input + spent.output;
    if let Some(most) = budget.tokens.filter(|most| tokens >= *most) {
        return Some(format!("the session's budget is used up: {tokens} of {most} tokens; raise it to go on"));
    }
    let most = budget.cost.filter(|most| spent.cost >= *most)?;
    let (spent, most) = (format_budget_dollars(spent.cost), format_budget_dollars(most));
    Some(format!("the session's budget is used up: {spent} of {most}; raise it to go on"))
}

/// Millionths of a dollar for people.
fn format_budget_dollars(millionths: u64) -> String {
    format!("${}.{:04}", millionths / 1_000_000, millionths % 1_000_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_in_tokens_or_in_money() {
        let spent = UsageTotals { input: 900, output: 100, cost: 1_250_000, ..UsageTotals::default() };
        let budget = |tokens, cost| exceeded_budget(Budget { tokens, cost }, spent);
        assert_eq!((budget(None, None), budget(Some(1_001), Some(1_250_001))), (None, None));
        let tokens = "the session's budget is used up: 1000 of 1000 tokens; raise it to go on";
        assert_eq!(budget(Some(1_000), None).as_deref(), Some(tokens));
        let money = "the session's budget is used up: $1.2500 of $1.0000; raise it to go on";
        assert_eq!(budget(None, Some(1_000_000)).as_deref(), Some(money));
    }
}
