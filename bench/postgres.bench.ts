// Measures postgresInbox() on a server of its own, and prints what bench/postgres.results.md holds. Every figure
// that matters is a ratio of an empty store and a full one, measured in turn.
//
//   node --experimental-transform-types --import ./bench/postgres.loader.mjs bench/postgres.bench.ts
//
// FINISHED (1000000) and ROUNDS (15) make it shorter. It needs 3 GB in the system's temporary folder for a
// while, and ends by itself.
import { randomUUID } from 'node:crypto';
import { postgresInbox } from '../libs/payments/src/inbox/postgres/index.js';
import type { IncomingEvent, InboxStore } from '../libs/payments/src/inbox/store.contract.js';
import { systemRuntime } from '../libs/payments/src/payments.runtime.js';
import { startPostgres } from '../test/support/postgres.server.js';

/** How many finished events the full store holds. */
const FINISHED = Number(process.env['FINISHED'] ?? 1_000_000);
/** Rounds that the empty and the full store take in turn, so that a busy machine is busy for both. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 15);
const EVENTS = 400;
const CONCURRENCY = 50;

type Sample = ReadonlyMap<string, number>;

const server = await startPostgres();
try {
  const [empty, full] = [await openStore(), await openStore()];
  await fill(full.schema, full.url);
  await round(empty.store);
  await round(full.store);
  const samples: { empty: Sample; full: Sample }[] = [];
  for (let n = 0; n < ROUNDS; n += 1) {
    // First one, then the other, and the other way round the next time.
    const first = n % 2 === 0 ? empty : full;
    const a = await round(first.store);
    const b = await round(first === empty ? full.store : empty.store);
    samples.push(first === empty ? { empty: a, full: b } : { empty: b, full: a });
  }
  report(samples);
  await measurePruning(full.store);
  await empty.store.close();
  await full.store.close();
} finally {
  await server.end();
}

async function openStore(): Promise<{ store: InboxStore; schema: string; url: string }> {
  const url = await server.createDatabase();
  const schema = 'payments_inbox';
  const store = postgresInbox({ connectionString: url, schema, statementTimeoutMs: 60_000 }).create(
    systemRuntime,
  );
  await store.open();
  return { store, schema, url };
}

/** A million events as a year of business leaves them: handled by two handlers, five to a transaction. */
async function fill(schema: string, url: string): Promise<void> {
  const begun = performance.now();
  await server.query(
    url,
    `WITH made AS (
       INSERT INTO ${schema}.events (company, id, event_type, occurred_at, received_at, ordering_key,
                                     ordering, digest, raw, unhandled)
       SELECT 'default', x.id, 'transaction.completed', now() - interval '1 day',
              now() - interval '1 day' + n * interval '10 milliseconds', (n / 5)::text,
              md5((n / 5)::text)::uuid, sha256(x.id::bytea), repeat('{"amount":1}', 30)::bytea, false
         FROM (SELECT n, gen_random_uuid()::text AS id FROM generate_series(1, ${FINISHED}) n) x
       RETURNING seq, ordering, received_at
     )
     INSERT INTO ${schema}.deliveries (event, handler, state, attempts, token, finished_at, ordering)
     SELECT seq, handler, 'done', 1, 1, received_at, ordering
       FROM made CROSS JOIN unnest(ARRAY['book', 'mail']) AS handler`,
  );
  await server.query(
    url,
    `INSERT INTO ${schema}.tallies SELECT handler, 'done', ${FINISHED}
       FROM unnest(ARRAY['book', 'mail']) AS handler`,
  );
  // What autovacuum would have done in that year.
  await server.query(url, 'VACUUM ANALYZE');
  log(
    `filled with ${FINISHED} finished events in ${((performance.now() - begun) / 1000).toFixed(0)} s`,
  );
}

