import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { AnswerFilter } from './answers/answer.filter.js';
import { AnswerSpoiler } from './answers/answer.spoiler.js';
import { parseBody } from './answers/body.parser.js';
import type { EmulatorCore } from './emulator.core.js';
import type { EmulatorHost } from './emulator.host.js';
import { EmulatorModule } from './emulator.module.js';
import { silenceBoot } from './emulator.logger.js';
import type { PageFile } from './pages/page.files.js';
import { ANSWER_HEADERS } from './pages/page.shell.js';

const BODY_LIMIT = 1_048_576;

/** Starts one host of the emulator and tells it where it is. Rejects where the port is taken. */
export async function startServer(
  core: EmulatorCore,
  host: EmulatorHost,
  port: number,
  publicUrl: string | undefined,
  files: ReadonlyMap<string, PageFile>,
): Promise<NestFastifyApplication> {
  const spoiler = new AnswerSpoiler();
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT,
    // Nothing a client holds open, least of all a connection a fault keeps waiting, delays a close.
    forceCloseConnections: true,
  });
  const endSilence = silenceBoot();
  try {
    const app = await NestFactory.create<NestFastifyApplication>(
      EmulatorModule.of(core, host, spoiler, files),
      adapter,
      { bodyParser: false, abortOnError: false },
    );
    app.useGlobalFilters(new AnswerFilter(core.options.shapes));
    const fastify = adapter.getInstance();
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_LIMIT }, parseBody);
    fastify.addHook('onRequest', (request, reply, done) => {
      if (request.url.startsWith('/emulator')) void reply.headers(ANSWER_HEADERS);
      done();
    });
    fastify.get('/emulator/', (_, reply) => reply.redirect('/emulator', 308));
    fastify.addHook('onSend', (request, reply, payload, done) =>
      spoiler.onSend(request, reply, payload, done),
    );
    await app.listen(port, host.hostname);
    host.url = publicUrl ?? (await app.getUrl());
    return app;
  } finally {
    endSilence();
  }
}
