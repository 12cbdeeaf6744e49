//! Shell lines as the permission rules read them.

use std::path::{Path, PathBuf};

use gander_domain::{Event, Policy, Provenance, ToolCall};
use gander_tools::ToolEffect;
use gander_tools::permission::{
    CallContext, Outlet, Verdict, WorkspaceFolders, decide_permission, find_reads, paths_named_in_script,
    plain_script_words,
};
use serde_json::json;

use crate::sample_session::session_log;

/// A line is decided about under each policy; what only reads still does after it was made safe, and a plain line that is
/// written again of its words is the same words.
pub fn fuzz_shell_line(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let cwd = Path::new("/workspace");
    let folders = WorkspaceFolders { root: PathBuf::from("/workspace"), extra: Vec::new() };
    drop(paths_named_in_script(line, cwd));
    if let Some(commands) = plain_script_words(line) {
        for words in &commands {
            let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
            let again = plain_script_words(&quoted.join(" "));
            assert!(again.is_none_or(|again| again == [words.clone()]), "{words:?} is read otherwise when quoted");
        }
    }
    if let Some(reads) = find_reads(line, cwd, &folders) {
        let safe = reads.rewrite_safely(line);
        assert!(plain_script_words(&safe).is_some(), "{line:?} was made into what is not plain: {safe:?}");
    }
    let call = ToolCall { arguments: json!({ "command": line }), ..sample_call() };
    let verdicts = [Policy::ReadOnly, Policy::Ask].map(|policy| decide(policy, &call, &folders));
    if let [Verdict::Allow { .. }, ask] = &verdicts {
        assert!(matches!(ask, Verdict::Allow { .. }), "allowed in read_only, not under ask: {line:?}");
    }
}

fn decide(policy: Policy, call: &ToolCall, folders: &WorkspaceFolders) -> Verdict {
    let context = CallContext {
        effect: ToolEffect::Exec,
        folders: folders.clone(),
        sandboxed: true,
        isolated: true,
        objection: None,
        outlet: Outlet::None,
        provenance: Provenance::default(),
    };
    decide_permission(policy, &[], &[], call, &context)
}

/// The word in single quotes.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

/// A call of `shell`.
fn sample_call() -> ToolCall {
    let call = session_log().iter().find_map(|entry| match &entry.event {
        Event::ToolCalled { call } => Some(call.clone()),
        _ => None,
    });
    call.unwrap()
}
