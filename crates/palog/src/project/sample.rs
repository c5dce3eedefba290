//! Small logs for the tests of the projections.

/// A log of events that are each written `ID [^PARENT] TYPE DATA`.
pub(super) fn events(lines: &[&str]) -> String {
    let mut log = String::new();
    for (seq, line) in lines.iter().enumerate() {
        let (id, rest) = line.split_once(' ').expect("an id");
        let (parent, rest) = match rest.strip_prefix('^') {
            Some(rest) => rest.split_once(' ').map(|(p, rest)| (format!(r#""parent":"{p}","#), rest)).expect("a type"),
            None => (String::new(), rest),
        };
        let (kind, data) = rest.split_once(' ').expect("data");
        log += &format!(
            r#"{{"palog":1,"log":"l","seq":{seq},"id":"{id}","type":"{kind}","time":null,"actor":{{"kind":"user"}},{parent}"data":{data}}}"#
        );
        log.push('\n');
    }
    log
}

/// `count` events with parents that are early, late, missing, their own or `root`, the same for the same `seed`.
pub(super) fn random(seed: u64, count: usize) -> Vec<String> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % n
    };
    let line = |i: usize| {
        let parent = match below(8) {
            0..=3 => String::new(),
            4 => "^root ".to_owned(),
            5 => format!("^gone{} ", below(2)),
            _ => format!("^e{} ", below(count)),
        };
        match below(6) {
            0 => format!(r#"e{i} branch.moved {{"to":"e{}"}}"#, below(count)),
            1 => format!("e{i} {parent}turn.started {{}}"),
            2 => format!(r#"e{i} {parent}context.compacted {{"window":[]}}"#),
            _ => format!(r#"e{i} {parent}message.added {{"role":"user","parts":[],"response":"r{}"}}"#, below(3)),
        }
    };
    (0..count).map(line).collect()
}
