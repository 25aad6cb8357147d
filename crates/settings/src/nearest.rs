//! The nearest correct spelling.

/// The shortest beginning of a name, letters, by which the only candidate that begins so is known.
const LEAST_BEGIN: usize = 3;

/// The candidate nearest to `found`, if one is near enough to be meant, or the only one that begins with it.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = found.to_lowercase();
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates
        .iter()
        .copied()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().max(found.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    near.or_else(|| {
        let begins =
            |it: &&&str| wanted.len() >= LEAST_BEGIN && it.to_lowercase().starts_with(&wanted);
        let mut beginning = candidates.iter().filter(begins);
        beginning
            .next()
            .copied()
            .filter(|_| beginning.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_enough_where_one_alone_begins_so() {
        let papers = ["alamgir2002", "atiquzzaman2002", "ho2008"];
        assert_eq!(nearest("alamgir", papers), Some("alamgir2002"));
        assert_eq!(nearest("Ati", papers), Some("atiquzzaman2002"));
        assert_eq!(nearest("al", papers), None);
        assert_eq!(nearest("ho2007", papers), Some("ho2008"));
        assert_eq!(
            nearest("max", ["max_message", "max_init_retransmits"]),
            None
        );
    }
}
