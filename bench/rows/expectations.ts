import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { ExpectingAppSetup } from '../apps/expected-payments.ts';
import type { InboxChoice } from '../apps/payments-options.ts';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row, Scale, Table } from '../rounds/row.ts';
import { atMost, sized } from '../rounds/row.ts';
import { PER_SECOND, quantileOf, responseTimes } from './shared/measure-event-latency.ts';
import { expectMany, grownPostgres, grownSqlite } from './shared/fill-expected-payments.ts';
import { openSqlite } from './growth-sqlite.ts';
import { systemRuntime } from './shared/run-store-operations.ts';
import { ownPostgres, temporaryFolder } from './shared/create-temporary-storage.ts';

const POLL_HANDLER = '@payments/poll';
const DAY_MS = 86_400_000;
const CLAIMED = 64;
/** Number of claims in one measurement. The measured value is the median of their durations. */
const CLAIMS = 20;
const DUE_AT_ONCE = 10_000;
const IDLE_MS = 20_000;
const WITH = 'with polls';
const WITHOUT = 'without polls';

/** Measures EX-14 and EX-18: the costs of open expectations. */
export const expectations: Row = {
  name: 'expectations',
  title: 'Open expectations',
  rounds: 5,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const folder = await temporaryFolder(ending);
    const service = await startChild('apps/payments-service.ts');
    ending.defer(() => service.stop());
    const start = async (inbox: InboxChoice, polls: boolean): Promise<CommandProcess> => {
      const baseUrl = service.ready as string;
      const setup: ExpectingAppSetup = { inbox, polls, baseUrl };
      const app = await startChild('apps/expected-payments.ts', setup);
      ending.defer(() => app.stop());
      return app;
    };
    const postgres = await server.createDatabase();
    const file = join(folder, 'expecting.db');
    const idle = await start({ kind: 'postgres', url: await server.createDatabase() }, false);
    const idleWithPolls = await start(
      { kind: 'postgres', url: await server.createDatabase() },
      true,
    );
    return [
      await claimTable('PostgreSQL', scale, ending, (count) => grownPostgres(server, count)),
      await claimTable('SQLite', scale, ending, (count) =>
        grownSqlite(join(folder, `${count}.db`), count),
      ),
      idleTable(idle, idleWithPolls, scale),
      await receiveTable(
        'PostgreSQL',
        scale,
        ending,
        await start({ kind: 'postgres', url: postgres }, true),
        postgresInbox({ connectionString: postgres }).create(systemRuntime),
      ),
      await receiveTable(
        'SQLite',
        scale,
        ending,
        await start({ kind: 'sqlite', file }, true),
        openSqlite(file),
      ),
    ];
  },
};

/** Measures claims of due polls in stores with different numbers of open expectations. */
async function claimTable(
  database: string,
  scale: Scale,
  ending: AsyncDisposableStack,
  grown: (count: number) => Promise<InboxStore>,
): Promise<Table> {
  const contenders: Contender[] = [];
  for (const count of [sized(scale, 1_000_000), sized(scale, 10_000)]) {
    const store = await grown(count);
    ending.defer(() => store.close());
    await expectMany(store, 'due', CLAIMED, 0);
    contenders.push({
      name: `${count.toLocaleString('en')} open expectations`,
      async measure() {
        const taken: number[] = [];
        for (let n = 0; n < CLAIMS; n += 1) taken.push(await claimOnce(store));
        return {
          value: quantileOf(
            taken.toSorted((a, b) => a - b),
            0.5,
          ),
        };
      },
    });
  }
  const [most, fewest] = [contenders[0]!.name, contenders[1]!.name];
  return {
    title: `${database}: claiming ${CLAIMED} due polls`,
    unit: 'ms',
    better: 'lower',
    contenders,
    targets: [atMost(1.5, most, fewest, `at most 1.5 times the time with ${fewest}`)],
  };
}

async function claimOnce({ expectations: polls }: InboxStore): Promise<number> {
  const start = performance.now();
  const leases = await polls.claimPolls({ limit: CLAIMED, leaseMs: 60_000 });
  const took = performance.now() - start;
  if (leases.length < CLAIMED) throw new Error(`${leases.length} of ${CLAIMED} were claimed.`);
  await polls.releasePolls(
    leases,
    leases.map(() => 0),
  );
  return took;
}

/** Counts the database statements of an application that receives no events. */
function idleTable(without: CommandProcess, withPolls: CommandProcess, scale: Scale): Table {
  const idle = (name: string, app: CommandProcess): Contender => ({
    name,
    async measure() {
      await app.request('statements');
      await wait(sized(scale, IDLE_MS));
      return { value: await app.request<number>('statements') };
    },
  });
  return {
    title: `PostgreSQL: statements of an idle application in ${IDLE_MS / 1000} s`,
    unit: 'statements',
    better: 'lower',
    contenders: [idle(WITH, withPolls), idle(WITHOUT, without)],
    targets: [
      {
        text: 'at most one more than without polls (at the edge of the interval)',
        of: 'difference',
        subject: WITH,
        against: WITHOUT,
        at: 'most',
        bound: 1,
      },
    ],
  };
}

/** Measures responses to webhook requests while many polls become due. The rate limit postpones nearly all polls. */
async function receiveTable(
  database: string,
  scale: Scale,
  ending: AsyncDisposableStack,
  app: CommandProcess,
  store: InboxStore,
): Promise<Table> {
  await store.open();
  ending.defer(() => store.close());
  const count = sized(scale, DUE_AT_ONCE);
  const selections = await expectMany(store, 'open', count, DAY_MS);
  const p99 = async () => {
    const times = await responseTimes(app, sized(scale, 10) * 1000);
    return { value: quantileOf(times, 0.99) };
  };
  const [busy, idle] = [`while ${count.toLocaleString('en')} polls are due`, 'no poll is due'];
  return {
    title: `${database}: p99 of the response time at ${PER_SECOND} events/s`,
    unit: 'ms',
    better: 'lower',
    contenders: [
      {
        name: busy,
        async measure() {
          await store.pause(POLL_HANDLER, false);
          const changed = await store.expectations.pollNow(
            selections,
            selections.map(() => 0),
          );
          // Some polls of the previous round may still run.
          if (changed < count - 100) throw new Error(`${changed} of ${count} polls became due.`);
          return p99();
        },
      },
      {
        name: idle,
        async measure() {
          await store.pause(POLL_HANDLER, true);
          return p99();
        },
      },
    ],
    targets: [atMost(1.25, busy, idle, 'at most 1.25 times the time without due polls')],
  };
}
