// The audit trail: what the server tells of each action, in words.

export interface AuditRecord {
  session: string;
  owner: string;
  seq: number;
  /** Microseconds since 1970. */
  at: number;
  asked_by?: string;
  protocol?: string;
  tool: string;
  title?: string;
  shown?: string;
  decision: { type: 'unasked' | 'pending' | 'chosen' | 'declined' | 'refused'; choice?: string; reason?: string };
  answered_by?: string;
  answered_from?: string;
  end?: string;
  exit_code?: number;
  deleted_by?: string;
}

/** How far back to look, in hours; 0: everything. */
export const SPANS = [{ hours: 24, name: 'Last 24 hours' }, { hours: 24 * 7, name: 'Last 7 days' }, { hours: 24 * 30, name: 'Last 30 days' }, { hours: 0, name: 'Everything' }] as const;

/** The address of what is asked for, relative to the page's. */
export function auditAddress(principal: string, hours: number, now = Date.now()): string {
  const params = new URLSearchParams({ limit: '1000' });
  if (principal.trim() !== '') params.set('principal', principal.trim());
  if (hours > 0) params.set('since', String((now - hours * 3_600_000) * 1000));
  return `gander/audit?${params}`;
}

/** Whether somebody was asked, and what they said. */
export function decisionText({ decision, answered_by, answered_from }: AuditRecord): string {
  const by = answered_by ? ` by ${answered_by}${answered_from ? ` (${answered_from})` : ''}` : '';
  switch (decision.type) {
    case 'unasked': return 'allowed unasked';
    case 'pending': return 'waits for an answer';
    case 'chosen': return `${decision.choice ?? 'answered'}${by}`;
    case 'declined': return `declined${by}${decision.reason ? `: ${decision.reason}` : ''}`;
    case 'refused': return 'refused by a rule';
  }
}

/** How it ended. */
export function endText({ end, exit_code }: AuditRecord): string {
  return `${end ?? 'has not ended'}${exit_code === undefined ? '' : `, exit code ${exit_code}`}`;
}

/** One JSON object per line, as `gander audit --json` prints it. */
export function auditLines(records: AuditRecord[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('');
}
