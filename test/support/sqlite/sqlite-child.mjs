// A process that tests may kill: `node sqlite-child.mjs <role> <file> [arguments of the role]`. It writes each step to
// its standard output synchronously, so that a crash loses no line.
import { openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';

const [what, file, ...rest] = process.argv.slice(2);

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

  /**
   * Receives, runs and settles events until its work is done. It appends what was acknowledged to `<file>.ack`, a line
   * each, after the store has resolved.
   */
  async settle(name, count) {
    const store = await open();
    const own = new DatabaseSync(file);
    own.exec('PRAGMA busy_timeout = 5000; CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL)');
    own.close();
    const acknowledgements = openSync(`${file}.ack`, 'a');
    const acknowledge = (...words) => void writeSync(acknowledgements, `${words.join(' ')}\n`);
    const handlers = ['audit', 'book'];
    const workerId = randomUUID();
    await store.register({ id: workerId, leaseMs: 3_600_000, handlers: [] });
    const settle = async (lease) => {
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
    };
    const lane = async (number) => {
      for (let index = number; index < Number(count); index += 4) {
        const id = `${name}-${index}`;
        const event = {
          ...incoming(id, `key-${index % 7}`),
          raw: Buffer.alloc(100 + ((index * 7919) % 20_000), `${id} `),
          handlers,
          assign: index % 3 === 0 ? { workerId, handlers: ['book'] } : null,
        };
        const [receipt] = await store.receive([event]);
        if (receipt.outcome !== 'stored') throw new Error(`${id} is ${receipt.outcome}`);
        acknowledge('received', id);
        await Promise.all(receipt.claimed.map(settle));
        const wanted = handlers.map((handler) => ({ handler, limit: 2 }));
        if (index % 2 === 0)
          await Promise.all((await store.claim({ workerId, wanted })).map(settle));
      }
    };
    await Promise.all([0, 1, 2, 3].map(lane));
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

await roles[what](...rest);
