//! What makes two explorations the same: the text of everything that the results depend on, and its hash.

use cyclonest_scheduler::explore::Space;

/// FNV-1a, 64 bits (Fowler, Noll, Vo): detects damage and names a plan; no protection against intent.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Everything that the results of `space` depend on, as text: version, plan, technology and layers. Comments and
/// layout of the files are not in it, nor is pruning, which changes what is evaluated and not what is found.
pub(super) fn identity(space: &Space) -> String {
    let mut text = format!("version: {}\n", env!("CARGO_PKG_VERSION"));
    text += &cyclonest_arch::to_ron(&space.plan);
    text += &cyclonest_arch::to_ron(&space.technology);
    for layer in &space.layers {
        let problem = &layer.problem;
        text += &format!(
            "layer {} ×{}: {:?}, stride {:?}, dilation {:?}, padding {:?}\n",
            layer.name, layer.count, problem.bounds, problem.stride, problem.dilation, problem.padding
        );
    }
    text
}

/// The lines that differ, those of `before` with a minus, those of `after` with a plus.
pub(super) fn difference(before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = |lines: &[&str]| lines.len() - start;
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let end = end.min(rest(&a)).min(rest(&b));
    let (a, b) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    let mut out = String::new();
    // The longest common subsequence of what is left, where it is short enough.
    if a.len().saturating_mul(b.len()) > 1_000_000 {
        a.iter().for_each(|line| out += &format!("  - {}\n", line.trim()));
        b.iter().for_each(|line| out += &format!("  + {}\n", line.trim()));
        return out;
    }
    let mut longest = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i][j] = if a[i] == b[j] {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            out += &format!("  - {}\n", a[i].trim());
            i += 1;
        } else {
            out += &format!("  + {}\n", b[j].trim());
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the authors' test vectors.
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_difference_has_the_changed_lines_only() {
        assert_eq!(difference("a\nb\nc\nd", "a\nx\nc\nd\ne"), "  - b\n  + x\n  + e\n");
        assert_eq!(difference("a\na", "a\na\na"), "  + a\n");
        assert_eq!(difference("same", "same"), "");
    }
}
