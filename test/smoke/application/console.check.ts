import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** Reads the whole answer: a connection with something left to read stays open, and the application with it. */
async function ask(address: string, init: RequestInit = {}): Promise<Answer> {
  const headers = { ...(init.headers as Record<string, string>), connection: 'close' };
  const response = await fetch(address, { ...init, headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** @throws where the console below the address is open, or shows not what it should. */
export async function checkConsole(address: string, credentials: string): Promise<void> {
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  const get = (path: string) => ask(address + path, { headers: { authorization } });

  const refused = await ask(address);
  strictEqual(refused.status, 401);
  match(refused.headers.get('www-authenticate') ?? '', /^Basic realm=/);

  for (const end of ['', '/']) {
    const page = await get(end);
    strictEqual(page.status, 200);
    match(page.headers.get('content-security-policy') ?? '', /script-src 'self' 'sha256-/);
    const named = [...page.text.matchAll(/"([^"]*assets\/[^"]+)"/g)].map(([, file]) => file ?? '');
    ok(named.length >= 8, `the page names ${named.length} files`);
    for (const file of named) {
      const { pathname } = new URL(file, address + end);
      const { status } = await get(pathname.replace(new URL(address).pathname, ''));
      deepStrictEqual([file, status], [file, 200]);
    }
  }
  const { events } = JSON.parse((await get('/api/events')).text) as { events: { id: string }[] };
  deepStrictEqual(
    events.map(({ id }) => id),
    ['event-7'],
  );
  const event = await get('/api/event?company=default&id=event-7');
  match((JSON.parse(event.text) as { payload: string }).payload, /"id":"event-7"/);

  const pause = async (headers: Record<string, string>): Promise<number> => {
    const body = JSON.stringify({ handler: '*' });
    const sent = { authorization, 'content-type': 'application/json', ...headers };
    return (await ask(`${address}/api/pause`, { method: 'POST', body, headers: sent })).status;
  };
  strictEqual(await pause({}), 403);
  strictEqual(await pause({ 'x-payments-console': '1', origin: 'https://evil.example' }), 403);
  strictEqual(await pause({ 'x-payments-console': '1' }), 200);
}
