// graphile-worker with the settings of its page on performance.
import { Logger, run } from 'graphile-worker';
import type { Runner } from 'graphile-worker';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { HandlerCounter } from './handler-counter.ts';

const { url } = configuration() as { url: string };
const counter = new HandlerCounter();
let runner: Runner;

serveCommands(null, {
  prepare: () => counter.reset(),
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
      taskList: { event: counter.handle },
    });
  },
  handled: counter.handled,
  stop: () => runner.stop(),
});
