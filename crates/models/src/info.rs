//! What a model is, what a call used, and what that cost.

use gander_domain::Usage;

/// What a model is and can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The provider's name, such as `openai`.
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// Tokens that fit into its window, if known.
    pub window: Option<u64>,
    /// Tokens it can write at once, if known.
    pub max_output: Option<u64>,
    /// True if it reads images.
    pub images: bool,
    /// True if it hears sounds.
    pub audio: bool,
    /// True if it can think before it speaks.
    pub thinking: bool,
    /// What it costs, if known.
    pub price: Option<Price>,
    /// True for the demo: no model at all.
    pub scripted: bool,
}

/// A price list: millionths of a US dollar per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cached: u64,
    /// Tokens written into the provider's cache.
    pub cache_write: u64,
}

/// What one call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written, thinking included.
    pub output: u64,
    /// Of the tokens read: from the provider's cache.
    pub cached: u64,
    /// Of the tokens read: written into the provider's cache.
    pub cache_write: u64,
    /// Of the tokens written: thinking.
    pub thinking: u64,
}

impl ModelInfo {
    /// `provider/model`.
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// A call's usage in the words of the log, with its cost.
    pub fn priced_usage(&self, tokens: &Tokens) -> Usage {
        Usage {
            model: self.qualified_name(),
            input: tokens.input,
            output: tokens.output,
            cached: tokens.cached,
            thinking: tokens.thinking,
            cost: self.price.map(|price| price.cost(tokens)),
            window: self.window,
            child: None,
        }
    }
}

impl Price {
    /// What these tokens cost, in millionths of a US dollar.
    pub fn cost(&self, tokens: &Tokens) -> u64 {
        let fresh = tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_write);
        let sum = [
            (fresh, self.input),
            (tokens.cached, self.cached),
            (tokens.cache_write, self.cache_write),
            (tokens.output, self.output),
        ]
        .into_iter()
        .map(|(count, price)| u128::from(count) * u128::from(price))
        .sum::<u128>();
        u64::try_from((sum + 500_000) / 1_000_000).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_what_the_price_list_says() {
        let price = Price { input: 3_000_000, output: 15_000_000, cached: 300_000, cache_write: 3_750_000 };
        let tokens = Tokens { input: 10_000, output: 100, cached: 6_000, cache_write: 3_000, thinking: 50 };
        assert_eq!(price.cost(&tokens), 3_000 + 1_800 + 11_250 + 1_500);
        let info = ModelInfo {
            provider: "anthropic".into(),
            model: "some".into(),
            window: Some(200_000),
            max_output: None,
            images: true,
            audio: false,
            thinking: true,
            price: Some(price),
            scripted: false,
        };
        let usage = Usage {
            model: "anthropic/some".into(),
            input: 10_000,
            output: 100,
            cached: 6_000,
            thinking: 50,
            cost: Some(17_550),
            window: Some(200_000),
            child: None,
        };
        assert_eq!(info.priced_usage(&tokens), usage);
    }
}
