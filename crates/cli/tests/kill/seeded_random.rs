//! Numbers from a seed (SplitMix64), so that a failing run can be repeated.

/// A source of numbers.
#[derive(Clone, Debug)]
pub(crate) struct SeededRandom(pub(crate) u64);

impl SeededRandom {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Another source that goes its own way.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }
}
