// A node:http server that verifies an HMAC without a framework. The costs of this server are the lower limit. With
// a database, the server also writes what an inbox must write (see LimitStore), and responds after it has committed the
// event.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SECRET } from '../load/webhook-requests.ts';
import { serveCommands, configuration } from '../../test/support/processes/command-process.ts';
import { openLimitStore } from './bare-event-store.ts';
import type { LimitDatabase } from './bare-event-store.ts';

const { database } = configuration() as { database?: LimitDatabase };
const store = database === undefined ? null : await openLimitStore(database);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const sent = Buffer.from(String(request.headers['x-webhook-signature']).slice(7), 'hex');
    const expected = createHmac('sha512', SECRET).update(body).digest();
    const genuine = sent.length === expected.length && timingSafeEqual(sent, expected);
    const event = JSON.parse(body.toString()) as { id: string; data: { transactionId: string } };
    const end = (status: number): void => void response.writeHead(status).end();
    if (!genuine) end(401);
    else if (store === null) end(200);
    else
      store.store({ id: event.id, transaction: event.data.transactionId, body }).then(
        () => end(200),
        () => end(503),
      );
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  serveCommands(`http://127.0.0.1:${port}/`, { end: () => store?.close() });
});
