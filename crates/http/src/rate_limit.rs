//! How often: requests per token as a bucket that fills up, wrong tokens per address and minute.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gander_domain::Principal;
use gander_domain::caller::Caller;
use gander_services::NodeFacts;

use crate::settings::Limits;

/// Above this, addresses that have been quiet are forgotten.
const MAX_TRACKED_ADDRESSES: usize = 4096;
/// Above this, buckets that are full again are forgotten: a new one is as full.
const MAX_TRACKED_CALLERS: usize = 4096;
/// A connection is not silenced for longer than this at once.
const MAX_PAUSE: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

/// All counters.
#[derive(Debug)]
pub struct RateLimiter {
    remote: BucketRate,
    local: BucketRate,
    bad_per_minute: u32,
    /// How many nodes serve clients: each lets a part of it through.
    nodes: Arc<NodeFacts>,
    buckets: Mutex<HashMap<(Principal, bool), TokenBucket>>,
    bad: Mutex<HashMap<IpAddr, FailedTries>>,
}

/// How fast a bucket fills, and what it holds.
#[derive(Clone, Copy, Debug)]
struct BucketRate {
    per_second: f64,
    burst: f64,
}

impl BucketRate {
    fn new(per_second: u32, burst: u32) -> Self {
        Self { per_second: f64::from(per_second), burst: f64::from(burst) }
    }
}

#[derive(Debug)]
struct TokenBucket {
    left: f64,
    at: Instant,
}

#[derive(Debug)]
struct FailedTries {
    count: u32,
    since: Instant,
}

impl RateLimiter {
    /// Limits for callers elsewhere are shared out evenly among the nodes that serve clients: nobody asks another node
    /// about a request.
    pub fn new(limits: &Limits, nodes: Arc<NodeFacts>) -> Self {
        Self {
            remote: BucketRate::new(limits.requests_per_second, limits.request_burst),
            local: BucketRate::new(limits.local_requests_per_second, limits.local_request_burst),
            bad_per_minute: limits.bad_tokens_per_minute,
            nodes,
            buckets: Mutex::default(),
            bad: Mutex::default(),
        }
    }

    /// Takes one request from the caller's bucket. False if it is empty.
    ///
    /// A principal has one bucket for the machine that the server runs on and one for all others: a program here may
    /// ask more often, and a stranger with the same token does not slow it down.
    pub fn take_request(&self, caller: &Caller, now: Instant) -> bool {
        let here = caller.is_same_machine();
        let BucketRate { per_second, burst } = self.rate(here);
        let mut buckets = lock_rate_limit(&self.buckets);
        self.forget_full_buckets(&mut buckets, now);
        let bucket = buckets.entry((caller.principal.clone(), here)).or_insert(TokenBucket { left: burst, at: now });
        let filled = bucket.left + now.duration_since(bucket.at).as_secs_f64() * per_second;
        bucket.at = now;
        bucket.left = filled.min(burst);
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }

    /// Counts a message on a connection that is open already, and says how long its next one has to wait.
    ///
    /// Messages that were read together cannot be sent away one by one: they are taken on credit, and nothing more is
    /// read before that is paid back.
    pub fn charge_message(&self, caller: &Caller, now: Instant) -> Duration {
        let here = caller.is_same_machine();
        let BucketRate { per_second, burst } = self.rate(here);
        let mut buckets = lock_rate_limit(&self.buckets);
        self.forget_full_buckets(&mut buckets, now);
        let bucket = buckets.entry((caller.principal.clone(), here)).or_insert(TokenBucket { left: burst, at: now });
        let filled = bucket.left + now.duration_since(bucket.at).as_secs_f64() * per_second;
        *bucket = TokenBucket { left: filled.min(burst) - 1.0, at: now };
        Duration::from_secs_f64((-bucket.left / per_second).clamp(0.0, MAX_PAUSE.as_secs_f64()))
    }

    fn forget_full_buckets(&self, buckets: &mut HashMap<(Principal, bool), TokenBucket>, now: Instant) {
        if buckets.len() < MAX_TRACKED_CALLERS {
            return;
        }
        buckets.retain(|(_, here), bucket| {
            let BucketRate { per_second, burst } = self.rate(*here);
            bucket.left + now.duration_since(bucket.at).as_secs_f64() * per_second < burst
        });
    }

    /// Counts a wrong token. False if this address has tried too often.
    ///
    /// A right token is let in regardless: else one local process could lock all others out.
    pub fn count_bad_token(&self, address: IpAddr, now: Instant) -> bool {
        let mut bad = lock_rate_limit(&self.bad);
        if bad.len() >= MAX_TRACKED_ADDRESSES {
            bad.retain(|_, tries| now.duration_since(tries.since) < MINUTE);
        }
        let tries = bad.entry(rate_limited_network(address)).or_insert(FailedTries { count: 0, since: now });
        if now.duration_since(tries.since) >= MINUTE {
            *tries = FailedTries { count: 0, since: now };
        }
        tries.count = tries.count.saturating_add(1);
        tries.count <= self.bad_per_minute.div_ceil(self.live_gateways())
    }

