import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import type { INestApplication, ModuleMetadata, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';

/** The HTTP adapter of an application. */
export type Adapter = 'express' | 'fastify';

/** Starts an application on a free port of the loopback interface. */
export async function listen(
  adapter: Adapter,
  metadata: ModuleMetadata,
  options: { rawBody?: boolean } = {},
): Promise<INestApplication> {
  class App {}
  Module(metadata)(App);
  const http = adapter === 'express' ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(App, http, { logger: ['error', 'warn'], ...options });
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  return app;
}

/** Creates a class with one decorated method. Node cannot run decorators, so this function calls the decorator. */
export function provider(
  method: (...args: never[]) => unknown,
  decorate: MethodDecorator,
): Type<{ handle: unknown }> {
  class Handlers {
    declare handle: unknown;
  }
  const descriptor = { value: method, writable: true, configurable: true, enumerable: false };
  Object.defineProperty(Handlers.prototype, 'handle', descriptor);
  const changed = decorate(
    Handlers.prototype,
    'handle',
    descriptor as TypedPropertyDescriptor<never>,
  );
  if (changed) Object.defineProperty(Handlers.prototype, 'handle', changed as PropertyDescriptor);
  Injectable()(Handlers);
  return Handlers;
}
