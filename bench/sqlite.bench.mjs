// Measures sqliteInbox() and writes bench/sqlite.results.md. Machines differ and are shared: every figure
// that matters is a ratio of two things measured in turn, at the same time.
//
//   npx tsc -b libs/payments && node bench/sqlite.bench.mjs [finished events, default 1000000]
//
// It makes its files in the system's temporary folder (1.5 GB for a million events) and removes them.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import { resolveSqliteOptions } from '../libs/payments/dist/inbox/sqlite/sqlite.options.js';
import { SqliteStore } from '../libs/payments/dist/inbox/sqlite/sqlite.store.js';
import { systemRuntime } from '../libs/payments/dist/payments.runtime.js';

const FINISHED = Number(process.argv[2] ?? 1_000_000);
const BODY = Buffer.alloc(600, '{"transactionId":"7d3f"}');
const folder = mkdtempSync(join(tmpdir(), 'payments-bench-'));
const lines = [];

async function open(name, settings = {}) {
  const file = join(folder, `${name}.db`);
  const store = new SqliteStore({ ...resolveSqliteOptions({ file }), ...settings }, systemRuntime);
  await store.open();
  return store;
}

function incoming() {
  const id = randomUUID();
  return {
    company: 'acme',
    id,
    dedupeKey: id,
    eventType: 'transaction.completed',
    occurredAt: new Date(),
    orderingKey: randomUUID(),
    raw: BODY,
    headers: {},
    handlers: ['book'],
  };
}

/** Runs `act` `count` times, `width` at a time; answers milliseconds. */
async function timed(count, width, act) {
  const start = performance.now();
  let left = count;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await act();
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  return performance.now() - start;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const fixed = (value, digits = 1) => value.toFixed(digits);

/**
 * Runs two measurements in turn, several rounds; answers the median of each, and of the rounds' ratios: what
 * disturbed a round disturbed both.
 */
async function inTurn(rounds, first, second) {
  const found = [];
  for (let round = 0; round < rounds; round += 1) found.push([await first(), await second()]);
  return {
    first: median(found.map(([one]) => one)),
    second: median(found.map(([, two]) => two)),
    ratio: median(found.map(([one, two]) => two / one)),
  };
}

function report(title, head, rows) {
  lines.push(
    `## ${title}`,
    '',
    `| ${head.join(' | ')} |`,
    `|${head.map(() => ' --- ').join('|')}|`,
  );
  for (const row of rows) lines.push(`| ${row.join(' | ')} |`);
  lines.push('');
  console.log([title, ...rows.map((row) => `  ${row.join('  ')}`)].join('\n'));
}

async function groupCommit() {
  const grouped = await open('grouped');
  const single = await open('single', { maxBatch: 1, groupCommitMs: 0 });
  const rows = [];
  for (const width of [1, 16, 64, 256]) {
    const count = Math.max(100, width * 4);
    const rate = (store) => async () =>
      (count / (await timed(count, width, () => store.receive([incoming()])))) * 1000;
    const { first, second, ratio } = await inTurn(5, rate(single), rate(grouped));
    rows.push([width, fixed(first, 0), fixed(second, 0), `${fixed(ratio)} x`]);
  }
  report(
    'Receives per second, each durable when it resolves',
    ['at a time', 'one commit each', 'group commit', 'ratio'],
    rows,
  );
  await Promise.all([grouped.close(), single.close()]);
}

async function slowDisk() {
  const delayDuring = async (work) => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const result = await work();
    delay.disable();
    return { result, p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6 };
  };
  const store = await open('slow', { slowCommitMs: 10 });
  const sizes = [
    ['nothing', () => wait(1500)],
    ['receives, 64 at a time', () => timed(3000, 64, () => store.receive([incoming()]))],
    [
      'commits, 16 at a time',
      async () => {
        await store.receive(Array.from({ length: 500 }, incoming));
        const leases = await store.claim({ handlers: ['book'], limit: 500, leaseMs: 600_000 });
        return timed(500, 16, () => store.commit(leases.pop(), () => {}));
      },
    ],
  ];
  const rows = [];
  for (const [name, work] of sizes) {
    const { result, p50, p99 } = await delayDuring(work);
    const count = name.startsWith('receives') ? 3000 : 500;
    const rate = name === 'nothing' ? '' : fixed((count / result) * 1000, 0);
    rows.push([name, rate, fixed(p50), fixed(p99)]);
  }
  report(
    'A disk that takes 10 ms more for each commit (one by one: less than 100 a second)',
    ['under way', 'per second', 'event loop delay p50, ms', 'p99, ms'],
    rows,
  );
  await store.close();
}

