//! Names that a mistyped one is near to.

/// The least likeness of two names, from 0 to 1, that is worth asking about.
const LIKE: f64 = 0.7;

/// The names nearest to `name`, best first, at most three.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    let mut found: Vec<(f64, &str)> = vec![];
    for other in known {
        let likeness = strsim::jaro_winkler(&lower, &other.to_lowercase());
        if likeness >= LIKE && found.iter().all(|(_, seen)| *seen != other) {
            found.push((likeness, other));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    // What is much less like the name than the best is noise beside it.
    let best = found.first().map_or(0.0, |(likeness, _)| *likeness);
    found.into_iter().filter(|(likeness, _)| *likeness >= best - 0.1).take(3).map(|(_, name)| name).collect()
}

/// `; did you mean A or B?`, or nothing.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known)[..] {
        [] => String::new(),
        [ref firsts @ .., last] if !firsts.is_empty() => format!("; did you mean {} or {last}?", firsts.join(", ")),
        [one, ..] => format!("; did you mean {one}?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_their_names() {
        let known = ["Softmax", "MatMul", "Conv", "LayerNormalization"];
        assert_eq!(nearest("softmx", known.into_iter()), ["Softmax"]);
        assert_eq!(did_you_mean("matmull", known.into_iter()), "; did you mean MatMul?");
        assert_eq!(did_you_mean("zzz", known.into_iter()), "");
    }
}
