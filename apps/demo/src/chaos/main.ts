import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDatabase, openFolder } from '../place.js';
import type { Place } from '../place.js';
import { runChaos } from './chaos.js';
import { holds, toLines } from './tally.js';

const HELP = `Kills shops (SIGKILL) while payments come in, told of twice, late and out of order, and counts what is lost.

  --seconds N    how long, on each store; 20 by default
  --seed TEXT    fixes what is done and when; made up, and printed, by default
  --store NAME   sqlite (two shops on one file), postgres (three, whose server is restarted and crashed in between;
                 an embedded one, or that of DATABASE_URL, which is left running) or both, the default
  --shop FILE    takes another build of the shop

The exit code is 0 where nothing acknowledged was lost and nothing was booked twice, and 1 otherwise.
`;

const STORES: Readonly<Record<string, readonly (() => Promise<Place>)[]>> = {
  sqlite: [openFolder],
  postgres: [openServer],
  both: [openFolder, openServer],
};

process.exitCode = await main();

async function main(): Promise<number> {
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => abort.abort(new Error(`ended by ${signal}`)));
  }
  try {
    const { help, seconds, seed, shop, store } = readFlags();
    if (help) {
      print(HELP.trimEnd());
      return 0;
    }
    let held = true;
    for (const open of STORES[store]!) {
      await using place = await open();
      print(`chaos on ${place.name}, seed ${seed}, ${seconds} s`);
      const result = await runChaos({ seed, seconds, shop, place, signal: abort.signal });
      for (const line of toLines(result)) print(line);
      held &&= holds(result);
    }
    print(held ? 'chaos: nothing lost, nothing booked twice' : 'chaos: THE LEDGER IS WRONG');
    return held ? 0 : 1;
  } catch (error) {
    process.stderr.write(`chaos: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

function openServer(): Promise<Place> {
  return openDatabase(process.env['DATABASE_URL']);
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
      shop: { type: 'string', default: fileURLToPath(import.meta.resolve('shop/dist/main.js')) },
    },
  });
  const seconds = Number(values.seconds);
  if (!(seconds >= 1 && seconds <= 3600)) throw new TypeError('--seconds must be from 1 to 3600');
  if (!Object.hasOwn(STORES, values.store)) {
    throw new TypeError(`--store must be one of ${Object.keys(STORES).join(', ')}`);
  }
  return { ...values, seconds };
}
