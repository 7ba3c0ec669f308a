// A process that tests may kill: `node sqlite-child.mjs <role> <file>`. It reports each step on its standard output,
// synchronously, so that no line is lost by a crash.
import { writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';

const [what, file] = process.argv.slice(2);

const tell = (...words) => writeSync(1, `${words.join(' ')}\n`);

async function open(settings = {}) {
  const { resolveSqliteOptions } =
    await import('../../../libs/payments/dist/stores/sqlite/sqlite-options.js');
  const { SqliteStore } = await import('../../../libs/payments/dist/stores/sqlite/sqlite-store.js');
  const store = new SqliteStore(
    { ...resolveSqliteOptions({ file, allowOldSqlite: true }), ...settings },
    systemRuntime,
  );
  await store.open();
  return store;
}

/** Registers without handlers, so that the version of the catalog stays 0. */
async function register(store) {
  const id = randomUUID();
  await store.register({ id, leaseMs: 60_000, handlers: [] });
  return (limit) => store.claim({ workerId: id, wanted: [{ handler: 'book', limit }] });
}

function incoming(id, orderingKey = null) {
  return {
    company: 'acme',
    id,
    eventType: 't',
    occurredAt: new Date(),
    orderingKey,
    raw: Buffer.from(`{"id":"${id}"}`),
    headers: {},
    oncePerTransaction: false,
    handlers: ['book'],
    catalogVersion: 0,
    assign: null,
    stale: false,
    source: 'webhook',
    reference: null,
    summary: null,
    fulfils: false,
  };
}

const roles = {
  /** Receives until it is killed. */
  async receive() {
    const store = await open();
    const lane = async (number) => {
      for (let count = 0; ; count += 1) {
        const id = `${process.pid}-${number}-${count}`;
        await store.receive([incoming(id)]);
        tell(id);
      }
    };
    await Promise.all([0, 1, 2, 3].map(lane));
  },

  /** Receives, claims and commits with an effect, until it is killed. */
  async commit() {
    const store = await open();
    const claim = await register(store);
    for (let count = 0; ; count += 1) {
      await store.receive([incoming(`${process.pid}-${count}`)]);
      const leases = await claim(3);
      await Promise.all(
        leases.map(async (lease) => {
          await store.commit(lease, (tx) => {
            tx.prepare('INSERT INTO ledger VALUES (?)').run(lease.id);
          });
          tell(lease.id);
        }),
      );
    }
  },

  /** Claims one delivery after the other, until it is killed. */
  async claim() {
    const store = await open();
    const claim = await register(store);
    for (let count = 0; ; count += 1) {
      await store.receive([incoming(`${process.pid}-${count}`)]);
      for (const { id } of await claim(1)) {
        tell(id);
      }
    }
  },

  /** Claims and completes until no delivery is due. */
  async work() {
    const store = await open();
    const claim = await register(store);
    for (let idle = 0; idle < 20;) {
      const leases = await claim(2);
      idle = leases.length === 0 ? idle + 1 : 0;
      for (const lease of leases) {
        tell('began', lease.id);
        await nextTurn();
        tell('ended', lease.id);
        if (!(await store.complete(lease)).settled) tell('lost', lease.id);
      }
    }
    await store.close();
  },

  /** Kills the thread of its store. */
  async threadDeath() {
    const { changedThread } = await import('./changed-thread.ts');
    const workers = [];
    process.on('worker', (worker) => workers.push(worker));
    const store = await open({ threadPath: changedThread(dirname(file), { commitMs: 500 }) });
    await store.receive([incoming('before')]);
    const receives = Array.from({ length: 300 }, (_, index) =>
      store.receive([incoming(`a${index}`)]),
    );
    const outcomes = Promise.allSettled(receives);
    // The thread has received the calls, and its commit takes 500 ms.
    await nextTurn();
    await nextTurn();
    await workers[0].terminate();
    const rejected = (await outcomes).filter(({ status }) => status === 'rejected');
    tell(
      rejected.length > 0,
      rejected.every(({ reason }) => reason.code === 'inbox_unavailable'),
    );
    const claim = await register(store);
    const [receipt] = await store.receive([incoming('after')]);
    tell(receipt.outcome, workers.length);
    await store.receive([incoming('lease')]);
    const leases = await claim(1);
    const committed = store.commit(leases[0], (tx) => tx.exec('CREATE TABLE effect (name TEXT)'));
    await committed;
    tell('committed');
    await store.close();
  },

  /** Opens a store and does not close it. No other work keeps the process alive. */
  async idle() {
    const store = await open();
    store.onWake(() => {});
    await store.receive([incoming('one')]);
    tell('idle');
  },

  /** Imports the package. */
  async import() {
    await import('nestjs-payments/sqlite');
    await import('../../../libs/payments/dist/index.js');
    tell('imported');
  },
};

await roles[what]();
