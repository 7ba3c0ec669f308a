// A worker of BullMQ that runs 100 jobs at the same time.
import { Worker } from 'bullmq';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { HandlerCounter } from './handler-counter.ts';

const { port } = configuration() as { port: number };
const counter = new HandlerCounter();
let worker: Worker;

serveCommands(null, {
  async prepare() {
    counter.reset();
    worker = new Worker('events', async () => counter.handle(), {
      connection: { host: '127.0.0.1', port, maxRetriesPerRequest: null },
      concurrency: 100,
      autorun: false,
    });
    await worker.waitUntilReady();
  },
  go: () => void worker.run(),
  handled: counter.handled,
  stop: () => worker.close(),
});
