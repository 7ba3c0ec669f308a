// Plays the payments service: sends valid webhook requests at a fixed rate, and repeats those rejected as busy.
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { serveCommands } from '../support/processes/command-process.ts';
import { COMPANIES, eventKey, validRequest } from './webhook-requests.ts';
import type { WebhookRequest } from './webhook-requests.ts';

/** Results of the valid requests. */
export interface SenderReport {
  readonly sent: number;
  /** Requests that got the response 200 in the end. */
  readonly accepted: number;
  /** Attempts that were rejected with 503 `webhook_busy` and Retry-After, and repeated. */
  readonly busy: number;
  /** Attempts whose connection ended without a response, and that were repeated. */
  readonly disconnected: number;
  /** Responses that a valid request must not get. */
  readonly wrong: readonly string[];
  /** Latency of the attempts with response 200, in milliseconds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Events that must have been handled once. */
  readonly events: readonly string[];
}

const INTERVAL_MS = 1000 / 50;
/** Milliseconds for which requests are repeated after the last new request. */
const REPEAT_MS = 20_000;
/** Time limit of one response, in milliseconds. */
const RESPONSE_MS = 15_000;

const agent = new Agent({ keepAlive: true, maxSockets: 200 });
const latencies: number[] = [];
const wrong: string[] = [];
const events: string[] = [];
const counts = { sent: 0, accepted: 0, busy: 0, disconnected: 0 };
const pending = new Set<Promise<void>>();
/** Aborted when the sender must send no further new request. */
const stopping = new AbortController();
let repeatUntil = Infinity;
let loop: Promise<void> = Promise.resolve();

async function sendAll(port: number): Promise<void> {
  const startMs = performance.now();
  for (let n = 0; !stopping.signal.aborted; n += 1) {
    await wait(Math.max(0, startMs + n * INTERVAL_MS - performance.now()));
    const company = COMPANIES[n % COMPANIES.length]!;
    const id = `valid-${n}`;
    const sent = validRequest(company, id, { padding: n % 20 === 0 ? 50_000 : 300 });
    events.push(eventKey(company.id, id));
    counts.sent += 1;
    const sending = sendUntilAccepted(port, sent, n % 10 === 0).finally(() =>
      pending.delete(sending),
    );
    pending.add(sending);
  }
}

/** Sends a request until it gets the response 200, as the service does. */
async function sendUntilAccepted(
  port: number,
  sent: WebhookRequest,
  chunked: boolean,
): Promise<void> {
  while (performance.now() < repeatUntil) {
    const startMs = performance.now();
    const response = await attempt(port, sent, chunked).catch((error: Error) => error);
    if (response instanceof Error) {
      counts.disconnected += 1;
      await wait(200);
    } else if (response.status === 200) {
      latencies.push(performance.now() - startMs);
      counts.accepted += 1;
      return;
    } else {
      const { status, code, retryAfter } = response;
      if (status !== 503 || code !== 'webhook_busy' || retryAfter === undefined) {
        wrong.push(`a valid request got the response ${status} ${code}`);
        return;
      }
      counts.busy += 1;
      await wait(Math.min(Number(retryAfter) * 1000, 5000));
    }
  }
}

async function attempt(port: number, sent: WebhookRequest, chunked: boolean) {
  const { path, signature, body } = sent;
  const headers = {
    'content-type': 'application/json',
    'x-webhook-signature': signature,
    ...(chunked ? {} : { 'content-length': body.length }),
  };
  const outgoing = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers });
  outgoing.setTimeout(RESPONSE_MS, () => outgoing.destroy(new Error('no response')));
  const received = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject);
  });
  outgoing.end(body);
  const incoming = await received;
  const responseText = await text(incoming);
  return {
    status: incoming.statusCode!,
    code: /"code":"(\w+)"/.exec(responseText)?.[1] ?? '',
    retryAfter: incoming.headers['retry-after'],
  };
}

serveCommands(null, {
  start(port: number) {
    loop = sendAll(port);
  },
  /** Deletes the latencies measured so far. Called after the application's warm-up. */
  begin() {
    latencies.length = 0;
  },
  async stop(): Promise<SenderReport> {
    stopping.abort();
    repeatUntil = performance.now() + REPEAT_MS;
    await loop;
    await Promise.all(pending);
    agent.destroy();
    latencies.sort((a, b) => a - b);
    const percentile = (share: number): number =>
      latencies[Math.ceil(latencies.length * share) - 1] ?? Infinity;
    return { ...counts, wrong, events, p50Ms: percentile(0.5), p99Ms: percentile(0.99) };
  },
});
