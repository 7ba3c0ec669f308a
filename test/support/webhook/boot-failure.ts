import { inspect } from 'node:util';
import { Module } from '@nestjs/common';
import type { ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { PaymentsError } from 'nestjs-payments';
import { CapturedLog } from '../log/captured-log.js';

/** Boots an application that must fail. Returns its error and all its output. */
export async function bootFailure(
  ...imports: NonNullable<ModuleMetadata['imports']>
): Promise<{ error: PaymentsError; shown: string }> {
  @Module({ imports })
  class AppModule {}
  const log = new CapturedLog();
  let booted;
  try {
    booted = await NestFactory.create(AppModule, { logger: log, abortOnError: false });
    await booted.init();
  } catch (error) {
    const shown = [JSON.stringify(error), inspect(error, { depth: 9 }), ...log.lines].join('\n');
    return { error: error as PaymentsError, shown };
  }
  await booted.close();
  throw new Error('The application booted.');
}
