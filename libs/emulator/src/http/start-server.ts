import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { EmulatorCore } from '../emulator-core.js';
import { EmulatorModule } from '../emulator.module.js';
import type { PageFile } from '../pages/page-files.js';
import { readPageFiles } from '../pages/page-files.js';
import { RESPONSE_HEADERS } from '../pages/page-layout.js';
import { silenceBootLog } from '../silence-boot-log.js';
import { parseBody } from './body-parser.js';
import type { EnvironmentAddress } from './environment-address.js';
import { ErrorFilter } from './error.filter.js';
import { ResponseFaultInjector } from './response-fault-injector.js';

const BODY_LIMIT_BYTES = 1_048_576;

/**
 * Starts a server for each environment, and stores the URL of each server in `core.addresses`.
 *
 * @throws EmulatorInputError if the webhook URL must be public and is not, and Node's error if a port is in use
 */
export async function* startServers(core: EmulatorCore): AsyncGenerator<NestFastifyApplication> {
  const { port, productionPort, publicUrl, productionPublicUrl, companies } = core.options;
  const { sandbox, production } = core.addresses;
  // The webhooks of all companies are on one host.
  await core.requirePublicHost('webhookUrl', companies[0]?.webhookUrl);
  const files = await readPageFiles();
  yield await startServer(core, sandbox, port, publicUrl, files);
  yield await startServer(core, production, productionPort, productionPublicUrl, files);
}

async function startServer(
  core: EmulatorCore,
  address: EnvironmentAddress,
  port: number,
  publicUrl: string | undefined,
  files: ReadonlyMap<string, PageFile>,
): Promise<NestFastifyApplication> {
  const injector = new ResponseFaultInjector();
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT_BYTES,
    // Open connections, such as one that a fault delays, must not delay the close.
    forceCloseConnections: true,
  });
  const restoreLog = silenceBootLog();
  try {
    const app = await NestFactory.create<NestFastifyApplication>(
      EmulatorModule.of(core, address, injector, files),
      adapter,
      { bodyParser: false, abortOnError: false },
    );
    app.useGlobalFilters(new ErrorFilter(core.options.shapes));
    const fastify = adapter.getInstance();
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES },
      parseBody,
    );
    fastify.addHook('onRequest', (request, reply, done) => {
      if (request.url.startsWith('/emulator')) void reply.headers(RESPONSE_HEADERS);
      done();
    });
    // The redirect keeps the query, which selects the tab.
    fastify.get('/emulator/', ({ url }, reply) =>
      reply.redirect(`/emulator${url.slice('/emulator/'.length)}`, 308),
    );
    fastify.addHook('onSend', (request, reply, payload, done) =>
      injector.onSend(request, reply, payload, done),
    );
    await app.listen(port, address.hostname);
    address.url = publicUrl ?? (await app.getUrl());
    return app;
  } finally {
    restoreLog();
  }
}
