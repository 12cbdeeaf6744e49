//! The built-in files, and files laid over them.

use gander_domain::{Policy, Roster, Settings};
use gander_tools::{Limits, ToolEnv};

use super::*;
use crate::native_toolbox;

const SEVEN: [&str; 7] = ["assistant", "specialist", "recipe_maker", "app_maker", "app_iterator", "judge", "planner"];
const EIGHT: [&str; 8] = ["backend", "pm", "architect", "frontend", "qa", "security", "sre", "devsecops"];

fn page(path: &str, text: &str) -> ModeFile {
    ModeFile { path: path.to_owned(), text: text.to_owned() }
}

fn mode(agent: &str, mode: &str) -> Arc<ModeSpec> {
    let modes = ModeSet::built_in();
    modes.selected_mode(&Settings::new(agent, mode))
}

fn all_modes(modes: &ModeSet) -> Vec<Arc<ModeSpec>> {
    modes.agent_specs().iter().flat_map(|agent| agent.modes.iter().cloned()).collect()
}

#[test]
fn there_are_two_agents_of_seven_and_eight_modes() {
    let manifests: Vec<_> = ModeSet::built_in().agent_manifests().collect();
    let ids = |index: usize| manifests[index].modes.iter().map(|mode| mode.id.as_str()).collect::<Vec<_>>();
    assert_eq!((manifests.len(), manifests[0].name.as_str(), manifests[1].name.as_str()), (2, "gander", "coding"));
    assert_eq!((ids(0), ids(1)), (SEVEN.to_vec(), EIGHT.to_vec()));
    assert_eq!((manifests[0].default_mode(), manifests[1].default_mode()), ("assistant", "backend"));
    let roster = Roster::new(manifests.into_iter().map(Arc::new).collect());
    let names: Vec<&str> = roster.agent_modes().iter().map(|way| way.name.as_str()).collect();
    assert_eq!(names, [&SEVEN[..], &EIGHT[..]].concat(), "each mode is called by its id");
}

#[test]
fn a_prompt_names_only_tools_that_its_mode_offers() {
    let toolbox = native_toolbox(Limits::default(), ToolEnv::default(), vec![]).listed_tools();
    let known: Vec<(String, Group)> = toolbox
        .iter()
        .map(|tool| (tool.spec.name.clone(), tool.group))
        .chain([("delegate".to_owned(), Group::Delegate)])
        .collect();
    for mode in all_modes(&ModeSet::built_in()) {
        let named = mode.instructions.split('`').skip(1).step_by(2);
        let tools: Vec<&(String, Group)> =
            named.filter_map(|word| known.iter().find(|(tool, _)| tool == word)).collect();
        let missing: Vec<_> = tools.iter().filter(|(_, group)| !mode.offers_group(*group)).collect();
        assert!(missing.is_empty(), "{}/{} speaks of tools it has not: {missing:?}", mode.agent, mode.id);
        let works = mode.category == Category::Session;
        assert!(!works || !tools.is_empty(), "{}/{} says nothing of its tools", mode.agent, mode.id);
        assert!(!mode.words.is_empty() && !mode.description.is_empty(), "{}/{}", mode.agent, mode.id);
    }
}

#[test]
fn there_are_no_tools_where_none_belong() {
    let tools = native_toolbox(Limits::default(), ToolEnv::default(), vec![]).listed_tools();
    let names =
        |id: &str| mode("gander", id).filter_tools(&tools).map(|tool| tool.spec.name.clone()).collect::<Vec<_>>();
    assert_eq!(names("judge"), Vec::<String>::new());
    assert_eq!(names("app_maker"), Vec::<String>::new(), "files and commands are not what an app is made with");
    assert_eq!(names("recipe_maker"), ["read", "list", "grep"]);
    for mode in all_modes(&ModeSet::built_in()) {
        let changes =
            [Group::Edit, Group::Run, Group::Delegate, Group::Mcp].into_iter().any(|group| mode.offers_group(group));
        assert_eq!(changes, mode.category == Category::Session, "{}/{}", mode.agent, mode.id);
    }
    let assistant = mode("gander", "assistant");
    assert!(
        assistant.offers_group(Group::Mcp)
            && assistant.offers_group(Group::Memory)
            && !assistant.offers_group(Group::Propose)
    );
    assert!(mode("gander", "planner").offers_group(Group::Propose));
    let makers: Vec<String> = all_modes(&ModeSet::built_in())
        .iter()
        .filter(|mode| mode.offers_group(Group::Apps))
        .map(|mode| mode.id.clone())
        .collect();
    assert_eq!(makers, ["app_maker", "app_iterator", "frontend"], "apps are made where a mode names them");
    assert_eq!(mode("gander", "planner").limit_policy(Policy::Auto), Policy::ReadOnly);
    assert_eq!(mode("coding", "sre").limit_policy(Policy::Auto), Policy::Ask);
    assert_eq!(mode("coding", "backend").limit_policy(Policy::AutoEdit), Policy::AutoEdit);
}

