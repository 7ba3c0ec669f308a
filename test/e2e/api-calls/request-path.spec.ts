import { expect, it } from '@jest/globals';
import { describeWithEachAdapter } from '../../support/api/api-harness.js';
import { ScriptedService } from '../../support/api/scripted-service.js';

describeWithEachAdapter('paths and redirects', (harness, adapter) => {
  it('HT-21 a transaction id is encoded as one segment of the path', async () => {
    const { payments } = await harness.boot();
    for (const id of ['a/b', 'a..b', 'a?b#c', 'é %2F\r\n', '5f0c7b52-8a0e']) {
      await payments.getTransaction(id);
      expect(harness.service.calls.at(-1)?.path).toBe(`/v1/transactions/${encodeURIComponent(id)}`);
    }
  });

  it('HT-21 the option query is encoded, and an object in it causes a TypeError', async () => {
    const { payments } = await harness.boot();
    const query = { q: 'a&b=c', page: 2, open: true, skip: undefined, id: ['x', 'y z'] };
    await payments.get('/v1/things', { query });
    expect(harness.service.calls[0]?.path).toBe(
      '/v1/things?q=a%26b%3Dc&page=2&open=true&id=x&id=y+z',
    );
    await expect(payments.get('/v1/things', { query: { a: {} as never } })).rejects.toThrow(
      TypeError,
    );
  });

  it.each([301, 302, 303, 307, 308])(
    'HT-22 a redirect with status %i is not followed, and the error names the status and the host of the Location header',
    async (status) => {
      const elsewhere = await ScriptedService.start();
      const { service } = harness;
      const { payments } = await harness.boot({ tokenHeader: 'x-auth-token' });
      const location = `${elsewhere.baseUrl}/path-4711?key=secret-0815`;
      service.onCall = (_, response) => response.writeHead(status, { location }).end();
      for (const call of [payments.getTransaction('1'), payments.post('/v1/things')]) {
        const error = (await call.catch((error: unknown) => error)) as Error;
        expect(error).toMatchObject({ code: 'redirect_not_followed', status });
        expect(error.message).toContain(String(status));
        expect(error.message).toContain(`127.0.0.1:${elsewhere.port}`);
        expect(error.message).not.toMatch(/path-4711|secret-0815/);
      }
      expect(elsewhere.connections).toBe(0);
      expect(service.calls).toHaveLength(2);
      await elsewhere.stop();
    },
  );

  it('HT-22 a redirect without a location, or to the same host, is not followed', async () => {
    const { payments } = await harness.boot();
    harness.service.onCall = (_, response) => response.writeHead(302).end();
    await expect(payments.get('/v1/things')).rejects.toThrow(/302.*without a location/);
    harness.service.onCall = (_, response) => response.writeHead(302, { location: '/x' }).end();
    await expect(payments.get('/v1/things')).rejects.toThrow(`127.0.0.1:${harness.service.port}`);
    expect(harness.service.calls).toHaveLength(2);
  });

  // Paths are checked before the adapter is used.
  if (adapter !== 'undici') return;

  it.each([
    ['an absolute URL', 'https://evil.example/v1/x'],
    ['//host', '//evil.example/v1/x'],
    ['no slash at its start', 'v1/x'],
    ['..', '/v1/../auth/token'],
    ['encoded ..', '/v1/%2e%2E/auth/token'],
    ['a backslash', '/v1\\x'],
    ['a query', '/v1/x?a=b'],
    ['a line break', '/v1/x\r\nhost: evil.example'],
    ['the type number instead of string', 42 as never],
  ])('HT-21 a path with %s causes a TypeError before a token request is sent', async (_, path) => {
    const { payments } = await harness.boot();
    for (const method of ['GET', 'POST'] as const) {
      await expect(payments.request(method, path)).rejects.toThrow(TypeError);
    }
    expect(harness.service.tokenRequests).toHaveLength(0);
    expect(harness.service.calls).toHaveLength(0);
  });

  it.each(['', '.', '..', '../auth/token', 'a/../b', 'a\\..\\b', undefined, null, 7, '\ud800'])(
    'HT-21 the transaction id %p causes a TypeError',
    async (id) => {
      const { payments } = await harness.boot();
      await expect(payments.getTransaction(id as string)).rejects.toThrow(TypeError);
      expect(harness.service.tokenRequests).toHaveLength(0);
    },
  );
});
