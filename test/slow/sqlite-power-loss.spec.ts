import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { StoredEvent } from 'nestjs-payments';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { systemRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import { SeededRandom } from '../chaos/seeded-random.js';
import { Recorder, whyNotRecorded } from '../support/sqlite/power-loss/recorder.js';
import type { FileOperation } from '../support/sqlite/power-loss/recorder.js';
import { SURVIVALS, VolatileDisk } from '../support/sqlite/power-loss/volatile-disk.js';

/** How many power losses are tried with each recording. */
const CUTS = 60;
const EVENTS = 160;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'payments-power-loss-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Records the file operations of several processes that use one inbox at the same time. */
async function record(names: readonly string[]): Promise<FileOperation[]> {
  const recorder = new Recorder();
  try {
    mkdirSync(join(folder, 'inbox'));
    const file = join(folder, 'inbox', 'inbox.db');
    const program = join(import.meta.dirname, '../support/sqlite/sqlite-child.mjs');
    const env = { ...process.env, ...recorder.environment(file) };
    await Promise.all(
      names.map((name) => {
        const args = [
          '--no-warnings',
          program,
          'settle',
          file,
          name,
          String(EVENTS / names.length),
        ];
        return promisify(execFile)(process.execPath, args, { env });
      }),
    );
    return recorder.operations();
  } finally {
    recorder.remove();
  }
}

/** The operations after which the power fails: half of them right after an acknowledgement. */
function cutsOf(operations: readonly FileOperation[], random: SeededRandom): Set<number> {
  const acknowledgements = operations.flatMap(({ path }, index) =>
    path.endsWith('.ack') ? [index] : [],
  );
  return new Set(
    Array.from({ length: CUTS }, (_, index) =>
      index % 2 === 0 ? random.pick(acknowledgements) : random.between(0, operations.length - 1),
    ),
  );
}

/** Describes every defect of the inbox after each power loss; empty if there is none. */
async function losses(
  operations: readonly FileOperation[],
  seed: number,
  honest = true,
): Promise<string[]> {
  const random = new SeededRandom(seed);
  const cuts = cutsOf(operations, random);
  const disk = new VolatileDisk(honest);
  const acknowledged: string[] = [];
  const examined: Promise<string[]>[] = [];
  for (const [index, operation] of operations.entries()) {
    if (operation.path.endsWith('.ack')) {
      if (operation.kind === 'write') acknowledged.push(operation.data.toString().trim());
    } else disk.apply(operation);
    if (!cuts.has(index)) continue;
    const survival = random.pick(SURVIVALS);
    const after = join(folder, `after-${seed}-${index}`);
    mkdirSync(after);
    disk.losePower(after, survival, () => random.next());
    const examination = examine(join(after, 'inbox.db'), [...acknowledged])
      .catch((error: unknown) => [String(error)])
      .then((found) => {
        rmSync(after, { recursive: true });
        return found.map((line) => `seed ${seed}, operation ${index}, ${survival}: ${line}`);
      });
    examined.push(examination);
    // At most four at a time.
    await examined.at(-4);
  }
  return (await Promise.all(examined)).flat();
}

async function examine(file: string, acknowledged: readonly string[]): Promise<string[]> {
  const store = sqliteInbox({ file, allowOldSqlite: true }).create(systemRuntime);
  await store.open();
  try {
    const events = await eventsOf(store);
    const [integrity, effects] = readFile(file);
    const booked = [...events.values()].flatMap((event) =>
      stateOf(event, 'book') === 'done' ? [event.id] : [],
    );
    const wrong: string[] = [];
    if (integrity !== 'ok') wrong.push(integrity);
    if (effects.join() !== booked.toSorted().join()) {
      wrong.push(`effects ${effects.join()} but done ${booked.toSorted().join()}`);
    }
    for (const line of acknowledged) {
      const [what, id, handler] = line.split(' ') as [string, string, string];
      const event = events.get(id);
      const kept =
        what === 'received' ? event !== undefined : stateOf(event, handler) === STATES[what];
      if (!kept) wrong.push(`${line} is undone`);
    }
    for (const { id, deliveries } of events.values()) {
      if (deliveries.length !== 2) wrong.push(`${id} has ${deliveries.length} deliveries`);
    }
    const [last] = acknowledged.filter((line) => line.startsWith('received')).slice(-1);
    if (last !== undefined) {
      const id = last.split(' ')[1]!;
      const raw = (await store.find('acme', id))?.raw?.toString() ?? '';
      if (!raw.startsWith(`${id} `)) wrong.push(`${id} has another body`);
    }
    return wrong;
  } finally {
    await store.close();
  }
}

const STATES: Readonly<Record<string, string>> = { done: 'done', failed: 'pending' };

function stateOf(event: StoredEvent | undefined, handler: string): string | undefined {
  return event?.deliveries.find((delivery) => delivery.handler === handler)?.state;
}

async function eventsOf(store: InboxStore): Promise<Map<string, StoredEvent>> {
  const page = await store.list({ filter: {}, order: 'oldest', limit: 1000, after: null });
  return new Map(page.events.map((event) => [event.id, event]));
}

function readFile(file: string): [integrity: string, effects: string[]] {
  const database = new DatabaseSync(file);
  try {
    const integrity = database.prepare('PRAGMA integrity_check').get() as {
      integrity_check: string;
    };
    // The power may have failed before the table was created.
    const made = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'effect'").get();
    const rows = made === undefined ? [] : database.prepare('SELECT id FROM effect').all();
    return [integrity.integrity_check, rows.map(({ id }) => String(id)).toSorted()];
  } finally {
    database.close();
  }
}

const reason = whyNotRecorded();
const describeIfRecorded = reason === null ? describe : describe.skip;

describeIfRecorded(
  `a SQLite inbox after a power loss${reason ? ` (skipped: ${reason})` : ''}`,
  () => {
    it('IN-09 after a power loss, a SQLite file of two processes has every acknowledged event and outcome, and an effect for each done delivery', async () => {
      const operations = await record(['a', 'b']);
      expect(await losses(operations, 1)).toEqual([]);
    }, 180_000);

    it('the test of power losses detects a disk that ignores syncs', async () => {
      const operations = await record(['a']);
      const wrong = await losses(operations, 2, false);
      expect(wrong.filter((line) => line.endsWith('is undone')).length).toBeGreaterThan(CUTS);
    }, 180_000);
  },
);
