import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ListEngine } from '../../support/engines/list-engine.js';
import { MEMORY } from '../../support/inbox/expecting-application.js';
import { post, startOn } from '../../support/inbox/inbox-application.js';
import { SECRET } from '../../support/webhook/webhook-application.js';

const read = (page: string): string =>
  readFileSync(join(import.meta.dirname, '../../../docs', page), 'utf8');
const page = read('engines.md');

describe('docs/engines.md', () => {
  const hasPython = spawnSync('python3', ['--version']).status === 0;
  const title = 'EN-02 the Python program verifies a message of a gateway from the message alone';
  (hasPython ? it : it.skip)(`${title}${hasPython ? '' : ' (python3 is missing)'}`, async () => {
    const program = /```python\n(.*?)```/s.exec(page)![1]!;
    const engine = new ListEngine();
    await using gateway = await startOn(MEMORY, {}, { relay: engine.relay });
    expect(await post(gateway, 'e-é', { transactionId: 't-1', note: 'Zoë 漢' })).toBe(200);
    const { attributes, body } = engine.messages[0]!;
    const verify = (input: Uint8Array, signature: string): string => {
      const last = 'import sys\nprint(verify(sys.stdin.buffer.read(), *sys.argv[1:]))';
      const args = ['-c', `${program}\n${last}`, signature, SECRET];
      const { stdout, stderr } = spawnSync('python3', args, { input });
      return `${String(stdout)}${String(stderr)}`.trim();
    };
    expect(verify(body, attributes.signature)).toBe('True');
    expect(verify(Buffer.concat([body, Buffer.from(' ')]), attributes.signature)).toBe('False');
    expect(verify(body, attributes.signature.replace(/.$/, 'g'))).toBe('False');
  });

  it('EN-14 the adapter of docs/engines.md has at most 60 lines', () => {
    const adapter = /```ts file=sns-sqs\.ts\n(.*?)```/s.exec(page)![1]!;
    expect(adapter.trimEnd().split('\n').length).toBeLessThanOrEqual(60);
  });

  it('every figure of the section "Scale" is in docs/performance.md', () => {
    const section = /## Scale\n(.*?)\n## /s.exec(page)![1]!;
    const figures = section.match(/\d[\d,.]*\d(?= (?:per second|MB\/s|GB))/g)!;
    expect(figures.length).toBeGreaterThan(5);
    const performance = read('performance.md');
    expect(figures.filter((figure) => !performance.includes(figure))).toEqual([]);
  });
});
