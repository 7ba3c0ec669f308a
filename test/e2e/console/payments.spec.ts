import { expect, it } from '@jest/globals';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';
import { expectationsOf, TransactionService } from '../../support/console/expecting-application.js';

consoleOnEachAdapter((start) => {
  it('OP-11 the console finds the events and the expectation of a payment by its transaction id or its reference', async () => {
    await using service = await TransactionService.start();
    await using app = await start({ payments: service.options });
    const expectations = expectationsOf(app);
    await expectations.expect({ reference: 'order-1', transactionId: 't-1' });
    await expectations.expect({ reference: 'order-10' });
    const data = { transactionId: 't-1', externalReference: 'order-1', amount: 350 };
    await app.deliver({ id: 'e-1', data }, 'dead');
    await app.deliver({ id: 'e-2', eventType: 'payout.settled', data: { transactionId: 't-1' } });
    await app.deliver({ id: 'e-3', data: { ...data, transactionId: 't-3' } });
    await app.deliver({ id: 'e-4', data: { transactionId: 't-10' } });

    const find = async (payment: string, company = 'default') => {
      const query = new URLSearchParams({ company, payment });
      const { status, body } = await app.get(`/api/payment?${query}`);
      if (status !== 200) return status;
      const { events, expectations: open, others } = body as Record<string, object[]>;
      return {
        events: events!.map((event) => (event as { id: string }).id).toSorted(),
        expectations: open!.map((one) => (one as { reference: string }).reference),
        others,
      };
    };
    const own = { events: ['e-1', 'e-2'], expectations: ['order-1'], others: ['t-3'] };
    expect(await find('t-1')).toEqual(own);
    expect(await find('order-1')).toEqual({
      ...own,
      events: ['e-1', 'e-2', 'e-3'],
      others: [],
    });
    expect(await find('t-3')).toMatchObject({ events: ['e-3'], expectations: [], others: ['t-1'] });
    expect(await find('order-10')).toMatchObject({ events: [], expectations: ['order-10'] });
    expect(await find('order-1', 'umbrella')).toBe(404);
    for (const text of ['order-', 't-', '\0', '🔑'.repeat(500)]) expect(await find(text)).toBe(404);

    const { body } = await app.get('/api/payment?company=default&payment=t-1');
    const event = (body['events'] as Record<string, unknown>[]).find(({ id }) => id === 'e-1')!;
    expect(Object.keys(event)).not.toContain('raw');
    const [delivery] = event['deliveries'] as Record<string, unknown>[];
    expect(delivery).toMatchObject({ state: 'dead', history: [{ outcome: 'failed' }] });
    // The frames are relative to the working directory, and only of the application's own files.
    expect(delivery!['frames']).toMatch(/^at Orders\.markPaid \(test\/support\/console\/[^)]+\)$/m);
    expect(delivery!['frames']).not.toMatch(/node_modules|node:|file:/);
  });

  it('OP-11 without the option reconcile, the console finds the events of a payment', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1', data: { transactionId: 't-1' } });
    const { body } = await app.get('/api/payment?company=default&payment=t-1');
    expect(body).toMatchObject({ events: [{ id: 'e-1' }], expectations: [], others: [] });
  });
});
