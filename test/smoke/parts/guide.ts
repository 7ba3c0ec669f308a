import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startPostgres } from 'test-postgres';
import { succeed } from '../../support/processes/run-command.ts';
import { eventually } from '../../support/time/waiting.ts';
import type { Checks } from '../checks.ts';
import { readCodeBlocks } from '../code-blocks.ts';
import type { CodeBlock } from '../code-blocks.ts';
import { generatedEnvironment, readJson } from '../nest-generator.ts';
import { RunningProcess } from '../../support/processes/running-process.ts';
import type { SmokeContext, SmokePart } from '../smoke-part.ts';

const LIMIT_MS = 5 * 60_000;

/** An application that follows the guide. */
interface Reader {
  readonly nest: 11 | 12;
  readonly adapter: 'Express' | 'Fastify';
}
/** Without `--all`, only the first reader runs. On Fastify, the reader follows only the quick start. */
const READERS: readonly Reader[] = [
  { nest: 12, adapter: 'Express' },
  { nest: 11, adapter: 'Express' },
  { nest: 12, adapter: 'Fastify' },
];

/** Pastes the code and the commands of pages of the guide into an empty folder, with the fixed ports of the pages. */
export const part: SmokePart = {
  description: 'the quick start and other pages of the guide, pasted into an empty folder',
  async run(context, checks) {
    for (const reader of READERS.slice(0, context.all ? undefined : 1)) {
      const folder = join(context.folder, `${reader.nest}-${reader.adapter}`);
      await mkdir(folder);
      await followGuide(new PastedApplication(reader, folder, context), checks);
    }
  },
};

async function followGuide(shop: PastedApplication, checks: Checks): Promise<void> {
  const { nest, adapter } = shop.reader;
  const name = `Nest ${nest}, ${adapter}`;
  const startMs = performance.now();
  const logged = await checks.that(
    `AP-15 quick start, ${name}: the application logs the payment`,
    () => quickStart(shop),
  );
  await using _emulator = shop.emulator;
  if (!logged) return;
  await checks.that(`AP-15 quick start, ${name}: takes less than five minutes`, () => {
    const tookMs = performance.now() - startMs;
    if (tookMs > LIMIT_MS) throw new Error(`it took ${Math.round(tookMs / 1000)} s`);
  });
  if (adapter === 'Fastify') return;
  const title = `AP-21 ${name}`;
  await checks.that(`${title}: the tests of docs/testing.md pass`, () => tests(shop));
  await checks.that(`${title}: the application of docs/expectations.md requests a payment`, () =>
    requestPayment(shop),
  );
  await checks.that(`${title}: the SQLite handler of docs/handle-events.md books the payment`, () =>
    sqlite(shop),
  );
  await checks.that(`${title}: the console of docs/console.md opens with its password`, () =>
    openConsole(shop),
  );
  await checks.that(`${title}: the handler for pg of docs/orm.md books the payment`, () =>
    postgres(shop),
  );
}

async function quickStart(shop: PastedApplication): Promise<void> {
  const page = await shop.open('getting-started.md', 'Quick start');
  const creation =
    shop.reader.nest === 12
      ? page
      : await shop.open('getting-started.md', 'NestJS 11 and CommonJS');
  await shop.run(creation.command('@nestjs/cli'), '..');
  for (const file of ['src/orders.ts', 'src/app.module.ts']) {
    await shop.paste(file, page.file(file));
  }
  if (shop.reader.adapter === 'Fastify') {
    await shop.run(page.command('platform-fastify'));
    await shop.paste('src/main.ts', page.file('src/main.fastify.ts'));
  }
  shop.emulator = shop.start(page.command('--webhook-url'), '..');
  await shop.emulator.prints(/PAYMENTS_WEBHOOK_SECRET/);
  await using application = await shop.startApplication(page.command('npm start'));
  await shop.pay();
  const line = page.blocks.find(({ language }) => language === 'text')?.code.trim() ?? '';
  if (!/order-1.*350/.test(line))
    throw new Error(`the page shows no log line of the payment: "${line}"`);
  // The log pads the level with spaces.
  const words = line.split(/\s+/).map((word) => word.replaceAll(/[^\w-]/g, '\\$&'));
  await application.prints(RegExp(words.join('\\s+')));
}

