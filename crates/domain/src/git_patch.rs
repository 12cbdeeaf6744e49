//! A change of one file as a patch that git understands: one hunk from the first to the last line that differs.

use std::fmt::Write as _;

/// Lines around a change that are the same.
const CONTEXT_LINES: usize = 3;

/// The patch that makes `new` of `old`; of nothing, if the file is new.
pub fn git_patch(path: &str, old: Option<&str>, new: &str) -> String {
    let name = path.trim_start_matches('/');
    let mut patch = format!("diff --git a/{name} b/{name}\n");
    match old {
        Some(_) => patch.push_str(&format!("--- a/{name}\n+++ b/{name}\n")),
        None => patch.push_str(&format!("new file mode 100644\n--- /dev/null\n+++ b/{name}\n")),
    }
    write_patch_hunk(&mut patch, &split_patch_lines(old.unwrap_or_default()), &split_patch_lines(new));
    patch
}

fn write_patch_hunk(patch: &mut String, old: &[&str], new: &[&str]) {
    let same = |(one, other): &(&&str, &&str)| one == other;
    let before = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let (from, tail) = (before.saturating_sub(CONTEXT_LINES), after.min(CONTEXT_LINES));
    let (removed, added) = (&old_rest[..old_rest.len() - after], &new_rest[..new_rest.len() - after]);
    let kept = before - from + tail;
    let start = |lines: usize| if lines == 0 { from } else { from + 1 };
    let (olds, news) = (kept + removed.len(), kept + added.len());
    writeln!(patch, "@@ -{},{olds} +{},{news} @@", start(olds), start(news)).expect("writing to memory cannot fail");
    let behind = old.len() - after;
    write_patch_lines(patch, ' ', &old[from..before]);
    write_patch_lines(patch, '-', removed);
    write_patch_lines(patch, '+', added);
    write_patch_lines(patch, ' ', &old[behind..behind + tail]);
}

/// Lines with their ends, so that a last one without is told apart.
fn split_patch_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn write_patch_lines(patch: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        patch.push(mark);
        patch.push_str(line);
        if !line.ends_with('\n') {
            patch.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_the_middle_keeps_three_lines_around_it() {
        let patch = git_patch("/w/a", Some("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        let expected =
            "diff --git a/w/a b/w/a\n--- a/w/a\n+++ b/w/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(patch, expected);
    }

    #[test]
    fn a_new_file_begins_at_nothing_and_a_missing_line_feed_is_told() {
        let head = "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n";
        assert_eq!(
            git_patch("/a", None, "x\ny"),
            format!("{head}@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n")
        );
    }
}
