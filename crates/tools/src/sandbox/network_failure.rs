//! Whether something failed for want of the network, by what programs say then.

/// What a model is told when a command seems to have missed the network.
pub const HINT: &str =
    "[there is no network in the sandbox: call again with \"network\": true if it is needed, a person is then asked]";

/// Marks a result whose command seems to have missed it.
pub const MARK: &str = "missed_network";

/// What programs say without a network. In small letters.
const SIGNS: [&str; 14] = [
    "network is unreachable",
    "could not resolve host",
    "couldn't resolve host",
    "could not resolve hostname",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "no address associated with hostname",
    "failed to establish a new connection",
    "enetunreach",
    "enotfound",
    "eai_again",
    "dns error",
    "unable to connect to the server",
];

/// True if the output looks like it.
pub fn is_network_failure(output: &str) -> bool {
    let output = output.to_lowercase();
    SIGNS.iter().any(|sign| output.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::is_network_failure;

    #[test]
    fn programs_without_a_network_are_recognised() {
        let said = [
            "curl: (6) Could not resolve host: example.org",
            "bash: connect: Network is unreachable",
            "npm error code EAI_AGAIN",
            "pip._vendor.urllib3: Failed to establish a new connection: [Errno 101] Network is unreachable",
            "fatal: unable to access 'https://example.org/': Could not resolve host: example.org",
        ];
        assert!(said.iter().all(|said| is_network_failure(said)));
        assert!(!is_network_failure("error[E0425]: cannot find value `x`"));
    }
}
