// The words of the chat's own labels. A host that knows the person's language sets them before anything is shown.

export const ENGLISH_WORDS = {
  addStep: 'Add a step',
  addressRefused: 'This address is not opened: {0}',
  agent: 'Agent',
  agentAsks: 'The agent asks',
  agentWorks: 'The agent works',
  attachPictures: 'Attach pictures',
  attached: 'Attached',
  attachedPictures: 'Attached pictures',
  attachment: 'Attachment {0}',
  carryOutPlan: 'Carry out this plan?',
  changesOf: 'Changes of {0}',
  choose: 'Choose…',
  completions: 'Completions',
  conversation: 'Conversation',
  copied: 'Copied',
  copy: 'Copy',
  copyCode: 'Copy code',
  decline: 'Decline',
  exit: 'exit {0}',
  exitCode: 'exit code {0}',
  high: 'high',
  inline: 'Inline',
  input: 'Input',
  latest: 'Latest',
  message: 'Message',
  moreSettings: 'More settings',
  moveStepUp: 'Move step {0} up',
  nothingToShow: 'Nothing to show.',
  notText: 'not text',
  openInEditor: 'Open in the editor',
  output: 'Output',
  permissionRequest: 'Permission request: {0}',
  picture: 'picture',
  placeholder: 'Ask anything. / for commands, @ for files',
  plan: 'Plan',
  planCount: '{0} of {1}',
  question: 'Question: {0}',
  queuedMessages: 'Queued messages',
  readsEarlier: 'Reading earlier messages…',
  removeAttachment: 'Remove attachment {0}',
  removeFromQueue: 'Take out of the queue',
  removeStep: 'Remove step {0}',
  runCommand: 'Run this command?',
  running: 'running',
  send: 'Send',
  sendAfterTurn: 'Send after this turn',
  sendIntoTurn: 'Send into this turn',
  showChange: 'Show the change in the editor',
  showTerminal: 'Show the terminal',
  sideBySide: 'Side by side',
  statusDone: 'done',
  statusFailed: 'failed',
  statusInProgress: 'in progress',
  statusToDo: 'to do',
  statusWaiting: 'waiting',
  step: 'Step {0}',
  stop: 'Stop',
  terminal: 'Terminal',
  thinking: 'Thinking…',
  thought: 'Thought',
  tokensUsed: '{0} of {1} tokens used',
  tool: 'Tool',
  toolNamed: 'Tool: {0}',
  unchangedLines: '{0} unchanged lines',
  waitingForYou: 'waiting for you',
  whatWouldRun: 'What would run',
  you: 'You',
};

export type Words = typeof ENGLISH_WORDS;

/** As they are shown. */
export const words: Words = { ...ENGLISH_WORDS };

/** Replaces the words; those that are missing stay as they are. */
export function setWords(translated: Partial<Words>): void {
  Object.assign(words, translated);
}

/** Puts values in the places of `{0}`, `{1}`. */
export function fill(text: string, ...values: (string | number)[]): string {
  return text.replace(/\{(\d)\}/g, (whole, at: string) => String(values[Number(at)] ?? whole));
}
