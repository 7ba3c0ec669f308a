import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { RawConnection } from '../../support/http/http-exchange.js';
import { CommandProcess } from '../../support/processes/command-process.ts';
import type { MeasuredSetup } from '../../support/webhook/measured-application.ts';
import { bytesOf, head } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { ADAPTERS, OPTIONS, SECRET } from '../../support/webhook/webhook-application.js';

const MB_BAR = 100;

/** Node queues 511 connections. If the queue is full, a client tries again after waits that grow to minutes. */
const ACCEPT_QUEUE = 300;

// The server ends a slow body after 1 s, but if many processes share the processors, the 300 MB of all connections take
// minutes.
jest.setTimeout(600_000);

/** A body of 1 MiB in chunks of one byte. Each piece except the first and the last has 65,536 chunks. */
const TINY_CHUNKS = [
  head(undefined, { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }),
  ...Array<string>(16).fill('1\r\nx\r\n'.repeat(65_536)),
  '0\r\n\r\n',
];
/** A body of which a few bytes are missing, so that it never ends. */
const INCOMPLETE = [
  head(undefined, { 'Content-Length': '524288' }),
  ...Array<Buffer>(8).fill(Buffer.alloc(65_535, 'x')),
];

describe.each(Object.keys(ADAPTERS))(
  'memory of an application on %s with a heap of 512 MB',
  (adapter) => {
    let folder: string;
    let application: CommandProcess;
    let url: string;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'nestjs-payments-memory-'));
      application = await CommandProcess.start(
        join(import.meta.dirname, '../../support/webhook/measured-application.ts'),
        { flags: ['--max-old-space-size=512', '--expose-gc'], keepOutput: true },
      );
      const payments = { ...OPTIONS, webhook: { bodyTimeoutMs: 1000 } };
      const setup: MeasuredSetup = { adapter, file: join(folder, 'inbox.db'), payments };
      url = await application.request<string>('start', setup);
      // The memory of the application itself does not count, only the growth that the requests cause.
      for (let n = 0; n < 100; n += 1) expect(await sendValid()).toBe(200);
    });
    afterAll(async () => {
      await application.stop();
      await rm(folder, { recursive: true, force: true });
    });

    /** Sends the pieces of a request. Returns the status; `undefined` if the connection ends without one. */
    async function send(pieces: readonly (string | Uint8Array)[]): Promise<number | undefined> {
      const sender = await RawConnection.open(url);
      for (const piece of pieces) await sender.write(piece);
      const status = await sender.status();
      sender.socket.destroy();
      return status;
    }

    const sendValid = async () => send([bytesOf(signedWebhook({ webhookSecret: SECRET }))]);

    /** Sends the same request over many connections at the same time. */
    async function attack(connections: number, pieces: readonly (string | Uint8Array)[]) {
      await application.request('begin');
      const responses: Promise<number | undefined>[] = [];
      for (let n = 0; n < connections; n += 1) {
        // The response proves that the server has accepted the earlier connections.
        if (n > 0 && n % ACCEPT_QUEUE === 0) await sendValid();
        responses.push(send(pieces));
      }
      const statuses = await Promise.all(responses);
      return { statuses, growthMb: await application.request<number>('growth') };
    }

    it('SE-01 memory grows by less than 100 MB when six connections send 1 MiB in 1-byte chunks', async () => {
      const { statuses, growthMb } = await attack(6, TINY_CHUNKS);
      expect(statuses).toEqual(Array(6).fill(413));
      expect(growthMb).toBeLessThan(MB_BAR);
    });

    it('SE-01 the process survives 50 connections that send 1 MiB in 1-byte chunks', async () => {
      const { statuses } = await attack(50, TINY_CHUNKS);
      expect(statuses.filter((status) => status !== undefined && status < 400)).toEqual([]);
      expect(await sendValid()).toBe(200);
    });

    it('SE-03 memory grows by less than 100 MB for 600 slow connections, and the next request is accepted', async () => {
      // Together, the bodies would be 300 MB.
      const { statuses, growthMb } = await attack(600, INCOMPLETE);
      expect(growthMb).toBeLessThan(MB_BAR);
      // A client that is still sending when the server closes its connection may not get the response.
      const received = statuses.filter((status) => status !== undefined);
      expect(new Set(received)).toEqual(new Set([408, 503]));
      expect(await sendValid()).toBe(200);
    });
  },
);
