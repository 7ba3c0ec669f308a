import { describe, expect, it } from '@jest/globals';
import type { PaymentEventContext } from '../events/payment-event.js';
import { memoryInbox } from '../inbox/memory/memory-inbox.js';
import type { PostgresTransaction } from '../inbox/postgres/index.js';
import { systemRuntime } from '../runtime/payments-runtime.js';
import { handlerContext } from './handler-context.js';

describe('handlerContext()', () => {
  it('AP-11 builds the context of a first attempt', () => {
    const { signal, receivedAt, commit, ...context } = handlerContext();
    expect(signal.aborted).toBe(false);
    expect(receivedAt).toBeInstanceOf(Date);
    expect(commit).toEqual(expect.any(Function));
    expect(context).toEqual({
      company: 'default',
      handler: 'transaction.completed#handle',
      attempt: 1,
      raw: Buffer.from('{}'),
      newerHandled: false,
    });
  });

  it('AP-11 takes every field', () => {
    const fields = { company: 'acme', attempt: 3, signal: AbortSignal.abort(), newerHandled: true };
    expect(handlerContext(fields)).toMatchObject(fields);
  });

  it('AP-11 rejects a commit as an inbox without transactions does', async () => {
    const lease = { company: 'default', id: 'e', handler: 'h', token: 1, seq: 1 };
    const real = memoryInbox()
      .create(systemRuntime)
      .commit(lease, () => {});
    const expected: unknown = await real.catch((error: unknown) => error);
    await expect(handlerContext().commit(() => {})).rejects.toEqual(expected);
    expect(expected).toMatchObject({ code: 'commit_unsupported' });
  });

  it('AP-11 runs the commit that is given, typed by the transaction', async () => {
    const queries: string[] = [];
    const tx = {
      query: (text: string) => Promise.resolve(queries.push(text)),
    } as unknown as PostgresTransaction;
    const context: PaymentEventContext<PostgresTransaction> = handlerContext<PostgresTransaction>({
      commit: async (work) => work(tx),
    });
    await context.commit((transaction) => transaction.query('INSERT'));
    expect(queries).toEqual(['INSERT']);
  });
});
