import { expect, it } from '@jest/globals';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';

consoleOnEachAdapter((start) => {
  it('AP-18 the console runs one check of the setup per request, and the audit trail contains only checks that send a test webhook', async () => {
    // The runtime of the other tests of the console stands still, but the test webhook needs time.
    await using app = await start({ payments: { runtime: undefined as never } });
    const { status, body } = await app.post('setup', { check: 'settings' });
    expect(status).toBe(200);
    expect(body['checks']).toMatchObject([{ name: 'settings', company: 'default', state: 'ok' }]);
    await app.post('setup', { check: 'webhook', company: 'default' });
    expect(app.actions).toEqual([
      'log "ann": ran the check settings PaymentsConsole',
      'log "ann": ran the check webhook of company default PaymentsConsole',
    ]);
    const audit = await app.get('/api/audit');
    expect(audit.body['entries']).toMatchObject([
      { text: 'ran the check webhook of company default', error: null },
    ]);
  });

  it('the console rejects a check of the setup that does not exist, and requests of other sites', async () => {
    await using app = await start();
    expect(await app.post('setup', { check: 'everything' })).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining('"check" must be one of settings, token, inbox') },
    });
    const headers = { 'content-type': 'application/json' };
    expect(await app.post('setup', { check: 'settings' }, { headers })).toMatchObject({
      status: 403,
    });
    expect(app.actions.filter((line) => line.startsWith('log'))).toEqual([]);
  });
});
