//! The names of the files of a split model: `model-00001-of-00003.gguf`.

/// The most files of a model.
pub(super) const MOST_PARTS: u64 = 512;

/// The name of a part beside the first; none when the first has another name.
pub(super) fn part(first: &str, number: u64, count: u64) -> Option<String> {
    let stem = first.strip_suffix(&format!("-00001-of-{count:05}.gguf"))?;
    Some(format!("{stem}-{number:05}-of-{count:05}.gguf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_lie_beside_the_first() {
        let second = part("/m/a-00001-of-00012.gguf", 2, 12).unwrap();
        assert_eq!(second, "/m/a-00002-of-00012.gguf");
        assert_eq!(part("/m/a-00002-of-00012.gguf", 2, 12), None);
        assert_eq!(part("/m/a.gguf", 2, 12), None);
        assert_eq!(part("/m/a-00001-of-00011.gguf", 2, 12), None);
    }
}
