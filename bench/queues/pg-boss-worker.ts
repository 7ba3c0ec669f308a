// pg-boss with its fast settings: jobs in batches, a result for each job, and no wait after a full batch.
import { PgBoss } from 'pg-boss';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { HandlerCounter } from './handler-counter.ts';

const { url } = configuration() as { url: string };
const counter = new HandlerCounter();
let boss: PgBoss;

serveCommands(null, {
  async prepare() {
    counter.reset();
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
        counter.handle();
        return { id, status: 'completed' as const };
      });
    });
  },
  handled: counter.handled,
  stop: () => boss.stop({ graceful: true, timeout: 5000 }),
});
