import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';
import { describeWithEachAdapter } from '../../support/api/api-harness.js';
import { printedBy } from '../../support/processes/start-program.js';
import { json, type Script } from '../../support/api/scripted-service.js';

const LIMIT = 1024 ** 2;

/** Makes the calls in a separate process, which runs the garbage collector before each measurement. */
const program = (baseUrl: string, adapter: string): string => `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  import { Module } from '@nestjs/common';
  import { NestFactory } from '@nestjs/core';
  import { PaymentsApiService, PaymentsModule } from 'nestjs-payments';

  class App {}
  Module({ imports: [PaymentsModule.forRoot({
    baseUrl: '${baseUrl}', clientId: 'a', clientSecret: 'b', webhookSecret: 'c',
    api: { adapter: '${adapter}', maxResponseBytes: ${LIMIT}, attemptTimeoutMs: 60_000, deadlineMs: 60_000 },
  })] })(App);
  const app = await NestFactory.create(App, { logger: false });
  const payments = app.get(PaymentsApiService);
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc');
  const liveBytes = () => {
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  await payments.get('/v1/warm');
  const results = [];
  for (let n = 0; n < ${RESPONSES.length}; n += 1) {
    const before = liveBytes();
    let peak = 0;
    const watch = setInterval(() => (peak = Math.max(peak, liveBytes() - before)), 25);
    const result = await payments.get('/v1/things').then((body) => body.length, (error) => error.code);
    clearInterval(watch);
    results.push({ result, peak });
  }
  console.log(JSON.stringify(results));
  await app.close();
`;

/** Sends a body of this length in HTTP chunks of one byte. */
function inSingleBytes(count: number): Script {
  const head = 'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n';
  const chunks = Buffer.alloc(count * 6, '1\r\nx\r\n');
  return (_, { socket }) => {
    socket?.write(head);
    socket?.write(chunks);
    socket?.end('0\r\n\r\n');
  };
}

/** Sends a body of 512 MiB. */
const hugeBody: Script = (_, response) => {
  const chunks = function* (): Generator<Buffer> {
    const chunk = Buffer.alloc(1024 ** 2);
    for (let n = 0; n < 512; n += 1) yield chunk;
  };
  Readable.from(chunks()).pipe(response);
};

const BOMB = gzipSync(Buffer.alloc(16 * 1024 ** 2));
const bomb: Script = (_, response) =>
  response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB);

/** What the service sends, and the error code or length of the body that the caller gets. */
const RESPONSES: readonly (readonly [what: string, script: Script, result: unknown])[] = [
  ['a body larger than the limit', hugeBody, 'response_too_large'],
  ['a gzip bomb', bomb, 'response_too_large'],
  ['a body of the limit in 1-byte chunks', inSingleBytes(LIMIT), LIMIT],
];

describeWithEachAdapter('memory for a response', (harness, adapter) => {
  // Node.js allocates up to 256 KiB itself, for example for compiled code. The global fetch also creates an object for
  // each chunk of a socket read. A read of 64 KiB has up to 10,000 chunks of one byte, and a busy machine buffers more
  // reads.
  const overhead = adapter === 'fetch' ? 4 * 1024 ** 2 : 256 * 1024;
  it('HT-27 memory grows by at most twice maxResponseBytes for a body that is too large, a gzip bomb, or a maximum body in 1-byte chunks', async () => {
    harness.service.queue.push(json(200, {}), ...RESPONSES.map(([, script]) => script));
    const printed = await printedBy(program(harness.service.baseUrl, adapter));
    const measured = JSON.parse(printed) as { result: unknown; peak: number }[];
    expect(measured.map(({ result }, at) => [RESPONSES[at]![0], result])).toEqual(
      RESPONSES.map(([what, , result]) => [what, result]),
    );
    const limit = 2 * LIMIT + overhead;
    expect(measured.filter(({ peak }) => peak >= limit)).toEqual([]);
    expect(harness.service.calls).toHaveLength(1 + RESPONSES.length);
  });
});
