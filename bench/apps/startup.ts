// An application with 200 providers. It measures the time from the start of the process until the application listens.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import type { Provider } from '@nestjs/common';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen } from './nest-application.ts';

/** The modules that the application loads in addition to its providers. */
export type StartWith = 'nothing' | 'others' | 'payments';

const { with: kind } = configuration() as { with: StartWith };

/** A module with twenty providers, each of which injects the previous one. */
function feature(number: number): new () => unknown {
  const names = Array.from({ length: 20 }, (_none, index) => `provider-${number}-${index}`);
  const providers = names.map((name, index): Provider => ({
    provide: name,
    inject: index === 0 ? [] : [names[index - 1]!],
    useFactory: (...previous: object[]) => ({ name, previous }),
  }));
  class Feature {}
  Module({ providers })(Feature);
  return Feature;
}

async function extra() {
  if (kind === 'nothing') return [];
  if (kind === 'others') {
    const [{ HttpModule }, { ConfigModule }] = await Promise.all([
      import('@nestjs/axios'),
      import('@nestjs/config'),
      import('class-validator'),
    ]);
    return [HttpModule, ConfigModule.forRoot({ ignoreEnvFile: true })];
  }
  const { PaymentsModule } = await import('nestjs-payments');
  const webhookSecret = 'whsec_bench';
  const credentials = { clientId: 'bench', clientSecret: 'bench', webhookSecret };
  return [PaymentsModule.forRoot({ baseUrl: 'http://127.0.0.1:9', ...credentials })];
}

const features = Array.from({ length: 10 }, (_none, number) => feature(number));
const app = await listen('express', { imports: [...features, ...(await extra())] });
serveCommands(performance.now(), { end: () => app.close() });
