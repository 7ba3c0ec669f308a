import { expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import type { Companies } from '../companies/company.js';
import type { InboxStore } from '../inbox/store/inbox-store.js';
import { FakePaymentsApi } from '../testing/fake-payments-api.js';
import { PaymentExpectations } from './payment-expectations.js';
import type { Poller } from './poller.js';
import { byStatus, resolveReconcileOptions } from './reconcile-options.js';

it.each([
  [true, [1000]],
  [false, []],
])(
  'EX-03 expect() in a transaction wakes the poller for the first poll only if the expectation is new (new: %p)',
  async (isNew, wakes) => {
    const woken: number[] = [];
    const tx = {};
    const store = {
      expectations: { expect: async (_: unknown, inside: unknown) => isNew && inside === tx },
    };
    const expectations = new PaymentExpectations(
      resolveReconcileOptions({ interpret: byStatus({ complete: 'transaction.completed' }) }),
      store as unknown as InboxStore,
      { known: () => undefined } as unknown as Companies,
      new FakeRuntime(),
      new FakePaymentsApi(),
      { wakeIn: (ms: number) => void woken.push(ms) } as unknown as Poller,
    );
    const dueBy = new Date(0);
    const payment = { reference: 'r', schedule: [1000] };
    expect(await expectations.expect(payment, { tx })).toBe(isNew);
    expect(await expectations.expect({ ...payment, dueBy }, { tx })).toBe(isNew);
    expect(woken.map((ms) => Math.round(ms / 1000) * 1000)).toEqual(isNew ? [...wakes, 0] : wakes);
  },
);
