import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { delivery } from '../../load/webhook-requests.ts';
import type { Delivery } from '../../load/webhook-requests.ts';
import type { CommandProcess } from '../../../test/support/processes/command-process.ts';
import { epochMs } from '../../queues/handler-counter.ts';
import type { Target } from '../../rounds/row.ts';

/** Number of events that are sent per second. */
export const PER_SECOND = 500;
/** Milliseconds between two checks for events that are due to be sent. */
const TICK_MS = 2;

/** A target: in the median of the rounds, `subject` is at most `bound` milliseconds. */
export function atMostMs(subject: string, bound: number): Target {
  return { text: `at most ${bound} ms`, of: 'value', subject, at: 'most', bound };
}

/**
 * Sends {@link PER_SECOND} events per second for `ms` milliseconds, even if the responses are slow.
 *
 * @returns for each event, the milliseconds from sending it to the call of its handler, in ascending order.
 */
export async function latencies(app: CommandProcess, ms: number): Promise<number[]> {
  const sentAt = new Map<string, number>();
  const { length } = await sendSteadily(app, ms, (event) => {
    sentAt.set((JSON.parse(event.body.toString()) as { id: string }).id, epochMs());
  });
  const found: number[] = [];
  while (found.length < length) {
    for (const [id, handledAt] of await app.request<[string, number][]>('handled')) {
      const sent = sentAt.get(id);
      if (sent !== undefined) found.push(handledAt - sent);
    }
    await wait(20);
  }
  return found.toSorted((a, b) => a - b);
}

/**
 * Sends {@link PER_SECOND} events per second for `ms` milliseconds, even if the responses are slow.
 *
 * @returns for each event, the milliseconds from sending it to the end of the response, in ascending order.
 */
export async function responseTimes(app: CommandProcess, ms: number): Promise<number[]> {
  return (await sendSteadily(app, ms)).toSorted((a, b) => a - b);
}

/** Resolves with the milliseconds from sending to the end of the response for each event. */
async function sendSteadily(
  app: CommandProcess,
  ms: number,
  onSend: (event: Delivery) => void = () => {},
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const responses: Promise<number>[] = [];
  const begun = performance.now();
  while (performance.now() - begun < ms) {
    const due = ((performance.now() - begun) / 1000) * PER_SECOND;
    while (responses.length < due) {
      const event = delivery('payments');
      const sentAt = performance.now();
      onSend(event);
      const posted = post(app.ready as string, agent, event);
      responses.push(posted.then(() => performance.now() - sentAt));
    }
    await wait(TICK_MS);
  }
  const times = await Promise.all(responses);
  agent.destroy();
  return times;
}

/**
 * Sends an event. If the server closed the idle connection at that moment, the function sends the event again. This is
 * safe, because the inbox ignores copies.
 *
 * @throws if the response is not a 2xx.
 */
function post(url: string, agent: Agent, { body, headers }: Delivery): Promise<void> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      if (response.statusCode! < 300) response.once('end', resolve);
      else reject(new Error(`The response is ${response.statusCode}, not a 2xx.`));
    });
    sending.once('error', (error: Error & { code?: string }) => {
      if (error.code !== 'ECONNRESET' || !sending.reusedSocket) reject(error);
      else resolve(post(url, agent, { body, headers }));
    });
    sending.end(body);
  });
}

/** Returns the value at a share of the sorted values. The share 0.5 returns the median. */
export function quantileOf(sorted: readonly number[], share: number): number {
  return sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
}
