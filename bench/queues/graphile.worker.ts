// graphile-worker with the settings of its own page on performance.
import { Logger, run } from 'graphile-worker';
import type { Runner } from 'graphile-worker';
import { answer, configuration } from '../processes/parent.ts';
import { Tally } from './tally.ts';

const { url } = configuration() as { url: string };
const tally = new Tally();
let runner: Runner;

answer(null, {
  prepare: () => tally.reset(),
  async go() {
    runner = await run({
      preset: {
        worker: {
          connectionString: url,
          concurrentJobs: 24,
          maxPoolSize: 25,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          logger: new Logger(() => () => {}),
        },
      },
      noHandleSignals: true,
      taskList: { event: tally.handle },
    });
  },
  handled: tally.handled,
  stop: () => runner.stop(),
});