    fn live_gateways(&self) -> u32 {
        self.nodes.live_gateways.load(Ordering::Relaxed).max(1)
    }

    /// A program on this machine asks this node alone, others go by a balancer to all of them.
    fn rate(&self, here: bool) -> BucketRate {
        match (here, self.live_gateways()) {
            (true, _) => self.local,
            (false, nodes) => BucketRate {
                per_second: self.remote.per_second / f64::from(nodes),
                burst: (self.remote.burst / f64::from(nodes)).max(1.0),
            },
        }
    }
}

/// One caller has a whole IPv6 network to itself.
fn rate_limited_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

fn lock_rate_limit<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use gander_domain::caller::Transport;

    fn quotas() -> RateLimiter {
        let (remote, local) = (BucketRate::new(10, 3), BucketRate::new(10, 4));
        let nodes = Arc::default();
        RateLimiter { remote, local, bad_per_minute: 2, nodes, buckets: Mutex::default(), bad: Mutex::default() }
    }

    #[test]
    fn each_of_several_nodes_lets_its_part_through() {
        let (quotas, now) = (quotas(), Instant::now());
        quotas.nodes.live_gateways.store(2, Ordering::Relaxed);
        let take = |name: &str, transport, at| quotas.take_request(&caller(name, transport), at);
        let taken: Vec<bool> = (0..2).map(|_| take("ann", Transport::Network, now)).collect();
        assert_eq!(taken, [true, false], "half of a burst of 3, in whole requests");
        let later = |tenths: u32| now + Duration::from_millis(100) * tenths;
        assert_eq!(
            (take("ann", Transport::Network, later(1)), take("ann", Transport::Network, later(3))),
            (true, true)
        );
        assert!((0..4).all(|_| take("ann", Transport::Loopback, now)), "here nothing is shared out");
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!((quotas.count_bad_token(address, now), quotas.count_bad_token(address, now)), (true, false));
        quotas.nodes.live_gateways.store(1, Ordering::Relaxed);
        assert!((0..3).all(|_| take("bob", Transport::Network, now)));
    }

    #[test]
    fn callers_that_were_quiet_are_forgotten_once_there_are_many() {
        let (quotas, now) = (quotas(), Instant::now());
        for number in 0..MAX_TRACKED_CALLERS {
            quotas.take_request(&caller(&format!("user{number}"), Transport::Network), now);
        }
        let busy = caller("busy", Transport::Network);
        for _ in 0..3 {
            quotas.charge_message(&busy, now);
        }
        assert_eq!(lock_rate_limit(&quotas.buckets).len(), MAX_TRACKED_CALLERS + 1, "nobody was quiet yet");
        let later = now + Duration::from_millis(150);
        assert!(quotas.take_request(&caller("new", Transport::Network), later));
        assert_eq!(lock_rate_limit(&quotas.buckets).len(), 2, "the new one, and the one that is not full yet");
    }

    fn caller(name: &str, transport: Transport) -> Caller {
        Caller { transport, ..Caller::local(Principal::named(name)) }
    }

    #[test]
    fn a_bucket_empties_and_fills_up_for_each_principal_alone() {
        let (quotas, now) = (quotas(), Instant::now());
        let (ann, bob) = (caller("ann", Transport::Network), caller("bob", Transport::Network));
        let taken: Vec<bool> = (0..4).map(|_| quotas.take_request(&ann, now)).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert!(quotas.take_request(&bob, now));
        let later = now + Duration::from_millis(100);
        assert_eq!((quotas.take_request(&ann, later), quotas.take_request(&ann, later)), (true, false));
    }

    #[test]
    fn a_program_on_this_machine_has_a_bucket_of_its_own() {
        let (quotas, now) = (quotas(), Instant::now());
        let taken: Vec<bool> = (0..5).map(|_| quotas.take_request(&caller("ann", Transport::Loopback), now)).collect();
        assert_eq!(taken, [true, true, true, true, false]);
        assert!(quotas.take_request(&caller("ann", Transport::Network), now));
    }

    #[test]
    fn messages_wait_until_what_they_took_is_paid_back() {
        let (quotas, now, ann) = (quotas(), Instant::now(), caller("ann", Transport::Network));
        let waits: Vec<u128> = (0..5).map(|_| quotas.charge_message(&ann, now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        assert!(!quotas.take_request(&ann, now), "requests and messages share a bucket");
        assert_eq!(quotas.charge_message(&ann, now + Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn bad_tries_are_counted_per_network_and_minute() {
        let (quotas, now) = (quotas(), Instant::now());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let tries: Vec<bool> = (0..3).map(|_| quotas.count_bad_token(address("10.0.0.1"), now)).collect();
        assert_eq!(tries, [true, true, false]);
        assert!(quotas.count_bad_token(address("10.0.0.2"), now));
        assert!(quotas.count_bad_token(address("10.0.0.1"), now + MINUTE));
        let tries: Vec<bool> =
            (1..4).map(|n| quotas.count_bad_token(address(&format!("2001:db8::{n}")), now)).collect();
        assert_eq!(tries, [true, true, false]);
    }
}
