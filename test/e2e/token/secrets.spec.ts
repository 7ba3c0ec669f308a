import { inspect } from 'node:util';
import { expect, it } from '@jest/globals';
import { testCompany } from '../../support/api/api-client-application.js';
import { describeWithEachAdapter } from '../../support/api/api-harness.js';
import { until } from '../../support/time/waiting.js';
import { hangUp, json, silence, type Script } from '../../support/api/scripted-service.js';

const CLIENT_ID = 'client-id-4711';
const CLIENT_SECRET = 'client-secret-0815';
const TOKEN = 'eyJ.secret-token.sig';
const BASIC = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64');
const SECRETS = [CLIENT_SECRET, TOKEN, BASIC];

/** A script that responds with the request in its body and headers, as a debugging gateway does. */
const echo =
  (status: number): Script =>
  (request, response) => {
    const { authorization = '' } = request.headers;
    const headers = { 'x-request-id': authorization.split(' ')[1] ?? '', 'x-echo': authorization };
    json(status, { ...request }, headers)(request, response);
  };

describeWithEachAdapter('secrets of the API client', (harness) => {
  it('TK-18 no error, log line or exposed object of the module contains a secret, a token or Basic credentials', async () => {
    const { service } = harness;
    const company = testCompany(service.baseUrl, {
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
    });
    const application = await harness.boot({}, company);
    const { payments, runtime, logs } = application;
    const thrown: unknown[] = [];
    const caught = (call: Promise<unknown>): Promise<unknown> =>
      call.catch((error: unknown) => thrown.push(error));
    const returnToken = json(200, service.tokenAnswer({ token: TOKEN, expiresIn: 'an hour' }));

    const failToken = async (script: Script): Promise<void> => {
      service.onToken = script;
      await caught(payments.getTransaction('1'));
      runtime.advance(60_000);
    };
    await failToken(echo(401));
    await failToken(echo(500));
    await failToken(echo(200));
    await failToken(hangUp);
    service.onToken = returnToken;
    for (const status of [400, 401, 403, 404, 409, 418, 422, 302]) {
      service.onCall = echo(status);
      await caught(payments.post('/v1/things', { body: {} }));
    }
    service.onCall = hangUp;
    await caught(payments.post('/v1/things'));
    service.onCall = echo(200);
    const { headers, requestId } = await payments.request('GET', '/v1/things');
    await caught(payments.getTransaction('1', { headers: { authorization: TOKEN } }));
    await caught(payments.forCompany('nobody').getTransaction('1'));
    service.onCall = silence;
    const before = service.calls.length;
    const waiting = caught(payments.post('/v1/things'));
    await until(() => service.calls.length > before);
    const whileBusy = inspect(payments, { depth: Infinity });
    runtime.advance(20_000);
    await waiting;

    expect(thrown.length).toBeGreaterThan(14);
    const exposed = [payments, payments.forCompany('other'), company, headers, requestId];
    const texts = [...thrown, ...logs, ...exposed].flatMap((value) => [
      String(value),
      inspect(value, { depth: Infinity, showHidden: false, maxStringLength: Infinity }),
      JSON.stringify(value),
      ...(value instanceof Error ? [value.message, value.stack, inspect(value.cause)] : []),
    ]);
    for (const secret of SECRETS) {
      expect([...texts, whileBusy].filter((text) => text?.includes(secret))).toEqual([]);
    }
    // Non-enumerable properties contain no secret either.
    const hidden = inspect(thrown, { depth: Infinity, showHidden: true, getters: false });
    for (const secret of SECRETS) expect(hidden).not.toContain(secret);
  });
});
