import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ApplicationReport, ApplicationSetup } from '../../hostile/application.ts';
import { CommandProcess } from '../../support/processes/command-process.ts';
import { COMPANIES, validRequest } from '../../hostile/webhook-requests.ts';
import { exchange } from '../../hostile/raw-exchange.ts';
import type { ExchangeResult } from '../../hostile/raw-exchange.ts';
import { head, tinyChunkRequest, withLength } from '../../hostile/request-bytes.ts';

const [company] = COMPANIES;
const { path } = validRequest(company!, 'any');
const FORGED = `sha512=${'0'.repeat(128)}`;
const MB_BAR = 100;
/**
 * After this time, a connection counts as hung. The server ends a slow body after 1 s, but if many processes share the
 * processors, the 300 MB of all connections take minutes.
 */
const HUNG_MS = 300_000;

/** Node queues 511 connections. If the queue is full, a client tries again after waits that grow to minutes. */
const ACCEPT_QUEUE = 300;

jest.setTimeout(2 * HUNG_MS);

describe.each(['express', 'fastify'])(
  'memory of an application on %s with a heap of 512 MB',
  (adapter) => {
    let folder: string;
    let application: CommandProcess;
    let port: number;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'nestjs-payments-memory-'));
      application = await CommandProcess.start(
        join(import.meta.dirname, '../../hostile/application.ts'),
        { flags: ['--max-old-space-size=512', '--expose-gc'], keepOutput: true },
      );
      const webhook = { bodyTimeoutMs: 1000 };
      const setup: ApplicationSetup = { adapter, file: join(folder, 'inbox.db'), webhook };
      port = await application.request<number>('start', setup);
      // The memory of the application itself does not count, only the growth that the requests cause.
      for (let n = 0; n < 100; n += 1) expect(await deliver(`warm-up-${n}`)).toBe(200);
    });
    afterAll(async () => {
      await application.stop();
      await rm(folder, { recursive: true, force: true });
    });

    async function deliver(id: string): Promise<number | undefined> {
      const { statuses } = await exchange(port, [withLength(validRequest(company!, id))]);
      return statuses[0];
    }

    /** Sends the same request over many connections at the same time. */
    async function attack(connections: number, pieces: readonly (string | Uint8Array)[]) {
      await application.request('begin');
      const exchanges: Promise<ExchangeResult>[] = [];
      for (let n = 0; n < connections; n += 1) {
        // The response proves that the server has accepted the earlier connections.
        if (n > 0 && n % ACCEPT_QUEUE === 0) await deliver(`after ${n} connections`);
        exchanges.push(exchange(port, pieces, { limitMs: HUNG_MS }));
      }
      const responses = await Promise.all(exchanges);
      const { rssGrowthMb } = await application.request<ApplicationReport>('report');
      return { responses, rssGrowthMb };
    }

    it('SE-01 memory grows by less than 100 MB when six connections send 1 MiB in 1-byte chunks', async () => {
      const { responses, rssGrowthMb } = await attack(6, tinyChunkRequest(path, FORGED));
      expect(responses.flatMap(({ statuses }) => statuses)).toHaveLength(6);
      expect(rssGrowthMb).toBeLessThan(MB_BAR);
    });

    it('SE-01 the process survives 50 connections that send 1 MiB in 1-byte chunks', async () => {
      const { responses } = await attack(50, tinyChunkRequest(path, FORGED));
      expect(responses.filter(isAccepted)).toEqual([]);
      expect(await deliver('after 50 connections')).toBe(200);
    });

    it('SE-03 memory grows by less than 100 MB for 600 slow connections, and the next request is accepted', async () => {
      const lines = ['Content-Length: 524288'];
      // A few bytes are missing, so that the bodies never end. Together they would be 300 MB.
      const body = Array.from({ length: 8 }, () => Buffer.alloc(65_535, 'x'));
      const request = [head({ path, signature: FORGED, lines }), ...body];
      const { responses, rssGrowthMb } = await attack(600, request);
      expect(rssGrowthMb).toBeLessThan(MB_BAR);
      expect(responses.filter(({ hung }) => hung)).toEqual([]);
      // A client that is still sending when the server closes its connection may not get the response.
      expect(new Set(responses.flatMap(({ statuses }) => statuses))).toEqual(new Set([408, 503]));
      expect(await deliver('after 600 connections')).toBe(200);
    });
  },
);

function isAccepted({ statuses, hung }: ExchangeResult): boolean {
  return hung || statuses.some((status) => status < 400);
}
