import { Logger, ShutdownSignal } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { ShopSettings } from './shop-config.js';
import { ShopLogger } from './shop-logger.js';
import { ShopModule } from './shop.module.js';

const ADAPTERS = {
  express: () => new ExpressAdapter(),
  fastify: () => new FastifyAdapter(),
};

/**
 * Starts the shop. This function does not configure a raw body, a body parser or a route for `nestjs-payments`, because
 * none is necessary.
 *
 * @throws PaymentsError if the payments module rejects the settings, or Node's error if the port is not available.
 */
export async function startShop(settings: ShopSettings): Promise<INestApplication> {
  const app = await NestFactory.create(
    ShopModule.register(settings),
    ADAPTERS[settings.adapter](),
    { abortOnError: false, logger: new ShopLogger() },
  );
  // Without these hooks, a signal would end the process while a handler runs.
  app.enableShutdownHooks([ShutdownSignal.SIGINT, ShutdownSignal.SIGTERM], {
    useProcessExit: true,
  });
  try {
    await app.listen(settings.port, settings.host);
  } catch (error) {
    await app.close();
    throw error;
  }
  new Logger('Shop').log(`Listening on ${await app.getUrl()} (${settings.adapter})`);
  return app;
}
