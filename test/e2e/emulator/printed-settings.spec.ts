import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { commandInProcess, emulatorInProcess } from '../../support/emulator/emulator-in-process.js';
import { FREE_PORTS } from '../../support/emulator/emulator-process.js';

const NAMES = [
  'PAYMENTS_BASE_URL',
  'PAYMENTS_CLIENT_ID',
  'PAYMENTS_CLIENT_SECRET',
  'PAYMENTS_WEBHOOK_SECRET',
];
const PRINT = `console.log(JSON.stringify(${JSON.stringify(NAMES)}.map((name) => process.env[name])))`;
const CONFIG = `
  import { ConfigModule } from '@nestjs/config';
  await ConfigModule.forRoot({ envFilePath: process.argv[1] });
  ${PRINT}`;

let folder: string;
beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'emulator-settings-'))));
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Returns the printed `export` lines as one text. */
function settingsIn(out: string): string {
  const [lines] = /(?:^export \S+=.*\n)+(?=\n)/m.exec(out) ?? [];
  if (lines === undefined) throw new Error(`no settings in ${out}`);
  return lines;
}

/** Returns the settings that a separate process reads. */
async function seenBy(program: string, ...args: string[]): Promise<string[]> {
  const env = { PATH: process.env['PATH'] };
  const run = promisify(execFile);
  const { stdout } = await run(program, args, { cwd: import.meta.dirname, env });
  return JSON.parse(stdout) as string[];
}

const seenByShell = (shell: string, lines: string): Promise<string[]> =>
  // The shell runs the lines as if they were pasted, and then starts the application.
  seenBy(shell, '-c', `${lines}\n"$0" -e "$1"`, process.execPath, PRINT);
const seenByNode = (file: string): Promise<string[]> =>
  seenBy(process.execPath, `--env-file=${file}`, '-e', PRINT);
const seenByDotenv = (file: string): Promise<string[]> =>
  seenBy(process.execPath, '--input-type=module', '-e', CONFIG, file);

describe('the settings that payments-emulator prints', () => {
  it.each([
    ['generated values', []],
    ['special characters', ['--client-secret', ' a b$c#d`e"f\\n ', '--webhook-secret', "it's #1 "]],
  ])(
    'AP-16 the printed settings work in a shell and as a .env file with dotenv and Node: %s',
    async (_, flags) => {
      const { out } = await emulatorInProcess('--client-id', 'shop', ...flags);
      const lines = settingsIn(out);
      const file = join(folder, '.env');
      await writeFile(file, lines);
      const seen = await seenByShell('sh', lines);
      expect(seen).toEqual([
        expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
        'shop',
        flags[1] ?? expect.stringMatching(/^sk_sandbox_\w+$/),
        flags[3] ?? expect.stringMatching(/^whsec_\w+$/),
      ]);
      expect(await seenByShell('bash', lines)).toEqual(seen);
      expect(await seenByNode(file)).toEqual(seen);
      expect(await seenByDotenv(file)).toEqual(seen);
    },
  );

  it('AP-16 the printed settings are the same at the next start with the same --seed, and differ without --seed', async () => {
    const start = async (...flags: string[]): Promise<string> => {
      const { out } = await emulatorInProcess(...flags);
      return settingsIn(out).replace(/^.*BASE_URL.*\n/m, '');
    };
    const first = await start('--seed', 'my shop');
    expect(first.split('\n')).toHaveLength(4);
    expect(await start('--seed', 'my shop')).toBe(first);
    expect(await start()).not.toBe(first);
  });
});