/** Writes finished events straight into the tables. */
async function fill(name, count) {
  await (await open(name)).close();
  const db = new DatabaseSync(join(folder, `${name}.db`));
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -400000');
  const start = performance.now();
  for (let first = 1; first <= count; first += 50_000) {
    const last = Math.min(count, first + 49_999);
    const series = `WITH RECURSIVE n(i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${last})`;
    db.exec(`BEGIN;
      INSERT INTO payments_inbox_event
        (seq, company, id, event_type, occurred_at, ordering_key, received_at, digest, deliveries, open)
        ${series} SELECT i, 'acme', lower(hex(randomblob(16))), 'transaction.completed', i,
          lower(hex(randomblob(16))), i, randomblob(32), 1, 0 FROM n;
      INSERT INTO payments_inbox_body ${series} SELECT i, zeroblob(${BODY.length}) FROM n;
      INSERT INTO payments_inbox_delivery
        (event_seq, handler, state, attempts, token, finished_at, lane, occurred_at, received_at)
        SELECT seq, 'book', 'done', 1, 1, seq, 'acme' || char(10) || ordering_key, seq, seq
        FROM payments_inbox_event WHERE seq BETWEEN ${first} AND ${last};
      COMMIT`);
  }
  db.close();
  const size = statSync(join(folder, `${name}.db`)).size / 1e6;
  console.log(`filled ${count} in ${fixed(performance.now() - start, 0)} ms, ${fixed(size, 0)} MB`);
}

async function million() {
  await fill('full', FINISHED);
  const stores = { empty: await open('empty'), full: await open('full') };
  const compare = (rounds, measure) =>
    inTurn(
      rounds,
      () => measure(stores.empty),
      () => measure(stores.full),
    );
  const claim = (store, limit) => store.claim({ handlers: ['book'], limit, leaseMs: 600_000 });
  const receive = (store) => timed(1024, 32, () => store.receive([incoming()]));
  const run = async (store) => {
    const start = performance.now();
    for (let round = 0; round < 16; round += 1) {
      const leases = await claim(store, 16);
      await Promise.all(leases.map((lease) => store.complete(lease)));
    }
    return performance.now() - start;
  };
  // Both caches warm, and something to claim in both.
  await compare(2, receive);
  const claimOnly = async (store) => {
    const start = performance.now();
    const leases = await claim(store, 64);
    const took = performance.now() - start;
    await Promise.all(leases.map((lease) => store.release(lease)));
    return took;
  };
  const rows = [];
  for (const [name, measure] of [
    ['receive 1,024, 32 at a time', receive],
    ['claim 64', claimOnly],
    ['claim 16 and complete them, 16 times', run],
    ['stats, 100 times', (store) => timed(100, 1, () => store.stats())],
    [
      'list the newest 50, 20 times',
      (store) =>
        timed(20, 1, () => store.list({ filter: {}, order: 'newest', limit: 50, after: null })),
    ],
  ]) {
    const { first, second, ratio } = await compare(11, measure);
    rows.push([name, fixed(first), fixed(second), `${fixed(ratio, 2)} x`]);
  }
  report(
    `${FINISHED.toLocaleString('en')} finished events against none`,
    ['milliseconds for', 'empty', 'full', 'ratio'],
    rows,
  );
  await pruning(stores.full);
  await Promise.all(Object.values(stores).map((store) => store.close()));
}

async function pruning(store) {
  const latencies = async (until) => {
    const found = [];
    const ended = new AbortController();
    void until().then(() => ended.abort());
    while (!ended.signal.aborted) found.push(await timed(1, 1, () => store.receive([incoming()])));
    const sorted = found.toSorted((a, b) => a - b);
    const at = (part) => fixed(sorted[Math.floor((sorted.length - 1) * part)]);
    return [found.length, at(0.5), at(0.99), at(1)];
  };
  const nothing = await latencies(() => wait(2000));
  const prune = () => store.prune({ bodiesMs: 1, tombstonesMs: 1e15, limit: 10_000 });
  const pruned = await latencies(prune);
  const search = () =>
    store.list({ filter: { search: 'not there' }, order: 'newest', limit: 50, after: null });
  const searched = await latencies(search);
  report(
    'A receive, one at a time, beside work on old events',
    ['beside', 'receives', 'p50, ms', 'p99, ms', 'worst, ms'],
    [
      ['nothing', ...nothing],
      ['pruning 10,000 events', ...pruned],
      [`searching ${FINISHED.toLocaleString('en')} events for what is not there`, ...searched],
    ],
  );
}

try {
  await groupCommit();
  await slowDisk();
  await million();
  const machine = `${cpus().length} x ${cpus()[0].model.trim()}, Linux ${release()}`;
  writeFileSync(
    new URL('sqlite.results.md', import.meta.url),
    [
      '# sqliteInbox(), measured',
      '',
      `${new Date().toISOString().slice(0, 10)}, ${machine}, shared with other work while it ran;`,
      `Node ${process.version}, SQLite ${process.versions.sqlite}. By \`node bench/sqlite.bench.mjs\`. What stands in`,
      'one row was measured in turn, so the ratios hold where the figures do not; each is a median.',
      '',
      ...lines,
    ]
      .join('\n')
      .trimEnd()
      .concat('\n'),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
