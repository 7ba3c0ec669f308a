import { inspect } from 'node:util';
import { expect, it } from '@jest/globals';
import { VerifiedEvent } from './event-receiver.js';

it('VerifiedEvent hides its payload from output and from code that copies its properties', () => {
  const event = {
    id: 'evt-1',
    eventType: 'transaction.completed',
    timestamp: '2026-01-01T00:00:00.000Z',
    data: { phone: '254700000001' },
    metadata: {},
  };
  const headers = { traceparent: '254700000001' };
  const verified = new VerifiedEvent('acme', event, Buffer.from('254700000001'), 5, headers);
  expect(Object.keys(verified)).toEqual(['company', 'arrivedAt', 'source']);
  const views = [
    inspect(verified),
    inspect(verified, { customInspect: false, showHidden: true, depth: Infinity }),
    JSON.stringify(verified),
    JSON.stringify(Object.assign({}, verified)),
  ];
  expect(views.join()).not.toContain('254700000001');
  expect(Object.isFrozen(verified.headers)).toBe(true);
  expect(verified.headers).not.toBe(headers);
});
