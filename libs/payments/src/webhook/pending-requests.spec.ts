import { beforeEach, describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { holds, codeOf } from '../../../../test/support/assertions.js';
import { PendingRequests } from './pending-requests.js';
import type { PendingRequest } from './pending-requests.js';
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

  /** A pending request that remembers what it was refused with. */
  const add = (): { request: PendingRequest; refusals: unknown[] } => {
    const request = requests.add();
    const refusals: unknown[] = [];
    request.onRefusal((error) => refusals.push((error as { code: string }).code));
    return { request, refusals };
  };

  it('SE-03 refuses a request above the maximum number, while all others are younger than 25 ms', () => {
    const [first] = [add(), add(), add()];
    runtime.advance(24);
    expect(codeOf(() => requests.add())).toBe('webhook_busy');
    first.request.release();
    expect(add().refusals).toEqual([]);
    expect(requests.count).toBe(3);
  });

  it('SE-03 refuses the request that has waited longest in favour of a new one, after 25 ms', () => {
    const first = add();
    runtime.advance(1);
    const others = [add(), add()];
    runtime.advance(24);
    add();
    expect(first.refusals).toEqual(['webhook_busy']);
    expect(others.flatMap(({ refusals }) => refusals)).toEqual([]);
    expect(requests.count).toBe(3);
    expect(codeOf(() => requests.add())).toBe('webhook_busy');
  });

  it('SE-03 refuses the request that needs more bytes than there is room for', () => {
    const [first, second] = [add(), add()];
    expect(first.request.hold(MAX_BYTES - 1)).toBe(true);
    expect(second.request.hold(1)).toBe(true);
    expect(second.request.hold(2)).toBe(false);
    second.request.release();
    expect(requests).toMatchObject({ count: 1, bytes: MAX_BYTES - 1 });
  });

  it('SE-03 gives the bytes of the requests that have waited longest to the one that needs them', () => {
    const [first, second] = [add(), add()];
    first.request.hold(4000);
    second.request.hold(5000);
    runtime.advance(25);
    const third = add();
    expect(third.request.hold(5000)).toBe(true);
    expect([first.refusals, second.refusals]).toEqual([['webhook_busy'], []]);
    expect(third.request.hold(MAX_BYTES)).toBe(true);
    expect(second.refusals).toEqual(['webhook_busy']);
    expect(requests).toMatchObject({ count: 1, bytes: MAX_BYTES });
  });

  it('counts no bytes of a request that was released', () => {
    const { request } = add();
    request.release();
    expect(request.hold(10)).toBe(false);
    expect(requests).toMatchObject({ count: 0, bytes: 0 });
  });

  it('refuses a request once, in every step that it waits in, and never after its release', async () => {
    const { request, refusals } = add();
    const waiting = request.until(new Promise(() => {}));
    request.refuse(new Error('over'));
    request.refuse(new Error('again'));
    await expect(waiting).rejects.toThrow('over');
    expect(refusals).toHaveLength(1);
    const other = add();
    other.request.release();
    other.request.refuse(new Error('late'));
    expect(other.refusals).toEqual([]);
    await expect(other.request.until(Promise.resolve(1))).resolves.toBe(1);
  });

  it('SE-03 stays within both limits and returns to zero, whatever happens in which order', () => {
    const step = fc.record({
      what: fc.constantFrom('add', 'add', 'hold', 'hold', 'release', 'refuse', 'wait'),
      which: fc.nat(20),
      amount: fc.nat(MAX_BYTES),
    });
    holds(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const runtime = new FakeRuntime();
        const requests = new PendingRequests(options, runtime);
        const all: PendingRequest[] = [];
        for (const { what, which, amount } of steps) {
          const request = all[which % (all.length || 1)];
          if (what === 'wait') runtime.advance(amount / 200);
          else if (what === 'add') {
            try {
              all.push(requests.add());
            } catch {
              expect(requests.count).toBe(3);
            }
          } else if (what === 'hold') {
            // As the reader does: a request without room is refused.
            if (request && !request.hold(amount)) request.refuse(new Error('no room'));
          } else if (what === 'release') request?.release();
          else request?.refuse(new Error('refused'));
          expect(requests.count).toBeLessThanOrEqual(3);
          expect(requests.bytes).toBeLessThanOrEqual(MAX_BYTES);
        }
        for (const request of all) request.release();
        expect(requests).toMatchObject({ count: 0, bytes: 0 });
      }),
    );
  });
});