describe('payments-emulator --companies', () => {
  it('AP-16 the emulator starts with several companies, and prints and saves the settings of each', async () => {
    const file = join(folder, '.env');
    const webhook = 'http://127.0.0.1:9/webhooks/payments/';
    const flags = ['--save-env', file, '--webhook-url', webhook, '--companies', 'acme, my-shop'];
    const { out } = await emulatorInProcess(...flags);
    const settings = parseEnv(settingsIn(out).replaceAll('export ', ''));
    const { PAYMENTS_BASE_URL: url = '', ...ofCompanies } = settings;
    expect(Object.keys(ofCompanies)).toEqual(
      ['ACME', 'MY_SHOP'].flatMap((id) => [
        `${id}_CLIENT_ID`,
        `${id}_CLIENT_SECRET`,
        `${id}_WEBHOOK_SECRET`,
      ]),
    );
    expect(new Set(Object.values(settings)).size).toBe(7);
    expect(parseEnv(await readFile(file, 'utf8'))).toEqual(settings);
    expect(out).toContain(`${webhook}acme\n`);
    expect(out).toContain(`${webhook}my-shop\n`);
    expect(out).toContain(' --company acme ');
    const companies = async (): Promise<unknown> =>
      (await fetch(`${url}/emulator/companies`)).json();
    const before = await companies();
    expect(before).toMatchObject([
      { companyId: 'acme', clientId: settings['ACME_CLIENT_ID'] },
      { companyId: 'my-shop', webhook: { url: `${webhook}my-shop` } },
    ]);
    await fetch(`${url}/emulator/reset`, { method: 'POST' });
    expect(await companies()).toEqual(before);
  });
});

describe('payments-emulator --save-env', () => {
  /** Starts an emulator that saves its settings. Returns the printed settings. */
  async function save(file: string, ...flags: string[]): Promise<string[]> {
    const { out } = await emulatorInProcess('--save-env', file, ...flags);
    return seenByShell('sh', settingsIn(out));
  }

  it('AP-16 --save-env saves the settings in a file for dotenv and Node that only the owner can read', async () => {
    const file = join(folder, '.env');
    const printed = await save(file);
    expect(await seenByNode(file)).toEqual(printed);
    expect(await seenByDotenv(file)).toEqual(printed);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('AP-16 --save-env replaces its own lines only, and keeps all other lines', async () => {
    const file = join(folder, '.env');
    await writeFile(file, '# mine\r\nPORT=3000');
    await save(file);
    const saved = await readFile(file, 'utf8');
    await writeFile(file, `${saved}DATABASE_URL='postgres://x'\n`);
    const printed = await save(file, '--seed', 'another');
    expect(await seenByNode(file)).toEqual(printed);
    const text = await readFile(file, 'utf8');
    expect(text).toMatch(
      /^# mine\r\nPORT=3000\n\n# Written by .*\n(PAYMENTS_\w+=.+\n){4}DATABASE_URL='postgres:\/\/x'\n$/,
    );
  });

  it('AP-16 --save-env ignores empty values above its lines, as in a copy of .env.example', async () => {
    const file = join(folder, '.env');
    const example = "# the client id\nPAYMENTS_CLIENT_ID=\nPAYMENTS_WEBHOOK_SECRET=''\n";
    await writeFile(file, example);
    await save(file);
    const printed = await save(file, '--seed', 'another');
    expect(await seenByNode(file)).toEqual(printed);
    expect(await seenByDotenv(file)).toEqual(printed);
    expect(await readFile(file, 'utf8')).toMatch(
      new RegExp(`^${example}\n# Written by .*\n(PAYMENTS_\\w+=.+\n){4}$`),
    );
  });

  it.each([
    [
      'a line below its lines sets a variable to an empty value',
      '# Written by payments-emulator --save-env, which replaces these lines at each start:\n' +
        'PAYMENTS_CLIENT_ID=a\nPORT=3000\nPAYMENTS_CLIENT_ID=\n',
      'PAYMENTS_CLIENT_ID',
    ],
    [
      'another line sets a variable to another value',
      'PAYMENTS_CLIENT_SECRET=real\n',
      'PAYMENTS_CLIENT_SECRET',
    ],
    [
      'the lines of an earlier start contain the URL of another service',
      '# Written by payments-emulator --save-env, which replaces these lines at each start:\n' +
        'PAYMENTS_BASE_URL=https://payments.example.com\n',
      'PAYMENTS_BASE_URL',
    ],
  ])('AP-16 the emulator does not start with --save-env if %s', async (_, text, name) => {
    const file = join(folder, '.env');
    await writeFile(file, text);
    expect(await commandInProcess(...FREE_PORTS, '--save-env', file)).toEqual({
      code: 1,
      out: '',
      err: `payments-emulator: ${file} is unchanged: it already sets ${name} to other values. Remove these lines from the file, or save to another file\n`,
    });
    expect(await readFile(file, 'utf8')).toBe(text);
  });
});
