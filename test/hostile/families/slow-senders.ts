// Connections that send slowly, in pieces of one byte, or do not read their answer. They come in waves: while one
// lasts, the application is busy; between two, it must accept deliveries again.
import { setTimeout as wait } from 'node:timers/promises';
import { connect } from 'node:net';
import { COMPANIES, validDelivery } from '../deliveries.ts';
import type { Attack, Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import { head, tinyChunkRequest, withLength } from '../requests.ts';
import { REFUSED } from '../tally.ts';

/** Milliseconds between two waves. */
const PAUSE_MS = 6000;
/** Milliseconds between the connections of a wave. */
const SPACING_MS = 2;
/** One a second: longer than a body may take to arrive (5 s) and a refused sender to stop (5 s). */
const BODY_PIECES = 20;

type Sender = (attack: Attack) => Promise<void>;

/** A wave of 600 slow connections, and some that send at full speed. */
const WAVE: readonly Sender[] = [
  ...repeat(150, slowHead),
  ...repeat(250, slowBody(false)),
  ...repeat(150, slowBody(true)),
  ...repeat(46, neverReads),
  ...repeat(4, tinyChunks),
];

export const family: Family = {
  name: 'slow senders',
  lanes: 1,
  async attempt(attack) {
    await Promise.all(
      WAVE.map(async (send, index) => {
        // Connections that last, not a flood of new ones.
        await wait(index * SPACING_MS);
        await send(attack);
      }),
    );
    await wait(PAUSE_MS);
  },
};

/** A head that never ends. Node's own `headersTimeout` ends it after a minute, so the sender gives up first. */
async function slowHead({ port, random, tally }: Attack): Promise<void> {
  const { path } = validDelivery(COMPANIES[0]!, 'slow');
  const text = head({ path, signature: `sha512=${random.hex(128)}` });
  const pieces = Array.from({ length: 8 }, (_, index) => text.slice(index * 10, index * 10 + 10));
  const answer = await exchange(port, pieces, { pauseMs: 1000, end: true });
  tally.judge('slow head', answer, REFUSED);
}

/** A body of which one byte a second arrives, behind a well-formed signature. */
function slowBody(isChunked: boolean): Sender {
  return async ({ port, random, tally }) => {
    const { path } = validDelivery(random.pick(COMPANIES), 'slow');
    const framing = isChunked ? 'Transfer-Encoding: chunked' : 'Content-Length: 1000000';
    const signature = `sha512=${random.hex(128)}`;
    const pieces = [
      head({ path, signature, lines: [framing] }),
      ...Array.from({ length: BODY_PIECES }, () => (isChunked ? '1\r\n{\r\n' : '{')),
    ];
    const answer = await exchange(port, pieces, { pauseMs: 1000, end: true, limitMs: 25_000 });
    tally.judge('slow body', answer, { kind: 'refused', only: [408, 503] });
  };
}

/** Many requests whose answers are never read, so that they stay in the application's memory. */
async function neverReads({ port, random, tally }: Attack): Promise<void> {
  const { path, body } = validDelivery(COMPANIES[0]!, 'never-reads');
  const request = withLength({ path, body, signature: `sha512=${random.hex(128)}` });
  const socket = connect({ port, host: '127.0.0.1' }).pause();
  socket.on('error', () => {});
  socket.write(Buffer.concat(Array.from({ length: 5 }, () => request)));
  await wait(5000);
  socket.resetAndDestroy();
  tally.attempts += 1;
  tally.refuse('not read');
}

/** A body of 1 MiB in chunks of one byte, at full speed. */
async function tinyChunks({ port, random, tally }: Attack): Promise<void> {
  const { path } = validDelivery(COMPANIES[0]!, 'tiny');
  const pieces = tinyChunkRequest(path, `sha512=${random.hex(128)}`);
  const answer = await exchange(port, pieces, { limitMs: 25_000 });
  tally.judge('1 MiB in chunks of one byte', answer, REFUSED);
}

function repeat(count: number, sender: Sender): Sender[] {
  return Array.from({ length: count }, () => sender);
}
