import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { exponential, OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { PaymentsConsoleModule } from 'nestjs-payments-console';
import { PaymentsHealthIndicator } from 'nestjs-payments/health';
import { openTelemetry } from 'nestjs-payments/otel';
import { readErrorCodes } from '../../../docs/.vitepress/generate/error-codes.ts';
import { optionSections } from '../../../docs/.vitepress/generate/settings.ts';

const root = resolve(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const headings = (page: string) => [...page.matchAll(/^#### `(.+)`$/gm)].map(([, name]) => name!);

describe('docs/troubleshoot.md', () => {
  const page = read('docs/troubleshoot.md');

  it('docs/troubleshoot.md has a section with cause, fix and message for every error code', () => {
    const source = read('libs/payments/src/errors/payments-error-code.ts');
    const codes = [...source.matchAll(/^ {2}\| '(\w+)'/gm)].map(([, code]) => code!);
    expect(codes.length).toBeGreaterThan(40);
    expect(headings(page)).toEqual(codes);
    for (const section of page.split(/^#### /m).slice(1)) {
      expect(section).toMatch(/^`\w+`\n\n\*\*Cause:\*\* .+\n\n\*\*Fix:\*\* .+\n\n```text\n.*\w/);
    }
  });

  it('the tables of symptoms in docs/troubleshoot.md contain only error codes that exist', () => {
    const symptoms = page.slice(0, page.indexOf('## Error codes'));
    const named = [...symptoms.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, code]) => code!);
    expect(named).toContain('signature_mismatch');
    expect(named.filter((code) => !headings(page).includes(code))).toEqual([]);
  });
});

describe('docs/settings.md', () => {
  const page = read('docs/settings.md');
  const company = { clientId: 'c', clientSecret: 's', webhookSecret: 'w' };
  const options = { baseUrl: 'https://payments.example.com', ...company };
  const none = { clientId: undefined, clientSecret: undefined, webhookSecret: undefined };
  const indicator = new PaymentsHealthIndicator(null!, null!, null!, null!);

  /** The names in the message about an unknown option: all options that the module accepts. */
  const namesIn = async (imported: () => object): Promise<string[]> => {
    const boot = async () => Test.createTestingModule({ imports: [imported() as never] }).compile();
    const error = await boot().then(
      () => new Error('The unknown option was accepted.'),
      (thrown: Error) => thrown,
    );
    const [, names] =
      /there is no option ".*nope"\. The options are (.+)\.$/.exec(error.message) ?? [];
    return names?.split(', ') ?? [error.message];
  };

  it.each<[prefix: string, PaymentsModuleOptions]>([
    ['', { nope: 1 } as PaymentsModuleOptions],
    ['webhook.', { webhook: { nope: 1 } as object }],
    ['worker.', { worker: { nope: 1 } as object }],
    ['api.', { api: { nope: 1 } as object }],
    ['reconcile.', { reconcile: { interpret: () => 'unknown', nope: 1 } as never }],
    ['api.retry.', { api: { retry: { nope: 1 } as object } }],
    ['companies[].', { ...none, companies: [{ id: 'a', ...company, nope: 1 }] } as object],
  ])(
    'docs/settings.md contains every option that PaymentsModule accepts with the prefix "%s"',
    async (prefix, unknown) => {
      const names = await namesIn(() => PaymentsModule.forRoot({ ...options, ...unknown }));
      expect(names.filter((name) => !headings(page).includes(prefix + name))).toEqual([]);
    },
  );

  const unknown: object = { nope: 1 };
  it.each([
    ['PaymentsConsoleModule', () => PaymentsConsoleModule.register({ path: 'ops', ...unknown })],
    ['@OnPaymentEvent', () => OnPaymentEvent('*', unknown)],
    ['exponential()', () => exponential(unknown)],
    ['openTelemetry()', () => openTelemetry(unknown)],
    ['readiness()', () => indicator.readiness('payments', unknown)],
  ])('docs/settings.md contains every option that %s accepts', async (_, call) => {
    const names = await namesIn(call);
    expect(names.filter((name) => !headings(page).includes(name))).toEqual([]);
  });

  it.each(['command-flags.ts', 'trigger-command.ts'])(
    'docs/settings.md contains every flag of the emulator in %s',
    (file) => {
      const source = read(`libs/emulator/src/command/${file}`);
      const flags = [...source.matchAll(/^ {2}'?([\w-]+)'?: \{ type: /gm)].map(([, flag]) => flag!);
      expect(flags.length).toBeGreaterThan(3);
      expect(flags.filter((flag) => !page.includes(`--${flag} `))).toEqual([]);
    },
  );
});

describe('The generators of the reference', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'docs-reference-'));
    mkdirSync(join(folder, 'src'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (text: string): string => {
    const file = join(folder, 'src/file.ts');
    writeFileSync(file, text);
    return file;
  };
  const sections = (text: string) => {
    write(text);
    const group = { title: 'Options', prefix: 'x.', from: { 'src/file.ts': ['Options'] } };
    return optionSections(folder, [group]);
  };

  it('the generators of the reference show the type, the bounds, the default and the meaning of an option', () => {
    const text = `interface Options {
      /** Waits {@link Other} this long. 1 to 10. Default 5. More. */
      waitMs?: number;
    }`;
    expect(sections(text)).toBe(
      '### Options\n\n#### `x.waitMs`\n\n`number` · 1 to 10 · default: 5\n\nWaits `Other` this long. More.',
    );
  });

  it.each([
    ['no doc comment', 'interface Options { a?: string }', /x\.a has no doc comment/],
    [
      'no default',
      'interface Options { /** Text. */ a?: string }',
      /x\.a does not name its default/,
    ],
    [
      'an unlisted base',
      'interface Options extends Base { /** Text. */ a: string }',
      /of Base, the base of Options/,
    ],
    ['another name', 'interface Other {}', /does not declare Options/],
  ])('the generators of the reference throw for options with %s', (_, text, message) => {
    expect(() => sections(text)).toThrow(message);
  });

  it.each([
    ['no comment', "  // Group: G\n  | 'a'\n  | 'b'"],
    ['no fix', "  // Group: G\n  /** Cause. */\n  | 'a'\n  | 'b'"],
    ['no group', "  /** Cause. Fix: it. */\n  | 'a'\n  | 'b'"],
  ])('the generators of the reference throw for an error code with %s', (_, members) => {
    const file = write(`export type Code =\n${members};`);
    expect(() => readErrorCodes(file)).toThrow(/"a" needs a group and a doc comment/);
  });
});
