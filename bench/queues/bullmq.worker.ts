// BullMQ with many jobs at a time.
import { Worker } from 'bullmq';
import { answer, configuration } from '../processes/parent.ts';
import { Tally } from './tally.ts';

const { port } = configuration() as { port: number };
const tally = new Tally();
let worker: Worker;

answer(null, {
  async prepare() {
    tally.reset();
    worker = new Worker('events', async () => tally.handle(), {
      connection: { host: '127.0.0.1', port, maxRetriesPerRequest: null },
      concurrency: 100,
      autorun: false,
    });
    await worker.waitUntilReady();
  },
  go: () => void worker.run(),
  handled: tally.handled,
  stop: () => worker.close(),
});
