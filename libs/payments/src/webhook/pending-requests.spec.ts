import { beforeEach, describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { codeOf } from '../../../../test/support/errors/thrown-error.js';
import { holds } from '../../../../test/support/properties/property-check.js';
import { PendingRequests } from './admission.js';
import type { PendingRequest } from './admission.js';
import { resolveWebhookOptions } from './webhook-options.js';

const MAX_BYTES = 10_000;
const options = resolveWebhookOptions(
  { maxPending: 3, bodyLimitBytes: 1024, maxPendingBytes: MAX_BYTES },
  { deadlineMs: 25_000 },
);

describe('PendingRequests', () => {
  let runtime: FakeRuntime;
  let requests: PendingRequests;
  beforeEach(() => {
    runtime = new FakeRuntime();
    requests = new PendingRequests(options, runtime);
  });

  /** Adds a pending request, and records the errors that it is rejected with. */
  const add = (): { request: PendingRequest; rejections: unknown[] } => {
    const request = requests.add();
    const rejections: unknown[] = [];
    request.onRejection((error) => rejections.push((error as { code: string }).code));
    return { request, rejections };
  };

  it('SE-03 PendingRequests rejects a new request above the maximum number if all others are younger than 25 ms', () => {
    const [first] = [add(), add(), add()];
    runtime.advance(24);
    expect(codeOf(() => requests.add())).toBe('webhook_busy');
    first.request.release();
    expect(add().rejections).toEqual([]);
    expect(requests.count).toBe(3);
  });

  it('SE-03 PendingRequests rejects the oldest request to accept a new request, if the oldest is at least 25 ms old', () => {
    const first = add();
    runtime.advance(1);
    const others = [add(), add()];
    runtime.advance(24);
    add();
    expect(first.rejections).toEqual(['webhook_busy']);
    expect(others.flatMap(({ rejections }) => rejections)).toEqual([]);
    expect(requests.count).toBe(3);
    expect(codeOf(() => requests.add())).toBe('webhook_busy');
  });

  it('SE-03 PendingRequests rejects more bytes than the limit if all requests are younger than 25 ms', () => {
    const [first, second] = [add(), add()];
    expect(first.request.reserve(MAX_BYTES - 1)).toBe(true);
    expect(second.request.reserve(1)).toBe(true);
    expect(second.request.reserve(2)).toBe(false);
    second.request.release();
    expect(requests).toMatchObject({ count: 1, bytes: MAX_BYTES - 1 });
  });

  it('SE-03 PendingRequests rejects the oldest requests if another request needs their bytes', () => {
    const [first, second] = [add(), add()];
    first.request.reserve(4000);
    second.request.reserve(5000);
    runtime.advance(25);
    const third = add();
    expect(third.request.reserve(5000)).toBe(true);
    expect([first.rejections, second.rejections]).toEqual([['webhook_busy'], []]);
    expect(third.request.reserve(MAX_BYTES)).toBe(true);
    expect(second.rejections).toEqual(['webhook_busy']);
    expect(requests).toMatchObject({ count: 1, bytes: MAX_BYTES });
  });

  it('PendingRequests counts no bytes of a released request', () => {
    const { request } = add();
    request.release();
    expect(request.reserve(10)).toBe(false);
    expect(requests).toMatchObject({ count: 0, bytes: 0 });
  });

  it('PendingRequests rejects a request once, together with its waiting promises, and never after its release', async () => {
    const { request, rejections } = add();
    const waiting = request.until(new Promise(() => {}));
    request.reject(new Error('over'));
    request.reject(new Error('again'));
    await expect(waiting).rejects.toThrow('over');
    expect(rejections).toHaveLength(1);
    const other = add();
    other.request.release();
    other.request.reject(new Error('late'));
    expect(other.rejections).toEqual([]);
    await expect(other.request.until(Promise.resolve(1))).resolves.toBe(1);
  });

  it('SE-03 PendingRequests stays within both limits during any sequence of calls, and its counts are zero after all requests are released', () => {
    const step = fc.record({
      call: fc.constantFrom('add', 'add', 'reserve', 'reserve', 'release', 'reject', 'wait'),
      which: fc.nat(20),
      amount: fc.nat(MAX_BYTES),
    });
    holds(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const runtime = new FakeRuntime();
        const requests = new PendingRequests(options, runtime);
        const all: PendingRequest[] = [];
        for (const { call, which, amount } of steps) {
          const request = all[which % (all.length || 1)];
          if (call === 'wait') runtime.advance(amount / 200);
          else if (call === 'add') {
            try {
              all.push(requests.add());
            } catch {
              expect(requests.count).toBe(3);
            }
          } else if (call === 'reserve') {
            // readRawBody() rejects a request in the same case.
            if (request && !request.reserve(amount)) request.reject(new Error('no room'));
          } else if (call === 'release') request?.release();
          else request?.reject(new Error('rejected'));
          expect(requests.count).toBeLessThanOrEqual(3);
          expect(requests.bytes).toBeLessThanOrEqual(MAX_BYTES);
        }
        for (const request of all) request.release();
        expect(requests).toMatchObject({ count: 0, bytes: 0 });
      }),
    );
  });
});
