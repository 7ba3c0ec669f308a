import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { DELIVERY_TRANSITIONS } from './store-operations.js';

const page = readFileSync(new URL('../../../../../docs/architecture.md', import.meta.url), 'utf8');
const TRANSITION = /^ {4}(\S+) --> (\S+): (.+)$/;

/** The lines of the state diagram in docs/architecture.md. */
function diagram(): string[] {
  const [, lines = ''] = /```mermaid\nstateDiagram-v2\n([^`]*)```/.exec(page) ?? [];
  return lines.trimEnd().split('\n');
}

describe('DELIVERY_TRANSITIONS', () => {
  it('the state diagram in docs/architecture.md has exactly these transitions', () => {
    const drawn = diagram().map((line) => {
      const [, from, to, by] = TRANSITION.exec(line) ?? [];
      return { from: from === '[*]' ? 'new' : from, to, by };
    });
    expect(drawn).toEqual(DELIVERY_TRANSITIONS);
  });

  it('DELIVERY_TRANSITIONS contains each transition once', () => {
    const names = DELIVERY_TRANSITIONS.map(({ from, to, by }) => `${from} ${to} ${by}`);
    expect(new Set(names).size).toBe(names.length);
  });
});