async function tests(shop: PastedApplication): Promise<void> {
  const page = await shop.open('testing.md');
  await shop.paste('src/orders.ts', page.file('orders.ts'));
  await shop.paste('src/orders.spec.ts', page.file('orders.spec.ts'));
  const spec = page.file('webhook.spec.ts').replaceAll("from './", "from '../src/");
  await shop.paste('test/webhook.e2e-spec.ts', spec);
  if (shop.reader.nest === 11) {
    const config = JSON.parse(page.file('jest.json')) as object;
    await shop.changeJson('package.json', ({ jest }) => ({
      jest: { ...(jest as object), ...config },
    }));
    await shop.changeJson('test/jest-e2e.json', () => config);
  }
  for (const script of ['test', 'test:e2e']) {
    const output = await shop.run(`npm run ${script}`);
    // The generator writes one test for each script, and each spec of the page has two.
    if (!/Tests:? +3 passed/.test(output)) throw new Error(output);
  }
}

/** Pastes the module of a page and the files that the module imports. */
async function requestPayment(shop: PastedApplication): Promise<void> {
  const page = await shop.open('expectations.md');
  const files = ['src/app.module.ts'];
  for (const file of files) {
    const code = page.file(file);
    await shop.paste(file, code);
    const imported = [...code.matchAll(/from '\.\/(.*)\.js'/g)].map(([, each]) => `src/${each}.ts`);
    files.push(...imported.filter((each) => !files.includes(each) && page.has(each)));
  }
  await using _application = await shop.startApplication();
  // Nest logs that it has started shortly before it listens.
  const output = await eventually(() => shop.run(page.command('curl')));
  if (!/"checkoutUrl":"http/.test(output)) throw new Error(output);
}

async function sqlite(shop: PastedApplication): Promise<void> {
  const page = await shop.open('handle-events.md', 'With SQLite');
  await shop.paste('src/sqlite-ledger.ts', page.file('sqlite-ledger.ts'));
  await shop.paste('src/app.module.ts', page.file('sqlite-app.module.ts'));
  await using _application = await shop.startApplication();
  await shop.pay();
  await eventually(() => {
    const database = new DatabaseSync(join(shop.folder, 'shop.db'), { readOnly: true });
    try {
      checkBookings(database.prepare('SELECT amount FROM bookings').all());
    } finally {
      database.close();
    }
  });
}

async function openConsole(shop: PastedApplication): Promise<void> {
  const page = await shop.open('console.md', 'Install');
  await shop.run(page.command('nestjs-payments-console'));
  await shop.paste('src/app.module.ts', page.file('app.module.ts'));
  const start = page.command('npm start');
  await using _application = await shop.startApplication(start);
  const [, password] = /CONSOLE_PASSWORD='(.*)'/.exec(start) ?? [];
  for (const [given, expected] of [
    ['another password', 401],
    [password, 200],
  ] as const) {
    const headers = { authorization: `Basic ${btoa(`ops:${given}`)}` };
    // Nest logs that it has started shortly before it listens.
    const { status } = await eventually(() =>
      fetch('http://127.0.0.1:3000/ops/payments', { headers }),
    );
    if (status !== expected) throw new Error(`the console responds ${status}, not ${expected}`);
  }
}

async function postgres(shop: PastedApplication): Promise<void> {
  const page = await shop.open('orm.md');
  await shop.run(page.command('@types/pg'));
  for (const file of ['payments-options.ts', 'pg/orders.ts', 'pg/app.module.ts']) {
    await shop.paste(`src/${file}`, page.file(file));
  }
  const main = await readFile(join(shop.folder, 'src/main.ts'), 'utf8');
  const [changed] = page.blocks.filter(({ code }) => /^import .*pg\/app\.module/.test(code));
  await shop.paste(
    'src/main.ts',
    main.replace(/^import .*app\.module.*\n/m, () => changed?.code ?? ''),
  );
  const server = await startPostgres();
  try {
    const database = await server.createDatabase();
    await server.query(database, page.file('tables.sql'));
    await server.query(database, `INSERT INTO orders (reference) VALUES ('order-1')`);
    await appendFile(join(shop.folder, '.env'), `\nDATABASE_URL='${database}'\n`);
    await using _application = await shop.startApplication();
    await shop.pay();
    await eventually(async () =>
      checkBookings(await server.query(database, 'SELECT amount FROM bookings')),
    );
  } finally {
    await server.end();
  }
}

/** @throws unless the payment of the quick start was booked once. */
function checkBookings(rows: readonly unknown[]): void {
  if (JSON.stringify(rows) !== '[{"amount":350}]') {
    throw new Error(`the bookings are ${JSON.stringify(rows)}`);
  }
}

/** A page of the guide, or a section of it. */
class Page {
  readonly blocks: readonly CodeBlock[];

  constructor(blocks: readonly CodeBlock[]) {
    this.blocks = blocks;
  }

  /** The only block of shell commands that contains the text. */
  command(text: string): string {
    const found = this.blocks.filter(
      ({ language, code }) => language === 'sh' && code.includes(text),
    );
    if (found.length !== 1)
      throw new Error(`${found.length} commands of the page contain "${text}"`);
    return found[0]!.code;
  }

  has(name: string): boolean {
    return this.blocks.some(({ attributes }) => attributes.get('file') === name);
  }

  file(name: string): string {
    const block = this.blocks.find(({ attributes }) => attributes.get('file') === name);
    if (block === undefined) throw new Error(`the page has no file ${name}`);
    return block.code;
  }
}

/** The application in the folder `shop` of an empty folder. */
class PastedApplication {
  readonly reader: Reader;
  readonly folder: string;
  /** The emulator of the quick start, which all pages use. */
  emulator: RunningProcess | null = null;
  readonly #context: SmokeContext;

  constructor(reader: Reader, folder: string, context: SmokeContext) {
    this.reader = reader;
    this.folder = join(folder, 'shop');
    this.#context = context;
  }

  async open(page: string, heading?: string): Promise<Page> {
    return new Page(await readCodeBlocks(join(this.#context.root, 'docs', page), heading));
  }

  /** Writes a file. Nest 11 generates CommonJS applications, for which the guide leaves out the suffix of imports. */
  async paste(file: string, code: string): Promise<void> {
    const path = join(this.folder, file);
    await mkdir(dirname(path), { recursive: true });
    const commonjs = this.reader.nest === 11;
    await writeFile(path, commonjs ? code.replaceAll(/(from '\.[^']*)\.js'/g, "$1'") : code);
  }

  async changeJson(file: string, change: (json: Record<string, unknown>) => object): Promise<void> {
    const path = join(this.folder, file);
    const json = await readJson<Record<string, unknown>>(path);
    await writeFile(path, JSON.stringify({ ...json, ...change(json) }, null, 2));
  }

  /** Runs commands to their end, and returns their output. @throws with the output if one of them fails. */
  async run(code: string, folder = '.'): Promise<string> {
    const cwd = join(this.folder, folder);
    const env = { ...generatedEnvironment(), CI: 'true', NO_COLOR: '1' };
    return (await succeed('sh', ['-ec', this.#withTarballs(code)], { cwd, env })).output;
  }

  start(code: string, folder = '.'): RunningProcess {
    const cwd = join(this.folder, folder);
    return new RunningProcess('sh', ['-ec', code], {
      cwd,
      env: generatedEnvironment(),
      group: true,
    });
  }

  async startApplication(command = 'npm start'): Promise<RunningProcess> {
    const application = this.start(command);
    try {
      await application.prints(/Nest application successfully started/);
    } catch (error) {
      await application[Symbol.asyncDispose]();
      throw error;
    }
    return application;
  }

  /** Completes the payment of the quick start. */
  async pay(): Promise<void> {
    const page = await this.open('getting-started.md', 'Quick start');
    await this.run(page.command(' trigger '), '..');
  }

  /** The packages are not published, so `npm install` gets the tarballs. */
  #withTarballs(code: string): string {
    const { payments, consolePackage, emulator } = this.#context;
    const tarballs = new Map(
      [payments, consolePackage, emulator].map(({ manifest, tarball }) => [manifest.name, tarball]),
    );
    return code.replaceAll(/^npm install .*$/gm, (line) =>
      line
        .split(' ')
        .map((word) => tarballs.get(word) ?? word)
        .join(' '),
    );
  }
}
