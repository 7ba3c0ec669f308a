import { expect, it } from '@jest/globals';
import { PaymentInbox } from 'nestjs-payments';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';
import { expectationsOf, TransactionService } from '../../support/console/expecting-application.js';

consoleOnEachAdapter((start) => {
  it('OP-30 the console exports the events of a filter as CSV, and records the export without the searched text', async () => {
    await using app = await start();
    await app.deliver({
      id: 'e-1',
      data: { externalReference: '=1+1', amount: '1250.00', currency: 'KES', card: 'a-customer' },
    });
    await app.deliver({ id: 'e-2', data: { externalReference: 'order, "2"' } }, 'dead');
    const all = await app.get('/api/csv/events?order=oldest');
    expect(all.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': expect.stringMatching(
        /^attachment; filename="events-\d{4}-\d\d-\d\d\.csv"$/,
      ),
      'cache-control': 'no-store',
    });
    const [head, first, second, ...rest] = all.text.replace('\uFEFF', '').split('\r\n');
    expect(head).toBe(
      'received,company,event,type,source,reference,transaction,amount,currency,deliveries',
    );
    expect(first).toMatch(/^[\dT:.-]+Z,default,e-1,transaction\.completed,webhook,'=1\+1,/);
    expect(first).toMatch(/,1250\.00,KES,Orders\.markPaid done$/);
    expect(second).toMatch(/,"order, ""2""",.*,Orders\.markPaid dead$/);
    expect(rest).toEqual(['']);
    expect(all.text).not.toContain('a-customer');
    const dead = await app.get('/api/csv/events?state=dead&search=order');
    expect(dead.text.split('\r\n')).toHaveLength(3);
    expect(app.actions.at(-1)).toBe(
      'log "ann": exported 1 row of events: state dead, search of 5 characters, order newest PaymentsConsole',
    );
    const { body } = await app.get('/api/audit');
    expect(body['entries']).toMatchObject([
      { text: expect.stringMatching(/^exported/) },
      { text: expect.stringMatching(/^exported/) },
    ]);
  });

  it('OP-30 a CSV file has at most 10,000 rows, and its name says if more rows match', async () => {
    await using app = await start();
    await app.deliver({ id: 'e-1' });
    const inbox = app.merchant.app.get(PaymentInbox);
    const list = inbox.list.bind(inbox);
    let endless = true;
    inbox.list = async (query) => {
      const page = await list({ ...query, after: null });
      const events = Array.from({ length: 900 }, () => page.events[0]!);
      return endless ? { events, next: '1.1' } : page;
    };
    const cut = await app.get('/api/csv/events');
    expect(cut.headers['content-disposition']).toMatch(/-incomplete\.csv"$/);
    expect(cut.text.split('\r\n')).toHaveLength(10_002);
    endless = false;
    const whole = await app.get('/api/csv/events');
    expect(whole.headers['content-disposition']).not.toContain('incomplete');
  });

  it('OP-30 the console exports expectations with their notes, and failures, as CSV', async () => {
    await using service = await TransactionService.start();
    await using app = await start({ payments: service.options });
    const expectations = expectationsOf(app);
    await expectations.expect({ reference: 'order-1', transactionId: 't-1' });
    await expectations.expect({ reference: 'order-2', transactionId: 't-2' });
    await expectations.cancel('order-2', { by: 'ann', note: 'paid, in cash' });
    await app.deliver(
      { id: 'e-1', data: { transactionId: 't-1', amount: '5.00', currency: 'KES' } },
      'dead',
    );
    const all = (await app.get('/api/csv/expectations')).text;
    expect(all).toMatch(/,order-1,t-1,fulfilled,,,,e-1,5\.00,KES,,,\r\n/);
    expect(all).toMatch(/,order-2,t-2,cancelled,,,,,,,[\dT:.-]+Z,ann,"paid, in cash"\r\n/);
    const closed = (await app.get('/api/csv/expectations?state=cancelled')).text;
    expect(closed.split('\r\n')).toHaveLength(3);
    const failures = (await app.get('/api/csv/failures')).text;
    expect(failures).toMatch(
      /\r\nOrders\.markPaid,dead,1,UnrecoverableError \(unrecoverable\): no such order,/,
    );
  });

  it('OP-30 the console rejects an unknown list, an invalid filter and a request of another site', async () => {
    await using app = await start();
    expect(await app.get('/api/csv/secrets')).toMatchObject({
      status: 404,
      body: { error: 'There is no such list. The lists are events, expectations and failures.' },
    });
    expect(await app.get('/api/csv/events?state=lost')).toMatchObject({ status: 400 });
    expect(await app.get('/api/csv/expectations')).toMatchObject({ status: 404 });
    const other = await app.get('/api/csv/events', { 'sec-fetch-site': 'cross-site' });
    expect(other.status).toBe(403);
    expect(app.actions).toEqual([]);
  });
});
