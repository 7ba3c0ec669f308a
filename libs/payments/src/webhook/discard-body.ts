import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { ChunkCount } from './raw-body.js';

/** For how long a sender that was refused may go on sending, in milliseconds. */
const DISCARD_MS = 5000;

/**
 * Drops what a refused sender still sends, so that it can read the answer: it would lose the answer if the connection
 * were closed at once. Closes the connection of a sender that does not stop within 5 s, or that sends tiny chunks.
 *
 * @param body the request, or the stream that a hook of the application has put in its place
 */
export function discardBody(
  request: IncomingMessage,
  body: Readable,
  runtime: PaymentsRuntime,
): void {
  // A request that a serverless adapter made may have no connection.
  const socket = request.socket as Partial<IncomingMessage['socket']> | null | undefined;
  if (request.destroyed || typeof socket?.destroy !== 'function') return;
  // An error without a listener would end the process.
  body.on('error', () => {});
  const chunks = new ChunkCount();
  // With a listener of data, Node.js does not drop the data by itself, uncounted.
  body.on('data', (chunk: Buffer | string) => {
    if (!chunks.add(chunk.length)) request.destroy();
  });
  request.once(
    'close',
    runtime.schedule(DISCARD_MS, () => request.destroy()),
  );
}
