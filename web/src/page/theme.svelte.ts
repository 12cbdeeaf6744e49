// Light, dark, or as the system has it; kept in this browser.

type Choice = 'auto' | 'light' | 'dark';
const KEY = 'gander.theme';
const ORDER: Choice[] = ['auto', 'light', 'dark'];

export const theme = $state<{ choice: Choice }>({ choice: read() });
apply();

export function nextTheme(): void {
  theme.choice = ORDER[(ORDER.indexOf(theme.choice) + 1) % ORDER.length] ?? 'auto';
  localStorage.setItem(KEY, theme.choice);
  apply();
}

function read(): Choice {
  const kept = localStorage.getItem(KEY);
  return ORDER.find((choice) => choice === kept) ?? 'auto';
}

function apply(): void {
  document.documentElement.dataset['theme'] = theme.choice;
}
