import { Logger, ShutdownSignal } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { ShopSettings } from './shop.config.js';
import { ShopLogger } from './shop.logger.js';
import { ShopModule } from './shop.module.js';

const ADAPTERS = {
  express: () => new ExpressAdapter(),
  fastify: () => new FastifyAdapter(),
};

/**
 * Starts the shop. Nothing here is there for the sake of payments: no raw body, no parser, no route.
 *
 * @throws PaymentsError for settings the payments module refuses, and Node's own error where it can't listen.
 */
export async function startShop(settings: ShopSettings): Promise<INestApplication> {
  const app = await NestFactory.create(ShopModule.with(settings), ADAPTERS[settings.adapter](), {
    abortOnError: false,
    logger: new ShopLogger(),
  });
  // Without the hooks a signal ends the process at once, in the middle of a booking.
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
