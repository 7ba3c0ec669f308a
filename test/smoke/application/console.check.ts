import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';

/** @throws where the console below the address is open, or shows not what it should. */
export async function checkConsole(address: string, credentials: string): Promise<void> {
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  // A connection that is kept alive would hold up the end of the process.
  const get = async (path: string): Promise<Response> =>
    fetch(address + path, { headers: { authorization, connection: 'close' } });

  const refused = await fetch(address, { headers: { connection: 'close' } });
  strictEqual(refused.status, 401);
  match(refused.headers.get('www-authenticate') ?? '', /^Basic realm=/);

  for (const end of ['', '/']) {
    const page = await get(end);
    strictEqual(page.status, 200);
    match(page.headers.get('content-security-policy') ?? '', /script-src 'self' 'sha256-/);
    const html = await page.text();
    const named = [...html.matchAll(/"([^"]*assets\/[^"]+)"/g)].map(([, file]) => file ?? '');
    ok(named.length >= 8, `the page names ${named.length} files`);
    for (const file of named) {
      const { pathname } = new URL(file, address + end);
      const { status } = await get(pathname.replace(new URL(address).pathname, ''));
      deepStrictEqual([file, status], [file, 200]);
    }
  }
  const { events } = (await (await get('/api/events')).json()) as { events: { id: string }[] };
  deepStrictEqual(
    events.map(({ id }) => id),
    ['event-7'],
  );
  const event = await get('/api/event?company=default&id=event-7');
  match(((await event.json()) as { payload: string }).payload, /"id":"event-7"/);

  const pause = async (headers: Record<string, string>): Promise<number> => {
    const body = JSON.stringify({ handler: '*' });
    const sent = { authorization, connection: 'close', 'content-type': 'application/json' };
    const init = { method: 'POST', body, headers: { ...sent, ...headers } };
    return (await fetch(`${address}/api/pause`, init)).status;
  };
  strictEqual(await pause({}), 403);
  strictEqual(await pause({ 'x-payments-console': '1', origin: 'https://evil.example' }), 403);
  strictEqual(await pause({ 'x-payments-console': '1' }), 200);
}
