import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { engineOfFlag } from 'test-postgres/engines/engine-server';
import { PROCESSES, runChaos } from './chaos.js';
import { openPostgres, openSqlite } from './chaos-store.js';
import type { ChaosStore } from './chaos-store.js';
import { runEngineChaos } from './chaos-with-engine.js';
import { toLines } from './report.js';
import type { ChaosResult } from './report.js';

const HELP = `Sends events and purchases to three application processes while it injects faults, and checks how each event and
each payment was handled.

  --seconds N         duration of events and faults on each store, in seconds; default 20
  --seed TEXT         the same seed plans the same events and faults; default: a new seed, which is printed
  --store NAME        sqlite, postgres or both; default both. postgres is an embedded server, or the server of
                      DATABASE_URL, which is not restarted
  --engine NAME       jetstream, bullmq or rabbitmq: instead, sends events to two processes of a gateway, which hands them
                      over to this engine, and two services with two processes each take them. Each of the three has an
                      embedded PostgreSQL server of its own, and --store and --no-webhooks have no effect
  --rate N            with --engine: about this many events per second; default 30
  --no-webhooks       the payments service sends no webhook requests: polls must find every payment
  --json FILE         writes the results to this file
  --application FILE  main file of another build of the application

The exit code is 0 if no promise was broken, and 1 otherwise.
`;

const STORES: Readonly<Record<string, readonly (() => Promise<ChaosStore>)[]>> = {
  sqlite: [openSqlite],
  postgres: [openServer],
  both: [openSqlite, openServer],
};

process.exitCode = await main();

async function main(): Promise<number> {
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => abort.abort(new Error(`stopped by ${signal}`)));
  }
  try {
    const { help, seconds, seed, application, store, json, webhooks, engine, rate } = readFlags();
    if (help) {
      print(HELP.trimEnd());
      return 0;
    }
    const results: ChaosResult[] = [];
    const add = (result: ChaosResult): void => {
      for (const line of toLines(result)) print(line);
      results.push(result);
    };
    const run = { seed, seconds, application, signal: abort.signal };
    if (engine !== null) {
      print(`chaos on ${engine}, seed ${seed}, ${seconds} s, ${rate} events/s`);
      for (const result of await runEngineChaos({ ...run, engine, rate })) {
        print(`  ${result.store}`);
        add(result);
      }
    } else {
      for (const open of STORES[store]!) {
        await using target = await open();
        const mode = webhooks ? '' : ', no webhooks';
        print(`chaos on ${target.kind}, seed ${seed}, ${seconds} s${mode}`);
        add(await runChaos({ ...run, store: target, webhooks }));
      }
    }
    if (json !== undefined) await writeFile(json, `${JSON.stringify(results, null, 2)}\n`);
    const broken = results.flatMap(({ violations }) => violations).length;
    const summary = broken === 0 ? 'no promise was broken' : `BROKEN PROMISES: ${broken}`;
    print(
      `chaos: ${summary} (seed ${seed}, ${engine ?? results.map((result) => result.store).join(' and ')})`,
    );
    return broken === 0 ? 0 : 1;
  } catch (error) {
    process.stderr.write(`chaos: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

function openServer(): Promise<ChaosStore> {
  return openPostgres(PROCESSES, process.env['DATABASE_URL']);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readFlags() {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '20' },
      seed: { type: 'string', default: String(Date.now() % 100_000) },
      store: { type: 'string', default: 'both' },
      engine: { type: 'string' },
      rate: { type: 'string', default: '30' },
      'no-webhooks': { type: 'boolean', default: false },
      json: { type: 'string' },
      application: {
        type: 'string',
        default: fileURLToPath(new URL('application.js', import.meta.url)),
      },
    },
  });
  const seconds = Number(values.seconds);
  if (!(seconds >= 1 && seconds <= 3600)) throw new TypeError('--seconds must be from 1 to 3600');
  if (!Object.hasOwn(STORES, values.store)) {
    throw new TypeError(`--store must be one of ${Object.keys(STORES).join(', ')}`);
  }
  const rate = Number(values.rate);
  if (!(rate >= 1 && rate <= 1000)) throw new TypeError('--rate must be from 1 to 1000');
  const engine = values.engine === undefined ? null : engineOfFlag(values.engine);
  return { ...values, seconds, rate, engine, webhooks: !values['no-webhooks'] };
}
