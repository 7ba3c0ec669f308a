// Receives, runs and settles events until its work is done: `node merchant.mjs <file> <name> <events>`. It appends what
// was acknowledged to `<file>.ack`, a line each, after the store has resolved.
import { randomUUID } from 'node:crypto';
import { openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { systemRuntime } from '../../../../libs/payments/dist/runtime/payments-runtime.js';

const [file, name, count] = process.argv.slice(2);
const store = sqliteInbox({ file, allowOldSqlite: true }).create(systemRuntime);
await store.open();
const own = new DatabaseSync(file);
own.exec('PRAGMA busy_timeout = 5000; CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL)');
own.close();
const acknowledgements = openSync(`${file}.ack`, 'a');
const acknowledge = (...words) => void writeSync(acknowledgements, `${words.join(' ')}\n`);

const worker = randomUUID();
const patterns = ['*'];
const { version } = await store.register({
  id: worker,
  leaseMs: 3_600_000,
  handlers: [
    { name: 'audit', patterns },
    { name: 'book', patterns },
  ],
});

async function settle(lease) {
  const { id, handler } = lease;
  if (handler === 'book') {
    await store.commit(lease, (tx) => {
      tx.prepare('INSERT INTO effect VALUES (?)').run(id);
    });
  } else if (id.endsWith('5') && lease.attempt === 1) {
    await store.fail(lease, { error: 'planned', retryInMs: 3_600_000 });
    acknowledge('failed', id, handler);
    return;
  } else {
    await store.complete(lease);
  }
  acknowledge('done', id, handler);
}

const lane = async (number) => {
  for (let index = number; index < Number(count); index += 4) {
    const id = `${name}-${index}`;
    const [receipt] = await store.receive([
      {
        company: 'acme',
        id,
        eventType: 'test.happened',
        occurredAt: new Date(),
        orderingKey: `key-${index % 7}`,
        raw: Buffer.alloc(100 + ((index * 7919) % 20_000), `${id} `),
        headers: {},
        onceKey: null,
        handlers: ['audit', 'book'],
        catalogVersion: version,
        assign: index % 3 === 0 ? { workerId: worker, handlers: ['book'] } : null,
        stale: false,
        source: 'webhook',
        reference: null,
        summary: null,
        fulfils: false,
      },
    ]);
    if (receipt.outcome !== 'stored') throw new Error(`${id} is ${receipt.outcome}`);
    acknowledge('received', id);
    await Promise.all(receipt.claimed.map(settle));
    const wanted = ['audit', 'book'].map((handler) => ({ handler, limit: 2 }));
    if (index % 2 === 0)
      await Promise.all((await store.claim({ workerId: worker, wanted })).map(settle));
  }
};
await Promise.all([0, 1, 2, 3].map(lane));
await store.close();
