import { expect, it } from '@jest/globals';
import { PaymentInbox, memoryInbox, PaymentInboxError } from 'nestjs-payments';
import type { InboxDefinition } from 'nestjs-payments';
import type { InboxStore } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';

const METHODS = [
  'find',
  'list',
  'stats',
  'failures',
  'activity',
  'redrive',
  'skip',
  'pause',
  'forgetHandler',
];

/** A store in memory whose methods reject while `failure` is set, or only its records while `noRecords` is set. */
class FailingInbox implements InboxDefinition {
  readonly name = 'failing';
  failure: Error | undefined;
  noRecords: Error | undefined;

  create(...args: Parameters<InboxDefinition['create']>): InboxStore {
    const store = memoryInbox().create(...args);
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        const failure = this.failure ?? this.noRecords;
        if (name === 'records' && failure !== undefined) {
          const reject = () => Promise.reject(failure);
          return { put: reject, list: reject, remove: reject };
        }
        if (typeof value !== 'function') return value;
        return (...given: unknown[]): unknown =>
          METHODS.includes(String(name)) && this.failure !== undefined
            ? Promise.reject(this.failure)
            : Reflect.apply(value, target, given);
      },
    });
  }
}

const OUTAGES: [string, Error][] = [
  ['an error of an inbox', new PaymentInboxError('inbox_unavailable', 'at 10.0.0.7:5432')],
  [
    'an error of a driver',
    Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:5432'), { code: 'ECONNREFUSED' }),
  ],
];
const GETS = [
  '/api/overview',
  '/api/events',
  '/api/event?company=default&id=e-1',
  '/api/failures',
  '/api/audit',
];
const POSTS: [string, object][] = [
  ['redrive', { filter: {} }],
  ['redrive', { events: [{ company: 'default', id: 'e-1' }] }],
  ['skip', { filter: {}, handler: 'Orders.markPaid' }],
  ['pause', { handler: 'Orders.markPaid' }],
  ['resume', { handler: '*' }],
  ['forget', { handler: 'Orders.markPaid' }],
];

consoleOnEachAdapter((start) => {
  it.each(OUTAGES)(
    'the console responds 503 after %s, logs the cause, and recovers',
    async (_, failure) => {
      const inbox = new FailingInbox();
      await using app = await start({ payments: { inbox } });
      await app.deliver({ id: 'e-1' });
      inbox.failure = failure;
      const responses = [
        ...(await Promise.all(GETS.map((path) => app.get(path)))),
        ...(await Promise.all(POSTS.map(([action, body]) => app.post(action, body)))),
      ];
      for (const response of responses) {
        expect(response).toMatchObject({
          status: 503,
          body: {
            error: expect.stringMatching(
              /^The inbox is not reachable. See the application's log for the cause/,
            ),
          },
          headers: { 'cache-control': 'no-store', 'x-frame-options': 'DENY' },
        });
        expect(response.text).not.toContain('10.0.0.7');
      }
      expect(await app.get('')).toMatchObject({ status: 200 });
      const outages = app.log.filter((line) =>
        line.startsWith('warn The console cannot reach the inbox'),
      );
      expect(outages).toEqual([expect.stringContaining('10.0.0.7')]);
      const failed = app.log.filter((line) => /"ann": could not /.test(line));
      expect(failed).toHaveLength(POSTS.length);
      inbox.failure = undefined;
      app.runtime.advance(1000);
      for (const path of GETS) expect(await app.get(path)).toMatchObject({ status: 200 });
    },
  );

  it('OP-43 if the audit is not reachable, the console performs and logs an action, and responds 503 to the audit page', async () => {
    const inbox = new FailingInbox();
    await using app = await start({ payments: { inbox } });
    await app.deliver({ id: 'e-1' });
    inbox.noRecords = new Error('no table');
    expect(await app.post('pause', { handler: '*' })).toMatchObject({ status: 200 });
    expect(await app.get('/api/event?company=default&id=e-1')).toMatchObject({ status: 200 });
    expect(await app.get('/api/audit')).toMatchObject({ status: 503 });
    expect(app.log).toContain('log "ann": paused all handlers PaymentsConsole');
    expect(app.log).toContain('log "ann": viewed event "e-1" of company "default" PaymentsConsole');
    inbox.noRecords = undefined;
    expect((await app.get('/api/audit')).body).toEqual({ entries: [], comparedFrom: null });
  });

  it('OP-43 the console records an action before it sends the result', async () => {
    const inbox = new FailingInbox();
    await using app = await start({ payments: { inbox } });
    const recorded: string[] = [];
    const own = app.merchant.app.get(PaymentInbox);
    const record = own.recordAudit.bind(own);
    own.recordAudit = async (entry, replaces) => {
      // A response that does not wait for the record arrives before the response to this request.
      await app.get('/api/overview');
      const id = await record(entry, replaces);
      recorded.push(entry.text);
      return id;
    };
    await app.post('pause', { handler: '*' });
    expect(recorded).toEqual(['pause all handlers', 'paused all handlers']);
    await app.post('pause', { handler: 'nobody' });
    expect(recorded.slice(2)).toEqual([
      'pause handler "nobody"',
      'could not pause handler "nobody"',
    ]);
  });

  it('the console responds 500 for a programming error, and logs the error with its stack', async () => {
    await using app = await start();
    const inbox = app.merchant.app.get(PaymentInbox);
    inbox.get = async () => {
      throw new RangeError('somewhere in 10.0.0.7');
    };
    const response = await app.get('/api/event?company=default&id=e-1');
    expect(response).toMatchObject({
      status: 500,
      body: { error: expect.stringMatching(/See the application's log/) },
    });
    expect(response.text).not.toContain('10.0.0.7');
    expect(
      app.log.some((line) => /^error RangeError: somewhere in[^]*console\/outage/.test(line)),
    ).toBe(true);
  });

  it('the console responds 400 to a cursor of another store', async () => {
    await using app = await start();
    const inbox = app.merchant.app.get(PaymentInbox);
    inbox.list = async () => {
      throw new TypeError('"after" must be the "next" of the previous page.');
    };
    expect(await app.get('/api/events?after=7-7')).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/"after".*Start again from the first page/) },
    });
  });
});
