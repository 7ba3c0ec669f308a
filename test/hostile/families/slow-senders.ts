// Connections that send slowly, send chunks of one byte, or do not read the response. They come in waves. During a wave
// the application is busy. Between two waves it must accept webhook requests again.
import { setTimeout as wait } from 'node:timers/promises';
import { connect } from 'node:net';
import { COMPANIES, validRequest } from '../webhook-requests.ts';
import type { Attack, Family } from '../family.ts';
import { exchange } from '../raw-exchange.ts';
import { head, tinyChunkRequest, withLength } from '../request-bytes.ts';
import { REJECTED } from '../tally.ts';

/** Milliseconds between two waves. */
const PAUSE_MS = 6000;
/** Milliseconds between the connections of a wave. */
const SPACING_MS = 2;
/** One piece a second: longer than the application waits for a body (5 s) and then for the sender to stop (5 s). */
const BODY_PIECES = 20;

type Sender = (attack: Attack) => Promise<void>;

/** A wave of 596 slow connections and 4 that send at full speed. */
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
        // The attack is the number of open connections, not the rate of new connections.
        await wait(index * SPACING_MS);
        await send(attack);
      }),
    );
    await wait(PAUSE_MS);
  },
};

/** An incomplete head. The sender closes the connection after 8 s, before Node's `headersTimeout` of a minute. */
async function slowHead({ port, random, tally }: Attack): Promise<void> {
  const { path } = validRequest(COMPANIES[0]!, 'slow');
  const text = head({ path, signature: `sha512=${random.hex(128)}` });
  const pieces = Array.from({ length: 8 }, (_, index) => text.slice(index * 10, index * 10 + 10));
  const response = await exchange(port, pieces, { pauseMs: 1000, end: true });
  tally.check('slow head', response, REJECTED);
}

/** A body of one byte per second, with a well-formed signature. */
function slowBody(isChunked: boolean): Sender {
  return async ({ port, random, tally }) => {
    const { path } = validRequest(random.pick(COMPANIES), 'slow');
    const framing = isChunked ? 'Transfer-Encoding: chunked' : 'Content-Length: 1000000';
    const signature = `sha512=${random.hex(128)}`;
    const pieces = [
      head({ path, signature, lines: [framing] }),
      ...Array.from({ length: BODY_PIECES }, () => (isChunked ? '1\r\n{\r\n' : '{')),
    ];
    const response = await exchange(port, pieces, { pauseMs: 1000, end: true, limitMs: 25_000 });
    tally.check('slow body', response, { kind: 'rejected', only: [408, 503] });
  };
}

/** Five requests whose responses the sender never reads, so that they stay in the application's memory. */
async function neverReads({ port, random, tally }: Attack): Promise<void> {
  const { path, body } = validRequest(COMPANIES[0]!, 'never-reads');
  const request = withLength({ path, body, signature: `sha512=${random.hex(128)}` });
  const socket = connect({ port, host: '127.0.0.1' }).pause();
  socket.on('error', () => {});
  socket.write(Buffer.concat(Array.from({ length: 5 }, () => request)));
  await wait(5000);
  socket.resetAndDestroy();
  tally.attempts += 1;
  tally.countRejection('not read');
}

/** A body of 1 MiB in chunks of one byte, at full speed. */
async function tinyChunks({ port, random, tally }: Attack): Promise<void> {
  const { path } = validRequest(COMPANIES[0]!, 'tiny');
  const pieces = tinyChunkRequest(path, `sha512=${random.hex(128)}`);
  const response = await exchange(port, pieces, { limitMs: 25_000 });
  tally.check('1 MiB in chunks of one byte', response, REJECTED);
}

function repeat(count: number, sender: Sender): Sender[] {
  return Array.from({ length: count }, () => sender);
}
