import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { delivery } from '../load/deliveries.ts';
import type { Delivery } from '../load/deliveries.ts';
import { Child } from '../processes/child.ts';
import { epochMs } from '../queues/handler-counter.ts';
import type { Row, Target } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { ownPostgres } from './temporary-storage.ts';

const PER_SECOND = 500;
const TICK_MS = 2;
/** How long the transaction is held open. IN-39 promises ten minutes: BENCH_OPEN_MINUTES=10. */
const OPEN_MINUTES = Number(process.env['BENCH_OPEN_MINUTES'] ?? 4);
const MEDIAN = 'p50';
const P99 = 'p99';

export const latencyPostgres: Row = {
  name: 'latency-postgres',
  title: 'From sending to handled, PostgreSQL',
  rounds: 3,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const url = await server.createDatabase();
    const app = await Child.start('apps/payments-latency.ts', { inbox: { kind: 'postgres', url } });
    ending.defer(() => app.end());
    const percentile = (name: string, share: number) => ({
      name,
      measure: async () => ({ value: at(await latencies(app, sized(scale, 10) * 1000), share) }),
    });
    return [
      {
        id: 'latency-postgres',
        title: `${PER_SECOND} events/s`,
        unit: 'ms',
        better: 'lower',
        contenders: [percentile(MEDIAN, 0.5), percentile(P99, 0.99)],
        targets: [atMostMs(MEDIAN, 1.5), atMostMs(P99, 6)],
      },
      {
        id: 'latency-postgres-open',
        title: `${PER_SECOND} events/s while a transaction is open for ${OPEN_MINUTES} minutes, the worst minute`,
        unit: 'ms',
        better: 'lower',
        rounds: 1,
        warmUp: 0,
        contenders: [
          { name: P99, measure: () => withOpenTransaction(url, () => worstMinute(app, scale)) },
        ],
        targets: [atMostMs(P99, 50)],
      },
    ];
  },
};

/** A target: in the median of the rounds, `subject` is at most so many milliseconds. */
export function atMostMs(subject: string, bound: number): Target {
  return { text: `at most ${bound} ms`, of: 'value', subject, at: 'most', bound };
}

/** The 99th percentile of each minute; the value is the worst of them. */
async function worstMinute(app: Child, scale: Parameters<Row['open']>[0]) {
  const more: Record<string, number> = {};
  for (let minute = 1; minute <= OPEN_MINUTES; minute += 1) {
    more[`minute${minute}P99Ms`] = at(await latencies(app, sized(scale, 60) * 1000), 0.99);
  }
  return { value: Math.max(...Object.values(more)), more };
}

/** Runs `measure` while another transaction has a snapshot, so that no dead row can be removed. */
async function withOpenTransaction<T>(url: string, measure: () => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await client.query('SELECT pg_current_xact_id()');
    return await measure();
  } finally {
    await client.end();
  }
}

/** Milliseconds from sending to the call of the handler, sorted. Sends at the rate, however slow the answers are. */
export async function latencies(app: Child, ms: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const sentAt = new Map<string, number>();
  const answers: Promise<void>[] = [];
  const begun = performance.now();
  while (performance.now() - begun < ms) {
    const due = ((performance.now() - begun) / 1000) * PER_SECOND;
    while (answers.length < due) {
      const one = delivery('payments');
      sentAt.set((JSON.parse(one.body.toString()) as { id: string }).id, epochMs());
      answers.push(post(app.ready as string, agent, one));
    }
    await wait(TICK_MS);
  }
  await Promise.all(answers);
  const found: number[] = [];
  while (found.length < answers.length) {
    for (const [id, handledAt] of await app.ask<[string, number][]>('handled')) {
      const sent = sentAt.get(id);
      if (sent !== undefined) found.push(handledAt - sent);
    }
    await wait(20);
  }
  agent.destroy();
  return found.toSorted((a, b) => a - b);
}

/**
 * Sends again if the server closed an idle connection at the moment of sending: the inbox ignores a copy.
 *
 * @throws if the answer is not a 2xx.
 */
function post(url: string, agent: Agent, { body, headers }: Delivery): Promise<void> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: 'POST', agent, headers }, (answer) => {
      answer.resume();
      if (answer.statusCode! < 300) answer.once('end', resolve);
      else reject(new Error(`The answer is ${answer.statusCode}, not a 2xx.`));
    });
    sending.once('error', (error: Error & { code?: string }) => {
      if (error.code !== 'ECONNRESET' || !sending.reusedSocket) reject(error);
      else resolve(post(url, agent, { body, headers }));
    });
    sending.end(body);
  });
}

/** The value at a share of the sorted values: 0.5 is the median. */
export function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
}
