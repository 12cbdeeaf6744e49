// The chat as a package: state, transport-independent session, components. Used by the page and by webviews.

export * from './acp';
export { applySuggestion, findTrigger, mentionedFiles, suggestCommands, suggestFiles } from './completion';
export { type ChatEditor, provideEditor } from './editor';
export { FrameQueue } from './frames';
export { type Action, plainText, reduce } from './reduce';
export { Disconnected, type Handlers, type Id, type Message, type Respond, RpcError, RpcPeer } from './rpc';
export { type Caller, ChatSession, type ChatStore, messageOf } from './session';
export { type ChatState, emptyChat, type Item, type OpenRequest } from './state';
export { default as Chat } from './components/Chat.svelte';
export { default as Composer } from './components/Composer.svelte';
export { default as Diff } from './components/Diff.svelte';
export { default as Elicitation } from './components/Elicitation.svelte';
export { default as Icon } from './components/Icon.svelte';
export { default as ItemList } from './components/ItemList.svelte';
export { default as Markdown } from './components/Markdown.svelte';
export { default as Permission } from './components/Permission.svelte';
export { default as Pickers } from './components/Pickers.svelte';
export { default as Plan } from './components/Plan.svelte';
export { default as ToolCard } from './components/ToolCard.svelte';
export { default as UsageMeter } from './components/UsageMeter.svelte';
export { ENGLISH_WORDS, fill, setWords, type Words, words } from './words';
