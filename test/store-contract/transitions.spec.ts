import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { DELIVERY_TRANSITIONS, EXPECTATION_TRANSITIONS } from './transitions.ts';

const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');
const TRANSITION = /^ {4}(\S+) --> (\S+): (.+)$/;

/** The lines of the state diagram under a heading of docs/architecture.md. */
function diagram(heading: string): string[] {
  const section = page.slice(page.indexOf(`\n## ${heading}\n`));
  const [, lines = ''] = /```mermaid\nstateDiagram-v2\n([^`]*)```/.exec(section) ?? [];
  return lines.trimEnd().split('\n');
}

describe.each([
  ['DELIVERY_TRANSITIONS', 'States of a delivery', DELIVERY_TRANSITIONS],
  ['EXPECTATION_TRANSITIONS', 'States of an expected payment', EXPECTATION_TRANSITIONS],
])('%s', (name, heading, transitions) => {
  it(`the state diagram under "${heading}" in docs/architecture.md has exactly these transitions`, () => {
    const drawn = diagram(heading).map((line) => {
      const [, from, to, by] = TRANSITION.exec(line) ?? [];
      return { from: from === '[*]' ? 'new' : from, to, by };
    });
    expect(drawn).toEqual(transitions);
  });

  it(`${name} contains each transition once`, () => {
    const names = transitions.map(({ from, to, by }) => `${from} ${to} ${by}`);
    expect(new Set(names).size).toBe(names.length);
  });
});
