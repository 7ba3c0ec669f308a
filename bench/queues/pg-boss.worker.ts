// pg-boss as it is fast: batches, each job settled by itself, the next batch fetched as long as they are full.
import { PgBoss } from 'pg-boss';
import { answer, configuration } from '../processes/parent.ts';
import { Tally } from './tally.ts';

const { url } = configuration() as { url: string };
const tally = new Tally();
let boss: PgBoss;

answer(null, {
  async prepare() {
    tally.reset();
    boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, migrate: false });
    boss.on('error', (error) => console.error(error));
    await boss.start();
  },
  async go() {
    const options = {
      batchSize: 100,
      burstWhenBatchFull: true,
      localConcurrency: 4,
      pollingIntervalSeconds: 0.5,
      perJobResults: true,
    } as const;
    await boss.work('events', options, async (jobs) => {
      return jobs.map(({ id }) => {
        tally.handle();
        return { id, status: 'completed' as const };
      });
    });
  },
  handled: tally.handled,
  stop: () => boss.stop({ graceful: true, timeout: 5000 }),
});
