import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runDemo } from './demo.js';
import { createPostgresDatabase, createSqliteFolder } from './temporary-database.js';

const HELP = `Plays scenes of a business day, in which the shop uses the emulator over HTTP.

  --once         end after the last check; exit code 0 if the ledger and all checks are correct, otherwise 1
  --seed TEXT    seed of ids and faults: the same seed plays the same scenes (default: day-1)
  --postgres     three shops behind one address, on an embedded PostgreSQL
  --telemetry    run two shops with OpenTelemetry (three with --postgres): print the trace of one payment, and serve
                 the metrics for Prometheus; exit code 1 if a span is missing
  --engine NAME  jetstream, bullmq or rabbitmq: plays other scenes, in which a gateway hands events over to this engine,
                 a ledger service and a mail service take them, and the engine is killed. The machine needs the server.
                 --postgres, --telemetry and --shop have no effect
  --shop FILE    main file of another build of the shop
  --wait N       seconds that a check waits for the expected result (default: 10)

If DATABASE_URL is set, the demo creates a database on this PostgreSQL server, as with --postgres, and drops it at the end.
`;

/** The exit codes that a shell shows for processes that a signal has ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

process.exitCode = await main();

async function main(): Promise<number> {
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // A second signal ends the process at once.
    process.once(signal, () => abort.abort(signal));
  }
  try {
    const { help, once, postgres, seed, shop, telemetry, wait, engine } = readFlags();
    if (help) {
      process.stdout.write(HELP);
      return 0;
    }
    const print = (line: string): void => void process.stdout.write(`${line}\n`);
    const common = { once, seed, print, waitMs: wait * 1000, signal: abort.signal };
    if (engine !== undefined) {
      // It imports development dependencies, so it is loaded only if it is needed.
      const { runEngineDemo } = await import('./engine/engine-demo.js');
      return (await runEngineDemo({ ...common, engine })) ? 0 : 1;
    }
    const url = process.env['DATABASE_URL'];
    await using database = await (postgres || url
      ? createPostgresDatabase(url)
      : createSqliteFolder());
    return (await runDemo({ ...common, shop, database, telemetry })) ? 0 : 1;
  } catch (error) {
    const reason = abort.signal.reason as keyof typeof EXIT_CODES | undefined;
    if (reason !== undefined) return EXIT_CODES[reason];
    process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

function readFlags() {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      engine: { type: 'string' },
      once: { type: 'boolean', default: false },
      postgres: { type: 'boolean', default: false },
      seed: { type: 'string', default: 'day-1' },
      shop: { type: 'string', default: fileURLToPath(import.meta.resolve('shop/dist/main.js')) },
      telemetry: { type: 'boolean', default: false },
      wait: { type: 'string', default: '10' },
    },
  });
  const wait = Number(values.wait);
  if (!(wait >= 1 && wait <= 600))
    throw new TypeError('--wait must be a number of seconds from 1 to 600');
  return { ...values, wait };
}
