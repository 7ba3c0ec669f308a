import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startPostgres } from 'test-postgres';
import { ENGINES } from 'test-postgres/engines/engine-server';

import { freePort } from '../../support/processes/free-port.ts';
import { npm, succeed } from '../../support/processes/run-command.ts';
import { RunningProcess } from '../../support/processes/running-process.ts';
import { eventually } from '../../support/time/waiting.ts';
import type { PackedPackage } from '../packed-package.ts';
import type { SmokeContext, SmokePart } from '../smoke-part.ts';

type Postgres = Awaited<ReturnType<typeof startPostgres>>;
type Rows = readonly unknown[];

/** A folder of `examples/` with an application. */
interface Example {
  readonly name: string;
  /** The files to start, without suffix. The first receives the webhook requests. */
  readonly programs: readonly [string, ...string[]];
  /** The SQLite file with the bookings. Without it, they are in PostgreSQL. */
  readonly file?: string;
  readonly engine?: 'jetstream' | 'bullmq';
  /** Whether an ORM opens the transaction of `context.commit`. */
  readonly orm?: boolean;
  readonly companies?: readonly string[];
}

const EXAMPLES: readonly Example[] = [
  { name: 'express-sqlite', programs: ['main'], file: 'shop.db' },
  { name: 'fastify-typeorm', programs: ['main'], orm: true },
  { name: 'prisma', programs: ['main'], orm: true },
  { name: 'serverless', programs: ['local'] },
  { name: 'jetstream', programs: ['gateway', 'ledger'], engine: 'jetstream' },
  { name: 'bullmq', programs: ['gateway', 'ledger'], engine: 'bullmq', file: 'ledger.db' },
  {
    name: 'several-companies',
    programs: ['main'],
    file: 'companies.db',
    companies: ['acme', 'umbrella'],
  },
];

/** Lets each commit that has booked a payment fail, after its statements have succeeded. */
const REFUSE = `
  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''the test refuses the commit''; END';
  CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON bookings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();`;

/** The applications of `examples/`, installed and started as their README describes. */
export const part: SmokePart = {
  description: 'each application of examples/: starts, books one payment exactly once, ends',
  async run(context, checks) {
    const examples = new InstalledExamples(context.folder);
    const built = await checks.that('AP-23 examples: install and compile with strict', () =>
      examples.install(context),
    );
    if (!built) return;
    await checks.that('AP-23 handler-test: passes', () => examples.test());
    const postgres = await startPostgres();
    try {
      for (const example of EXAMPLES) {
        const { name, orm } = example;
        const engine = example.engine && ENGINES[example.engine];
        if (engine?.isInstalled() === false) {
          checks.note(`${name} is skipped, because ${engine.debianPackage} is not installed`);
          continue;
        }
        await using server = await engine?.start();
        const title = `${orm ? 'AP-07' : 'AP-23'} ${name}: starts, books a payment exactly once, ends`;
        await checks.that(orm ? `${title}, also after a failed commit` : title, () =>
          examples.run(example, postgres, server?.url),
        );
      }
    } finally {
      await postgres.end();
    }
  },
};

