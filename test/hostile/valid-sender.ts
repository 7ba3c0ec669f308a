// The payments service: sends valid deliveries at a fixed rate, and those that are refused as busy again.
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { serve } from './child-process.ts';
import { COMPANIES, eventKey, validDelivery } from './deliveries.ts';
import type { Delivery } from './deliveries.ts';

/** What became of the valid deliveries. */
export interface SenderReport {
  readonly sent: number;
  /** Deliveries answered 200 in the end. */
  readonly accepted: number;
  /** Attempts refused with 503 `webhook_busy` and Retry-After, and sent again. */
  readonly busy: number;
  /** Attempts whose connection ended without an answer, and sent again. */
  readonly disconnected: number;
  /** Answers that a valid delivery must not get. */
  readonly wrong: readonly string[];
  /** Latency of the attempts answered 200, in milliseconds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Events that must have been handled once. */
  readonly events: readonly string[];
}

const INTERVAL_MS = 1000 / 50;
/** How long a delivery is sent again after the last one was sent, and how long one answer may take. */
const GIVE_UP_MS = 20_000;
const ANSWER_MS = 15_000;

const agent = new Agent({ keepAlive: true, maxSockets: 200 });
const latencies: number[] = [];
const wrong: string[] = [];
const events: string[] = [];
const counts = { sent: 0, accepted: 0, busy: 0, disconnected: 0 };
const pending = new Set<Promise<void>>();
/** Aborted when no further delivery is to be sent. */
const enough = new AbortController();
let giveUpAt = Infinity;
let loop: Promise<void> = Promise.resolve();

async function sendAll(port: number): Promise<void> {
  const began = performance.now();
  for (let n = 0; !enough.signal.aborted; n += 1) {
    await wait(Math.max(0, began + n * INTERVAL_MS - performance.now()));
    const company = COMPANIES[n % COMPANIES.length]!;
    const id = `valid-${n}`;
    const delivery = validDelivery(company, id, { padding: n % 20 === 0 ? 50_000 : 300 });
    events.push(eventKey(company.id, id));
    counts.sent += 1;
    const one = deliver(port, delivery, n % 10 === 0).finally(() => pending.delete(one));
    pending.add(one);
  }
}

/** Sends a delivery until it is answered 200, as the service does. */
async function deliver(port: number, delivery: Delivery, chunked: boolean): Promise<void> {
  while (performance.now() < giveUpAt) {
    const began = performance.now();
    const answer = await attempt(port, delivery, chunked).catch((error: Error) => error);
    if (answer instanceof Error) {
      counts.disconnected += 1;
      await wait(200);
    } else if (answer.status === 200) {
      latencies.push(performance.now() - began);
      counts.accepted += 1;
      return;
    } else {
      const { status, code, retryAfter } = answer;
      if (status !== 503 || code !== 'webhook_busy' || retryAfter === undefined) {
        wrong.push(`a valid delivery was answered ${status} ${code}`);
        return;
      }
      counts.busy += 1;
      await wait(Math.min(Number(retryAfter) * 1000, 5000));
    }
  }
}

async function attempt(port: number, delivery: Delivery, chunked: boolean) {
  const { path, signature, body } = delivery;
  const headers = {
    'content-type': 'application/json',
    'x-webhook-signature': signature,
    ...(chunked ? {} : { 'content-length': body.length }),
  };
  const outgoing = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers });
  outgoing.setTimeout(ANSWER_MS, () => outgoing.destroy(new Error('no answer')));
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject);
  });
  outgoing.end(body);
  const incoming = await answered;
  const answer = await text(incoming);
  return {
    status: incoming.statusCode!,
    code: /"code":"(\w+)"/.exec(answer)?.[1] ?? '',
    retryAfter: incoming.headers['retry-after'],
  };
}

serve({
  start(port: number) {
    loop = sendAll(port);
  },
  /** Forgets what was measured so far, when the application is warm. */
  begin() {
    latencies.length = 0;
  },
  async stop(): Promise<SenderReport> {
    enough.abort();
    giveUpAt = performance.now() + GIVE_UP_MS;
    await loop;
    await Promise.all(pending);
    agent.destroy();
    latencies.sort((a, b) => a - b);
    const percentile = (share: number): number =>
      latencies[Math.ceil(latencies.length * share) - 1] ?? Infinity;
    return { ...counts, wrong, events, p50Ms: percentile(0.5), p99Ms: percentile(0.99) };
  },
});
