// node:http and an HMAC without a framework: the lower limit of the costs. With a database, deliveries that arrive
// together are stored by one multi-row insert. The responses follow when it is committed.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SECRET } from '../load/deliveries.ts';
import { serveCommands, configuration } from '../processes/command-server.ts';
import { GroupedInserts } from './grouped-inserts.ts';

const { url } = configuration() as { url?: string };
const inserts = url === undefined ? null : await GroupedInserts.open(url);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const sent = Buffer.from(String(request.headers['x-webhook-signature']).slice(7), 'hex');
    const expected = createHmac('sha512', SECRET).update(body).digest();
    const genuine = sent.length === expected.length && timingSafeEqual(sent, expected);
    const { id } = JSON.parse(body.toString()) as { id: string };
    const end = (status: number): void => void response.writeHead(status).end();
    if (!genuine) end(401);
    else if (inserts === null) end(200);
    else
      inserts.insert(id, body).then(
        () => end(200),
        () => end(503),
      );
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  serveCommands(`http://127.0.0.1:${port}/`, { end: () => inserts?.close() });
});
