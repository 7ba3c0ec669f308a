import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { resolveSqliteOptions } from '../../libs/payments/dist/stores/sqlite/sqlite-options.js';
import { SqliteStore } from '../../libs/payments/dist/stores/sqlite/sqlite-store.js';
import type { Contender, Row, Table } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import {
  claim,
  incoming,
  concurrently,
  receive,
  register,
  systemRuntime,
} from './shared/run-store-operations.ts';
import { changedThread } from '../../test/support/sqlite/changed-thread.ts';
import { temporaryFolder } from './shared/create-temporary-storage.ts';

/** Internal settings of the store. The row measures their effect. */
type Settings = Partial<ReturnType<typeof resolveSqliteOptions>>;

export const disk: Row = {
  name: 'sqlite-disk',
  title: 'SQLite and its disk',
  rounds: 5,
  async open(scale, ending) {
    const folder = await temporaryFolder(ending);
    const open = async (name: string, settings: Settings): Promise<SqliteStore> => {
      const options = resolveSqliteOptions({
        file: join(folder, `${name}.db`),
        allowOldSqlite: true,
      });
      const store = new SqliteStore({ ...options, ...settings }, systemRuntime);
      await store.open();
      await register(store);
      ending.defer(() => store.close());
      return store;
    };
    const grouped = await open('grouped', {});
    const widths = [1, 16, 64, 256].map((width): Table => ({
      title: `store.receive() until its event is on the disk, ${width} at a time`,
      unit: 'events/s',
      better: 'higher',
      contenders: [
        receives('group commit', grouped, width, sized(scale, Math.max(100, width * 4))),
        receives('one commit per event', grouped, 1, sized(scale, Math.max(100, width * 4))),
      ],
      targets: [],
    }));
    return [
      ...widths,
      eventLoop(
        await open('slow', { threadPath: changedThread(folder, { commitMs: 10 }) }),
        sized(scale, 1000),
      ),
    ];
  },
};

function receives(name: string, store: SqliteStore, width: number, count: number): Contender {
  return {
    name,
    async measure() {
      const events = Array.from({ length: count }, () => incoming());
      const start = performance.now();
      await concurrently(events, width, (event) => receive(store, [event]));
      return { value: (count / (performance.now() - start)) * 1000 };
    },
  };
}

/** Measures the delay of the event loop (99th percentile) if the disk takes 10 ms longer for each commit. */
function eventLoop(store: SqliteStore, count: number): Table {
  const loopDelay = (name: string, work: () => Promise<unknown>): Contender => ({
    name,
    async measure() {
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      await work();
      delay.disable();
      return { value: delay.percentile(99) / 1e6 };
    },
  });
  return {
    title: 'Delay of the event loop, 99th percentile, with a disk that takes 10 ms more per commit',
    unit: 'ms',
    better: 'lower',
    contenders: [
      loopDelay('receives, 64 at a time', () =>
        concurrently(
          Array.from({ length: count }, () => incoming()),
          64,
          (event) => receive(store, [event]),
        ),
      ),
      loopDelay('commits, 16 at a time', async () => {
        await receive(
          store,
          Array.from({ length: 250 }, () => incoming()),
        );
        const leases = await claim(store, await register(store), 250);
        await concurrently(leases, 16, (lease) => store.commit(lease, () => {}));
      }),
      loopDelay('nothing', () => wait(500)),
    ],
    targets: [],
  };
}