#[test]
fn what_is_unheard_of_is_the_default() {
    assert_eq!(mode("gander", "unheard_of").id, "assistant");
    assert_eq!(mode("coding", "unheard_of").id, "backend");
    assert_eq!(mode("gone", "planner").id, "planner");
}

#[test]
fn files_take_the_place_of_others_and_add_new_ones() {
    let mut modes = ModeSet::built_in();
    let wrong = modes.add_files(&[
        page("gander/assistant.md", "---\ntitle: Mine\ntools: [look]\n---\nOnly look.\n"),
        page("gander/poet.md", "---\ncategory: llm_only\n---\nRhyme.\n"),
        page("legal/agent.md", "---\ntitle: Legal\ndefault: contracts\n---\n"),
        page("legal/contracts.md", "---\npolicy: read_only\nmodel: openai/big\n---\nRead contracts.\n"),
        page("critic.md", "---\ntitle: Critic\ndescription: Finds fault\n---\nFind fault.\n"),
        page("empty/agent.md", "---\ntitle: Without a mode\n---\n"),
    ]);
    assert_eq!(wrong, []);
    let manifests: Vec<_> = modes.agent_manifests().collect();
    let names: Vec<&str> = manifests.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["gander", "coding", "legal", "critic"]);
    assert_eq!((manifests[0].modes[0].name.as_str(), manifests[0].modes.len()), ("Mine", 8));
    assert_eq!(manifests[3].modes[0].name, "Critic");
    let roster = Roster::new(manifests.into_iter().map(Arc::new).collect());
    assert_eq!(roster.find_mode("critic").map(|way| way.mode.id.as_str()), Some("default"));
    assert_eq!(roster.find_mode("poet").map(|way| way.agent.name.as_str()), Some("gander"));
}

#[test]
fn a_wrong_file_is_named_with_its_reason_and_left_out() {
    let reason = |path: &str, text: &str| {
        let mut modes = ModeSet::built_in();
        let wrong = modes.add_files(&[page(path, text)]);
        assert_eq!(modes, ModeSet::built_in());
        wrong.first().map(|bad| bad.reason.clone()).unwrap_or_default()
    };
    assert_eq!(reason("a/b.md", "---\ntools: [sword]\n---\nx").split(':').next_back(), Some(" sword"));
    assert_eq!(reason("a/b.md", "---\ncolour: red\n---\nx"), "no such field: colour");
    assert_eq!(reason("a/b.md", "---\ntitle: t\n---\n \n"), "there are no instructions");
    assert_eq!(
        reason("a/b.md", "---\ncategory: llm_only\ntools: [run]\n---\nx"),
        "these tools do not belong to a mode of its category: run"
    );
    assert!(reason("a/b.md", "---\npolicy: yolo\n---\nx").ends_with(": yolo"));
    assert!(reason("A/b.md", "---\n---\nx").starts_with("a name has"));
    assert!(reason("auto.md", "---\n---\nx").starts_with("a name has"));
    assert!(reason("a/../b.md", "---\n---\nx").starts_with("a name has"));
    assert_eq!(reason("a/b.txt", "---\n---\nx"), "the file does not end in .md");
    assert!(reason("a/b.md", &"x".repeat(1 << 17)).starts_with("the file has more than"));
}

#[test]
fn a_folder_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let shelf = AgentCatalog::from_folder(folder.path().join("agents"));
    assert_eq!(shelf.modes().agent_specs().len(), 2);
    std::fs::create_dir_all(folder.path().join("agents/legal")).expect("made");
    let seen = |wanted: &dyn Fn(&ModeSet) -> bool| {
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !wanted(&shelf.modes()) {
            assert!(std::time::Instant::now() < patience, "nobody looked again");
            std::thread::yield_now();
        }
    };
    let file = folder.path().join("agents/legal/contracts.md");
    std::fs::write(&file, "---\ntitle: One\n---\nRead.\n").expect("written");
    seen(&|modes| modes.agent_specs().last().is_some_and(|agent| agent.modes[0].name == "One"));
    std::fs::write(&file, "---\ntitle: Second\n---\nRead.\n").expect("written");
    seen(&|modes| modes.agent_specs().last().is_some_and(|agent| agent.modes[0].name == "Second"));
    std::fs::write(&file, "no front matter").expect("written");
    seen(&|modes| modes.agent_specs().len() == 2);
}
