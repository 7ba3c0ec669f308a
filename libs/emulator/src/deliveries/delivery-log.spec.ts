import { describe, expect, it } from '@jest/globals';
import { EmulatorError } from '../emulator-errors.js';
import { DeliveryLog } from './delivery-log.js';
import type { DeliveryAttempt } from './delivery-attempt.js';

function entry(id: string, more: Partial<DeliveryAttempt> = {}) {
  const event = { eventId: id, eventType: 'a.b' };
  const record = {
    id,
    ...event,
    companyId: 'a',
    state: 'delivered',
    faults: [],
    ...more,
  } as unknown;
  return { record: record as DeliveryAttempt, original: new Uint8Array() };
}

describe('DeliveryLog', () => {
  it('DeliveryLog keeps at most `logSize` attempts and removes the oldest first', () => {
    const log = new DeliveryLog(2);
    for (const id of ['1', '2', '3']) log.add(entry(id));
    expect(log.list().map(({ id }) => id)).toEqual(['2', '3']);
    expect(() => log.get('1')).toThrow(EmulatorError);
    expect(() => log.get('1')).toThrow('logSize');
  });

  it('DeliveryLog lists the newest attempts that match all criteria, up to the limit', () => {
    const log = new DeliveryLog(10);
    log.add(entry('1'));
    log.add(entry('2', { companyId: 'b' }));
    log.add(entry('3', { state: 'failed' }));
    log.add(entry('4'));
    const ids = (filter: object) => log.list(filter).map(({ id }) => id);
    expect(ids({ companyId: 'a' })).toEqual(['1', '3', '4']);
    expect(ids({ companyId: 'a', state: 'delivered' })).toEqual(['1', '4']);
    expect(ids({ companyId: 'a', limit: 2 })).toEqual(['3', '4']);
    expect(ids({ companyId: 'c' })).toEqual([]);
  });

  it('DeliveryLog sorts attempts by the time that the page shows, and the next page can start after any attempt', () => {
    const log = new DeliveryLog(10);
    const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
    log.add(entry('retried', { createdAt: at(1), sentAt: at(9) }));
    log.add(entry('first', { createdAt: at(2), sentAt: at(3) }));
    log.add(entry('second', { createdAt: at(2), sentAt: at(3) }));
    log.add(entry('waiting', { createdAt: at(5) }));
    const ids = (search: object) => log.search(search).deliveries.map(({ id }) => id);
    expect(ids({})).toEqual(['retried', 'waiting', 'second', 'first']);
    expect(ids({ limit: 2 })).toEqual(['retried', 'waiting']);
    expect(ids({ before: 'waiting' })).toEqual(['second', 'first']);
  });

  it('DeliveryLog returns copies, so that changes do not affect the log', () => {
    const log = new DeliveryLog(10);
    log.add(entry('1'));
    log.list()[0]?.faults.push('changed');
    expect(log.list()[0]?.faults).toEqual([]);
  });
});
