import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { receiver } from '../../../../../test/support/inbox/receiver-harness.js';

let log: string[] = [];
beforeEach(() => {
  log = [];
  for (const level of ['warn', 'error', 'log'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => {
      log.push(`${level}: ${String(line)}`);
    });
  }
});
afterEach(() => void jest.restoreAllMocks());

describe('oncePerTransaction', () => {
  const COMPLETED = { eventType: 'transaction.completed' };
  const repeats = () => log.filter((line) => line.includes('has the transaction of'));

  it('WH-23 a second completed event of a transaction is a duplicate, which is noted and logged', async () => {
    const { worker, receive, find, store } = receiver();
    expect(await receive('a', { transactionId: 'T' }, COMPLETED)).toMatchObject({
      status: 'handled',
    });
    expect(await receive('b', { transactionId: 'T' }, COMPLETED)).toEqual({
      status: 'duplicate',
      id: 'a',
    });
    expect(worker.ran).toEqual(['a']);
    expect((await find('a')).repeats.map(({ id }) => id)).toEqual(['b']);
    expect(await store.find('c', 'b')).toBeUndefined();
    expect(repeats()).toHaveLength(1);
    expect(repeats()[0]).toMatch(
      /^warn: Event b \(company c\) of type "transaction\.completed" .* event a, .*was not handled/,
    );
  });

  it('WH-23 second events of transactions are logged once per minute, company and type, with their number', async () => {
    const { receive, runtime } = receiver();
    const send = (id: string, company = 'c') =>
      receive(id, { transactionId: 'T' }, { ...COMPLETED, company });
    for (const id of ['a', 'b', 'd', 'e']) await send(id);
    expect(repeats()).toHaveLength(1);
    for (const id of ['a', 'b']) await send(id, 'other');
    expect(repeats()).toHaveLength(2);
    runtime.advance(60_000);
    expect(repeats()).toHaveLength(3);
    expect(repeats()[2]).toMatch(/^warn: Event e .*1 more/);
  });

  it('WH-23 every event of another type or another transaction runs', async () => {
    const { worker, receive } = receiver();
    const updated = { eventType: 'transaction.updated' };
    for (const id of ['a', 'b', 'd']) await receive(id, { transactionId: 'T' }, updated);
    await receive('e', { transactionId: 'T' }, COMPLETED);
    await receive('f', { transactionId: 'U' }, COMPLETED);
    await receive('g', {}, COMPLETED);
    await receive('h', {}, COMPLETED);
    await receive('i', { transactionId: '' }, COMPLETED);
    await receive('j', { transactionId: '' }, COMPLETED);
    await receive('k', { transactionId: 7 }, COMPLETED);
    await receive('l', { transactionId: 7 }, COMPLETED);
    expect(worker.ran).toEqual(['a', 'b', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l']);
    expect(repeats()).toEqual([]);
  });

  it('WH-15 an event of another company with the same transaction runs', async () => {
    const { worker, receive } = receiver();
    await receive('a', { transactionId: 'T' }, COMPLETED);
    await receive('b', { transactionId: 'T' }, { ...COMPLETED, company: 'other' });
    expect(worker.ran).toEqual(['a', 'b']);
  });

  it('WH-23 a stale event does not make a later event of its transaction a duplicate', async () => {
    const { worker, receive } = receiver({}, 60_000);
    const stale = { ...COMPLETED, ageMs: 60_001 };
    expect(await receive('a', { transactionId: 'T' }, stale)).toMatchObject({ status: 'stale' });
    expect(await receive('b', { transactionId: 'T' }, COMPLETED)).toEqual({
      status: 'handled',
      id: 'b',
    });
    expect(worker.ran).toEqual(['b']);
  });
});
