// A minimal payments service with one token and one transaction.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serveCommands } from '../../test/support/processes/command-process.ts';

const TOKEN = JSON.stringify({ access_token: 'bench', expires_in: '3599', token_type: 'Bearer' });
const TRANSACTION = JSON.stringify({
  transactionId: '8d7a3f0e-0000-4000-8000-000000000000',
  status: 'complete',
  amount: 1500,
  accountReference: 'INV-1001',
  externalReference: 'order-77',
});

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const isToken = request.url === '/v1/auth/token';
  request.resume();
  const body = isToken ? TOKEN : TRANSACTION;
  response
    .writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    .end(body);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  serveCommands(`http://127.0.0.1:${port}`);
});