class InstalledExamples {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Copies the folder, and installs it with the packed packages in place of the published ones. */
  async install({ root, payments, emulator, engines }: SmokeContext): Promise<void> {
    await cp(join(root, 'examples'), this.#folder, {
      recursive: true,
      filter: (path) => !/\/(?:node_modules|dist|generated|\.env|[^/]+\.db.*)$/.test(path),
    });
    const path = join(this.#folder, 'package.json');
    const manifest = JSON.parse(await readFile(path, 'utf8')) as Record<string, object>;
    const tarballs = (kind: string) => {
      const ours = [payments, emulator, ...engines].filter(
        ({ manifest: { name } }) => name in manifest[kind]!,
      );
      const entry = ({ manifest: { name }, tarball }: PackedPackage) => [name, `file:${tarball}`];
      return { ...manifest[kind], ...Object.fromEntries(ours.map(entry)) };
    };
    await writeFile(
      path,
      JSON.stringify({
        ...manifest,
        dependencies: tarballs('dependencies'),
        devDependencies: tarballs('devDependencies'),
      }),
    );
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
    await npm(['install', '--ignore-scripts', ...quiet], this.#folder);
    // The client needs no engine. Without this variable, Prisma downloads one that only migrations need.
    const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
    await npm(['run', 'build'], this.#folder, env);
  }

  async test(): Promise<void> {
    const { output } = await npm(['test'], this.#folder);
    if (!/pass 1\b/.test(output)) throw new Error(output);
  }

  async run(example: Example, postgres: Postgres, engineUrl?: string): Promise<void> {
    const { name, programs, file, companies = ['default'] } = example;
    const port = await freePort();
    const flags = ['--webhook-url', `http://127.0.0.1:${port}/webhooks/payments`];
    if (example.companies) flags.push('--companies', companies.join(','));
    const ports = ['--port', '0', '--production-port', '0'];
    await using emulator = this.#start('npm', ['run', 'emulator', '--', ...flags, ...ports]);
    const [, url] = await emulator.prints(/sandbox +(http\S+)[^]*order-1/);

    const database = await postgres.createDatabase();
    const env = {
      PORT: String(port),
      DATABASE_URL: database,
      LEDGER_DATABASE_URL: await postgres.createDatabase(),
      NATS_URL: engineUrl,
      REDIS_URL: engineUrl,
    };
    const bookings = () =>
      file === undefined
        ? postgres.query(example.engine ? env.LEDGER_DATABASE_URL : database, SELECT)
        : readSqlite(join(this.#folder, file));
    await using processes = new AsyncDisposableStack();
    const running = programs.map((program) =>
      processes.use(this.#start('node', ['--env-file=.env', `dist/${name}/${program}.js`], env)),
    );
    const [receiver] = running;
    await eventually(() => fetch(`http://127.0.0.1:${port}/`));
    if (example.orm) await postgres.query(database, REFUSE);

    const command = (...args: string[]) =>
      succeed('node_modules/.bin/payments-emulator', [...args, '--url', url!], {
        cwd: this.#folder,
      });
    for (const company of companies) {
      const payment = ['--amount', '350', '--reference', 'order-1', '--company', company];
      await command('trigger', 'transaction.completed', ...payment);
    }
    if (example.orm) {
      await receiver!.prints(/the test refuses the commit/);
      checkRows(await bookings(), []);
      await postgres.query(database, 'DROP TRIGGER refuse ON bookings');
    }
    const expected = companies.map(() => ({ amount: 350 }));
    await eventually(async () => checkRows(await bookings(), expected));

    const sent = await fetch(`${url}/emulator/deliveries`);
    for (const { id } of (await sent.json()) as { id: string }[]) await command('replay', id);
    for (const one of running) {
      const { code, signal } = await one.kill('SIGTERM');
      if (code !== 0 && signal !== 'SIGTERM')
        throw new Error(`it ended with ${code ?? signal}:\n${one.output}`);
    }
    checkRows(await bookings(), expected);
  }

  #start(program: string, args: string[], env: NodeJS.ProcessEnv = {}): RunningProcess {
    return new RunningProcess(program, args, {
      cwd: this.#folder,
      env: { ...process.env, ...env },
      group: true,
    });
  }
}

const SELECT = 'SELECT amount FROM bookings';

function readSqlite(file: string): Rows {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database.prepare(SELECT).all();
  } finally {
    database.close();
  }
}

/** @throws unless these payments are booked, each once. */
function checkRows(rows: Rows, expected: Rows): void {
  if (JSON.stringify(rows) !== JSON.stringify(expected)) {
    throw new Error(`the bookings are ${JSON.stringify(rows)}`);
  }
}
