import { randomUUID } from 'node:crypto';
import type {
  InboxStore,
  IncomingEvent,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { Contender, Row, Target } from '../rounds/row.ts';
import { atMost, sized } from '../rounds/row.ts';
import { copy } from './growth-postgres.ts';
import { claim, incoming, receive, systemRuntime } from './shared/run-store-operations.ts';
import { ownPostgres } from './shared/create-temporary-storage.ts';

const PENDING = 4_000_000;
const OF_ONE_KEY = 600_000;
const CLAIMED = 64;

/** Column values of the copied deliveries: each delivery is pending, and no process runs it. */
const WAITING = {
  state: "'pending'",
  worker: 'NULL',
  started_at: 'NULL',
  attempts: '0',
  due_at: '(extract(epoch FROM now()) * 1000)::bigint',
};

interface Backlog {
  readonly name: string;
  readonly store: InboxStore;
  readonly worker: string;
}

/** Measures IN-28 and IN-33: how the backlog of one handler or one payment transaction delays other deliveries. */
export const backlogPostgres: Row = {
  name: 'backlog-postgres',
  title: 'A PostgreSQL inbox with a backlog',
  rounds: 9,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const pending = sized(scale, PENDING);
    const ofOneKey = sized(scale, OF_ONE_KEY);
    const open = async (name: string, copies: number, values: Record<string, string>) => {
      const connectionString = await server.createDatabase();
      const store = postgresInbox({ connectionString, statementTimeoutMs: 60_000 }).create(
        systemRuntime,
      );
      await store.open();
      ending.defer(() => store.close());
      const worker = randomUUID();
      const handlers = ['book', 'busy'].map((handler) => ({ name: handler, patterns: ['*'] }));
      const { version } = await store.register({ id: worker, leaseMs: 3_600_000, handlers });
      const eventFor = (handler: string): IncomingEvent => ({
        ...incoming(),
        handlers: [handler],
        catalogVersion: version,
      });
      if (copies > 0) {
        await receive(store, [eventFor('busy')]);
        // This delivery runs, so all other deliveries with its ordering key wait.
        await store.claim({ workerId: worker, wanted: [{ handler: 'busy', limit: 1 }] });
        await copy(server, connectionString, copies - 1, { ...WAITING, ...values });
      }
      await receive(
        store,
        Array.from({ length: CLAIMED }, () => eventFor('book')),
      );
      return { name, store, worker };
    };
    const count = (number: number): string => number.toLocaleString('en');
    const empty = await open('no backlog', 0, {});
    const backlogs = [
      await open(`${count(pending)} pending deliveries of another handler`, pending, {}),
      await open(`${count(ofOneKey)} deliveries that wait for one transaction`, ofOneKey, {
        ordering_key: 't.ordering_key',
        ordering: 't.ordering',
        held: 'true',
      }),
    ];
    const all = [...backlogs, empty];
    const table = (
      title: string,
      measure: (backlog: Backlog) => Promise<number>,
      targets: Target[],
    ) => ({
      title,
      unit: 'ms',
      better: 'lower' as const,
      contenders: all.map((backlog): Contender => ({
        name: backlog.name,
        measure: async () => ({ value: await measure(backlog) }),
      })),
      targets,
    });
    return [
      table(
        `Claiming ${CLAIMED} deliveries of a handler without a backlog`,
        claimOthers,
        backlogs.map(({ name }) =>
          atMost(1.5, name, empty.name, 'at most 1.5 times the time without a backlog'),
        ),
      ),
      table(
        'Reading the statistics',
        timedStats,
        backlogs.map(({ name }) => ({
          text: 'at most 20 ms',
          of: 'value',
          subject: name,
          at: 'most',
          bound: 20,
        })),
      ),
    ];
  },
};

async function claimOthers({ store, worker }: Backlog): Promise<number> {
  const start = performance.now();
  const leases = await claim(store, worker, CLAIMED);
  const took = performance.now() - start;
  if (leases.length < CLAIMED) throw new Error(`${leases.length} of ${CLAIMED} were claimed.`);
  await Promise.all(leases.map((lease) => store.release(lease)));
  return took;
}

async function timedStats({ store }: Backlog): Promise<number> {
  const start = performance.now();
  await store.stats();
  return performance.now() - start;
}
