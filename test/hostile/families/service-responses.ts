// A hostile payments service that the application calls. Each call must fail with a PaymentsError within its deadline.
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { CallResult } from '../application.ts';
import type { Family } from '../family.ts';
import { TOKEN, INVALID_TOKEN_RESPONSES, scenarios } from '../service-scenarios.ts';
import type { Scenario } from '../service-scenarios.ts';

/** Maximum duration of a call in milliseconds: the application's deadline of 3 s, plus 3 s for a busy machine. */
const LIMIT_MS = 6000;

let trapped = 0;
const trap = listen(() => (trapped += 1));
const service = listen((socket) => {
  let received = '';
  socket.on('data', (data: Buffer) => {
    received += data.toString('latin1');
    const request = /^(\w+) (\S+) HTTP/.exec(received);
    if (request === null || !received.includes('\r\n\r\n')) return;
    received = '';
    void writeScenario(socket, scenarioOf(request[2]!));
  });
});
const ALL = scenarios(`http://127.0.0.1:${await portOf(trap)}`);
const NAMES = Object.keys(ALL);
const url = `http://127.0.0.1:${await portOf(service)}`;

export const family: Family = {
  name: 'service responses',
  lanes: 2,
  async attempt({ port, tally }, n) {
    const brokenToken = n % 5 === 4;
    const number = Math.floor(n / 5) % INVALID_TOKEN_RESPONSES.length;
    const name = brokenToken ? 'fine' : NAMES[(n - Math.floor(n / 5)) % NAMES.length]!;
    const company = brokenToken ? `broken-token-${number}` : 'caller';
    const label = brokenToken ? `token response ${number}` : `response "${name}"`;
    const query = new URLSearchParams({ company, scenario: name, service: url });
    tally.attempts += 1;
    try {
      const signal = AbortSignal.timeout(20_000);
      const response = await fetch(`http://127.0.0.1:${port}/call?${query.toString()}`, { signal });
      const { outcome, detail, elapsedMs } = (await response.json()) as CallResult;
      const mayResolve = !brokenToken && ALL[name]!.mayResolve === true;
      if (outcome === 'value') tally.accepted += 1;
      else tally.countRejection(detail);
      if (outcome === 'other error') tally.wrong.push(`${label}: ${detail}`);
      if (outcome === 'value' && !mayResolve) tally.wrong.push(`${label}: the call resolved`);
      if (name === 'fine' && !brokenToken && outcome !== 'value')
        tally.wrong.push(`${label}: ${detail}`);
      if (elapsedMs > LIMIT_MS) tally.wrong.push(`${label}: took ${elapsedMs.toFixed(0)} ms`);
    } catch (error) {
      tally.wrong.push(`${label}: the application did not respond (${String(error)})`);
    }
    if (trapped > 0) tally.wrong.push(`${label}: the call followed a redirect to another host`);
    trapped = 0;
  },
};

/** The token endpoint of company `broken-token-N` responds without a usable token, and every other with a token. */
function scenarioOf(path: string): Scenario {
  const company = /^\/broken-token-(\d+)\//.exec(path)?.[1];
  if (path.endsWith('/v1/auth/token')) {
    return company === undefined ? TOKEN : INVALID_TOKEN_RESPONSES[Number(company)]!;
  }
  return ALL[decodeURIComponent(path.split('/').at(-1)!)] ?? ALL['fine']!;
}

async function writeScenario(
  socket: Socket,
  { pieces, repeat, pauseMs = 0, ending = 'end' }: Scenario,
) {
  const write = async (piece: string | Uint8Array): Promise<void> => {
    if (!socket.destroyed && !socket.write(piece)) {
      const gone = once(socket, 'close');
      await Promise.race([once(socket, 'drain').catch(() => {}), gone.catch(() => {})]);
    }
    await wait(pauseMs);
  };
  for (const piece of pieces) await write(piece);
  if (repeat !== undefined) {
    while (!socket.destroyed) await write(repeat);
  }
  if (ending === 'end') socket.end();
  else if (ending === 'reset') socket.resetAndDestroy();
}

function listen(onConnection: (socket: Socket) => void): Server {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  return server.listen(0, '127.0.0.1').unref();
}

async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
