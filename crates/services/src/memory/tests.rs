//! Memories are kept apart by person and place, bounded, and survive a restart.
#![allow(clippy::unwrap_used)]

use gander_store::MemoryStore;

use super::*;

fn memory(place: MemoryScope, category: &str, text: &str) -> Memory {
    Memory { place, category: category.to_owned(), text: text.to_owned(), tags: vec!["tag".to_owned()] }
}

fn project(folder: &str) -> MemoryScope {
    MemoryScope::Project(folder.to_owned())
}

#[tokio::test]
async fn they_belong_to_a_person_and_a_place() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (memories, ada, bob) = (Memories::new(Arc::clone(&store)), Principal::owner(), Principal::named("bob"));
    for (place, text) in [(MemoryScope::Everywhere, "tabs"), (project("/a"), "make"), (project("/b"), "just")] {
        memories.remember(&ada, memory(place.clone(), "style", text)).await.unwrap();
        memories.remember(&ada, memory(place, "style", text)).await.unwrap();
    }
    assert_eq!(memories.list(&ada).await.unwrap().len(), 3, "the same twice is one");
    assert_eq!(memories.list(&bob).await.unwrap(), []);
    let again = Memories::new(store);
    assert_eq!(again.prompt_text(&ada, "/a").await.unwrap(), "- style: make\n- style: tabs\n");
    assert_eq!(again.forget_category(&ada, &project("/a"), "style").await.unwrap(), 1);
    assert_eq!(again.prompt_text(&ada, "/a").await.unwrap(), "- style: tabs\n");
    assert_eq!(again.prompt_text(&ada, "/b").await.unwrap(), "- style: just\n- style: tabs\n");
}

#[tokio::test]
async fn one_is_forgotten_by_its_text_if_that_is_clear() {
    let memories = Memories::new(Arc::new(MemoryStore::default()));
    let ada = Principal::owner();
    for text in ["use tabs", "use tabs in Makefiles"] {
        memories.remember(&ada, memory(MemoryScope::Everywhere, "style", text)).await.unwrap();
    }
    let unclear = memories.forget_one(&ada, &MemoryScope::Everywhere, "style", "tabs").await.unwrap_err();
    assert!(matches!(unclear, MemoryError::Ambiguous(2)), "{unclear}");
    memories.forget_one(&ada, &MemoryScope::Everywhere, "style", "use tabs").await.unwrap();
    memories.forget_one(&ada, &MemoryScope::Everywhere, "style", "Makefiles").await.unwrap();
    let none = memories.forget_one(&ada, &MemoryScope::Everywhere, "style", "tabs").await.unwrap_err();
    assert!(matches!(none, MemoryError::Missing(_)), "{none}");
    let left = gander_store::read_scope_all(&*memories.store, memories.fact_log(&ada).scope()).await.unwrap();
    assert!(!format!("{left:?}").contains("tabs"), "the words are still there: {left:?}");
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused() {
    let memories = Memories::new(Arc::new(MemoryStore::default()));
    let refused = async |category: &str, text: &str| {
        memories
            .remember(&Principal::owner(), memory(MemoryScope::Everywhere, category, text))
            .await
            .unwrap_err()
            .to_string()
    };
    assert!(refused("", "x").await.starts_with("a category or tag has"));
    assert!(refused("*", "x").await.starts_with("a category or tag has"));
    assert!(refused(&"x".repeat(65), "x").await.starts_with("a category or tag has"));
    assert!(refused("a", " ").await.starts_with("a memory has"));
    assert!(refused("a", &"x".repeat(MAX_TEXT_BYTES + 1)).await.starts_with("a memory has"));
    assert_eq!(memories.list(&Principal::owner()).await.unwrap(), []);
}

#[tokio::test]
async fn a_run_is_told_only_so_much() {
    let (memories, ada) = (Memories::new(Arc::new(MemoryStore::default())), Principal::owner());
    for number in 0..4 {
        let text = format!("{number}{}", "x".repeat(3 << 10));
        memories.remember(&ada, memory(MemoryScope::Everywhere, "long", &text)).await.unwrap();
    }
    let told = memories.prompt_text(&ada, "/a").await.unwrap();
    assert!(told.contains("long: 3x") && !told.contains("long: 0x") && told.ends_with("retrieve_memories)\n"));
    assert!(told.len() < MAX_PROMPT_BYTES + 100);
}