/** Milliseconds for each of what a store does. */
async function round(store: InboxStore): Promise<Sample> {
  const events = Array.from({ length: EVENTS }, () => incoming());
  const sample = new Map<string, number>();
  const measure = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const begun = performance.now();
    const result = await work();
    sample.set(name, performance.now() - begun);
    return result;
  };
  await measure('receive, one at a time (50)', async () => {
    for (const event of events.slice(0, 50)) await store.receive([event]);
  });
  await measure(`receive, ${CONCURRENCY} at a time (350)`, () =>
    inParallel(events.slice(50), (event) => store.receive([event])),
  );
  const leases = await measure('claim, 20 at a time (400)', async () => {
    const all = [];
    for (;;) {
      const some = await store.claim({ handlers: ['book'], limit: 20, leaseMs: 60_000 });
      if (some.length === 0) return all;
      all.push(...some);
    }
  });
  if (leases.length !== EVENTS) throw new Error(`${leases.length} of ${EVENTS} were claimed`);
  await measure('complete, 10 at a time (200)', () =>
    inParallel(leases.slice(0, 200), (lease) => store.complete(lease), 10),
  );
  await measure('commit, 8 at a time (200)', () =>
    inParallel(leases.slice(200), (lease) => store.commit(lease, () => {}), 8),
  );
  await measure('duplicate, one at a time (50)', async () => {
    for (const event of events.slice(0, 50)) await store.receive([event]);
  });
  await measure('claim of nothing (50)', async () => {
    const nothing = { handlers: ['book', 'mail'], limit: 20, leaseMs: 60_000 };
    for (let n = 0; n < 50; n += 1) await store.claim(nothing);
  });
  await measure('next due (50)', async () => {
    for (let n = 0; n < 50; n += 1) await store.nextDueInMs(['book', 'mail']);
  });
  await measure('statistics (1)', () => store.stats());
  await measure('list of the newest 50 (1)', () =>
    store.list({ filter: {}, order: 'newest', limit: 50, after: null }),
  );
  await measure('list of 50 dead (1)', () =>
    store.list({ filter: { state: 'dead' }, order: 'newest', limit: 50, after: null }),
  );
  return sample;
}

/** How long a receive takes while a hundred thousand events are pruned, and without. */
async function measurePruning(store: InboxStore): Promise<void> {
  const latencies = async (until: () => boolean): Promise<number[]> => {
    const taken: number[] = [];
    while (!until()) {
      const begun = performance.now();
      await store.receive([incoming()]);
      taken.push(performance.now() - begun);
    }
    return taken.toSorted((a, b) => a - b);
  };
  let left = 300;
  const alone = await latencies(() => (left -= 1) < 0);
  let pruned = 0;
  let slowest = 0;
  const target = Math.min(100_000, FINISHED / 2);
  const pruning = (async () => {
    while (pruned < target) {
      const begun = performance.now();
      pruned += await store.prune({ bodiesMs: 3_600_000, tombstonesMs: 1e11, limit: 1000 });
      slowest = Math.max(slowest, performance.now() - begun);
    }
  })();
  const meanwhile = await latencies(() => pruned >= target);
  await pruning;
  const at = (sorted: number[], share: number): string =>
    (sorted.at(Math.floor((sorted.length - 1) * share)) ?? NaN).toFixed(1);
  log(`\n| receive, ms | median | 99 % | longest |\n|---|---|---|---|`);
  for (const [name, sorted] of [
    ['alone', alone],
    [`while ${pruned} events are pruned, 1,000 at a time`, meanwhile],
  ] as const) {
    log(`| ${name} | ${at(sorted, 0.5)} | ${at(sorted, 0.99)} | ${at(sorted, 1)} |`);
  }
  log(`\nThe slowest batch of 1,000 took ${slowest.toFixed(0)} ms.`);
}

function report(samples: readonly { empty: Sample; full: Sample }[]): void {
  log(`| what | empty, ms | ${FINISHED} finished, ms | ratio |\n|---|---|---|---|`);
  for (const name of samples[0]?.empty.keys() ?? []) {
    const of = (sample: Sample): number => sample.get(name) ?? NaN;
    const empty = median(samples.map((sample) => of(sample.empty)));
    const full = median(samples.map((sample) => of(sample.full)));
    // Of each round's pair, so that what disturbed a round disturbed both.
    const ratio = median(samples.map((sample) => of(sample.full) / of(sample.empty)));
    log(`| ${name} | ${empty.toFixed(1)} | ${full.toFixed(1)} | ${ratio.toFixed(2)} |`);
  }
}

function incoming(): IncomingEvent {
  const id = randomUUID();
  return {
    company: 'default',
    id,
    dedupeKey: id,
    eventType: 'transaction.completed',
    occurredAt: new Date(),
    orderingKey: randomUUID(),
    raw: Buffer.alloc(400, 'x'),
    headers: {},
    handlers: ['book'],
  };
}

async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
  width = CONCURRENCY,
): Promise<void> {
  const queue = [...items];
  const lane = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b).at(Math.floor(values.length / 2)) ?? NaN;
}

function log(line: string): void {
  process.stdout.write(`${line}\n`);
}
