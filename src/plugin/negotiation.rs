//! Which major version of the provider protocol is spoken (plugin protocol, version negotiation).

/// The only major version implemented here.
pub(super) const VERSION: u32 = 6;

/// Chooses from the versions that the host offers, which come in random order.
///
/// When nothing matches the answer is the lowest version implemented, and the host does the refusing: it knows
/// which versions it wanted and says so in its message.
pub(super) fn choose(offered: &[u32]) -> u32 {
    let best = offered.iter().filter(|version| IMPLEMENTED.contains(version));
    best.max().copied().unwrap_or(LOWEST)
}

const IMPLEMENTED: [u32; 1] = [VERSION];
const LOWEST: u32 = VERSION;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[5, 6])]
    #[case(&[6, 5])]
    #[case(&[6])]
    #[case(&[7, 4, 6, 5])]
    #[case(&[6, 6, 5, 5])]
    fn six_is_chosen_in_any_order(#[case] offered: &[u32]) {
        assert_eq!(choose(offered), 6);
    }

    #[rstest]
    #[case(&[])]
    #[case(&[5])]
    #[case(&[7, 4])]
    fn nothing_in_common_leaves_the_refusal_to_the_host(#[case] offered: &[u32]) {
        assert_eq!(choose(offered), 6);
    }
}
