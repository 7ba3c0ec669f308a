import { connect } from 'node:net';

/** What a connection was answered. */
export interface RawAnswer {
  /** Final statuses, in order; those of 100 to 199 are left out. */
  readonly statuses: readonly number[];
  /** `code` of the last JSON body. */
  readonly code: string | undefined;
  /** Whether neither an answer nor the end of the connection came within the limit. */
  readonly hung: boolean;
}

export interface RawOptions {
  /** How many answers to wait for. Default 1. */
  readonly answers?: number;
  /** Ends the sending side after the last piece. Default `false`. */
  readonly end?: boolean;
  /** Milliseconds between two pieces. Default 0: each goes in a packet of its own, one after the other. */
  readonly pauseMs?: number;
  /** Milliseconds after which the connection counts as hung. Default 15,000. */
  readonly limitMs?: number;
}

const ANSWER = /HTTP\/1\.[01] ([2-9]\d\d)[^\r\n]*\r\n([^]*?)\r\n\r\n/g;
const MAX_KEPT = 100_000;

/** Sends pieces over a connection of its own and reads the answers. Never rejects. */
export function exchange(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  { answers = 1, end = false, pauseMs = 0, limitMs = 15_000 }: RawOptions = {},
): Promise<RawAnswer> {
  const { promise, resolve } = Promise.withResolvers<RawAnswer>();
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let received = '';
  const finish = (hung: boolean): void => {
    clearTimeout(timer);
    // With RST: a closed connection in TIME_WAIT keeps its port for a minute, and there are 28,000.
    socket.resetAndDestroy();
    const statuses = [...received.matchAll(ANSWER)].map(([, status]) => Number(status));
    const code = [...received.matchAll(/"code":"(\w+)"/g)].at(-1)?.[1];
    resolve({ statuses, code, hung });
  };
  const timer = setTimeout(() => finish(true), limitMs);
  socket.on('error', () => {});
  socket.once('close', () => finish(false));
  socket.on('data', (data: Buffer) => {
    if (received.length < MAX_KEPT) received += data.toString('latin1');
    if (countAnswers(received) >= answers) finish(false);
  });
  void (async () => {
    for (const piece of pieces) {
      if (socket.destroyed) return;
      await new Promise<void>((sent) => socket.write(piece, () => sent()));
      await new Promise<void>((go) => (pauseMs > 0 ? setTimeout(go, pauseMs) : setImmediate(go)));
    }
    if (end) socket.end();
  })();
  return promise;
}

/** How many answers have arrived with their whole body; the last may end with the connection instead. */
function countAnswers(received: string): number {
  let count = 0;
  for (const match of received.matchAll(ANSWER)) {
    const end = match.index + match[0].length;
    const length = /^content-length: (\d+)/im.exec(match[2]!)?.[1];
    const complete =
      length === undefined
        ? /^transfer-encoding: chunked/im.test(match[2]!) && received.includes('0\r\n\r\n', end)
        : received.length >= end + Number(length);
    if (!complete) return count;
    count += 1;
  }
  return count;
}
