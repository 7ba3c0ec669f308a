/** Runs the function on this machine, as API Gateway and a schedule do on AWS. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Context } from 'aws-lambda';
import { app, everyMinute, handler } from './function.js';

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const result = await handler(
    {
      version: '2.0',
      routeKey: '$default',
      rawPath: request.url,
      rawQueryString: '',
      headers: request.headers,
      requestContext: {
        stage: '$default',
        http: { method: request.method, path: request.url, protocol: 'HTTP/1.1', sourceIp: '' },
      },
      body: await text(request),
      isBase64Encoded: false,
    },
    {} as Context,
  );
  const { statusCode, headers, body } = result as {
    statusCode: number;
    headers: Record<string, string>;
    body: string;
  };
  response.writeHead(statusCode, headers).end(body);
}

const server = createServer((request, response) => void respond(request, response));
server.listen(process.env['PORT'] ?? 3000);
const schedule = setInterval(() => void everyMinute(), 60_000);

process.once('SIGTERM', () => {
  clearInterval(schedule);
  server.close(() => void app.close());
});
