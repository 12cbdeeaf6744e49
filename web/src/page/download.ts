// Gives something to the person as a file.

export function download(name: string, content: unknown): void {
  const text = typeof content === 'string' ? content : JSON.stringify(content, null, 2);
  save(new File([text], name, { type: 'application/json' }));
}

export function save(file: File): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = address;
  link.download = file.name;
  link.click();
  URL.revokeObjectURL(address);
}
