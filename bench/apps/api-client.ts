// A client of the payments service: nestjs-payments or an alternative.
import { HttpModule, HttpService } from '@nestjs/axios';
import { Agent } from 'node:http';
import { PaymentsApiService, PaymentsModule } from 'nestjs-payments';
import { firstValueFrom } from 'rxjs';
import { Pool } from 'undici';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen } from './nest-application.ts';
import { COMPANY } from './payments-options.ts';

/** The client that is measured. */
export type ApiCaller = 'ours' | 'ours-http' | 'http-service' | 'undici';

/** How many calls to make. */
export interface CallOrder {
  readonly count: number;
  /** How many calls run at the same time. */
  readonly width: number;
}

const { caller, baseUrl } = configuration() as { caller: ApiCaller; baseUrl: string };
const PATH = '/v1/transactions/8d7a3f0e-0000-4000-8000-000000000000';
const HEADERS = { authorization: 'Bearer bench' };

interface Transaction {
  readonly status?: unknown;
}

async function callerOf(kind: ApiCaller): Promise<() => Promise<Transaction>> {
  if (kind === 'undici') {
    const pool = new Pool(baseUrl, { connections: 64 });
    return async () => {
      const { body } = await pool.request({ method: 'GET', path: PATH, headers: HEADERS });
      return (await body.json()) as Transaction;
    };
  }
  if (kind === 'ours' || kind === 'ours-http') {
    const adapter = kind === 'ours' ? 'undici' : 'http';
    // Ten thousand calls at once on a busy machine take a long time.
    const api = { adapter, attemptTimeoutMs: 120_000, deadlineMs: 120_000 } as const;
    const imports = [PaymentsModule.forRoot({ ...COMPANY, baseUrl, api })];
    const service = (await listen('express', { imports })).get(PaymentsApiService);
    return () => service.getTransaction(PATH.slice('/v1/transactions/'.length));
  }
  const httpAgent = new Agent({ keepAlive: true, maxSockets: 64 });
  const imports = [HttpModule.register({ httpAgent, headers: HEADERS })];
  const http = (await listen('express', { imports })).get(HttpService);
  return async () => (await firstValueFrom(http.get<Transaction>(baseUrl + PATH))).data;
}

const call = await callerOf(caller);
serveCommands(null, {
  /** Makes the calls, and resolves with their total duration in milliseconds. */
  async calls({ count, width }: CallOrder): Promise<number> {
    let left = count;
    const start = performance.now();
    const caller = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        const { status } = await call();
        if (status !== 'complete') throw new Error('The response is not the transaction.');
      }
    };
    await Promise.all(Array.from({ length: width }, caller));
    return performance.now() - start;
  },
});
