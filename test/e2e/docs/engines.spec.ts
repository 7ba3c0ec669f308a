import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { verifySignature } from 'nestjs-payments';
import type { EventRelay } from 'nestjs-payments';
import { ReadmeProgram } from '../../support/docs/readme-program.js';
import { ListEngine } from '../../support/engines/list-engine.js';
import { MEMORY } from '../../support/inbox/expecting-application.js';
import { post, startOn } from '../../support/inbox/inbox-application.js';
import { eventually, turns } from '../../support/time/waiting.js';
import { SECRET } from '../../support/webhook/webhook-application.js';

const page = readFileSync(join(import.meta.dirname, '../../../docs/engines.md'), 'utf8');

/** Reads a body from stdin, and prints whether it has the signature of the arguments. */
const PROGRAMS = {
  python: {
    name: 'Python',
    command: 'python3',
    version: '--version',
    first: '',
    last: 'import sys\nprint(str(verify(sys.stdin.buffer.read(), *sys.argv[1:])).lower())',
    args: (file: string) => [file],
  },
  go: {
    name: 'Go',
    command: 'go',
    version: 'version',
    first: 'package main\n\nimport ("fmt"; "io"; "os")\n\n',
    last: 'func main() {\nbody, _ := io.ReadAll(os.Stdin)\nfmt.Println(verify(body, os.Args[1], os.Args[2]))\n}',
    args: (file: string) => ['run', file],
  },
};

describe('docs/engines.md', () => {
  for (const [language, program] of Object.entries(PROGRAMS)) {
    const { name, command, version, first, last, args } = program;
    const isInstalled = spawnSync(command, [version]).status === 0;
    const title = `EN-02 the ${name} function verifies a message of a gateway from the message alone`;
    const missing = isInstalled ? '' : ` (${command} is missing)`;
    (isInstalled ? it : it.skip)(
      `${title}${missing}`,
      async () => {
        const engine = new ListEngine();
        await using gateway = await startOn(MEMORY, {}, { relay: engine.relay });
        expect(await post(gateway, 'e-é', { transactionId: 't-1', note: 'Zoë 漢' })).toBe(200);
        const { attributes, body } = engine.messages[0]!;
        const folder = mkdtempSync(join(tmpdir(), 'payments-verify-'));
        const file = join(folder, `verify.${language}`);
        const [, snippet] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)!;
        writeFileSync(file, [first, snippet, last].join(''));
        await using ending = new AsyncDisposableStack();
        ending.defer(async () => rmSync(folder, { recursive: true }));
        const verify = (input: Uint8Array, signature: string): string => {
          const all = [...args(file), signature, SECRET];
          const { stdout, stderr } = spawnSync(command, all, { input });
          return `${String(stdout)}${String(stderr)}`.trim();
        };
        expect(verify(body, attributes.signature)).toBe('true');
        expect(verify(Buffer.concat([body, Buffer.from(' ')]), attributes.signature)).toBe('false');
        expect(verify(body, attributes.signature.replace(/.$/, 'g'))).toBe('false');
      },
      // The first program in Go compiles a part of the standard library.
      120_000,
    );
  }

  it('EN-14 the adapter of docs/engines.md has at most 60 lines', () => {
    const adapter = /```ts file=sns-sqs\.ts\n(.*?)```/s.exec(page)![1]!;
    expect(adapter.trimEnd().split('\n').length).toBeLessThanOrEqual(60);
  });

  it('EN-14 the relay of docs/nest-packages.md hands an event over to a transport of the outbox package, and waits for it', async () => {
    const program = new ReadmeProgram('docs/nest-packages.md');
    await using ending = new AsyncDisposableStack();
    ending.defer(async () => program.remove());
    const url = pathToFileURL(join(program.folder, 'outbox-relay.js')).href;
    const { outboxRelay } = (await import(url)) as {
      outboxRelay: (transport: object) => EventRelay;
    };
    const published: { headers: Record<string, string>; payload: { data_base64: string } }[] = [];
    const accepted = Promise.withResolvers<void>();
    const relay = outboxRelay({
      publish: (message: (typeof published)[0]) => {
        published.push(message);
        return accepted.promise;
      },
    });
    await using gateway = await startOn(MEMORY, {}, { relay });
    const posted = post(gateway, 'e1', { transactionId: 't-1' });
    await eventually(() => expect(published).toHaveLength(1));
    expect(await Promise.race([posted, turns(50)])).toBeUndefined();
    accepted.resolve();
    expect(await posted).toBe(200);
    const [{ headers, payload }] = published as [(typeof published)[0]];
    expect(published).toMatchObject([
      { id: 'default/e1', key: 'default/t-1', topic: 'payments.transaction.updated' },
    ]);
    verifySignature(Buffer.from(payload.data_base64, 'base64'), headers['signature'], [SECRET]);
  });
});
