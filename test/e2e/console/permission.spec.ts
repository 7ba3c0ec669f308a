import { expect, it } from '@jest/globals';
import type { ConsolePermission } from 'nestjs-payments-console';
import {
  ACTION,
  basic,
  consoleOnEachAdapter,
  FAILURE_GROUP,
  guarded,
  selected,
} from '../../support/console/console-application.js';

const PASSWORD = 'correct horse battery';
const REJECTED = 'You may look, but not act. Ask an operator who may act.';
const PAYMENT = { company: 'default', reference: 'order-1' };
const ACTIONS: [string, object][] = [
  ['redrive', selected('e-1')],
  ['redrive', { filter: { state: 'dead' } }],
  ['stop', { id: 'job-1' }],
  ['acknowledge', { ...FAILURE_GROUP, note: 'x' }],
  ['withdraw', FAILURE_GROUP],
  ['skip', selected('e-1')],
  ['pause', { handler: 'Orders.markPaid' }],
  ['resume', { handler: '*' }],
  ['forget', { handler: 'Orders.markPaid' }],
  ['ask', { expectations: [PAYMENT] }],
  ['close', { expectations: [PAYMENT], note: 'paid in cash' }],
  ['setup', { check: 'webhook' }],
];

consoleOnEachAdapter((start) => {
  it('SE-15 a user of BasicAuthGuard who may only read sees payloads and counts, and gets 403 for every action', async () => {
    const users = { ann: PASSWORD, support: { password: PASSWORD, may: 'read' as const } };
    await using app = await start({ console: guarded({ users }) });
    await app.deliver({ id: 'e-1', data: { card: 'a-customer' } }, 'dead');
    const [ann, support] = [basic('ann', PASSWORD), basic('support', PASSWORD)];
    const overview = await app.get('/api/overview', support);
    expect(overview.body).toMatchObject({ who: 'support', may: 'read' });
    const event = await app.get('/api/event?company=default&id=e-1', support);
    expect(event.text).toContain('a-customer');
    expect(app.log.filter((line) => line.includes('"support": viewed event "e-1"'))).toHaveLength(
      1,
    );
    for (const [action, body] of ACTIONS) {
      const rejected = await app.post(action, body, { headers: { ...ACTION, ...support } });
      expect([action, rejected.status, rejected.body]).toEqual([action, 403, { error: REJECTED }]);
    }
    expect(app.log.filter((line) => line.includes(REJECTED))).toHaveLength(ACTIONS.length);
    const invalid = await app.post('pause', {}, { headers: { ...ACTION, ...support } });
    expect(invalid.status).toBe(400);
    expect((await app.get('/api/audit?show=actions', ann)).body).toMatchObject({ entries: [] });
    const after = await app.get('/api/overview', ann);
    expect(after.body).toMatchObject({ who: 'ann', may: 'act', stats: { paused: [] } });
    const counts = await app.post(
      'redrive',
      { ...selected('e-1'), dryRun: true },
      { headers: { ...ACTION, ...support } },
    );
    expect(counts).toMatchObject({ status: 200, body: { events: 1, deliveries: 1 } });
    expect(app.orders.seen).toEqual(['e-1']);
    const paused = await app.post('pause', { handler: '*' }, { headers: { ...ACTION, ...ann } });
    expect(paused.status).toBe(200);
  });

  it('SE-15 "verify" of BasicAuthGuard and the option "may" decide whether an operator may act, and the stricter of both applies', async () => {
    const verify = (name: string): ConsolePermission => (name === 'support' ? 'read' : 'act');
    const may = ({ headers }: { headers: object }): ConsolePermission =>
      (headers as Record<string, ConsolePermission | undefined>)['x-may'] ?? 'act';
    await using app = await start({ console: { ...guarded({ verify }), may } });
    const permission = async (name: string, headers = {}) =>
      (await app.get('/api/overview', { ...basic(name, PASSWORD), ...headers })).body['may'];
    expect(await permission('ann')).toBe('act');
    expect(await permission('support')).toBe('read');
    expect(await permission('support', { 'x-may': 'act' })).toBe('read');
    expect(await permission('ann', { 'x-may': 'read' })).toBe('read');
    expect(await permission('ann', { 'x-may': 'everything' })).toBe('read');
  });

  it('SE-15 if the option "may" throws, the console shows no overview and performs no action', async () => {
    const may = (): ConsolePermission => {
      throw new Error('no session');
    };
    await using app = await start({ console: { may } });
    expect(await app.get('/api/overview')).toMatchObject({ status: 500 });
    expect(await app.post('pause', { handler: '*' })).toMatchObject({ status: 500 });
    expect(app.actions).toEqual([]);
  });
});
