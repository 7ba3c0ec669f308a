import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runDemo } from './demo.js';
import { openDatabase, openFolder } from './place.js';

const HELP = `Plays a day of business: the shop against the emulator, through real HTTP.

  --once         ends after the verdict: 0 where the ledger is right, 1 where it is wrong
  --seed TEXT    the same seed plays the same day (default: day-1)
  --postgres     three shops behind one address, on PostgreSQL: an embedded one, or that of DATABASE_URL, where it
                 makes a database of its own and drops it at the end; DATABASE_URL alone does the same
  --shop FILE    plays against another build of the shop
  --wait N       how many seconds a check waits for what it expects (default: 10)
`;

/** Exit code of a process a signal ended, as shells write it. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

process.exitCode = await main();

async function main(): Promise<number> {
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // A second one ends the demo at once.
    process.once(signal, () => abort.abort(signal));
  }
  try {
    const { help, once, postgres, seed, shop, wait } = readFlags();
    if (help) {
      process.stdout.write(HELP);
      return 0;
    }
    const print = (line: string): void => void process.stdout.write(`${line}\n`);
    const url = process.env['DATABASE_URL'];
    await using place = await (postgres || url ? openDatabase(url) : openFolder());
    const options = { once, seed, shop, place, print, waitMs: wait * 1000, signal: abort.signal };
    return (await runDemo(options)) ? 0 : 1;
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
      once: { type: 'boolean', default: false },
      postgres: { type: 'boolean', default: false },
      seed: { type: 'string', default: 'day-1' },
      shop: { type: 'string', default: fileURLToPath(import.meta.resolve('shop/dist/main.js')) },
      wait: { type: 'string', default: '10' },
    },
  });
  const wait = Number(values.wait);
  if (!(wait >= 1 && wait <= 600)) throw new TypeError('--wait must be from 1 to 600');
  return { ...values, wait };
}
