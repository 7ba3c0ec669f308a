import { describe, expect, it } from '@jest/globals';
import { EmulatorInputError } from '../emulator-errors.js';
import type { FaultPlan } from './fault-plan.js';
import { validateFaultPlan } from './fault-plan-validator.js';

describe('validateFaultPlan', () => {
  it('validateFaultPlan() accepts a plan with every fault, and returns a copy', () => {
    const plan: FaultPlan = {
      delivery: {
        off: true,
        drop: { probability: 0.1 },
        duplicate: { copies: 2 },
        delay: { ms: [10, 20] },
        reorder: { window: 2, maxWaitMs: 0 },
        tamperBody: { how: 'respace' },
        tamperSignature: { how: 'scheme', next: 1 },
        oldSecret: { next: 3 },
        redeliver: [0, 1000],
      },
      token: {
        slow: { ms: 5 },
        error: { status: 500 },
        lifetime: { seconds: 2 },
        expiresIn: { value: ['3599'] },
        sameToken: {},
      },
      api: {
        reset: { when: 'after' },
        unauthorized: { next: 3 },
        rateLimit: { retryAfter: 'Wed, 21 Oct 2026 07:28:00 GMT' },
        truncate: {},
        oversize: { bytes: 1, encoding: 'gzip' },
        notFound: { forMs: 60_000, next: 2 },
        otherStatus: { status: 'reversed', probability: 0.5 },
      },
    };
    expect(validateFaultPlan(plan)).toEqual(plan);
    expect(validateFaultPlan(plan)).not.toBe(plan);
    expect(validateFaultPlan({})).toEqual({});
  });

  it.each([
    [null, 'the fault plan must be an object'],
    [[], 'the fault plan must be an object'],
    [{ webhook: {} }, 'webhook is unknown; known are delivery, token, api'],
    [{ api: { slow: {} } }, 'api.slow.ms is required'],
    [{ api: { slow: { ms: -1 } } }, 'api.slow.ms must be a whole number of milliseconds'],
    [{ api: { slow: { ms: [5, 1] } } }, 'api.slow.ms must be'],
    [{ api: { slow: true } }, 'api.slow must be an object'],
    [{ api: { error: { status: 404 } } }, 'api.error.status must be a whole number'],
    [{ api: { notFound: { forMs: 0 } } }, 'api.notFound.forMs must be a whole number'],
    [{ api: { otherStatus: { status: 'complete' } } }, 'api.otherStatus.status must be 1 to 64'],
    [{ token: { notFound: {} } }, 'token.notFound is unknown'],
    [{ delivery: { off: false } }, 'delivery.off must be true'],
    [{ api: { lifetime: { seconds: 1 } } }, 'api.lifetime is unknown'],
    [{ api: { constructor: {} } }, 'api.constructor is unknown'],
    [{ token: { lifetime: {} } }, 'token.lifetime.seconds is required'],
    [{ token: { expiresIn: { value: () => 1 } } }, 'token.expiresIn.value must be JSON'],
    [{ token: { rateLimit: { retryAfter: '1\r\nx: y' } } }, 'token.rateLimit.retryAfter must be'],
    [{ delivery: { drop: { probability: 2 } } }, 'delivery.drop.probability must be a number'],
    [{ delivery: { drop: { next: 1.5 } } }, 'delivery.drop.next must be a whole number of times'],
    [{ delivery: { drop: { nxt: 1 } } }, 'delivery.drop.nxt is unknown; known are next'],
    [{ delivery: { reorder: { window: 1 } } }, 'delivery.reorder.window must be'],
    [{ delivery: { redeliver: [-1] } }, 'delivery.redeliver must be a list'],
    [{ delivery: { redeliver: Array(21).fill(1) } }, 'delivery.redeliver must be a list'],
    [{ delivery: { tamperBody: { how: 'x' } } }, 'must be one of value, respace, truncate'],
  ])('validateFaultPlan() rejects %j with a message that names the field', (plan, message) => {
    expect(() => validateFaultPlan(plan)).toThrow(EmulatorInputError);
    expect(() => validateFaultPlan(plan)).toThrow(message);
  });
});
